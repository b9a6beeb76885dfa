//! A mutex, or a semaphore: one queue in front of all replicas.

use std::collections::VecDeque;

use laxity_model::{EngineOrder, Instant, ReplicaId, TaskId};

use super::discipline::{Discipline, Grant, Levels, Request, Standing};

/// One queue of waiting jobs, FIFO or by effective priority (ties: the smaller `TaskId`).
///
/// A request takes the free replica of the smallest number, and a replica that is given up goes to the next in order.
/// A job that names a GPU waits for the replica of that number and is passed over for others, so that no replica is
/// ever free while a job waits that could use it.
///
/// The order is made when a replica is granted, not when a job joins: priorities may change in between, and finding the
/// highest of n is no dearer than inserting into n.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) holders: Vec<Option<TaskId>>,
    /// In the order of request.
    pub(super) waiting: VecDeque<Request>,
    order: EngineOrder,
    /// Whether holders inherit.
    inheritance: bool,
}

impl Queue {
    pub(super) fn new(replicas: u16, order: EngineOrder, inheritance: bool) -> Self {
        assert!(replicas > 0, "a lock without replicas can never be granted");
        Queue { holders: vec![None; usize::from(replicas)], waiting: VecDeque::new(), order, inheritance }
    }

    /// The position of the waiting job that `replica` goes to.
    fn next(&self, replica: usize, levels: Levels<'_>) -> Option<usize> {
        let mut eligible = self.waiting.iter().enumerate().filter(|(_, request)| request.accepts(replica));
        let next = match self.order {
            EngineOrder::Fifo => eligible.next(),
            EngineOrder::Priority => eligible.min_by_key(|(_, request)| levels.priority(request.task)),
        };
        next.map(|(position, _)| position)
    }

    fn grant(&mut self, task: TaskId, replica: usize, grants: &mut Vec<Grant>) {
        self.holders[replica] = Some(task);
        grants.push(Grant { task, replica: ReplicaId(replica as u16) });
    }
}

impl Discipline for Queue {
    fn request(&mut self, _now: Instant, request: Request, _levels: Levels<'_>, grants: &mut Vec<Grant>) {
        let only = request.only.map_or(0, usize::from);
        assert!(only < self.holders.len(), "the GPU a request names is one of the pool");
        let free = |&replica: &usize| self.holders[replica].is_none() && request.accepts(replica);
        match (0..self.holders.len()).find(free) {
            Some(replica) => self.grant(request.task, replica, grants),
            None => self.waiting.push_back(request),
        }
    }

    fn adopt(&mut self, _now: Instant, request: Request, replica: ReplicaId, _levels: Levels<'_>) {
        self.holders[replica.index()] = Some(request.task);
    }

    fn unlock(&mut self, _now: Instant, task: TaskId, levels: Levels<'_>, grants: &mut Vec<Grant>) {
        let held = self.holders.iter().position(|&holder| holder == Some(task));
        let replica = held.expect("only a holder unlocks");
        self.holders[replica] = None;
        let next = self.next(replica, levels).and_then(|position| self.waiting.remove(position));
        if let Some(request) = next {
            self.grant(request.task, replica, grants);
        }
    }

    fn withdraw(&mut self, _now: Instant, task: TaskId, _levels: Levels<'_>, _grants: &mut Vec<Grant>) {
        let position = self.waiting.iter().position(|request| request.task == task);
        self.waiting.remove(position.expect("only a job that waits withdraws"));
    }

    fn reordered(&mut self, _now: Instant, _levels: Levels<'_>, _grants: &mut Vec<Grant>) {
        // The order is made when a replica is granted.
    }

    /// Whichever of several holders unlocks first ends a wait, so every one that holds what the waiter accepts
    /// inherits.
    fn inheritance(&self, give: &mut dyn FnMut(TaskId, TaskId)) {
        if !self.inheritance {
            return;
        }
        for (replica, holder) in self.holders.iter().enumerate() {
            let Some(holder) = *holder else { continue };
            for request in self.waiting.iter().filter(|request| request.accepts(replica)) {
                give(request.task, holder);
            }
        }
    }

    fn standings(&self, stands: &mut dyn FnMut(TaskId, Standing)) {
        self.waiting.iter().for_each(|request| stands(request.task, Standing::Queue));
    }

    fn clear(&mut self) {
        self.holders.fill(None);
        self.waiting.clear();
    }

    fn holder(&self, replica: ReplicaId) -> Option<TaskId> {
        self.holders.get(replica.index()).copied().flatten()
    }

    fn assert_invariants(&self) {
        for (replica, holder) in self.holders.iter().enumerate() {
            let wanted = self.waiting.iter().any(|request| request.accepts(replica));
            assert!(holder.is_some() || !wanted, "a replica idles while jobs wait for it");
        }
        for request in &self.waiting {
            assert!(!self.holders.contains(&Some(request.task)), "a job waits for a lock that it holds");
            let requests = self.waiting.iter().filter(|other| other.task == request.task).count();
            assert_eq!(requests, 1, "a task has at most one request for a lock");
        }
    }
}
