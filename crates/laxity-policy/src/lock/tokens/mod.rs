//! GPUSync's token allocator (Elliott, Ward and Anderson, RTSS 2013; Elliott's dissertation, chapter 3).
//!
//! A cluster of m CPUs has g GPUs of rho tokens each, so `K = rho * g` replicas; replica `r` is a token of GPU `r % g`.
//! Each replica has a FIFO queue of at most f requests, its holder included; at most `fifo_requests` are in all of them
//! together. The overflow waits outside, in the priority queue or as a *donor*:
//!
//! ```text
//!            request                    granted            unlock
//!   asks ------------> Queued(replica) ---------> holder ---------> gone
//!     |                   ^       ^                 | overrun
//!     | all full          |       | refill          v
//!     |            refill |       |             holder aside, its place is free, the next is granted at the unlock
//!     v                   |       |
//!   Waiting -- donate --> Donor --'      a donor displaced, or no longer among the m highest, is Waiting again
//! ```
//!
//! **Bound.** If `K * f = m`, a request is pi-blocked (suspension-oblivious) for no longer than `(2 f - 1) L`, L being
//! the longest hold, unless it ceases to be among the m highest requests while it waits outside. A donor that does loses its
//! donee, and what it waits for once it is among them again comes on top, for up to `f L` each time: rare, and no fault
//! of a reading below, since the releaser's own donor goes first although a higher one may be waiting.
//!
//! **Readings.** Where the rules in prose leave something open, the reading is the one under which that holds:
//! - *Among the m highest* is judged by base priority, over all unfinished requests, holders included.
//! - A request in the priority queue that comes to be among them, as others finish, becomes a donor then.
//! - *The lowest-priority request that has no donor of higher priority*: a request counts with its donor's priority if
//!   it has one. So requests without a donor come first, the lowest of them first; only where there is none below the
//!   new donor (fewer than m requests in the FIFO queues) is a lower donor displaced.
//! - Every donor is of higher priority than all in the priority queue, so *the highest donor, else the queue's head* is
//!   simply the highest request outside.
//! - A request that will do with one GPU only donates and moves within that GPU's queues; it is passed over where it
//!   cannot go. No bound is claimed then.
//!
//! Every operation is at worst quadratic in the unfinished requests, of which there is one per task.

pub(in crate::lock) mod affinity;
pub(in crate::lock) mod fifos;
pub(in crate::lock) mod requests;

use laxity_model::{Instant, Nanos, ReplicaId, TaskId};

use super::{Discipline, Grant, Levels, Request, Standing};
use affinity::Affinity;
use fifos::Fifos;
use requests::{RequestState, Requests};

/// The tokens of the GPUs of one cluster: their holders, the queued tasks, and the tasks outside.
#[derive(Clone, Debug)]
pub struct Tokens {
    cpus: usize,
    pub(super) requests: Requests,
    pub(super) fifos: Fifos,
    pub(super) affinity: Option<Affinity>,
}

impl Tokens {
    /// All tokens free; the arguments are the fields of [`Config::Tokens`](super::Config::Tokens).
    pub fn new(
        gpus: u16,
        tokens: u16,
        fifo_length: u16,
        fifo_requests: u16,
        cpus: u16,
        migration: Option<Nanos>,
    ) -> Self {
        assert!(cpus > 0, "a cluster has a CPU");
        Tokens {
            cpus: cpus.into(),
            requests: Requests::new(),
            fifos: Fifos::new(gpus, tokens, fifo_length, fifo_requests),
            affinity: migration.map(Affinity::new),
        }
    }

    /// A place in the queue of `freed`, and so among those of all queues, is free: `donor`, that of the request that
    /// had it, takes it, else the highest request outside that can. It joins the queue of `freed`, but an idle replica
    /// rather than a queue: there is one while requests are outside only if `fifo_requests` allows no more.
    fn refill(&mut self, now: Instant, freed: ReplicaId, donor: Option<TaskId>, grants: &mut Vec<Grant>) {
        let outside = donor.into_iter().chain(self.requests.outside());
        let place = |task: TaskId| {
            let only = self.requests.get(task).only;
            let may_join = |replica: &ReplicaId| self.fifos.may_join(*replica, only);
            let idle = self.fifos.replicas().filter(may_join).find(|&replica| self.fifos.holder(replica).is_none());
            let place = idle.or_else(|| Some(freed).filter(may_join)).or_else(|| self.advised(now, task));
            place.map(|replica| (task, replica))
        };
        let joining = { outside }.find_map(place);
        if let Some((task, replica)) = joining {
            self.join(now, task, replica, grants);
        }
    }

