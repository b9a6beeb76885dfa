//! How long other tasks may execute in place of a job: the fixed points of response-time analysis.
//!
//! [`Recurrence`] sums task by task, [`indexed`] over all tasks at once.

mod bends;
pub(crate) mod indexed;
pub(crate) mod jobs;
mod recurrence;

pub(crate) use bends::Bends;
pub(crate) use recurrence::{Fixed, Interfering, Recurrence};
