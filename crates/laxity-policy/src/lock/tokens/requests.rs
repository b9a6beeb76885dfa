//! The unfinished requests in order of priority, and the donors among them.

use laxity_model::{Nanos, ReplicaId, TaskId};

use super::super::Request;
use crate::cpu::Priority;

/// The unfinished requests, the highest base priority first; a request's *rank* is its position.
#[derive(Clone, Debug)]
pub(in crate::lock) struct Requests {
    pub(in crate::lock) entries: Vec<Entry>,
}

/// An unfinished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lock) struct Entry {
    /// Base priority of the job.
    pub priority: Priority,
    /// See [`Request::length`].
    pub length: Nanos,
    /// See [`Request::only`].
    pub only: Option<u16>,
    /// Where it is.
    pub state: RequestState,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lock) enum RequestState {
    /// In the FIFO queue of a replica; its head is the holder.
    Queued(ReplicaId),
    /// In the priority queue.
    Waiting,
    /// Outside like those in the priority queue, and `donee`, which is in a FIFO queue, has its priority.
    Donor { donee: TaskId },
}

impl Requests {
    pub fn new() -> Self {
        Requests { entries: Vec::new() }
    }

    /// Forgets all requests.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Adds a request to the priority queue.
    pub fn insert(&mut self, request: Request, priority: Priority) {
        assert_eq!(self.rank(request.task), None, "a task has one request for a token at a time");
        let entry = Entry { priority, length: request.length, only: request.only, state: RequestState::Waiting };
        let rank = self.entries.partition_point(|other| other.priority < priority);
        self.entries.insert(rank, entry);
    }

    /// Removes the request of `task`. Its donor remains one until [`set_state`](Self::set_state) or
    /// [`donate`](Self::donate).
    pub fn remove(&mut self, task: TaskId) {
        let rank = self.rank(task).expect("the task has a request");
        self.entries.remove(rank);
    }

    /// The request of `task`, which has one.
    pub fn get(&self, task: TaskId) -> &Entry {
        &self.entries[self.rank(task).expect("the task has a request")]
    }

    pub fn set_state(&mut self, task: TaskId, state: RequestState) {
        let rank = self.rank(task).expect("the task has a request");
        self.entries[rank].state = state;
    }

    /// Donors and the priority queue together, the highest first.
    pub fn outside(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.entries.iter().filter(|entry| entry.is_outside()).map(Entry::task)
    }

    /// How many of the `cpus` highest are outside.
    pub fn top_outside(&self, cpus: usize) -> usize {
        self.entries.iter().take(cpus).filter(|entry| entry.is_outside()).count()
    }

