//! What a trace's header says of the class of Linux that scheduled a live run.

use serde::{Deserialize, Serialize};

/// A scheduling class of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinuxClass {
    /// Fixed priorities.
    Fifo,
    /// Earliest deadline first, each thread within its budget.
    Deadline,
    /// Fair shares: no policy of a workload.
    Other,
    /// Laxity's scheduler in the kernel, whose links are in a trace of its own: the policy of the workload.
    Kernel,
}

impl LinuxClass {
    /// As Linux calls it.
    pub const fn name(self) -> &'static str {
        match self {
            LinuxClass::Fifo => "SCHED_FIFO",
            LinuxClass::Deadline => "SCHED_DEADLINE",
            LinuxClass::Other => "SCHED_OTHER",
            LinuxClass::Kernel => "Laxity's scheduler in the kernel",
        }
    }
}
