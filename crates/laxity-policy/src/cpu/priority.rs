//! A job's rank among the jobs of its scheduler.

use laxity_model::TaskId;

/// A priority: the smaller value is the more urgent. `major` is the absolute deadline in nanoseconds under EDF and the
/// task's rank under fixed priorities; ties go to the task listed first. At most one job of a task is ready at a time,
/// so the order of ready jobs is total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Priority {
    /// Absolute deadline or rank.
    pub major: u64,
    /// The task; breaks ties.
    pub task: TaskId,
}