    /// Requests in FIFO queues, by priority.
    pub fn queued(&self) -> impl Iterator<Item = (TaskId, ReplicaId)> + '_ {
        self.entries.iter().filter_map(|entry| entry.replica().map(|replica| (entry.task(), replica)))
    }

    /// Donors and their donees, the highest donor first.
    pub fn donations(&self) -> impl Iterator<Item = (TaskId, TaskId)> + '_ {
        self.entries.iter().filter_map(|entry| entry.donee().map(|donee| (entry.task(), donee)))
    }

    /// The donor of `task`.
    pub fn donor_of(&self, task: TaskId) -> Option<TaskId> {
        self.donations().find(|&(_, donee)| donee == task).map(|(donor, _)| donor)
    }

    /// Whether some request will do with one GPU only.
    pub fn any_restricted(&self) -> bool {
        self.entries.iter().any(|entry| entry.only.is_some())
    }

    /// Donors that are no longer among the `cpus` highest requests, or whose donee is gone, return to the priority
    /// queue; those of the highest that wait there become donors, the highest first, if there is a donee.
    /// `may_use` tells whether a request for that GPU only may use a replica.
    ///
    /// ```text
    /// cpus = 3, rank   0        1       2     |  3        4
    ///                  Waiting  Queued  Donor |  Queued   Queued      0 donates to 4, which has no donor,
    ///                                   '------->'                    though 3's donor is lower than 0
    /// ```
    pub fn donate(&mut self, cpus: usize, may_use: impl Fn(ReplicaId, Option<u16>) -> bool) {
        for rank in 0..self.entries.len() {
            let Some(donee) = self.entries[rank].donee() else { continue };
            let goes_on = rank < cpus && self.accepts(donee, self.entries[rank].only, &may_use);
            if !goes_on {
                self.entries[rank].state = RequestState::Waiting;
            }
        }
        for rank in 0..self.entries.len().min(cpus) {
            if self.entries[rank].state != RequestState::Waiting {
                continue;
            }
            let Some(donee) = self.donee_for(rank, &may_use) else { continue };
            // It is of lower priority, so its turn to find another donee is still to come.
            if let Some(previous) = self.donor_of(donee) {
                self.set_state(previous, RequestState::Waiting);
            }
            self.entries[rank].state = RequestState::Donor { donee };
        }
    }

    /// The lowest request in a FIFO queue that the request at `rank` may use, if it is lower than that: requests rank
    /// with their donors where they have one.
    fn donee_for(&self, rank: usize, may_use: &impl Fn(ReplicaId, Option<u16>) -> bool) -> Option<TaskId> {
        let only = self.entries[rank].only;
        let mut donated: Vec<usize> = (0..self.entries.len()).collect();
        for (donor, entry) in self.entries.iter().enumerate() {
            if let Some(donee) = entry.donee().and_then(|donee| self.rank(donee)) {
                donated[donee] = donor;
            }
        }
        let usable = |entry: &Entry| entry.replica().is_some_and(|replica| may_use(replica, only));
        let candidates =
            self.entries.iter().zip(donated).filter(|(entry, counts_as)| usable(entry) && *counts_as > rank);
        candidates.max_by_key(|&(_, counts_as)| counts_as).map(|(entry, _)| entry.task())
    }

    fn accepts(&self, donee: TaskId, only: Option<u16>, may_use: &impl Fn(ReplicaId, Option<u16>) -> bool) -> bool {
        let queued = self.rank(donee).and_then(|rank| self.entries[rank].replica());
        queued.is_some_and(|replica| may_use(replica, only))
    }

    pub(in crate::lock) fn rank(&self, task: TaskId) -> Option<usize> {
        self.entries.iter().position(|entry| entry.task() == task)
    }

    /// Panics if an invariant does not hold.
    pub fn assert_invariants(&self, cpus: usize, may_use: impl Fn(ReplicaId, Option<u16>) -> bool) {
        assert!(self.entries.is_sorted_by(|a, b| a.priority < b.priority), "requests are in order of priority");
        let mut donees: Vec<TaskId> = self.donations().map(|(_, donee)| donee).collect();
        donees.sort_unstable();
        assert!(donees.is_sorted_by(|a, b| a < b), "two donors have the same donee");
        for (rank, entry) in self.entries.iter().enumerate() {
            let Some(donee) = entry.donee() else { continue };
            assert!(rank < cpus, "a donor is not among the m highest");
            assert!(self.accepts(donee, entry.only, &may_use), "a donee is not in a queue that its donor may use");
            assert!(self.get(donee).priority > entry.priority, "a donor is lower than its donee");
        }
    }
}

impl Entry {
    fn task(&self) -> TaskId {
        self.priority.task
    }

    fn is_outside(&self) -> bool {
        !matches!(self.state, RequestState::Queued(_))
    }

    pub(in crate::lock) fn replica(&self) -> Option<ReplicaId> {
        match self.state {
            RequestState::Queued(replica) => Some(replica),
            RequestState::Waiting | RequestState::Donor { .. } => None,
        }
    }

    fn donee(&self) -> Option<TaskId> {
        match self.state {
            RequestState::Donor { donee } => Some(donee),
            RequestState::Queued(_) | RequestState::Waiting => None,
        }
    }
}
