//! The inner fixed point of global response-time analysis, by walking from kink to kink.
//!
//! The recurrence `R = C_k + floor(sum_i min(W_i(R), Wd_i, R - C_k + 1) / m)` (Bertogna & Cirinei, RTSS 2007; without
//! `Wd` and over higher priorities only for fixed priorities) climbs one tick a step where `m` terms
//! follow `R` itself, which at nanosecond resolution is for ever. With `x = R - C_k + 1` the least fixed point is the
//! least `x >= 1` with `sum_i min(A_i(x), x) <= m * x - 1`, `A_i = min(W_i, Wd_i)`. From a point that fails, two lower
//! bounds on the least fixed point are at hand, and the walk jumps to the larger:
//!
//! - Both sides are piece-wise linear: their first crossing, if that is before some of the nearest kinks, or those kinks.
//! - `A_i` never falls, so its present values taken as constants: the least y with `sum_i min(A_i, y) <= m * y - 1`.
//!
//! The first is what ends the creeping, the second what makes many tasks with many kinks fast.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::exact::Divisor;
use crate::{AnalysisTask, TaskSet};

/// Of so many kinks a walk passes one.
const WALKED_PART: usize = 16;

/// A task set prepared for response-time iteration.
pub(crate) struct Recurrence<'a> {
    tasks: &'a [AnalysisTask],
    periods: Vec<Divisor>,
    cpus: i128,
    interfering: Interfering,
    /// Per task: the most it can interfere, whatever the response time. Scratch.
    caps: Vec<u64>,
    /// The present values `A_i`. Scratch.
    plateaus: Vec<u64>,
    /// Their next kinks. Scratch.
    kinks: Vec<Kink>,
}

/// Which tasks interfere with task k, and how much they can at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interfering {
    /// Global EDF: all others, each by at most `Wd`, what it can execute at no lower priority in k's deadline window:
    /// `Wd = floor(D_k / T) * C + min(C, [D_k mod T - S]+)`.
    ByDeadline,
    /// Fixed priority: those listed before k.
    ListedBefore,
}

/// How one inner iteration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fixed {
    /// The least fixed point.
    At(u64),
    /// It lies beyond the deadline.
    BeyondDeadline,
    /// The steps allowed did not suffice.
    OutOfSteps,
}

/// The end of the piece of a term that is linear. Ordered by distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kink {
    distance: u64,
    task: usize,
    /// Whether the term rises before it.
    rising: bool,
}

/// Where a walk starts: the window there, the headroom and the slope of the sum of all terms.
#[derive(Clone, Copy, Debug)]
struct Place {
    window: u64,
    x: u64,
    headroom: i128,
    slope: i128,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug)]
enum Walk {
    /// At the least fixed point.
    Fixed { distance: u64 },
    /// Up to there, inclusive, is no fixed point.
    Passed { distance: u64 },
}

/// A term `min(A_i(x), x)` at one point: `A_i`, the slope of the minimum, and how far it lasts.
struct Term {
    value: u64,
    rising: bool,
    kink: Option<u64>,
}

impl<'a> Recurrence<'a> {
    pub(crate) fn new(set: &'a TaskSet, interfering: Interfering) -> Self {
        let tasks = set.tasks();
        Recurrence {
            tasks,
            periods: tasks.iter().map(|task| Divisor::new(task.period)).collect(),
            cpus: set.cpus().into(),
            interfering,
            caps: vec![u64::MAX; tasks.len()],
            plateaus: Vec::with_capacity(tasks.len()),
            kinks: Vec::with_capacity(tasks.len()),
        }
    }

    /// The least fixed point for task `k` not below `start`, given the slacks of all tasks. `start` must not exceed
    /// it: C_k, or an earlier fixed point under slacks no smaller. `steps` counts down the work allowed.
    pub(crate) fn least(&mut self, k: usize, slacks: &[u64], start: u64, steps: &mut u64) -> Fixed {
        let task = self.tasks[k];
        let others = match self.interfering {
            Interfering::ByDeadline => {
                self.limit_by_deadline(task.deadline, slacks);
                self.tasks.len()
            }
            Interfering::ListedBefore => k,
        };
        let mut response = start;
        while response <= task.deadline {
            if *steps == 0 {
                return Fixed::OutOfSteps;
            }
            *steps -= 1;
            let x = response - task.wcet + 1;
            let window = task.arrivals_within(response);
            let (mut total, mut slope) = (0u128, 0i128);
            self.plateaus.clear();
            self.kinks.clear();
            for i in (0..others).filter(|&i| i != k) {
                let term = self.term(i, slacks[i], window, x);
                total += u128::from(term.value.min(x));
                slope += i128::from(term.rising);
                self.kinks.extend(term.kink.map(|distance| Kink { distance, task: i, rising: term.rising }));
                self.plateaus.push(term.value);
            }
            // Headroom h = m * x - total; done at h >= 1. It grows by m - slope a tick until the next kink.
            let headroom = self.cpus * i128::from(x) - total as i128;
            if headroom >= 1 {
                return Fixed::At(response);
            }
            match self.walk(Place { window, x, headroom, slope }, slacks, task.deadline + 1 - response) {
                Walk::Fixed { distance } if response + distance <= task.deadline => {
                    return Fixed::At(response + distance);
                }
                Walk::Fixed { .. } => return Fixed::BeyondDeadline,
                Walk::Passed { distance } => {
                    let bound = self.least_over_plateaus(x + distance);
                    response = bound + task.wcet - 1;
                }
            }
        }
        Fixed::BeyondDeadline
    }

