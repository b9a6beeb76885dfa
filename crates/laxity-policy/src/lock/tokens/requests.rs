//! The unfinished requests in order of priority, and who donates to whom.

use laxity_model::{Nanos, ReplicaId, TaskId};

use super::super::Request;
use super::super::saved::{Damaged, Numbers, optional};
use crate::cpu::Priority;

/// The unfinished requests, the highest base priority first; a request's *rank* is its position.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    entries: Vec<Entry>,
}

/// An unfinished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Base priority of the job.
    pub priority: Priority,
    /// See [`Request::length`].
    pub length: Nanos,
    /// See [`Request::only`].
    pub only: Option<u16>,
    /// Where it is.
    pub place: Place,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the FIFO queue of a replica; its head is the holder.
    Queued(ReplicaId),
    /// In the priority queue.
    Waiting,
    /// Outside like those in the priority queue, and `donee`, which is in a FIFO queue, has its priority.
    Donor { donee: TaskId },
}

/// Places as saved. A list of nothing is saved as zeros.
const WAITING: u64 = 0;
const QUEUED: u64 = 1;
const DONOR: u64 = 2;

impl Requests {
    pub fn new() -> Self {
        Requests { entries: Vec::new() }
    }

    /// Adds a request to the priority queue.
    pub fn insert(&mut self, request: Request, priority: Priority) {
        assert_eq!(self.rank(request.task), None, "a task has one request for a token at a time");
        let entry = Entry { priority, length: request.length, only: request.only, place: Place::Waiting };
        let rank = self.entries.partition_point(|other| other.priority < priority);
        self.entries.insert(rank, entry);
    }

    /// Removes the request of `task`. Its donor remains one until [`set_place`](Self::set_place) or
    /// [`donate`](Self::donate).
    pub fn remove(&mut self, task: TaskId) {
        let rank = self.rank(task).expect("the task has a request");
        self.entries.remove(rank);
    }

    /// The request of `task`, which has one.
    pub fn get(&self, task: TaskId) -> &Entry {
        &self.entries[self.rank(task).expect("the task has a request")]
    }

    pub fn set_place(&mut self, task: TaskId, place: Place) {
        let rank = self.rank(task).expect("the task has a request");
        self.entries[rank].place = place;
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

    /// Who donates to `task`.
    pub fn donor_of(&self, task: TaskId) -> Option<TaskId> {
        self.donations().find(|&(_, donee)| donee == task).map(|(donor, _)| donor)
    }

    /// Whether some request will do with one GPU only.
    pub fn any_restricted(&self) -> bool {
        self.entries.iter().any(|entry| entry.only.is_some())
    }

    /// Donors that are no longer among the `cpus` highest requests, or whose donee is gone, return to the priority
    /// queue; those of the highest that wait there become donors, the highest first, if there is somebody to donate to.
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
                self.entries[rank].place = Place::Waiting;
            }
        }
        for rank in 0..self.entries.len().min(cpus) {
            if self.entries[rank].place != Place::Waiting {
                continue;
            }
            let Some(donee) = self.donee_for(rank, &may_use) else { continue };
            // It is of lower priority, so its turn to find another donee is still to come.
            if let Some(previous) = self.donor_of(donee) {
                self.set_place(previous, Place::Waiting);
            }
            self.entries[rank].place = Place::Donor { donee };
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

    fn rank(&self, task: TaskId) -> Option<usize> {
        self.entries.iter().position(|entry| entry.task() == task)
    }

    /// An entry's place is saved as a kind and, where it has one, a replica or a donee.
    pub fn save(&self, numbers: &mut Vec<u64>) {
        numbers.push(self.entries.len() as u64);
        for Entry { priority, length, only, place } in &self.entries {
            let (kind, which) = match *place {
                Place::Waiting => (WAITING, 0),
                Place::Queued(replica) => (QUEUED, replica.0.into()),
                Place::Donor { donee } => (DONOR, donee.0.into()),
            };
            let priority = [priority.task.0.into(), priority.major, priority.tie.into()];
            numbers.extend(priority.into_iter().chain([length.0, optional(*only), kind, which]));
        }
    }

    pub fn load(&mut self, numbers: &mut Numbers<'_>, replicas: usize) -> Result<(), Damaged> {
        self.entries.clear();
        for _ in 0..numbers.count(numbers.tasks())? {
            let (task, major, tie) = (numbers.task()?, numbers.any()?, numbers.u32()?);
            if self.rank(task).is_some() {
                return Err(numbers.damaged("a task with one request"));
            }
            let (length, only) = (numbers.nanos()?, numbers.optional_u16()?);
            let place = match numbers.any()? {
                WAITING => numbers.below(1, "nothing").map(|_| Place::Waiting)?,
                QUEUED => Place::Queued(numbers.replica(replicas)?),
                DONOR => Place::Donor { donee: numbers.task()? },
                _ => return Err(numbers.damaged("where a request is")),
            };
            self.entries.push(Entry { priority: Priority { major, tie, task }, length, only, place });
        }
        let is_queued = |donee| self.rank(donee).is_some_and(|rank| self.entries[rank].replica().is_some());
        if self.donations().any(|(_, donee)| !is_queued(donee)) {
            return Err(numbers.damaged("the end of requests in which donees are in queues"));
        }
        Ok(())
    }

    pub fn saved_max(tasks: usize) -> usize {
        1 + 7 * tasks
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
        !matches!(self.place, Place::Queued(_))
    }

    fn replica(&self) -> Option<ReplicaId> {
        match self.place {
            Place::Queued(replica) => Some(replica),
            Place::Waiting | Place::Donor { .. } => None,
        }
    }

    fn donee(&self) -> Option<TaskId> {
        match self.place {
            Place::Donor { donee } => Some(donee),
            Place::Queued(_) | Place::Waiting => None,
        }
    }
}
