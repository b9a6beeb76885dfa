//! Budgets of tasks: `bpf/server.h`, compiled for user space.

use super::ffi::{self, Memory};

/// A hard constant bandwidth server. Times are in ns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Server {
    budget: u64,
    left: u64,
    due: u64,
    from: u64,
}

impl Server {
    /// With that budget, above 0, in each period, and idle.
    pub fn new(budget: u64) -> Server {
        assert!(budget > 0, "a server without budget never runs");
        Server { budget, left: 0, due: 0, from: 0 }
    }

    /// What is left of its budget.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// When that is due.
    pub fn due(&self) -> u64 {
        self.due
    }

    /// From when on it may be used.
    pub fn from(&self) -> u64 {
        self.from
    }

    /// Work comes at `now`, and there was none.
    pub fn begin(&mut self, period: u64, now: u64) {
        let memory: Memory = (&raw mut *self).cast();
        // SAFETY: it is the structure that C has, and ours alone.
        unsafe { (ffi::whole::FUNCTIONS.server_begin)(memory, period, now) }
    }

    /// It used that much up to `now`, within its budget or not. Whether the budget was used up.
    pub fn charge(&mut self, period: u64, used: u64, now: u64) -> bool {
        let memory: Memory = (&raw mut *self).cast();
        // SAFETY: as above; the budget, by which C divides, is above 0.
        unsafe { (ffi::whole::FUNCTIONS.server_charge)(memory, period, used, now) == 1 }
    }
}