    /// Follows the headroom, which is piece-wise linear, through the nearest kinks and at most as far as `reach`.
    ///
    /// Only the terms whose kinks are passed are evaluated again. A walk through a small part of all kinks costs less than
    /// one evaluation of all terms and, with many tasks, usually ends at the fixed point.
    fn walk(&mut self, start: Place, slacks: &[u64], reach: u64) -> Walk {
        let near = self.kinks.len() / WALKED_PART;
        let horizon = match self.kinks.len() {
            0 => reach,
            _ => self.kinks.select_nth_unstable(near).1.distance.min(reach),
        };
        self.kinks.truncate(near);
        let mut kinks = BinaryHeap::from_iter(self.kinks.drain(..).filter(|kink| kink.distance < horizon).map(Reverse));
        let Place { window, x, mut headroom, mut slope } = start;
        let mut distance = 0;
        for _ in 0..=2 * near {
            let next = kinks.peek().map_or(horizon, |Reverse(kink)| kink.distance);
            let (growth, missing) = (self.cpus - slope, 1 - headroom);
            if growth > 0 && missing <= growth * i128::from(next - distance) {
                return Walk::Fixed { distance: distance + ((missing + growth - 1) / growth) as u64 };
            }
            headroom += growth * i128::from(next - distance);
            distance = next;
            let Some(Reverse(kink)) = kinks.pop() else { break };
            let term = self.term(kink.task, slacks[kink.task], window + distance, x + distance);
            slope += i128::from(term.rising) - i128::from(kink.rising);
            let following = term.kink.map(|beyond| Kink { distance: distance + beyond, rising: term.rising, ..kink });
            kinks.extend(following.filter(|kink| kink.distance < horizon).map(Reverse));
        }
        Walk::Passed { distance }
    }

    /// The least `y >= x` with `sum_i min(A_i, y) <= m * y - 1` for the present values `A_i`. Reorders them.
    ///
    /// With c terms capped by y and `rest` the sum of the others, `y = floor(rest / (m - c)) + 1`, if that reaches no
    /// capped value; fewer than m can be capped.
    fn least_over_plateaus(&mut self, x: u64) -> u64 {
        let cpus = self.cpus as usize;
        let values = &mut self.plateaus;
        if values.len() < cpus {
            return x;
        }
        values.select_nth_unstable_by(cpus - 1, |a, b| b.cmp(a));
        values[..cpus].sort_unstable_by(|a, b| b.cmp(a));
        let mut rest: u128 = values[cpus - 1..].iter().map(|&value| u128::from(value)).sum();
        let mut least = x.max(values[cpus - 1] + 1);
        for capped in (0..cpus).rev() {
            let y = least.max((rest / (cpus - capped) as u128 + 1) as u64);
            if capped == 0 || y <= values[capped - 1] {
                return y;
            }
            least = least.max(values[capped - 1] + 1);
            rest += u128::from(values[capped - 1]);
        }
        least
    }

    fn limit_by_deadline(&mut self, window: u64, slacks: &[u64]) {
        for (i, other) in self.tasks.iter().enumerate() {
            let (jobs, rest) = self.periods[i].divide(window);
            self.caps[i] = jobs * other.wcet + other.wcet.min(rest.saturating_sub(slacks[i]));
        }
    }

    fn term(&self, i: usize, slack: u64, window: u64, x: u64) -> Term {
        let other = &self.tasks[i];
        // z = R + D - C - S cannot be negative: S <= D - C.
        let (jobs, rest) = self.periods[i].divide(window + other.deadline - other.wcet - slack);
        let workload = jobs * other.wcet + other.wcet.min(rest);
        let in_job = rest < other.wcet;
        let cap = self.caps[i];
        // A = min(W, Wd), its slope, and the distance to its next kink; none once the constant Wd rules.
        let (value, rising, kink) = if workload >= cap {
            (cap, false, None)
        } else if in_job {
            (workload, true, Some((other.wcet - rest).min(cap - workload)))
        } else {
            (workload, false, Some(other.period - rest))
        };
        if value <= x {
            return Term { value, rising, kink };
        }
        // x itself is the smaller: slope 1 until it meets a plateau of A.
        let plateau = (!rising).then(|| value - x);
        Term { value, rising: true, kink: kink.into_iter().chain(plateau).min() }
    }
}
