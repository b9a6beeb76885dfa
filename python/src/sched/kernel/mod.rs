//! `laxity.sched.kernel`: threads that are tasks of Laxity's scheduler in the kernel.
//!
//! ```text
//! Python   Scheduler - task -> Task - wait_for_next_job -> Job
//!              |                 '-- section, lock, event, expecting -> Section, Hold, Event, Expectation
//!              '-- status, look -> Status
//! here     scheduler, status   task                                     parts
//!          own: a task with what its job holds, in its thread
//! crates   laxity-scx
//! ```

mod own;
mod parts;
mod scheduler;
mod status;
mod task;

pub use parts::{PyKernelEvent, PyKernelExpectation, PyKernelHold, PyKernelLock, PyKernelSection};
pub use scheduler::{PyKernelInterrupts, PyKernelScheduler};
pub use status::{PyKernelStatus, kernel_look};
pub use task::{PyKernelJob, PyKernelTask};
