//! All locks of a workload, and the effective priorities that follow from who waits for whom.

use laxity_model::{Instant, LockId, Nanos, ReplicaId, TaskId};

use crate::cpu::Priority;

use super::discipline::Config;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job of `priority.task` became pending, with that base priority. It holds nothing.
    Pending {
        /// Its base priority.
        priority: Priority,
    },
    /// The pending job of `task` is complete; it holds nothing and waits for nothing.
    Complete {
        /// The task.
        task: TaskId,
    },
    /// The pending job of `task` asks for `lock`.
    Request {
        /// The task.
        task: TaskId,
        /// The lock.
        lock: LockId,
        /// Bound on how long it will hold it.
        length: Nanos,
        /// The only GPU of the lock's pool that will do, by its position there.
        only: Option<u16>,
    },
    /// It gives `lock` up.
    Unlock {
        /// The task.
        task: TaskId,
        /// The lock.
        lock: LockId,
    },
    /// It waits for `lock` no longer (its budget is exhausted).
    Withdraw {
        /// The task.
        task: TaskId,
        /// The lock.
        lock: LockId,
    },
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The request of `task` for `lock` is granted.
    Grant {
        /// The task.
        task: TaskId,
        /// The lock.
        lock: LockId,
        /// Which replica.
        replica: ReplicaId,
    },
    /// The effective priority of the job of `priority.task` is this one from now on.
    Prioritize {
        /// Its effective priority.
        priority: Priority,
    },
}

/// The locks of a workload and the effective priorities of its jobs.
#[derive(Debug)]
pub struct Arbiter {}

impl Arbiter {
    /// No job pending; locks as configured, `LockId` being the position.
    pub fn new(_tasks: usize, _locks: &[Config]) -> Self {
        Arbiter {}
    }

    /// Takes note of `event` and appends what follows: grants first, then changed priorities by task.
    pub fn handle(&mut self, _now: Instant, _event: Event, _actions: &mut Vec<Action>) {
        unimplemented!("written by whoever fills this in")
    }

    /// The effective priority of the pending job of `task`.
    pub fn priority(&self, _task: TaskId) -> Option<Priority> {
        unimplemented!("written by whoever fills this in")
    }

    /// Who holds `replica` of `lock`.
    pub fn holder(&self, _lock: LockId, _replica: ReplicaId) -> Option<TaskId> {
        unimplemented!("written by whoever fills this in")
    }

    /// Panics if an invariant does not hold.
    pub fn assert_invariants(&self) {}
}
