//! A task or thread as it is carried out.

use laxity_model::TaskId;
use laxity_trace::TaskInfo;

use crate::op::Op;
use crate::releases::ReleasePattern;
use crate::servers::ServerPlan;

/// A task as it is carried out: one cache line, as tasks take turns.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct TaskPlan {
    /// When its jobs arrive and are due.
    pub releases: ReleasePattern,
    /// What each of its jobs does.
    pub ops: Box<[Op]>,
    /// What releases its jobs.
    pub released_by: ReleasedBy,
    /// Its cluster.
    pub cluster: u16,
    /// Its number within the cluster.
    pub local: TaskId,
    /// What bounds the time that its jobs take.
    pub server: Option<Box<ServerPlan>>,
}

const _: () = assert!(size_of::<TaskPlan>() == 64);

/// What releases the jobs of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleasedBy {
    /// Time alone: a task of the workload.
    Time,
    /// Time, once there is room for what the job produces: a source of a graph.
    TimeAndTokens,
    /// Tokens: any other node of a graph.
    Tokens,
    /// A bottom half or a call for it to execute: a thread of the system.
    Work,
    /// The start of the system, once: a best-effort task.
    Start,
}

impl ReleasedBy {
    /// Whether a timer is set for the next job.
    pub fn has_timer(self) -> bool {
        matches!(self, ReleasedBy::Time | ReleasedBy::TimeAndTokens)
    }
}

/// A task with its cluster, before it has a number there.
pub(crate) struct Unplaced {
    /// What the trace says of it.
    pub info: TaskInfo,
    pub ops: Vec<Op>,
    pub releases: ReleasePattern,
    pub released_by: ReleasedBy,
    pub server: Option<ServerPlan>,
}

impl Unplaced {
    /// A thread of the system: not released by time, and told how long to run whenever it is woken.
    pub fn thread(info: TaskInfo) -> Unplaced {
        let ops = vec![Op::Dispatch];
        Unplaced { info, ops, releases: ReleasePattern::NEVER, released_by: ReleasedBy::Work, server: None }
    }

    /// It as number `local` of its cluster.
    pub fn place(self, local: TaskId) -> (TaskInfo, TaskPlan) {
        let plan = TaskPlan {
            releases: self.releases,
            ops: self.ops.into_boxed_slice(),
            released_by: self.released_by,
            cluster: self.info.cluster as u16,
            local,
            server: self.server.map(Box::new),
        };
        (self.info, plan)
    }
}
