//! The FIFO queues of the tokens.

use std::collections::VecDeque;

use laxity_model::{ReplicaId, TaskId};

/// A FIFO queue for each replica.
#[derive(Clone, Debug)]
pub(in crate::lock) struct Fifos {
    pub(in crate::lock) queues: Vec<Fifo>,
    gpus: u16,
    length_max: usize,
    total_max: usize,
}

/// The queue of one replica. Its head holds the replica, unless a holder that overran its budget still does.
#[derive(Clone, Debug, Default)]
pub(in crate::lock) struct Fifo {
    pub(in crate::lock) requests: VecDeque<TaskId>,
    pub(in crate::lock) overran: Option<TaskId>,
}

/// What an unlock leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lock) struct Released {
    pub replica: ReplicaId,
    /// The holder had overrun: it gives up no place in the queue.
    pub overran: bool,
    /// The task that holds it now.
    pub next: Option<TaskId>,
}

impl Fifo {
    fn holder(&self) -> Option<TaskId> {
        self.overran.or(self.requests.front().copied())
    }

    fn waiters(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.requests.iter().copied().skip(usize::from(self.overran.is_none()))
    }
}

impl Fifos {
    /// Empty queues. Panics if a size is 0 or there are more replicas than can be numbered.
    pub fn new(gpus: u16, tokens: u16, length_max: u16, total_max: u16) -> Self {
        assert!(gpus > 0, "tokens belong to a GPU");
        assert!(tokens > 0, "a GPU has a token");
        assert!(length_max > 0, "a queue has room for a holder");
        assert!(total_max > 0, "the queues have room for a holder");
        let replicas = usize::from(gpus) * usize::from(tokens);
        assert!(replicas <= 1 << 16, "replicas are numbered in 16 bits");
        let queues = vec![Fifo::default(); replicas];
        Fifos { queues, gpus, length_max: length_max.into(), total_max: total_max.into() }
    }

    /// Empties the queues; no replica has a holder.
    pub fn clear(&mut self) {
        self.queues.iter_mut().for_each(|queue| {
            queue.requests.clear();
            queue.overran = None;
        });
    }

    /// All replicas in order.
    pub fn replicas(&self) -> impl Iterator<Item = ReplicaId> + use<> {
        (0..self.queues.len()).map(|replica| ReplicaId(replica as u16))
    }

    /// The GPU that `replica` is a token of, by its position in the pool.
    pub fn gpu(&self, replica: ReplicaId) -> u16 {
        replica.0 % self.gpus
    }

    /// Whether `replica` will do for a request for GPU `only`.
    pub fn may_use(&self, replica: ReplicaId, only: Option<u16>) -> bool {
        only.is_none_or(|gpu| gpu == self.gpu(replica))
    }

    /// Whether it will do and there is room in its queue.
    pub fn may_join(&self, replica: ReplicaId, only: Option<u16>) -> bool {
        let length = self.queues[replica.index()].requests.len();
        self.may_use(replica, only) && length < self.length_max && self.total() < self.total_max
    }

    /// The task that holds `replica`.
    pub fn holder(&self, replica: ReplicaId) -> Option<TaskId> {
        self.queues.get(replica.index()).and_then(Fifo::holder)
    }

    /// The tasks that wait in the queue of `replica`, in order.
    pub fn waiters(&self, replica: ReplicaId) -> impl Iterator<Item = TaskId> + '_ {
        self.queues[replica.index()].waiters()
    }

    /// Whether the request of `task` is in the queue of `replica`.
    pub fn contains(&self, replica: ReplicaId, task: TaskId) -> bool {
        self.queues[replica.index()].requests.contains(&task)
    }

    /// How many hold `replica` or wait in its queue; a task that overran holds it without a place in the queue.
    pub fn occupants(&self, replica: ReplicaId) -> usize {
        let queue = &self.queues[replica.index()];
        queue.requests.len() + usize::from(queue.overran.is_some())
    }

    /// How many hold a token of `gpu` or wait in a queue for one.
    pub fn users(&self, gpu: u16) -> usize {
        self.replicas().filter(|&replica| self.gpu(replica) == gpu).map(|replica| self.occupants(replica)).sum()
    }

    /// Requests in all queues.
    pub fn total(&self) -> usize {
        self.queues.iter().map(|queue| queue.requests.len()).sum()
    }

    /// Appends `task` to the queue of `replica` and returns whether it holds it at once.
    pub fn push(&mut self, task: TaskId, replica: ReplicaId) -> bool {
        let queue = &mut self.queues[replica.index()];
        queue.requests.push_back(task);
        queue.holder() == Some(task)
    }

    /// `task`, a holder, loses its place in the queue, which is returned, but goes on holding; `None` if it has none.
    pub fn set_aside(&mut self, task: TaskId) -> Option<ReplicaId> {
        let replica = self.held_by(task);
        let queue = &mut self.queues[replica.index()];
        if queue.overran.is_some() {
            return None;
        }
        queue.overran = queue.requests.pop_front();
        Some(replica)
    }

    /// Whether a holder has lost its place.
    pub fn overran(&self) -> bool {
        self.queues.iter().any(|queue| queue.overran.is_some())
    }

    /// `task` holds a replica no longer; the head of its queue does.
    pub fn release(&mut self, task: TaskId) -> Released {
        let replica = self.held_by(task);
        let queue = &mut self.queues[replica.index()];
        let overran = queue.overran.take().is_some();
        if !overran {
            queue.requests.pop_front();
        }
        Released { replica, overran, next: queue.holder() }
    }

    /// Takes `task` out of the queue in which it waits.
    pub fn remove_waiter(&mut self, task: TaskId) -> ReplicaId {
        let queue = self.queues.iter().position(|queue| queue.waiters().any(|waiter| waiter == task));
        let queue = queue.expect("a task that leaves a queue without the token waits in it");
        self.queues[queue].requests.retain(|&queued| queued != task);
        ReplicaId(queue as u16)
    }

    /// Panics if an invariant does not hold.
    pub fn assert_invariants(&self) {
        assert!(self.total() <= self.total_max, "more requests in all queues than may be");
        let mut seen: Vec<TaskId> = Vec::new();
        for queue in &self.queues {
            assert!(queue.requests.len() <= self.length_max, "a queue is longer than may be");
            seen.extend(queue.requests.iter().chain(&queue.overran).copied());
        }
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all, "a task holds or waits for one token only");
    }

    fn held_by(&self, task: TaskId) -> ReplicaId {
        let mut replicas = self.replicas();
        replicas.find(|&replica| self.holder(replica) == Some(task)).expect("the task holds a token")
    }
}