    /// `idle` is free and no task outside can have it: it goes to the waiter of highest effective priority in a queue.
    fn steal(&mut self, now: Instant, idle: ReplicaId, levels: Levels<'_>, grants: &mut Vec<Grant>) {
        let effective = |task: TaskId| levels.effective.get(task.index()).copied().flatten();
        let rank = |task: TaskId| effective(task).unwrap_or(self.requests.get(task).priority);
        let may_use = |task: TaskId| self.fifos.may_use(idle, self.requests.get(task).only);
        let waiters = self.fifos.replicas().flat_map(|replica| self.fifos.waiters(replica));
        let Some(stolen) = { waiters }.filter(|&task| may_use(task)).min_by_key(|&task| rank(task)) else { return };
        let freed = self.fifos.remove_waiter(stolen);
        self.join(now, stolen, idle, grants);
        // A task outside may fit where the stolen one was, though it did not fit where that is now.
        self.refill(now, freed, None, grants);
    }

    fn join(&mut self, now: Instant, task: TaskId, replica: ReplicaId, grants: &mut Vec<Grant>) {
        self.requests.set_state(task, RequestState::Queued(replica));
        if self.fifos.push(task, replica) {
            self.grant(now, task, replica, grants);
        }
    }

    fn grant(&mut self, now: Instant, task: TaskId, replica: ReplicaId, grants: &mut Vec<Grant>) {
        if let Some(affinity) = &mut self.affinity {
            affinity.start(now, task, self.fifos.gpu(replica), self.requests.get(task).length);
        }
        grants.push(Grant { task, replica });
    }

    fn donate(&mut self) {
        let fifos = &self.fifos;
        self.requests.donate(self.cpus, |replica, only| fifos.may_use(replica, only));
    }

    /// The replica whose queue `task` had best join: by prediction, else the shortest; `None`: none has room for it.
    /// Ties go to the smaller replica.
    fn advised(&self, now: Instant, task: TaskId) -> Option<ReplicaId> {
        let request = self.requests.get(task);
        let open = self.fifos.replicas().filter(|&replica| self.fifos.may_join(replica, request.only));
        let Some(affinity) = &self.affinity else { return open.min_by_key(|&replica| self.fifos.occupants(replica)) };
        open.min_by_key(|&replica| {
            let gpu = self.fifos.gpu(replica);
            let hold = affinity.estimate(task, gpu, request.length);
            let through = self.queue_time(affinity, now, replica).saturating_add(hold.0);
            let own = affinity.last_gpu(task) == Some(gpu);
            (through, !own, affinity.affine(gpu), self.fifos.users(gpu))
        })
    }

    /// Estimate of the time until all that are in the queue of `replica` have unlocked it, in nanoseconds.
    fn queue_time(&self, affinity: &Affinity, now: Instant, replica: ReplicaId) -> u64 {
        let gpu = self.fifos.gpu(replica);
        let held = self.fifos.holder(replica).map_or(Nanos::ZERO, |holder| affinity.remaining(now, holder));
        let waits = |task| affinity.estimate(task, gpu, self.requests.get(task).length);
        self.fifos.waiters(replica).map(waits).fold(held.0, |sum, hold| sum.saturating_add(hold.0))
    }
}

impl Discipline for Tokens {
    /// Until `task` unlocks, its queue's waiters keep giving it their priority. Nothing happens if it has been said
    /// before. `grants` may gain a grant, of a replica that was idle.
    fn overrun(&mut self, now: Instant, task: TaskId, _levels: Levels<'_>, grants: &mut Vec<Grant>) {
        let Some(freed) = self.fifos.set_aside(task) else { return };
        let donor = self.requests.donor_of(task);
        self.requests.remove(task);
        self.refill(now, freed, donor, grants);
        self.donate();
    }

    fn forget(&mut self, task: TaskId) {
        self.affinity.iter_mut().for_each(|affinity| affinity.forget(task));
    }

    fn overran(&self) -> bool {
        self.fifos.overran()
    }

    fn request(&mut self, now: Instant, request: Request, levels: Levels<'_>, grants: &mut Vec<Grant>) {
        let base = levels.base.get(request.task.index()).copied().flatten();
        self.requests.insert(request, base.expect("only a pending job requests"));
        if let Some(replica) = self.advised(now, request.task) {
            self.join(now, request.task, replica, grants);
        }
        self.donate();
    }

