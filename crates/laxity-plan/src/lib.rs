//! The compiled form of a workload: what every task does step by step, where it runs, which locks and devices there are,
//! and every random quantity. The simulator and live runs carry out the same [`Plan`], so that both see the same jobs.
//!
//! ```
//! use laxity_model::{Nanos, Platform, Scheduler, Task, Workload};
//! use laxity_plan::{Op, Plan};
//!
//! let task = Task::periodic("camera", Nanos::from_millis(5), Nanos::from_millis(33));
//! let workload = Workload::new("example", Platform::identical(1), vec![task]);
//! let plan = Plan::new(&workload, &Scheduler::GLOBAL_EDF, 0).expect("only CPU steps");
//! assert!(matches!(*plan.tasks[0].ops, [Op::Run(_)]));
//! ```
#![forbid(unsafe_code)]

mod bandwidth;
mod best_effort;
mod body;
mod clusters;
mod devices;
pub mod draws;
mod duration;
mod fair;
mod graphs;
mod locks;
mod op;
mod plan;
mod releases;
mod resources;
mod servers;
mod tasks;
mod threads;
mod unsupported;

pub use bandwidth::{MemoryLock, MemoryPlan};
pub use best_effort::BestEffortPlan;
pub use clusters::ClusterPlan;
pub use devices::{DeviceArrivals, DevicePlan};
pub use duration::default_duration;
pub use graphs::GraphPlan;
pub use locks::{Locks, Pool};
pub use op::{EngineKind, EngineTarget, GpuChoice, Op, Operation, OperationTime};
pub use plan::Plan;
pub use releases::{Irregular, NextRelease, Release, ReleasePattern, Releases};
pub use servers::ServerPlan;
pub use tasks::{ReleasedBy, TaskPlan};
pub use threads::{Callbacks, Threads};
pub use unsupported::UnsupportedFeatures;
