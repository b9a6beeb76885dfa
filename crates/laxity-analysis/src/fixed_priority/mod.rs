//! Fixed priorities: response-time analysis on one CPU with blocking, and on several.
//!
//! The order of the tasks is the order of their priorities, the highest first; see [`deadline_monotonic`].

mod global;
mod level_busy_period;
mod uniprocessor;

pub use global::global;
pub use level_busy_period::{LevelTask, level_busy_period, level_response_times};
pub use uniprocessor::{FixedPriorityTask, response_time, uniprocessor, uniprocessor_interrupts};

use crate::TaskSet;

/// The order of task indices under deadline-monotonic priorities: shorter deadlines first, then the smaller index.
/// With implicit deadlines this is rate-monotonic.
pub fn deadline_monotonic(set: &TaskSet) -> Vec<usize> {
    let mut order: Vec<usize> = (0..set.tasks().len()).collect();
    order.sort_by_key(|&index| (set.tasks()[index].deadline, index));
    order
}
