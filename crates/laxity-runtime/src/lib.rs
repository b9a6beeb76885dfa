//! Runs the tasks of a workload on this Linux machine: a thread a task, released by timers, that computes, suspends and
//! locks as the workload says. Linux schedules; what happened becomes the trace that a simulation would leave.
//!
//! ```text
//!   Workload --Plan::new--> Plan --Run::start--> threads --log--> Collector --records--> any Sink
//! ```
//!
//! What each job needs, and when it is released, are the draws of the simulator: with one seed both see the same jobs.
#![forbid(unsafe_code)]

mod body;
mod collector;
pub mod control;
mod draws;
mod linux;
mod log;
mod machine;
mod placement;
mod plan;
mod run;
pub mod work;
mod worker;

pub use linux::LinuxScheduler;
pub use machine::Machine;
pub use plan::{Options, Plan, Refusal};
pub use run::{Outcome, Run};
