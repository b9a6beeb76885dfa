//! Which jobs wait for locks, and which hold them.

use std::collections::{BTreeMap, VecDeque};

use laxity_model::{Instant, JobId, LockId, ReplicaId};

use crate::TraceHeader;

/// Requests and holders. A task has at most one request, for its jobs are sequential and ask for one lock at a time.
/// Memory grows with the locks of the header and with the replicas that are held, whatever numbers of replicas it claims.
#[derive(Clone, Debug)]
pub(crate) struct Locks {
    tasks: Vec<OfTask>,
    locks: Vec<OfLock>,
}

#[derive(Clone, Debug, Default)]
struct OfTask {
    request: Option<Request>,
    held: Vec<(JobId, LockId, ReplicaId)>,
}

#[derive(Clone, Debug, Default)]
struct OfLock {
    /// In the order of their requests.
    waiting: VecDeque<JobId>,
    holders: BTreeMap<ReplicaId, Holder>,
}

/// A job waits for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub job: JobId,
    pub lock: LockId,
    pub since: Instant,
}

/// A job holds a replica of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    pub job: JobId,
    pub since: Instant,
}

impl Locks {
    pub fn new(header: &TraceHeader) -> Self {
        Locks { tasks: vec![OfTask::default(); header.tasks.len()], locks: vec![OfLock::default(); header.locks.len()] }
    }

    /// What `job` waits for.
    pub fn request(&self, job: JobId) -> Option<Request> {
        self.tasks.get(job.task.index())?.request.filter(|request| request.job == job)
    }

    /// Since when `job` waits for `lock`.
    pub fn requested(&self, job: JobId, lock: LockId) -> Option<Instant> {
        self.request(job).filter(|request| request.lock == lock).map(|request| request.since)
    }

