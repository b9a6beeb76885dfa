//! Executes what a workload or a vision graph describes on this Linux machine: a worker for each task and each node of a
//! graph, released by timers or tokens. Linux schedules; what happened becomes the trace that a simulation would leave.
//!
//! ```text
//!   Workload --LivePlan::new, LivePlan::of_graph--> LivePlan --Run::start--> workers --log--> Collector --records--> any Sink
//!                                                   threads or processes             ^
//!                                                   graphs, soft GPUs ---history-----'
//! ```
//!
//! [`worker`] is the one executor: a thread that has a trigger, a body and a stop signal. The body of a task is the list of
//! steps that the simulator has of it; what a job needs, and when it is released, are the simulator's draws: with one
//! seed both see the same jobs. Vision graphs (`laxity-vx`) give workers bodies of their own. Tokens of graphs are those
//! of [`laxity_graph`], tokens and engines of GPUs those of [`laxity_gpu`], which decide by the simulator's state machines.
#![forbid(unsafe_code)]

mod attributes;
mod best_effort;
mod carry_out;
pub mod code;
mod collector;
mod devices;
mod gpus;
mod handler;
mod jobs;
mod kernel;
mod kernel_locks;
mod linux;
mod log;
mod machine;
mod member;
mod niceness;
mod outside;
mod placement;
mod plan;
mod processes;
mod recording;
mod refusal;
mod regulation;
mod run;
mod run_names;
mod shared;
mod stolen;
mod stop;
mod work;
pub mod worker;

pub use attributes::Attributes;
pub use carry_out::{Ended, Next};
pub use handler::ServiceLog;
pub use laxity_plan::Release;
pub use linux::LinuxScheduler;
pub use machine::Machine;
pub use member::Member;
pub use outside::{interrupts_refused, threads_refused};
pub use plan::{GraphOptions, LivePlan, NodeOptions, Options};
pub use processes::ProcessOptions;
pub use recording::{CutOff, GraphRecording, NodeLog, RecordedGpus, check_number};
pub use refusal::Refusal;
pub use run::{Outcome, Run, StartOptions};
pub use run_names::forget_runs;
pub use stop::StopSignal;
