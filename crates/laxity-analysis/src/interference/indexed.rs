//! The fixed points of global response-time analysis from sums over all tasks, in time that hardly grows with their number.
//!
//! The bound `x` of a term `min(A_i, x)` matters to tasks with large terms alone, which are evaluated one by one; all others
//! are a sum that someone else knows how to read quickly.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::Fixed;
use crate::{AnalysisTask, TaskSet};

/// From so many tasks on, sums over all at once are faster than those task by task.
pub(crate) const INDEXED_MIN: usize = 128;

/// Steps towards one fixed point before it is left to the walk from kink to kink.
const STEPS_MAX: usize = 64;

/// The tasks that interfere.
pub(crate) struct Interferers<'a> {
    tasks: &'a [AnalysisTask],
    cpus: usize,
    /// Those that may need more than half a CPU: their terms may exceed any x.
    heavy: Vec<usize>,
    /// The others, the largest reach first; see [`reach`].
    light: BTreeSet<(Reverse<u64>, usize)>,
}

impl<'a> Interferers<'a> {
    /// None yet.
    pub fn new(set: &'a TaskSet) -> Self {
        Interferers { tasks: set.tasks(), cpus: set.cpus() as usize, heavy: Vec::new(), light: BTreeSet::new() }
    }

    /// Adds `task`, whose response time is at most `bound`.
    pub fn add(&mut self, task: usize, bound: u64) {
        match reach(&self.tasks[task], bound) {
            Some(reach) => _ = self.light.insert((Reverse(reach), task)),
            None => self.heavy.push(task),
        }
    }

    /// The least `y >= x` with `sum min(A_i, y) <= m * y - 1` over all but `except`, for the values `A_i` at `response`,
    /// of which `all` is the sum; `None` if too many may be as large as y.
    pub fn least(
        &self,
        all: u128,
        except: Option<usize>,
        value: impl Fn(usize) -> u64,
        response: u64,
        x: u64,
    ) -> Option<u64> {
        let mut rest = all - except.map_or(0, |task| value(task).into());
        let mut large: Vec<u64> =
            self.heavy.iter().filter(|&&task| Some(task) != except).map(|&task| value(task)).collect();
        rest -= large.iter().map(|&value| u128::from(value)).sum::<u128>();
        let mut light = self.light.iter().peekable();
        loop {
            let y = least_beside(rest, &mut large, self.cpus, x);
            let mut is_larger = false;
            // R / 2 + reach >= y: it might be bounded by y, or by less.
            let exceeds = |reach: u64| u128::from(response) + 2 * u128::from(reach) >= 2 * u128::from(y);
            while let Some(&&(_, task)) = light.peek().filter(|(Reverse(reach), _)| exceeds(*reach)) {
                light.next();
                if Some(task) != except {
                    let value = value(task);
                    large.push(value);
                    rest -= u128::from(value);
                    is_larger |= value >= y;
                }
                if large.len() > 4 * self.cpus + 64 {
                    return None;
                }
            }
            if !is_larger {
                return Some(y);
            }
        }
    }
}

/// Of a task that needs at most half a CPU: `W(R) <= U * (R + J) + C <= R / 2 + reach`.
fn reach(task: &AnalysisTask, bound: u64) -> Option<u64> {
    let carried = u128::from(bound - task.wcet) * u128::from(task.wcet);
    (task.wcet <= task.period / 2).then(|| task.wcet + carried.div_ceil(u128::from(task.period)) as u64)
}

/// The least fixed point of `task` not below `start`, from `least(R, x)`, the least `y >= x` that the terms at R allow;
/// `Err` with a lower bound on it if that is not found soon.
pub(crate) fn ascend(
    task: &AnalysisTask,
    start: u64,
    mut least: impl FnMut(u64, u64) -> Option<u64>,
) -> Result<Fixed, u64> {
    let mut response = start;
    for _ in 0..STEPS_MAX {
        let next = least(response, response - task.wcet + 1).ok_or(response)? + (task.wcet - 1);
        if next > task.deadline {
            return Ok(Fixed::BeyondDeadline);
        }
        if next == response {
            return Ok(Fixed::At(response));
        }
        response = next;
    }
    Err(response)
}

/// The least `y >= x` with `rest + sum min(v, y) <= m * y - 1` over `values`, which are sorted.
///
/// With c values capped by y and `rest` the sum of all others, `y = floor(rest / (m - c)) + 1`, if that reaches no capped
/// value; fewer than m can be capped.
pub(crate) fn least_beside(rest: u128, values: &mut [u64], cpus: usize, x: u64) -> u64 {
    values.sort_unstable_by(|a, b| b.cmp(a));
    let most = values.len().min(cpus - 1);
    let mut rest = rest + values[most..].iter().map(|&value| u128::from(value)).sum::<u128>();
    let mut least = values.get(cpus - 1).map_or(x, |&value| x.max(value + 1));
    for capped in (0..=most).rev() {
        let y = least.max((rest / (cpus - capped) as u128 + 1) as u64);
        if capped == 0 || y <= values[capped - 1] {
            return y;
        }
        least = least.max(values[capped - 1] + 1);
        rest += u128::from(values[capped - 1]);
    }
    unreachable!("no value is capped in the last round")
}
