//! FF-DBF: forced-forward demand bound. Baruah, Bonifaci, Marchetti-Spaccamela & Stiller, ECRTS 2008 and Real-Time
//! Systems 46(1), 2010; here exact over all speeds, in one pass.

use super::gfb::densest;
use super::progressions::Progressions;
use super::{check_constrained, settle};
use crate::exact::{Ratio, Rational, rational, whole};
use crate::{Evidence, Limits, Outcome, Precondition, Reason, TaskSet, Test, Verdict};
use std::cmp::Ordering;

/// Accepts if some speed `sigma` in `[max delta, 1]` satisfies, for all `t >= 0`,
///
/// ```text
/// sum ff_i(t, sigma) <= (m - (m - 1) * sigma) * t                                   t = q * T + r, 0 <= r < T
/// ff(t, sigma) = q * C + (r >= D ? C : [C - (D - r) * sigma]+)
/// ```
///
/// For fixed t the difference g(sigma) of the two sides is convex and piece-wise linear in sigma, so the good speeds
/// form an interval; the pass over t keeps the intersection. Only `t = j * T + D` matter: elsewhere g falls with t.
///
/// Constrained deadlines, at least two CPUs, real-valued time. For implicit deadlines it equals GFB. The evidence is
/// the least speed left.
pub fn ffdbf(set: &TaskSet, limits: &Limits) -> Verdict {
    let outcome = check_constrained(set).and_then(|()| {
        if set.cpus() < 2 {
            return Err(Outcome::NotApplicable(Precondition::SeveralCpus));
        }
        match densest(set) {
            None => Ok(Outcome::Schedulable(Evidence::Speed(whole(0)))),
            Some(index) => Ok(search(set, index, limits)),
        }
    });
    Verdict::new(Test::FfDbf, settle(outcome))
}

fn search(set: &TaskSet, densest: usize, limits: &Limits) -> Outcome {
    let top = set.tasks()[densest];
    let mut low = Ratio::new(top.wcet.into(), top.window().into());
    let mut high = Ratio::new(1, 1);
    let steps = set.tasks().iter().map(|task| (task.deadline, task.period, 0));
    let mut steps = Progressions::new(steps, 1 << 61);
    let mut horizon = Horizon::of(set, low);
    let mut demand = Demand::new(set);
    let mut previous = 0;
    let mut points = 0;
    while let Some((t, _)) = steps.next() {
        match horizon {
            Horizon::At(end) if t >= end => return accept(low),
            Horizon::Never => return Outcome::NotProven(Reason::Speed { interval: previous }),
            Horizon::Unknown if points >= points_without_horizon(set) => {
                return Outcome::NotProven(Reason::NoHorizon);
            }
            _ => {}
        }
        if t == previous {
            continue;
        }
        if points == limits.points {
            return Outcome::ResourceLimit { what: "points", limit: limits.points };
        }
        (previous, points) = (t, points + 1);
        demand.advance(t);
        if !demand.clearly_fits(low, high) {
            let Some((new_low, new_high)) = demand.narrow(low, high) else {
                return Outcome::NotProven(Reason::Speed { interval: t });
            };
            if new_low != low {
                horizon = Horizon::of(set, new_low);
            }
            (low, high) = (new_low, new_high);
        }
    }
    Outcome::ResourceLimit { what: "ticks of an interval", limit: 1 << 61 }
}

/// Where no horizon exists (the rate is exactly 0), look for a failure for a while before giving up.
fn points_without_horizon(set: &TaskSet) -> u64 {
    16 * set.tasks().len() as u64
}

fn accept(low: Ratio) -> Outcome {
    Outcome::Schedulable(Evidence::Speed(low.to_rational()))
}

/// From which t on the condition holds for speed `low` by itself, because `ff_i(t) <= u_i * (t + T_i - D_i)`: once
/// `t * (m - U - (m - 1) * low) >= sum(u_i * (T_i - D_i))`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Horizon {
    At(u64),
    /// The rate is negative: the condition fails in the long run, for this and every greater speed.
    Never,
    /// The rate is zero but the sum is not.
    Unknown,
}

impl Horizon {
    fn of(set: &TaskSet, low: Ratio) -> Self {
        let cpus = f64::from(set.cpus());
        let speed = low.numerator as f64 / low.denominator as f64;
        let (mut utilization, mut excess, mut implicit) = (0.0, 0.0, true);
        for task in set.tasks() {
            let share = task.wcet as f64 / task.period as f64;
            utilization += share;
            excess += share * (task.period - task.deadline) as f64;
            implicit &= task.period == task.deadline;
        }
        let rate = cpus - utilization - (cpus - 1.0) * speed;
        let error = (set.tasks().len() as f64 + 16.0) * f64::EPSILON * 2.0 * cpus;
        if rate > 1e6 * error {
            // The relative error of the quotient is below 1e-6 plus roundings; `as` saturates.
            let end = if implicit { 0 } else { (excess / rate * (1.0 + 4e-6) + 1.0) as u64 };
            return Horizon::At(end);
        }
        if rate < -1e6 * error {
            return Horizon::Never;
        }
        Horizon::exactly(set, low)
    }

