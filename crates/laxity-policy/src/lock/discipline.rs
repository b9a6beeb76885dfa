//! The waiting discipline of one lock: the part in which protocols differ.

use laxity_model::{EngineOrder, Instant, Nanos, ReplicaId, TaskId};

use serde::{Deserialize, Serialize};

use crate::cpu::Priority;

use super::saved::Saved;

/// How a lock is configured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Config {
    /// A mutex, or a semaphore of `replicas`: one queue.
    Queue {
        /// How many jobs may hold it at once, at least 1.
        replicas: u16,
        /// The order of grants.
        order: EngineOrder,
        /// What keeps a holder from being preempted while others wait.
        progress: Progress,
    },
    /// The k-FMLP (paper 000, appendix A): a FIFO queue for each of `replicas` resources.
    KFmlp {
        /// k, at least 1.
        replicas: u16,
        /// Whether requests join the queue of shortest waiting time rather than of fewest requests.
        length_aware: bool,
    },
    /// GPUSync's token allocator for the GPUs of one cluster.
    Tokens {
        /// g, at least 1.
        gpus: u16,
        /// rho, at least 1: replica `r` is a token of GPU `r % g`.
        tokens: u16,
        /// f, at least 1: longest FIFO queue of a token, its holder included.
        fifo_length: u16,
        /// Most requests in all FIFO queues together, at least 1.
        fifo_requests: u16,
        /// m, the CPUs of the cluster: whether a request that finds the FIFO queues full may become a donor depends on
        /// whether its task is among the m highest-priority requesters.
        cpus: u16,
        /// What moving a task's state between two GPUs costs; `None`: no affinity is predicted.
        migration: Option<Nanos>,
    },
}

/// What keeps a holder from being preempted while others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Progress {
    /// Nothing.
    None,
    /// It inherits the highest effective priority among its waiters.
    Inheritance,
    /// Immediate ceiling under fixed priorities: from grant to unlock its level is at least this one, the highest among
    /// the lock's users.
    Ceiling {
        /// See [`Priority::level`].
        level: (u64, u32),
    },
    /// Deadline floor, the same under EDF (Burns, Gutierrez, Aldea Rivas and Gonzalez Harbour, IEEE TC 2015): from
    /// grant to unlock its deadline is no later than the grant plus the shortest relative deadline among the users.
    Floor {
        /// The shortest relative deadline.
        deadline: Nanos,
        /// The task that has it; breaks ties.
        tie: u32,
    },
    /// It runs above all jobs; among the boosted the earlier request comes first: its level is `(0, order)`, so base
    /// priorities must have a `major` of at least 1.
    Boosting,
}

/// A request for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The task that requests.
    pub task: TaskId,
    /// Bound on how long it will hold the lock, for what predicts waiting times.
    pub length: Nanos,
    /// The only GPU of the pool that will do, by its position there.
    pub only: Option<u16>,
}

impl Request {
    /// Whether GPU `gpu` of the pool will do.
    pub fn accepts(&self, gpu: usize) -> bool {
        self.only.is_none_or(|only| usize::from(only) == gpu)
    }
}

/// A request that is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The task that holds it now.
    pub task: TaskId,
    /// Which replica.
    pub replica: ReplicaId,
}

/// Where a request that waits stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In the one queue in front of all replicas.
    Queue,
    /// In the queue of this replica.
    Fifo(ReplicaId),
    /// Outside, as the queues are full.
    Outside,
    /// Outside, and `donee`, which is in a queue, has its priority.
    Donor {
        /// The task that has its priority.
        donee: TaskId,
    },
}

/// The priorities of all tasks with a pending job, as a discipline may see them.
#[derive(Clone, Copy, Debug)]
pub struct Levels<'a> {
    /// Base priorities; `None`: no job of the task is pending.
    pub base: &'a [Option<Priority>],
    /// Effective priorities.
    pub effective: &'a [Option<Priority>],
}

impl Levels<'_> {
    /// The effective priority of `task`, which waits or holds.
    pub fn priority(&self, task: TaskId) -> Priority {
        self.effective[task.index()].expect("only pending jobs wait for locks and hold them")
    }
}

/// The waiting discipline of one lock. The arbiter calls it, hands out what it grants, and turns what
/// [`Discipline::inheritance`] says into effective priorities.
pub trait Discipline: Saved + std::fmt::Debug + Send {
    /// `request.task` asks at `now`; it neither holds nor waits for this lock.
    fn request(&mut self, now: Instant, request: Request, levels: Levels<'_>, grants: &mut Vec<Grant>);

    /// `request.task` holds `replica` from now on, which was free while no task waited: the driver granted
    /// what [`Discipline::request`] would have.
    fn adopt(&mut self, now: Instant, request: Request, replica: ReplicaId, levels: Levels<'_>);

    /// `task` gives up the replica it holds.
    fn unlock(&mut self, now: Instant, task: TaskId, levels: Levels<'_>, grants: &mut Vec<Grant>);

    /// `task`, which waits, no longer wants the lock.
    fn withdraw(&mut self, now: Instant, task: TaskId, levels: Levels<'_>, grants: &mut Vec<Grant>);

    /// `task`, which holds a replica, has exhausted its budget: where a number of requests is admitted at a time, the
    /// next one is, as if it had unlocked. It keeps the replica until it unlocks.
    fn overrun(&mut self, _now: Instant, _task: TaskId, _levels: Levels<'_>, _grants: &mut Vec<Grant>) {}

    /// `task`, which neither holds nor waits, is another one from now on: nothing is predicted from what it did before.
    fn forget(&mut self, _task: TaskId) {}

    /// Whether a holder overran, which it took notice of.
    fn overran(&self) -> bool {
        false
    }

    /// Priorities changed for other reasons than this lock: a queue in priority order must be sorted again.
    fn reordered(&mut self, now: Instant, levels: Levels<'_>, grants: &mut Vec<Grant>);

    /// Calls `give(from, to)` for every pair such that `to` inherits from `from` directly: from a waiter to its holder,
    /// from a donor to its donee.
    fn inheritance(&self, give: &mut dyn FnMut(TaskId, TaskId));

    /// Calls `stands` for every task that waits, those of a queue in its order.
    fn standings(&self, stands: &mut dyn FnMut(TaskId, Standing));

    /// Forgets all holders and waiters, and all that it observed.
    fn clear(&mut self);

    /// The task that holds `replica`.
    fn holder(&self, replica: ReplicaId) -> Option<TaskId>;

    /// Panics if an invariant does not hold.
    fn assert_invariants(&self);
}
