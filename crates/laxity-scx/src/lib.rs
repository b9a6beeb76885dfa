//! Laxity's scheduler in the kernel, through sched_ext.
//!
//! | | |
//! | --- | --- |
//! | [`Membership`], [`Task`], [`Lock`] | threads of a process that are tasks of it, and go on under Linux when it ends |
//! | [`ProgramTask`] | programs that know nothing of it, as tasks |
//! | [`Brakes`] | CPUs that a regulator of memory traffic throttles for all threads that are no tasks |
//! | [`InterruptThread`] | threads of the kernel that work at the priority of a task |
//! | [`Settings`], [`protocol`] | what its loader is told and asked |
//! | [`probe`] | what a machine lacks for it |
//! | [`native`] | the policy core, which is C for the kernel (`bpf/`), compiled for user space: tests drive it beside laxity-policy |
//! | [`layout`], [`notes`], [`intervals`], [`trace`] | what the kernel writes down, as a trace |
//! | `kernel` | the loader, with the feature `kernel`: it needs libbpf, hence libelf and zlib |

mod brakes;
mod client;
mod details;
pub mod intervals;
#[cfg(feature = "kernel")]
pub mod kernel;
pub mod layout;
mod lock;
pub mod native;
pub mod notes;
mod probe;
mod program;
pub mod protocol;
mod settings;
mod task;
pub mod trace;

pub use brakes::{Brakes, THROTTLE_MAX};
pub use client::{ClientError, Membership};
pub use lock::{Guard, Lock};
pub use probe::{Check, Functions, Report, probe};
pub use program::ProgramTask;
pub use protocol::{InterruptRequest, Releases, TaskRequest};
pub use settings::{Placement, Settings, SettingsError, Share};
pub use task::{Expectation, InterruptThread, Job, SECTION_MAX, Task, Teller, Waits};
