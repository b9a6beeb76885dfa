//! Runs a workload on this Linux machine: a thread for each task and each node of a graph, released by timers or tokens,
//! that computes, suspends, locks and uses soft GPUs as the workload says. Linux schedules; what happened becomes the
//! trace that a simulation would leave.
//!
//! ```text
//!   Workload --Plan::new--> Plan --Run::start--> threads ------log------> Collector --records--> any Sink
//!                                                graphs, soft GPUs --history--^
//! ```
//!
//! What each job does, step by step, is the list that the simulator has of it ([`laxity_plan::Op`]); what it needs, and
//! when it is released, are the simulator's draws: with one seed both see the same jobs. Tokens of graphs are those of
//! [`laxity_graph`], tokens and engines of GPUs those of [`laxity_gpu`], which decide by the simulator's state machines.
#![forbid(unsafe_code)]

mod collector;
pub mod control;
mod gpus;
mod halt;
mod jobs;
mod linux;
mod log;
mod machine;
mod placement;
mod plan;
mod refusal;
mod run;
pub mod work;
mod worker;

pub use linux::LinuxScheduler;
pub use machine::Machine;
pub use plan::{Options, Plan};
pub use refusal::Refusal;
pub use run::{Outcome, Run};
