//! The sweep over interval lengths that decides BAR.
//!
//! Between two consecutive kinks of the demand curves (`t = 0, C_i or D_i mod T_i` for some i) every `dbf_i` is
//! constant and every `dbc_i` has slope 0 or 1. On such a segment of whole ticks:
//!
//! 1. The uncapped sum N(t), common to all tasks k, is convex (a maximum of linear functions) and the supply of each k
//!    linear, so if N is below it at both ends, k passes throughout. Most segments end here for all k at once, first
//!    with an upper bound on N that is one addition, then with N itself.
//! 2. Otherwise the capped sum of k is computed. It never falls as t grows: if its value at the right end is below
//!    the supply at the left end, k passes throughout.
//! 3. Otherwise it is also computed where a plateau meets the cap. Between these points it is convex again.

use crate::{AnalysisTask, Limits, Outcome, Reason, TaskSet};

use super::progressions::Progressions;

/// What distinguishes the variants of BAR: task k passes at t if `sum < m * (t - C_k + supply_offset) + allowance`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// The cap is `t - C_k + cap_offset`.
    pub cap_offset: u64,
    pub supply_offset: u64,
    pub allowance: u64,
    /// At equality, pass if the sum grows by fewer than m per unit of cap.
    pub growth_at_equality: bool,
    pub points: Points,
    /// All times are multiplied by this.
    pub scale: u64,
}

/// Which intervals are tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Points {
    /// All of them, by way of the kinks.
    All,
    /// Those where a demand bound steps.
    DemandSteps,
}

/// Intervals beyond this are not tested: sums of a few times must fit in `i64`.
const INTERVAL_MAX: u64 = 1 << 60;

const TAG_DEADLINE: u32 = 2;

pub(super) struct Sweep {
    rule: Rule,
    cpus: i128,
    curves: Vec<Curve>,
    /// Tasks by falling wcet: once one passes by the common bound, so do all that follow.
    by_wcet: Vec<usize>,
    kinks: Progressions,
    /// The longest interval that needs testing for any task.
    last: u64,
    /// Sum of `dbf_i`.
    demand: u128,
    /// Sum of the m - 1 largest C: bounds the carry-in.
    carry_in_max: u128,
    deadline_min: u64,
    points_left: u64,
    points_limit: u64,
    truncated: bool,
    /// Scratch: carry-in of each task.
    carry_ins: Vec<u64>,
    /// Scratch: points inside a segment.
    inner: Vec<u64>,
}

/// A task and its demand curves on the current segment.
struct Curve {
    task: AnalysisTask,
    /// The longest interval that needs testing.
    horizon: u64,
    /// `dbf` on the segment.
    demand: u64,
    /// `dbc(t) = intercept + t` if rising, else `intercept`.
    intercept: i64,
    rising: bool,
}

impl Curve {
    fn with_carry_in(&self, t: u64) -> u64 {
        (self.intercept + if self.rising { t as i64 } else { 0 }) as u64
    }

    /// Recomputes the curves at `t`; returns the change of `dbf`.
    fn advance(&mut self, t: u64) -> u64 {
        let AnalysisTask { wcet, period, deadline, .. } = self.task;
        let (jobs, rest) = (t / period, t % period);
        self.rising = rest < wcet;
        self.intercept = if self.rising { (jobs * wcet + rest) as i64 - t as i64 } else { ((jobs + 1) * wcet) as i64 };
        let demand = t.checked_sub(deadline).map_or(0, |late| (late / period + 1) * wcet);
        let change = demand - self.demand;
        self.demand = demand;
        change
    }
}

impl Sweep {
    /// `horizons`: the longest interval to test for each task, in unscaled ticks.
    pub(super) fn new(set: &TaskSet, rule: Rule, horizons: &[u64], limits: &Limits) -> Self {
        let scale = rule.scale;
        let curve = |(task, &horizon): (&AnalysisTask, &u64)| Curve {
            task: AnalysisTask::new(task.wcet * scale, task.period * scale, task.deadline * scale),
            horizon: horizon.min(INTERVAL_MAX) * scale,
            demand: 0,
            intercept: 0,
            rising: true,
        };
        let curves: Vec<Curve> = set.tasks().iter().zip(horizons).map(curve).collect();
        let mut by_wcet: Vec<usize> = (0..curves.len()).collect();
        by_wcet.sort_by_key(|&index| std::cmp::Reverse(curves[index].task.wcet));
        let largest = by_wcet.iter().take(set.cpus() as usize - 1);
        let carry_in_max = largest.map(|&index| u128::from(curves[index].task.wcet)).sum();
        let last = curves.iter().map(|curve| curve.horizon).max().unwrap_or(0);
        Sweep {
            rule,
            cpus: set.cpus().into(),
            kinks: kinks(&curves, last),
            last,
            by_wcet,
            demand: 0,
            carry_in_max,
            deadline_min: curves.iter().map(|curve| curve.task.deadline).min().unwrap_or(0),
            points_left: limits.points,
            points_limit: limits.points,
            truncated: horizons.iter().any(|&horizon| horizon > INTERVAL_MAX),
            carry_ins: Vec::with_capacity(curves.len()),
            inner: Vec::new(),
            curves,
        }
    }

