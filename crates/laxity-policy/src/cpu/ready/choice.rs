//! Comparing and choosing priorities without branches.
//!
//! In a heap the outcome of a comparison is close to a coin toss, and a mispredicted branch costs more than the rest of
//! the step. Written with `<` and `if`, which compile to branches, Hunt's heap took 62 ns rather than 52 ns for an
//! insertion and a removal among 300 jobs.

use std::hint::select_unpredictable;

use laxity_model::TaskId;

use super::super::Priority;

/// `a < b`.
#[inline]
pub(super) fn precedes(a: Priority, b: Priority) -> bool {
    (a.major < b.major) | ((a.major == b.major) & (minor(a) < minor(b)))
}

/// `if condition { a } else { b }`.
#[inline]
pub(super) fn select(condition: bool, a: Priority, b: Priority) -> Priority {
    Priority {
        major: select_unpredictable(condition, a.major, b.major),
        tie: select_unpredictable(condition, a.tie, b.tie),
        task: TaskId(select_unpredictable(condition, a.task.0, b.task.0)),
    }
}

/// What decides among equal majors, as one number.
#[inline]
fn minor(priority: Priority) -> u64 {
    u64::from(priority.tie) << 32 | u64::from(priority.task.0)
}
