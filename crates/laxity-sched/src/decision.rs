//! Decisions, and those that hear of them.

use laxity_model::{CpuId, Instant, LockId, ReplicaId, TaskId};
use smallvec::SmallVec;

/// A decision of a cluster: when it was taken, and what it changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// The cluster.
    pub cluster: usize,
    /// When the policy handled the event, on the monotonic clock. Times of a cluster rise strictly.
    pub at: Instant,
    /// What locks changed about jobs, before the policy decided.
    pub changes: SmallVec<[Change; 2]>,
    /// The links that changed, in the policy's order.
    pub links: SmallVec<[Link; 4]>,
    /// The threads that were placed on a CPU or lost it, in the order in which that was done, and when each was. The
    /// calling thread is not among them.
    pub carried: SmallVec<[Carried; 4]>,
}

/// What locks change about the job of a task, as its policy hears of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has work on behalf of a job ([`Task::serve`](crate::Task::serve)).
    Woken {
        /// Of the system.
        task: TaskId,
        /// The task of the same cluster whose job it goes before.
        owner: Option<TaskId>,
        /// As of [`Change::Prioritized`].
        level: (u64, u32),
    },
    /// It has this effective priority from now on.
    Prioritized {
        /// Of the system.
        task: TaskId,
        /// Absolute deadline in nanoseconds on the monotonic clock or level, and tie.
        level: (u64, u32),
    },
    /// It waits for a lock.
    Suspended {
        /// Of the system.
        task: TaskId,
    },
    /// It has the lock that it waited for.
    Resumed {
        /// Of the system.
        task: TaskId,
    },
    /// It is complete, with the unlock that was its last step.
    Completed {
        /// Of the system.
        task: TaskId,
    },
}

impl Change {
    /// The task.
    pub const fn task(&self) -> TaskId {
        match *self {
            Change::Woken { task, .. }
            | Change::Prioritized { task, .. }
            | Change::Suspended { task }
            | Change::Resumed { task }
            | Change::Completed { task } => task,
        }
    }
}

/// The job of `task` holds a replica of a lock from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Of the system.
    pub task: TaskId,
    /// A position in [`Config::locks`](crate::Config::locks).
    pub lock: LockId,
    /// Which replica.
    pub replica: ReplicaId,
}

/// From now on `cpu` is to run the job of `task`, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Of the cluster.
    pub cpu: CpuId,
    /// Of the system.
    pub task: Option<TaskId>,
}

/// The thread of a task was placed by another thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carried {
    /// When Linux had done it.
    pub at: Instant,
    /// The task.
    pub task: TaskId,
    /// The CPU of the cluster on which it runs from now on; `None`: it lost the CPU, or left one where it may have run as
    /// Linux had nothing else to do there.
    pub cpu: Option<CpuId>,
}

/// Hears of the decisions that a task's events lead to: a recorder.
///
/// An event that changes locks is arbitrated first; then each cluster that this concerns decides. Others are decided by the
/// task's own cluster at once.
pub trait Watch {
    /// An event is about to happen: whatever is decided is decided after this.
    fn begin(&mut self) {}

    /// The arbiter of the system's locks handled the task's request or unlock at this time, on the monotonic clock, and
    /// granted this.
    fn arbitrated(&mut self, _at: Instant, _grants: &[Grant]) {}

    /// This was decided. Linux has been told of other threads, and not yet of the calling one.
    fn decided(&mut self, decision: &Decision);

    /// That was all, or the event did not happen. The thread may have to wait after this.
    fn end(&mut self) {}
}

impl<W: Watch + ?Sized> Watch for &mut W {
    fn begin(&mut self) {
        (**self).begin();
    }

    fn arbitrated(&mut self, at: Instant, grants: &[Grant]) {
        (**self).arbitrated(at, grants);
    }

    fn decided(&mut self, decision: &Decision) {
        (**self).decided(decision);
    }

    fn end(&mut self) {
        (**self).end();
    }
}

/// Hears nothing.
impl Watch for () {
    fn decided(&mut self, _decision: &Decision) {}
}
