//! What happens to jobs that lock, and what follows.

use laxity_model::{LockId, Nanos, ReplicaId, TaskId};

use crate::cpu::Priority;

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
    /// It holds `replica`, free till now, of `lock`, for which no task waits: the driver granted it what a request would
    /// have been granted, as uncontended locks need no arbiter. The driver may report that at any time before a task waits,
    /// if the base priority of a job stays the same while it holds, and nothing is predicted.
    Adopt {
        /// The task.
        task: TaskId,
        /// The lock.
        lock: LockId,
        /// The replica, the smallest that was free and would do.
        replica: ReplicaId,
        /// What its request said of the length.
        length: Nanos,
        /// And of the GPU.
        only: Option<u16>,
    },
    /// It gives `lock` up.
    Unlock {
        /// The task.
        task: TaskId,
        /// The lock.
        lock: LockId,
    },
    /// The base priority of the pending job of `priority.task` is this one from now on (its deadline was postponed).
    Rebase {
        /// Its base priority.
        priority: Priority,
    },
    /// It holds `lock` and its budget is exhausted: the next waiter is admitted as if it had unlocked, and is granted
    /// the lock when it does (GPUSync's rules; other locks take no notice).
    Overrun {
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

impl Event {
    /// The task that it happened to.
    pub const fn task(&self) -> TaskId {
        match *self {
            Event::Pending { priority } | Event::Rebase { priority } => priority.task,
            Event::Complete { task }
            | Event::Request { task, .. }
            | Event::Adopt { task, .. }
            | Event::Unlock { task, .. }
            | Event::Overrun { task, .. }
            | Event::Withdraw { task, .. } => task,
        }
    }
}

impl Action {
    /// The task that it is about.
    pub const fn task(&self) -> TaskId {
        match *self {
            Action::Grant { task, .. } => task,
            Action::Prioritize { priority } => priority.task,
        }
    }
}
