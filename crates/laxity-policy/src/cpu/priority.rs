//! A job's rank among the jobs of its scheduler.

use std::cmp::Ordering;

use laxity_model::TaskId;

/// A priority: the smaller value is the more urgent. `major` is the absolute deadline in nanoseconds under EDF and the
/// task's rank under fixed priorities; ties go to the task listed first. At most one job of a task is ready at a time,
/// so the order of ready jobs is total.
///
/// A job that inherits has the `major` and `tie` of the one it inherits from: it ranks beside it, and the two are told
/// apart by `task` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// Absolute deadline or rank.
    pub major: u64,
    /// The task whose priority this is; breaks ties.
    pub tie: u32,
    /// The task that has it.
    pub task: TaskId,
}

/// By `major`, then `tie`, then `task`. As one number, because scheduling is full of these comparisons.
impl Ord for Priority {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Priority {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    #[inline]
    fn lt(&self, other: &Self) -> bool {
        self.key() < other.key()
    }
}

impl Priority {
    #[inline]
    const fn key(self) -> u128 {
        (self.major as u128) << 64 | (self.tie as u128) << 32 | self.task.0 as u128
    }

    /// Above every job: that of boosted jobs.
    pub const HIGHEST: (u64, u32) = (0, 0);

    /// The priority of a job of `task` in its own right.
    pub const fn of(major: u64, task: TaskId) -> Self {
        Priority { major, tie: task.0, task }
    }

    /// This priority, inherited by `task`.
    #[must_use]
    pub const fn given_to(self, task: TaskId) -> Self {
        Priority { task, ..self }
    }

    /// The part that is inherited: the order among jobs without regard to the task that has it.
    pub const fn level(self) -> (u64, u32) {
        (self.major, self.tie)
    }
}
