//! Laxity's scheduler in user space: the policies that the simulator runs schedule real threads, on any kernel that has
//! `SCHED_FIFO`.
//!
//! ```text
//!   thread: release, complete, suspend, resume, sections
//!      |
//!      v        lock (robust, of all processes)
//!   cluster's state in shared memory ---> CpuPolicy of laxity-policy ---> links ---> priorities and CPUs of threads
//!   (two copies, one version)                                                        (sched_setattr, sched_setaffinity)
//! ```
//!
//! A [`System`] has a name, clusters of CPUs and a rule. A thread that becomes a [`Task`] is scheduled by the policy of its
//! cluster together with the tasks of all other processes. The thread to which an event happens has the policy decide and
//! carries the decision out: no daemon is on the path. Any process may be killed at any instruction. Decision 41 has the
//! reasons.

mod cluster_cache;
mod config;
mod decision;
mod delegate;
mod details;
mod layout;
mod lock_request;
mod locks;
mod locks_cache;
mod members;
mod memory;
mod placement;
mod priorities;
mod program;
mod registration;
mod registry;
mod sections;
mod served;
mod service;
mod shared;
mod snapshot;
mod state_lock;
mod step;
mod supervisor;
mod system;
mod task;

#[cfg(test)]
mod conformance_tests;
#[cfg(test)]
mod entity_tests;
#[cfg(test)]
mod repair_tests;
#[cfg(test)]
mod simulation;

pub use config::{BASE_PRIORITY, CLUSTERS_MAX, Carry, Config, ConfigError, LOCKS_MAX, Rule, TASKS_MAX, parse_clusters};
pub use decision::{Carried, Change, Decision, Grant, Link, Watch};
/// What a lock of a system is.
pub use laxity_policy::lock::{Config as LockConfig, Progress as LockProgress};
pub use layout::NAME_MAX;
pub use lock_request::LockRequest;
pub use program::{Program, ProgramError, ProgramReport};
pub use registry::{Registry, RegistryError, SystemError};
pub use service::{ABOVE_ALL, BELOW_ALL, Service, Urgency};
pub use snapshot::{Snapshot, TaskSnapshot, TaskState};
pub use state_lock::StateError;
pub use supervisor::{Ledger, Returned, Supervisor, Throttling};
pub use system::{BeginError, System};
pub use task::{Job, Parameters, Task, TaskError};