    /// Tests every task at every interval up to its horizon.
    pub(super) fn run(mut self) -> Result<(), Outcome> {
        let mut demand_stepped = false;
        while let Some((start, tag)) = self.kinks.next() {
            self.demand += u128::from(self.curves[(tag / 4) as usize].advance(start));
            demand_stepped |= tag % 4 == TAG_DEADLINE;
            let end = match self.kinks.peek() {
                Some(next) if next == start => continue,
                Some(next) => next - 1,
                None => self.last,
            };
            match self.rule.points {
                Points::All => self.segment(start, end)?,
                Points::DemandSteps if demand_stepped => self.segment(start, start)?,
                Points::DemandSteps => {}
            }
            demand_stepped = false;
        }
        if self.truncated {
            return Err(Outcome::ResourceLimit { what: "ticks of an interval", limit: INTERVAL_MAX });
        }
        Ok(())
    }

    fn segment(&mut self, start: u64, end: u64) -> Result<(), Outcome> {
        let Some(&longest) = self.by_wcet.first() else { return Ok(()) };
        if start < self.deadline_min {
            return Ok(());
        }
        let wcet_max = self.curves[longest].task.wcet;
        let bound = (self.demand + self.carry_in_max) as i128;
        if bound < self.supply(start, wcet_max) {
            return Ok(());
        }
        self.spend(2)?;
        let ends = [(start, self.uncapped(start)), (end, self.uncapped(end))];
        for position in 0..self.by_wcet.len() {
            let k = self.by_wcet[position];
            let Curve { task, horizon, .. } = &self.curves[k];
            let (wcet, deadline, last) = (task.wcet, task.deadline, end.min(*horizon));
            if ends.iter().all(|&(t, sum)| sum < self.supply(t, wcet)) {
                break;
            }
            if deadline <= start && start <= last {
                self.task_on_segment(k, start, last)?;
            }
        }
        Ok(())
    }

    /// Tests task `k` on the whole segment `[start, end]`.
    fn task_on_segment(&mut self, k: usize, start: u64, end: u64) -> Result<(), Outcome> {
        self.point(k, start, start, end)?;
        if end == start {
            return Ok(());
        }
        let at_end = self.point(k, end, start, end)?;
        let wcet = self.curves[k].task.wcet;
        if at_end < self.supply(start, wcet) {
            return Ok(());
        }
        self.collect_inner(k, start, end);
        for index in 0..self.inner.len() {
            let t = self.inner[index];
            self.point(k, t, start, end)?;
        }
        Ok(())
    }

    /// The points strictly inside the segment at which a plateau meets the cap.
    fn collect_inner(&mut self, k: usize, start: u64, end: u64) {
        let own = &self.curves[k];
        let cap = |t: u64| t - own.task.wcet + self.rule.cap_offset;
        let mut inner = std::mem::take(&mut self.inner);
        inner.clear();
        for (i, curve) in self.curves.iter().enumerate() {
            let levels = [Some(curve.demand), (!curve.rising).then_some(curve.intercept as u64)];
            for level in levels.into_iter().flatten() {
                // Where the cap equals the level; for k itself, where A equals the level less C_k.
                let t = match i == k {
                    false => start + level.saturating_sub(cap(start)),
                    true => own.task.deadline + level.saturating_sub(own.task.wcet),
                };
                if start < t && t < end {
                    inner.push(t);
                }
            }
        }
        inner.sort_unstable();
        inner.dedup();
        self.inner = inner;
    }

    /// Tests task `k` at `t`; returns the capped sum. On a plateau of equality the verdict between two points may
    /// differ from that at them, so the neighbours within the segment are looked at too.
    fn point(&mut self, k: usize, t: u64, start: u64, end: u64) -> Result<i128, Outcome> {
        let wcet = self.curves[k].task.wcet;
        let sum = self.capped(k, t)?;
        let supply = self.supply(t, wcet);
        if sum > supply || (sum == supply && !(self.rule.growth_at_equality && self.grows_slowly(k, t))) {
            return Err(self.failure(k, t, sum, supply));
        }
        if sum == supply {
            for neighbour in [t.saturating_sub(1).max(start), (t + 1).min(end)] {
                let (sum, supply) = (self.capped(k, neighbour)?, self.supply(neighbour, wcet));
                if sum > supply || (sum == supply && !self.grows_slowly(k, neighbour)) {
                    return Err(self.failure(k, neighbour, sum, supply));
                }
            }
        }
        Ok(sum)
    }

