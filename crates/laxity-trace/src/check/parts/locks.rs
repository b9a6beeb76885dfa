//! Locks: which job may hold which replica, and in which order requests are granted.

use std::collections::{BTreeMap, BTreeSet};

use laxity_model::{EngineOrder, Instant, JobId, LockId, ReplicaId};

use super::super::{Problem, Report, Violation};
use crate::replay::{self, Holder, Replay};
use crate::{Event, LockInfo, LockKind, TraceHeader};

/// Finds violations of exclusion, of the order of grants, and idle replicas:
///
/// - a replica has one holder at a time, and only replicas that exist are granted;
/// - a job is granted what it asked for, asks for one lock at a time, unlocks what it holds, and completes holding and
///   wanting nothing;
/// - FIFO locks are granted to the earliest request, priority-ordered ones to a request of the highest effective priority, as the
///   trace has named it before;
/// - of a pool of several GPUs under a semaphore no job gets one that an earlier request waits for. Which ones a request may have the
///   trace does not say: that it waited for this one is known when it is granted the same;
/// - a replica that a job is granted in the end was not free for any time while that job waited. A waiter may be
///   restricted to some replicas, which a trace does not say, so that another's being free means nothing; of a lock of
///   one replica the same is required of the requests that are never granted. GPUSync's tokens may be free although
///   jobs wait: so many requests may be in all queues together, and others do not enter.
#[derive(Debug)]
pub(super) struct Locks<'a> {
    header: &'a TraceHeader,
    /// Since when replicas are free that were held; those that were never held are so from the start.
    free_since: BTreeMap<(LockId, ReplicaId), Instant>,
    /// The locks of one replica that may be free though jobs wait: to be looked at when time goes on.
    suspects: BTreeSet<LockId>,
    /// By waiter: what of a pool later requests were granted meanwhile.
    passed: BTreeMap<(LockId, JobId), Vec<Passed>>,
    now: Instant,
}

/// A grant to a request that was not the first.
#[derive(Clone, Copy, Debug)]
struct Passed {
    replica: ReplicaId,
    at: Instant,
    by: JobId,
}

impl<'a> Locks<'a> {
    pub fn new(header: &'a TraceHeader) -> Self {
        Locks {
            header,
            free_since: BTreeMap::new(),
            suspects: BTreeSet::new(),
            passed: BTreeMap::new(),
            now: Instant::ZERO,
        }
    }

    /// `before`: what was true before the event.
    pub fn record(&mut self, at: Instant, event: Event, before: &Replay, report: &mut Report) {
        let locks = &before.details().locks;
        if at > self.now {
            self.judge_idle(locks, report);
            self.now = at;
        }
        let found = |job, what| report.push(Violation { at, cpu: None, job: Some(job), what });
        match event {
            Event::Request { job, lock } => self.request(job, lock, locks, found),
            Event::Grant { job, lock, replica } => {
                self.grant(job, lock, replica, before, found);
                self.passed_in_pool(job, lock, replica, locks).into_iter().for_each(|violation| report.push(violation));
            }
            Event::Unlock { job, lock, replica } => self.unlock(job, lock, replica, locks, found),
            Event::Withdraw { job, lock } => {
                self.passed.remove(&(lock, job));
                withdraw(job, lock, locks, found);
            }
            Event::Complete { job, .. } => complete(job, locks, found),
            _ => {}
        }
    }

    fn request(&mut self, job: JobId, lock: LockId, locks: &replay::Locks, mut found: impl FnMut(JobId, Problem)) {
        if lock.index() >= self.header.locks.len() {
            return found(job, Problem::UnknownLock { lock });
        }
        if let Some(request) = locks.request(job) {
            found(job, Problem::RequestedTwice { lock: request.lock });
        }
        if locks.held_by(job).any(|(held, _)| held == lock) {
            found(job, Problem::RequestedTwice { lock });
        }
        self.suspect(lock);
    }

    fn grant(
        &mut self,
        job: JobId,
        lock: LockId,
        replica: ReplicaId,
        before: &Replay,
        mut found: impl FnMut(JobId, Problem),
    ) {
        let locks = &before.details().locks;
        let Some(info) = self.header.locks.get(lock.index()) else { return found(job, Problem::UnknownLock { lock }) };
        if replica.0 >= info.replicas {
            return found(job, Problem::UnknownReplica { lock, replica });
        }
        let holder = locks.holder(lock, replica);
        if let Some(Holder { job: by, .. }) = holder {
            found(job, Problem::LockHeld { lock, replica, by });
        }
        let may_not_idle = !matches!(info.kind, LockKind::Tokens { .. });
        let free_since = self.free_since.get(&(lock, replica)).copied().unwrap_or(Instant::ZERO);
        match locks.requested(job, lock) {
            None => found(job, Problem::NotRequested { lock }),
            Some(since) if may_not_idle && holder.is_none() && free_since.max(since) < self.now => {
                found(job, Problem::ReplicaIdle { lock, replica });
            }
            Some(_) => {}
        }
        if let Some(earlier) = passed_over(info, lock, job, before) {
            found(job, Problem::GrantOrder { lock, earlier });
        }
    }