    fn adopt(&mut self, now: Instant, request: Request, replica: ReplicaId, levels: Levels<'_>) {
        let base = levels.base.get(request.task.index()).copied().flatten();
        self.requests.insert(request, base.expect("only a pending job requests"));
        self.join(now, request.task, replica, &mut Vec::new());
    }

    fn unlock(&mut self, now: Instant, task: TaskId, levels: Levels<'_>, grants: &mut Vec<Grant>) {
        if let Some(affinity) = &mut self.affinity {
            affinity.finish(now, task);
        }
        let donor = self.requests.donor_of(task);
        let released = self.fifos.release(task);
        if !released.overran {
            self.requests.remove(task);
        }
        if let Some(next) = released.next {
            self.grant(now, next, released.replica, grants);
        }
        if !released.overran {
            self.refill(now, released.replica, donor, grants);
        }
        if self.fifos.holder(released.replica).is_none() {
            self.steal(now, released.replica, levels, grants);
        }
        self.donate();
    }

    fn withdraw(&mut self, now: Instant, task: TaskId, _levels: Levels<'_>, grants: &mut Vec<Grant>) {
        let donor = self.requests.donor_of(task);
        let queued = matches!(self.requests.get(task).state, RequestState::Queued(_));
        let freed = queued.then(|| self.fifos.remove_waiter(task));
        self.requests.remove(task);
        if let Some(freed) = freed {
            self.refill(now, freed, donor, grants);
        }
        self.donate();
    }

    /// Nothing: what is kept in order of priority is in that of base priorities, which last as long as a request.
    fn reordered(&mut self, _now: Instant, _levels: Levels<'_>, _grants: &mut Vec<Grant>) {}

    /// A donor of a waiter reaches the holder through its donee.
    fn inheritance(&self, give: &mut dyn FnMut(TaskId, TaskId)) {
        for replica in self.fifos.replicas() {
            let Some(holder) = self.fifos.holder(replica) else { continue };
            self.fifos.waiters(replica).for_each(|waiter| give(waiter, holder));
        }
        self.requests.donations().for_each(|(donor, donee)| give(donor, donee));
    }

    fn standings(&self, stands: &mut dyn FnMut(TaskId, Standing)) {
        for replica in self.fifos.replicas() {
            self.fifos.waiters(replica).for_each(|waiter| stands(waiter, Standing::Fifo(replica)));
        }
        for task in self.requests.outside() {
            let standing = match self.requests.get(task).state {
                RequestState::Donor { donee } => Standing::Donor { donee },
                _ => Standing::Outside,
            };
            stands(task, standing);
        }
    }

    fn clear(&mut self) {
        self.requests.clear();
        self.fifos.clear();
        self.affinity.iter_mut().for_each(Affinity::clear);
    }

    fn holder(&self, replica: ReplicaId) -> Option<TaskId> {
        self.fifos.holder(replica)
    }

    fn assert_invariants(&self) {
        self.fifos.assert_invariants();
        self.requests.assert_invariants(self.cpus, |replica, only| self.fifos.may_use(replica, only));
        assert_eq!(self.fifos.total(), self.requests.queued().count(), "as many requests say so as are in a queue");
        for (task, replica) in self.requests.queued() {
            assert!(self.fifos.contains(replica, task), "a request is in the queue that it says it is in");
        }
        for task in self.requests.outside() {
            assert_eq!(self.advised(Instant::ZERO, task), None, "{task:?} waits outside though it may join a queue");
        }
        self.assert_busy();
        self.assert_progress();
    }
}

impl Tokens {
    /// Without prediction, which may tell a task to wait for its own GPU.
    fn assert_busy(&self) {
        let idle = self.fifos.replicas().filter(|&replica| self.fifos.holder(replica).is_none());
        for idle in { idle }.filter(|_| self.affinity.is_none()) {
            let waits = |task| self.fifos.may_use(idle, self.requests.get(task).only);
            let mut waiters = self.fifos.replicas().flat_map(|replica| self.fifos.waiters(replica));
            assert!(!waiters.any(waits), "{idle:?} is idle while a task in a queue may use it");
        }
    }

    /// The invariant behind the bound, if all GPUs will do for all requests.
    fn assert_progress(&self) {
        if self.requests.any_restricted() {
            return;
        }
        let donors = self.requests.donations().map(|(donor, _)| donor);
        assert!(donors.eq(self.requests.outside().take(self.requests.donations().count())), "donors precede the rest");
        if self.fifos.total() >= self.cpus {
            let top_outside = self.requests.top_outside(self.cpus);
            assert_eq!(self.requests.donations().count(), top_outside, "all of the m highest outside donate");
        }
    }
}
