//! Soft real-time: bounded tardiness under global EDF and other schedulers with window-constrained priorities.
//!
//! Under clustered and partitioned scheduling each cluster is analysed as a task set of its own.

mod combine;
mod compliant;
mod condition;
mod devi_anderson;
mod tardiness_ticks;

pub use combine::{TardinessBounds, tardiness};
pub use compliant::{CompliantVector, PriorityPoints, compliant_vector};
pub use condition::{bounded_tardiness, check_bounded};
pub use devi_anderson::{DeviAnderson, devi_anderson};
pub use tardiness_ticks::{response_time_ticks, tardiness_ticks};
