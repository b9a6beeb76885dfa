//! `laxity.sched`: threads that Laxity's own scheduler schedules.
//!
//! ```text
//! Python   System - task -> Task - wait_for_next_job -> TaskJob
//!                             '-- section, suspended, lock -> Section, Suspension, Hold
//! here     system, lock     task                        section, lock
//!          own: the tasks of this thread; errors, table for all of them
//! crates   laxity-sched; kernel/ has the same of the scheduler in the kernel: laxity-scx
//! ```

mod errors;
mod kernel;
mod lock;
mod own;
mod section;
mod system;
mod table;
mod task;

pub use kernel::{
    PyKernelEvent, PyKernelExpectation, PyKernelHold, PyKernelInterrupts, PyKernelJob, PyKernelLock, PyKernelScheduler,
    PyKernelSection, PyKernelStatus, PyKernelTask, kernel_look,
};
pub use lock::{PyHold, PyLock};
pub use section::{PySection, PySuspension};
pub use system::{PySystem, sched_gc, sched_look, sched_names};
pub use task::{PyTask, PyTaskJob};