    fn failure(&self, k: usize, t: u64, sum: i128, supply: i128) -> Outcome {
        let scale = self.rule.scale;
        Outcome::NotProven(Reason::Interval {
            task: k,
            interval: t.div_ceil(scale),
            demand: sum as u128 / u128::from(scale),
            available: supply as u128 / u128::from(scale),
        })
    }

    fn supply(&self, t: u64, wcet: u64) -> i128 {
        let ticks = i128::from(t) - i128::from(wcet) + i128::from(self.rule.supply_offset);
        self.cpus * ticks + i128::from(self.rule.allowance)
    }

    fn spend(&mut self, points: u64) -> Result<(), Outcome> {
        match self.points_left.checked_sub(points) {
            Some(left) => self.points_left = left,
            None => return Err(Outcome::ResourceLimit { what: "points", limit: self.points_limit }),
        }
        Ok(())
    }

    /// N(t): all demand, and the m - 1 largest carry-ins, without caps.
    fn uncapped(&mut self, t: u64) -> i128 {
        self.carry_ins.clear();
        self.carry_ins.extend(self.curves.iter().map(|curve| curve.with_carry_in(t) - curve.demand));
        self.demand as i128 + largest(&mut self.carry_ins, self.cpus as usize - 1) as i128
    }

    /// The capped sum of task `k` at `t`.
    fn capped(&mut self, k: usize, t: u64) -> Result<i128, Outcome> {
        self.spend(1)?;
        let own = &self.curves[k];
        let cap = t - own.task.wcet + self.rule.cap_offset;
        let mut total = 0u128;
        self.carry_ins.clear();
        for curve in &self.curves {
            let demand = curve.demand.min(cap);
            total += u128::from(demand);
            self.carry_ins.push(curve.with_carry_in(t).min(cap) - demand);
        }
        // Replace the entry of k itself: its own job is not interference, and the others fill at most A ticks.
        let (wcet, beyond) = (own.task.wcet, t - own.task.deadline);
        let demand = (own.demand - wcet).min(beyond);
        total = total - u128::from(own.demand.min(cap)) + u128::from(demand);
        self.carry_ins[k] = (own.with_carry_in(t) - wcet).min(beyond) - demand;
        Ok((total + largest(&mut self.carry_ins, self.cpus as usize - 1)) as i128)
    }

    /// Whether the capped sum of `k` at `t` grows by fewer than m per unit of cap.
    fn grows_slowly(&self, k: usize, t: u64) -> bool {
        let own = &self.curves[k];
        let cap = t - own.task.wcet + self.rule.cap_offset;
        let mut growth = 0;
        // (I2 - I1, whether it grows); where dbf exceeds the cap both grow and the difference does not.
        let mut carry_ins = Vec::with_capacity(self.curves.len());
        for (i, curve) in self.curves.iter().enumerate() {
            let with_carry_in = curve.with_carry_in(t);
            if i == k {
                let beyond = t - own.task.deadline;
                let (plain, full) = (curve.demand - curve.task.wcet, with_carry_in - curve.task.wcet);
                carry_ins.push((full.min(beyond) - plain.min(beyond), false));
            } else {
                growth += i128::from(curve.demand > cap);
                let difference = with_carry_in.min(cap) - curve.demand.min(cap);
                carry_ins.push((difference, with_carry_in > cap && curve.demand <= cap));
            }
        }
        carry_ins.sort_unstable_by(|a, b| b.cmp(a));
        let chosen = carry_ins.iter().take(self.cpus as usize - 1);
        growth += chosen.filter(|carry_in| carry_in.1).count() as i128;
        growth < self.cpus
    }
}

/// The kinks of all curves, each tagged with its task and kind.
fn kinks(curves: &[Curve], last: u64) -> Progressions {
    let sources = curves.iter().enumerate().flat_map(|(index, curve)| {
        let AnalysisTask { wcet, period, deadline, .. } = curve.task;
        let tag = index as u32 * 4;
        [(0, period, tag), (wcet, period, tag + 1), (deadline, period, tag + TAG_DEADLINE)]
    });
    Progressions::new(sources, last)
}

/// Sum of the `count` largest values; reorders them.
fn largest(values: &mut [u64], count: usize) -> u128 {
    if count == 0 {
        return 0;
    }
    if count < values.len() {
        values.select_nth_unstable_by(count - 1, |a, b| b.cmp(a));
    }
    values.iter().take(count).map(|&value| u128::from(value)).sum()
}
