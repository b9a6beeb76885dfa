//! The discrete-event simulator: a workload, the real policies of `laxity-policy` through their real interface, and
//! overheads inside the schedule, on the CPU where they belong.
//!
//! Deterministic: the same workload, scheduler, seed and version yield the same records, byte for byte. Time is integer
//! nanoseconds. Events of one instant are handled in the order completions, timeouts, releases, ticks, within each by
//! the smaller job or CPU; then each policy decides once; then the CPUs act.
//!
//! ```text
//!   event loop   simulator/: time goes on to the next end of a segment, timer, release or tick
//!                  | what happens                                   ^ what follows for others
//!                  v                                                |
//!   parts        cpu, bottom_halves, cluster, devices, locks, servers, graphs, task: each owns its state
//!                  | context: read the time, record, set a timer
//!                  v
//!                trace
//! ```
//!
//! ```
//! use laxity_model::{Instant, Nanos, Platform, Scheduler, Task, Workload};
//! use laxity_plan::Plan;
//! use laxity_sim::Simulator;
//!
//! let task = Task::periodic("camera", Nanos::from_millis(5), Nanos::from_millis(33));
//! let workload = Workload::new("example", Platform::identical(1), vec![task]);
//! let plan = Plan::new(&workload, &Scheduler::GLOBAL_EDF, 0).expect("only CPU steps");
//! let mut simulator = Simulator::new(&plan, Vec::new());
//! simulator.run_until(Instant::from_millis(100));
//! let records = simulator.finish();
//! assert!(!records.is_empty());
//! ```
#![forbid(unsafe_code)]

mod best_effort;
mod bottom_halves;
mod cluster;
mod context;
mod cpu;
mod cpu_set;
mod devices;
mod ends;
mod graphs;
mod locks;
mod memory;
pub mod pace;
mod progress;
mod servers;
mod simulator;
mod task;
mod ticks;

pub use simulator::Simulator;
