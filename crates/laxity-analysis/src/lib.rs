//! Schedulability, blocking, response-time and tardiness bounds: one file per published result.
//!
//! Every bound is computed in integers or exact rationals; `f64` only filters out the clear cases, with an error
//! bound, and never decides. The crate is pure: no clock, no thread, no environment, no file access.
//!
//! - [`gedf`]: global EDF, hard deadlines. Start with [`gedf::hard`].
//! - [`edf`]: EDF on one CPU with jitter, blocking and interrupts: deadlines, and response times.
//! - [`soft`]: bounded tardiness under global EDF and its relatives.
//! - [`fixed_priority`]: response times under fixed priorities, with blocking.
//! - [`suspension`]: response times of jobs that wait, under either.
//! - [`overheads`]: inflation of execution times by scheduling overheads and interrupts (paper 002).
//! - [`klmirqd`]: GPU interrupt handling and k-FMLP blocking (paper 000).
//! - [`bwlock`]: BWLOCK++ response times and the throttle fair scheduler (paper 004).
//! - [`pgm`]: rates, end-to-end bounds and replica counts of PGM graphs (paper 003).
//! - [`gpusync`]: token and engine blocking of GPUSync.
//! - [`check`]: all of it together: a workload under a scheduler, overheads included.
//! - [`partition`]: assignment of tasks to clusters and CPUs.
//!
//! Soundness presumes the system model of global EDF on identical CPUs: sequential jobs, free preemption and
//! migration, sporadic arrivals at least a period apart, ties broken consistently, no self-suspension (or inflation
//! that accounts for it), and times that are whole ticks.
#![forbid(unsafe_code)]

mod busy_period;
pub mod bwlock;
pub mod check;
pub mod edf;
mod exact;
pub mod fixed_priority;
pub mod gedf;
pub mod gpusync;
mod interference;
pub mod klmirqd;
mod limits;
pub mod overheads;
pub mod partition;
pub mod pgm;
pub mod soft;
pub mod suspension;
mod task_set;
mod verdict;

pub use busy_period::busy_period;
pub use exact::{Rational, rational};
pub use limits::Limits;
pub use task_set::{AnalysisTask, DeadlineClass, LONGEST_TICKS, TaskSet, TaskSetError};
pub use verdict::{Evidence, Infeasibility, Outcome, Precondition, Reason, Test, TestSet, Verdict};