    fn exactly(set: &TaskSet, low: Ratio) -> Self {
        let rate = whole(set.cpus()) - set.utilization() - whole(set.cpus() - 1) * low.to_rational();
        let part = |task: &crate::AnalysisTask| {
            rational(i128::from(task.wcet) * i128::from(task.period - task.deadline), task.period)
        };
        let excess: Rational = set.tasks().iter().map(part).sum();
        match (rate.cmp(&whole(0)), excess > whole(0)) {
            (Ordering::Less, _) => Horizon::Never,
            (_, false) => Horizon::At(0),
            (Ordering::Equal, true) => Horizon::Unknown,
            (Ordering::Greater, true) => Horizon::At(crate::exact::ceil_ticks(&(excess / rate))),
        }
    }
}

/// `g(sigma) = constant + linear * sigma + sum [C - gap * sigma]+` at one t; accepting means g <= 0.
struct Demand<'a> {
    set: &'a TaskSet,
    constant: i128,
    linear: i128,
    /// `(C, D - r)` of the tasks whose window is cut.
    cut: Vec<(u64, u64)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

impl<'a> Demand<'a> {
    fn new(set: &'a TaskSet) -> Self {
        Demand { set, constant: 0, linear: 0, cut: Vec::with_capacity(set.tasks().len()) }
    }

    fn advance(&mut self, t: u64) {
        let (cpus, length) = (i128::from(self.set.cpus()), i128::from(t));
        self.constant = -cpus * length;
        self.linear = (cpus - 1) * length;
        self.cut.clear();
        for task in self.set.tasks() {
            let (jobs, rest) = (t / task.period, t % task.period);
            let full = jobs + u64::from(rest >= task.deadline);
            self.constant += i128::from(full) * i128::from(task.wcet);
            if rest < task.deadline {
                self.cut.push((task.wcet, task.deadline - rest));
            }
        }
    }

    /// Filter: g is negative at both ends, hence between, by more than the rounding error can be.
    fn clearly_fits(&self, low: Ratio, high: Ratio) -> bool {
        let (constant, linear) = (self.constant as f64, self.linear as f64);
        let costs: f64 = self.cut.iter().map(|&(wcet, _)| wcet as f64).sum();
        // The terms [C - gap * sigma]+ are at most C; where the product exceeds C by far, the clip hides its error.
        let tolerance = (self.cut.len() as f64 + 16.0) * f64::EPSILON * (constant.abs() + linear.abs() + costs);
        [low, high].iter().all(|speed| {
            let sigma = speed.numerator as f64 / speed.denominator as f64;
            let cut: f64 = self.cut.iter().map(|&(wcet, gap)| (wcet as f64 - gap as f64 * sigma).max(0.0)).sum();
            constant + linear * sigma + cut < -tolerance
        })
    }

    /// The part of `[low, high]` in which g <= 0, by Newton's method from either end: a tangent of a convex function
    /// lies below it, so its root does not pass the function's. Each step leaves a linear piece, so it ends.
    fn narrow(&self, low: Ratio, high: Ratio) -> Option<(Ratio, Ratio)> {
        let low = self.approach(low, Side::Right)?;
        let high = self.approach(high, Side::Left)?;
        (low <= high).then_some((low, high))
    }

    fn approach(&self, mut speed: Ratio, side: Side) -> Option<Ratio> {
        loop {
            let (constant, slope) = self.tangent(speed, side);
            // constant + slope * speed <= 0, written so that nothing overflows.
            let done = match slope.signum() {
                0 => constant <= 0,
                1 => speed <= Ratio::new(-constant, slope),
                _ => speed >= Ratio::new(-constant, slope),
            };
            if done {
                return Some(speed);
            }
            let falls = if side == Side::Right { slope < 0 } else { slope > 0 };
            if !falls {
                return None;
            }
            speed = Ratio::new(-constant, slope);
        }
    }

    /// The line that coincides with g at `speed` and on the given side of it.
    fn tangent(&self, speed: Ratio, side: Side) -> (i128, i128) {
        let (mut constant, mut slope) = (self.constant, self.linear);
        for &(wcet, gap) in &self.cut {
            // The term is positive below sigma = C / gap.
            let order = speed.cmp(&Ratio { numerator: wcet.into(), denominator: gap.into() });
            if order == Ordering::Less || (order == Ordering::Equal && side == Side::Left) {
                constant += i128::from(wcet);
                slope -= i128::from(gap);
            }
        }
        (constant, slope)
    }
}