    /// The replicas that `job` holds.
    pub fn held_by(&self, job: JobId) -> impl Iterator<Item = (LockId, ReplicaId)> + '_ {
        let held = self.tasks.get(job.task.index()).map_or(&[][..], |task| task.held.as_slice());
        held.iter().filter(move |held| held.0 == job).map(|&(_, lock, replica)| (lock, replica))
    }

    /// The job that holds the replica.
    pub fn holder(&self, lock: LockId, replica: ReplicaId) -> Option<Holder> {
        self.locks.get(lock.index())?.holders.get(&replica).copied()
    }

    /// The jobs that hold replicas of `lock`, by replica.
    pub fn holders(&self, lock: LockId) -> impl Iterator<Item = Holder> + '_ {
        self.locks.get(lock.index()).into_iter().flat_map(|lock| lock.holders.values().copied())
    }

    /// The jobs that wait for `lock`, in the order of their requests.
    pub fn waiting(&self, lock: LockId) -> impl Iterator<Item = JobId> + '_ {
        self.locks.get(lock.index()).into_iter().flat_map(|lock| lock.waiting.iter().copied())
    }

    /// Every request, by job.
    pub fn requests(&self) -> impl Iterator<Item = Request> + '_ {
        self.tasks.iter().filter_map(|task| task.request)
    }

    /// Every replica that is held, by lock and replica.
    pub fn held(&self) -> impl Iterator<Item = (LockId, ReplicaId, Holder)> + '_ {
        self.locks.iter().enumerate().flat_map(|(index, lock)| {
            lock.holders.iter().map(move |(&replica, &holder)| (LockId(index as u16), replica, holder))
        })
    }

    /// An earlier request of the job's task is forgotten.
    pub(super) fn ask(&mut self, at: Instant, job: JobId, lock: LockId) {
        if job.task.index() >= self.tasks.len()
            || lock.index() >= self.locks.len()
            || self.requested(job, lock).is_some()
        {
            return;
        }
        if let Some(before) = self.tasks[job.task.index()].request {
            self.withdraw(before.job, before.lock);
        }
        self.tasks[job.task.index()].request = Some(Request { job, lock, since: at });
        self.locks[lock.index()].waiting.push_back(job);
    }

    /// The job waits no longer.
    pub(super) fn withdraw(&mut self, job: JobId, lock: LockId) {
        if self.requested(job, lock).is_some() {
            self.tasks[job.task.index()].request = None;
            let waiting = &mut self.locks[lock.index()].waiting;
            if let Some(index) = waiting.iter().position(|&other| other == job) {
                waiting.remove(index);
            }
        }
    }

    /// The job holds the replica; no other does.
    pub(super) fn grant(&mut self, at: Instant, job: JobId, lock: LockId, replica: ReplicaId) {
        if job.task.index() >= self.tasks.len() || lock.index() >= self.locks.len() {
            return;
        }
        self.withdraw(job, lock);
        if let Some(before) = self.holder(lock, replica) {
            self.unlock(before.job, lock, replica);
        }
        self.locks[lock.index()].holders.insert(replica, Holder { job, since: at });
        self.tasks[job.task.index()].held.push((job, lock, replica));
    }

    /// Does nothing if the job does not hold the replica.
    pub(super) fn unlock(&mut self, job: JobId, lock: LockId, replica: ReplicaId) {
        let Some(task) = self.tasks.get_mut(job.task.index()) else { return };
        if let Some(index) = task.held.iter().position(|&held| held == (job, lock, replica)) {
            task.held.swap_remove(index);
            self.locks[lock.index()].holders.remove(&replica);
        }
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::{EngineOrder, Nanos, Scheduler, TaskId};

    use super::*;
    use crate::{LockInfo, LockKind, Origin, TaskInfo, TaskKind};

    const LOCK: LockId = LockId(0);
    const REPLICA: ReplicaId = ReplicaId(0);

    fn job(task: u32) -> JobId {
        JobId { task: TaskId(task), index: 0 }
    }

    fn locks() -> Locks {
        let mut header = TraceHeader::new(Origin::Simulated, "locks", 1, Scheduler::GLOBAL_EDF);
        let task = TaskInfo {
            name: "t".to_owned(),
            period: Nanos(1),
            deadline: Nanos(1),
            wcet: Nanos(1),
            cluster: 0,
            rank: 0,
            kind: TaskKind::Task,
        };
        header.tasks = vec![task; 3];
        let kind = LockKind::Resource { order: EngineOrder::Fifo };
        header.locks = vec![LockInfo { name: "lock".to_owned(), replicas: 1, kind }];
        Locks::new(&header)
    }

    #[test]
    fn jobs_wait_in_the_order_of_their_requests_until_they_are_granted_or_withdrawn() {
        let mut locks = locks();
        for (at, task) in [(1, 2), (2, 0), (3, 1), (4, 2)] {
            locks.ask(Instant(at), job(task), LOCK);
        }
        assert_eq!(locks.waiting(LOCK).collect::<Vec<_>>(), [job(2), job(0), job(1)]);
        assert_eq!(locks.requested(job(2), LOCK), Some(Instant(1)), "asking again changes nothing");
        locks.withdraw(job(0), LOCK);
        locks.grant(Instant(5), job(2), LOCK, REPLICA);
        assert_eq!(locks.waiting(LOCK).collect::<Vec<_>>(), [job(1)]);
    }

    #[test]
    fn a_replica_has_one_holder_whatever_the_records_say() {
        let mut locks = locks();
        locks.grant(Instant(1), job(0), LOCK, REPLICA);
        locks.grant(Instant(2), job(1), LOCK, REPLICA);
        assert_eq!(locks.holder(LOCK, REPLICA), Some(Holder { job: job(1), since: Instant(2) }));
        assert_eq!((locks.held_by(job(0)).count(), locks.held_by(job(1)).count()), (0, 1));
        locks.unlock(job(0), LOCK, REPLICA);
        assert_eq!(locks.held().count(), 1, "only the holder can unlock");
        locks.unlock(job(1), LOCK, REPLICA);
        assert_eq!((locks.held().count(), locks.held_by(job(1)).count()), (0, 0));
    }
}
