//! The k-exclusion flexible multiprocessor locking protocol (paper 000, appendix A).

use std::collections::VecDeque;

use laxity_model::{Instant, ReplicaId, TaskId};

use super::discipline::{Discipline, Grant, Levels, Request, Standing};

/// A FIFO queue for each of k replicas, whose first request is that of the holder.
///
/// ```text
///   request ──R1: least wait──►  queue 0:  [holder] [next] [..]   ──unlock──►  next, else a job
///                                queue 1:  [holder]                            stolen from another queue (R3)
///                                             ▲ inherits from its own queue (R2)
/// ```
///
/// The paper says nothing of jobs that name a GPU. Here they join the queue of that GPU whatever its length and are
/// never stolen, so equations 1 and 2 bound the waits of jobs only as long as none of them names one.
#[derive(Debug)]
pub(super) struct KFmlp {
    pub(super) queues: Vec<VecDeque<Request>>,
    /// Whether lengths of critical sections are known ("l-aware").
    length_aware: bool,
}

impl KFmlp {
    pub(super) fn new(replicas: u16, length_aware: bool) -> Self {
        assert!(replicas > 0, "a lock without replicas can never be granted");
        KFmlp { queues: vec![VecDeque::new(); usize::from(replicas)], length_aware }
    }

    /// `wait_x`, the worst-case wait time of a queue: the lengths of its requests, the holder's in full. Without them
    /// it is `max{l}` times their number, and `max{l}` is the same for all queues.
    fn wait(&self, replica: usize) -> u128 {
        let queue = &self.queues[replica];
        if self.length_aware {
            // Fewer than 2^32 lengths below 2^64: the sum is below 2^96.
            queue.iter().map(|request| u128::from(request.length.as_nanos())).sum()
        } else {
            queue.len() as u128
        }
    }

    /// The queue that `request` joins (R1). Ties go to a free replica, lest a job wait for a holder of length 0 beside
    /// it, then to the smallest.
    fn least_wait(&self, request: Request) -> usize {
        let eligible = (0..self.queues.len()).filter(|&replica| request.accepts(replica));
        let least = eligible.min_by_key(|&replica| (self.wait(replica), !self.queues[replica].is_empty(), replica));
        least.expect("the GPU a request names is one of the pool")
    }

    /// The queue and the position there of the highest-priority blocked job that any replica suits (R3).
    fn victim(&self, levels: Levels<'_>) -> Option<(usize, usize)> {
        let mut highest = None;
        for (replica, queue) in self.queues.iter().enumerate() {
            // The first holds its replica and is not blocked. A job that named a GPU is in its queue already.
            for (position, request) in queue.iter().enumerate().skip(1).filter(|(_, request)| request.only.is_none()) {
                let candidate = (levels.priority(request.task), replica, position);
                highest = Some(highest.map_or(candidate, |highest| candidate.min(highest)));
            }
        }
        highest.map(|(_, replica, position)| (replica, position))
    }

    fn grant_first(&self, replica: usize, grants: &mut Vec<Grant>) {
        if let Some(request) = self.queues[replica].front() {
            grants.push(Grant { task: request.task, replica: ReplicaId(replica as u16) });
        }
    }
}

impl Discipline for KFmlp {
    fn request(&mut self, _now: Instant, request: Request, _levels: Levels<'_>, grants: &mut Vec<Grant>) {
        let replica = self.least_wait(request);
        self.queues[replica].push_back(request);
        if self.queues[replica].len() == 1 {
            self.grant_first(replica, grants);
        }
    }

    fn adopt(&mut self, _now: Instant, request: Request, replica: ReplicaId, _levels: Levels<'_>) {
        self.queues[replica.index()].push_back(request);
    }

    /// R3: the next of the queue follows; if there is none, the highest-priority blocked job of all others.
    fn unlock(&mut self, _now: Instant, task: TaskId, levels: Levels<'_>, grants: &mut Vec<Grant>) {
        let held = self.queues.iter().position(|queue| queue.front().is_some_and(|holder| holder.task == task));
        let replica = held.expect("only a holder unlocks");
        self.queues[replica].pop_front();
        if self.queues[replica].is_empty() {
            let stolen = self.victim(levels).and_then(|(queue, position)| self.queues[queue].remove(position));
            self.queues[replica].extend(stolen);
        }
        self.grant_first(replica, grants);
    }

    fn withdraw(&mut self, _now: Instant, task: TaskId, _levels: Levels<'_>, _grants: &mut Vec<Grant>) {
        for queue in &mut self.queues {
            if let Some(position) = queue.iter().position(|request| request.task == task) {
                assert!(position > 0, "only a job that waits withdraws");
                queue.remove(position);
                return;
            }
        }
        panic!("only a job that waits withdraws");
    }

    fn reordered(&mut self, _now: Instant, _levels: Levels<'_>, _grants: &mut Vec<Grant>) {
        // Queues are FIFO, and R3 looks at priorities when it steals.
    }

    /// R2: the holder inherits from the blocked jobs of its own queue.
    fn inheritance(&self, give: &mut dyn FnMut(TaskId, TaskId)) {
        for queue in &self.queues {
            let Some(holder) = queue.front() else { continue };
            for blocked in queue.iter().skip(1) {
                give(blocked.task, holder.task);
            }
        }
    }

    fn standings(&self, stands: &mut dyn FnMut(TaskId, Standing)) {
        for (replica, queue) in self.queues.iter().enumerate() {
            let standing = Standing::Fifo(ReplicaId(replica as u16));
            queue.iter().skip(1).for_each(|request| stands(request.task, standing));
        }
    }

    fn clear(&mut self) {
        self.queues.iter_mut().for_each(VecDeque::clear);
    }

    fn holder(&self, replica: ReplicaId) -> Option<TaskId> {
        self.queues.get(replica.index()).and_then(VecDeque::front).map(|request| request.task)
    }

    fn assert_invariants(&self) {
        let stealable = self.queues.iter().any(|queue| queue.iter().skip(1).any(|request| request.only.is_none()));
        for (replica, queue) in self.queues.iter().enumerate() {
            assert!(!queue.is_empty() || !stealable, "a replica idles while jobs wait that it suits");
            for request in queue {
                assert!(
                    request.only.is_none() || request.accepts(replica),
                    "a job waits for another GPU than it named"
                );
                let requests = self.queues.iter().flatten().filter(|other| other.task == request.task).count();
                assert_eq!(requests, 1, "a task has at most one request for a lock");
            }
        }
    }
}