    /// Where `job`, granted a GPU of a pool, had been passed over for it. Notes which requests are passed over by this grant.
    fn passed_in_pool(
        &mut self,
        job: JobId,
        lock: LockId,
        replica: ReplicaId,
        locks: &replay::Locks,
    ) -> Option<Violation> {
        // A k-FMLP may move a request to another queue when that one is empty.
        let is_pool = |info: &&LockInfo| info.replicas > 1 && matches!(info.kind, LockKind::Semaphore { .. });
        self.header.locks.get(lock.index()).filter(is_pool)?;
        for earlier in locks.waiting(lock).take_while(|&waiting| waiting != job) {
            self.passed.entry((lock, earlier)).or_default().push(Passed { replica, at: self.now, by: job });
        }
        let passed = self.passed.remove(&(lock, job))?;
        let &Passed { at, by, .. } = passed.iter().find(|passed| passed.replica == replica)?;
        Some(Violation { at, cpu: None, job: Some(by), what: Problem::GrantOrder { lock, earlier: job } })
    }

    fn unlock(
        &mut self,
        job: JobId,
        lock: LockId,
        replica: ReplicaId,
        locks: &replay::Locks,
        mut found: impl FnMut(JobId, Problem),
    ) {
        match locks.holder(lock, replica).filter(|holder| holder.job == job) {
            Some(_) => {
                self.free_since.insert((lock, replica), self.now);
                self.suspect(lock);
            }
            None => found(job, Problem::NotHeld { lock, replica }),
        }
    }

    /// A lock of one replica must be looked at when the instant is over.
    fn suspect(&mut self, lock: LockId) {
        if self.header.locks.get(lock.index()).is_some_and(|info| info.replicas == 1) {
            self.suspects.insert(lock);
        }
    }

    /// No job waits for a free lock at the end of an instant. Waiters that do are not judged again at their grants.
    fn judge_idle(&mut self, locks: &replay::Locks, report: &mut Report) {
        while let Some(lock) = self.suspects.pop_first() {
            let replica = ReplicaId(0);
            let Some(job) = locks.waiting(lock).next() else { continue };
            if locks.holder(lock, replica).is_none() {
                // Reported once: from here on the lock counts as free since for ever.
                self.free_since.insert((lock, replica), Instant::NEVER);
                let what = Problem::ReplicaIdle { lock, replica };
                report.push(Violation { at: self.now, cpu: None, job: Some(job), what });
            }
        }
    }
}

/// The job that should have been granted the lock before `job`, whichever replica.
fn passed_over(info: &LockInfo, lock: LockId, job: JobId, before: &Replay) -> Option<JobId> {
    let mut waiting = before.details().locks.waiting(lock);
    match info.kind {
        LockKind::Tokens { .. } | LockKind::Bandwidth => None,
        LockKind::Semaphore { .. } | LockKind::KFmlp { .. } if info.replicas > 1 => None,
        LockKind::Semaphore { .. }
        | LockKind::KFmlp { .. }
        | LockKind::Resource { order: EngineOrder::Fifo }
        | LockKind::Engine { order: EngineOrder::Fifo, .. } => waiting.next().filter(|&first| first != job),
        LockKind::Resource { order: EngineOrder::Priority } | LockKind::Engine { order: EngineOrder::Priority, .. } => {
            let level = before.level(job)?;
            waiting.find(|&other| before.level(other).is_some_and(|other| other < level))
        }
    }
}

fn withdraw(job: JobId, lock: LockId, locks: &replay::Locks, mut found: impl FnMut(JobId, Problem)) {
    if locks.requested(job, lock).is_none() {
        found(job, Problem::NotRequested { lock });
    }
}

fn complete(job: JobId, locks: &replay::Locks, mut found: impl FnMut(JobId, Problem)) {
    if let Some((lock, _)) = locks.held_by(job).min() {
        found(job, Problem::CompletedHolding { lock });
    }
    if let Some(request) = locks.request(job) {
        found(job, Problem::CompletedWaiting { lock: request.lock });
    }
}
