//! How many interrupts may come in a window, and how long they may keep a CPU.

use super::analysed_task::AnalysedTask;
use crate::busy_period::least;

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

/// The longest time for which handlers that ask for `demand` keep a CPU busy without a break: [`least`].
pub(super) fn busy_period(demand: impl Fn(u64) -> u64) -> Option<u64> {
    least(demand, ROUNDS_MAX)
}
