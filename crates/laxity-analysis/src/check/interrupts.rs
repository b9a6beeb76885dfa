//! How many interrupts may come in a window, and how long they may keep a CPU.

use super::analysed_task::AnalysedTask;
use crate::LONGEST_TICKS;

/// Rounds after which handlers are taken to keep a CPU busy for ever.
const ROUNDS_MAX: u32 = 100_000;

/// Interrupts that release jobs of `task` in a window of `length` ticks, if each is pending for up to `pending`: arrivals may
/// be delayed by jitter or a node's predecessors, and some jobs may be released before they arrive.
pub(super) fn releases(task: &AnalysedTask, pending: u64, length: u64) -> u64 {
    jobs(task, task.released_late(pending), length)
}

/// Those of them that come when jobs arrive, on a CPU dedicated to interrupts.
pub(super) fn arrivals(task: &AnalysedTask, length: u64) -> u64 {
    length.saturating_add(task.jitter).div_ceil(task.period)
}

/// Jobs of `task` that may be pending at some time in a window of `length` ticks, if each is for up to `pending`.
pub(super) fn jobs(task: &AnalysedTask, pending: u64, length: u64) -> u64 {
    length.saturating_add(pending).saturating_add(task.early).div_ceil(task.period)
}

/// Interrupts that end its suspensions, and release jobs elsewhere.
pub(super) fn later(task: &AnalysedTask, pending: u64, length: u64) -> u64 {
    match task.later_interrupts() {
        0 => 0,
        each => each.saturating_mul(jobs(task, pending, length)),
    }
}

/// The longest time for which handlers keep a CPU busy without a break: the least `L > 0` with `L = demand(L)`, for a
/// `demand` that never falls; 0 if it asks for nothing. `None` if there is no such time within reach.
pub(super) fn busy_period(demand: impl Fn(u64) -> u64) -> Option<u64> {
    let mut length = demand(1);
    for _ in 0..ROUNDS_MAX {
        let next = demand(length.max(1));
        if next > LONGEST_TICKS {
            return None;
        }
        if next <= length {
            return Some(length);
        }
        length = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::busy_period;

    #[test]
    fn handlers_that_need_all_of_a_cpu_are_never_done() {
        let every = |cost: u64, period: u64| move |length: u64| length.div_ceil(period).saturating_mul(cost);
        assert_eq!(busy_period(every(0, 10)), Some(0));
        assert_eq!(busy_period(every(9, 10)), Some(9));
        assert_eq!(busy_period(every(10, 10)), Some(10), "done when the next one comes");
        assert_eq!(busy_period(every(11, 10)), None);
        let two = |length: u64| length.div_ceil(4) + 3 * length.div_ceil(6);
        assert_eq!(busy_period(two), Some(4));
        assert_eq!(busy_period(|length| length.saturating_mul(2)), None, "no sum is mistaken for the longest time");
    }
}
