//! Locks: who may hold which replica, and in which order requests are granted.

use laxity_model::{EngineOrder, Instant, JobId, LockId, ReplicaId};

use super::super::{Problem, Report, Violation};
use crate::header::own_level;
use crate::{Event, LockKind, TraceHeader};

/// Finds violations of exclusion, of the order of grants, and idle replicas:
///
/// - a replica has one holder at a time, and only replicas that exist are granted;
/// - a job is granted what it asked for, asks for one lock at a time, unlocks what it holds, and completes holding and
///   wanting nothing;
/// - FIFO locks (semaphores are) are granted to the earliest request, priority-ordered ones to a request of the highest
///   effective priority, as the trace has named it before;
/// - a replica that a job is granted in the end was not free for any time while that job waited. A waiter may be
///   restricted to some replicas, which a trace does not say, so that another's being free means nothing; of a lock of
///   one replica the same is required of the requests that are never granted. GPUSync's tokens may be free although
///   jobs wait: so many requests may be in all queues together, and others do not enter.
#[derive(Debug)]
pub(super) struct Locks<'a> {
    header: &'a TraceHeader,
    locks: Vec<Lock>,
    /// What the effective priorities are, by task.
    priorities: Vec<Priorities>,
    /// The locks with a free replica and waiters at `now`: to be looked at when time goes on.
    suspects: Vec<usize>,
    now: Instant,
}

#[derive(Clone, Debug, Default)]
struct Lock {
    replicas: Vec<Replica>,
    /// In the order of their requests.
    waiting: Vec<(JobId, Instant)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Replica {
    holder: Option<JobId>,
    free_since: Instant,
}

/// The effective priorities of a task's released jobs.
#[derive(Clone, Debug, Default)]
struct Priorities {
    jobs: std::collections::VecDeque<(JobId, Level)>,
}

/// Deadline or rank plus 1, and the task whose it is.
type Level = (u64, u32);

impl<'a> Locks<'a> {
    pub fn new(header: &'a TraceHeader) -> Self {
        let lock = |replicas: u16| Lock { replicas: vec![Replica::default(); replicas.into()], waiting: Vec::new() };
        let any = !header.locks.is_empty();
        Locks {
            header,
            locks: header.locks.iter().map(|info| lock(info.replicas)).collect(),
            priorities: if any { vec![Priorities::default(); header.tasks.len()] } else { Vec::new() },
            suspects: Vec::new(),
            now: Instant::ZERO,
        }
    }

    pub fn record(&mut self, at: Instant, event: Event, report: &mut Report) {
        if at > self.now {
            self.judge_idle(report);
            self.now = at;
        }
        match event {
            Event::Release { job, deadline } => self.release(job, deadline),
            Event::Priority { job, level, of } => self.prioritize(job, (level, of.0)),
            Event::Request { job, lock } => self.request(job, lock, report),
            Event::Grant { job, lock, replica } => self.grant(job, lock, replica, report),
            Event::Unlock { job, lock, replica } => self.unlock(job, lock, replica, report),
            Event::Withdraw { job, lock } => self.withdraw(job, lock, report),
            Event::Complete { job, .. } => self.complete(job, report),
            _ => {}
        }
    }

    fn found(&self, job: JobId, what: Problem, report: &mut Report) {
        report.push(Violation { at: self.now, cpu: None, job: Some(job), what });
    }

    fn release(&mut self, job: JobId, deadline: Instant) {
        let Some(priorities) = self.priorities.get_mut(job.task.index()) else { return };
        let edf = self.header.scheduler.rule.goes_by_deadline();
        let rank = self.header.tasks[job.task.index()].rank;
        priorities.jobs.push_back((job, (own_level(edf, rank, deadline), job.task.0)));
    }

    fn prioritize(&mut self, job: JobId, level: Level) {
        let priorities = self.priorities.get_mut(job.task.index());
        let known = priorities.and_then(|priorities| priorities.jobs.iter_mut().find(|(of, _)| *of == job));
        if let Some((_, known)) = known {
            *known = level;
        }
    }

    fn level(&self, job: JobId) -> Option<Level> {
        let known = self.priorities.get(job.task.index())?.jobs.iter().find(|(of, _)| *of == job)?;
        Some(known.1)
    }

    fn request(&mut self, job: JobId, lock: LockId, report: &mut Report) {
        if self.locks.get(lock.index()).is_none() {
            return self.found(job, Problem::UnknownLock { lock }, report);
        }
        if let Some(other) = self.lock_that(|state| state.waits(job)) {
            self.found(job, Problem::RequestedTwice { lock: other }, report);
        }
        let now = self.now;
        let state = &mut self.locks[lock.index()];
        let holds = state.holds(job);
        if !state.waits(job) {
            state.waiting.push((job, now));
        }
        if holds {
            self.found(job, Problem::RequestedTwice { lock }, report);
        }
        self.suspect(lock);
    }

    fn grant(&mut self, job: JobId, lock: LockId, replica: ReplicaId, report: &mut Report) {
        let Some(info) = self.header.locks.get(lock.index()) else {
            return self.found(job, Problem::UnknownLock { lock }, report);
        };
        let state = &self.locks[lock.index()];
        let Some(&Replica { holder, free_since }) = state.replicas.get(replica.index()) else {
            return self.found(job, Problem::UnknownReplica { lock, replica }, report);
        };
        if let Some(by) = holder {
            self.found(job, Problem::LockHeld { lock, replica, by }, report);
        }
        let may_not_idle = !matches!(info.kind, LockKind::Tokens { .. });
        match state.waiting.iter().find(|(by, _)| *by == job) {
            None => self.found(job, Problem::NotRequested { lock }, report),
            Some((_, since)) if may_not_idle && holder.is_none() && free_since.max(*since) < self.now => {
                self.found(job, Problem::ReplicaIdle { lock, replica }, report);
            }
            Some(_) => {}
        }
        if let Some(earlier) = self.passed_over(&info.kind, lock, job) {
            self.found(job, Problem::GrantOrder { lock, earlier }, report);
        }
        let state = &mut self.locks[lock.index()];
        state.waiting.retain(|(by, _)| *by != job);
        state.replicas[replica.index()].holder = Some(job);
    }

    /// Who should have been granted the lock before `job`.
    fn passed_over(&self, kind: &LockKind, lock: LockId, job: JobId) -> Option<JobId> {
        let waiting = &self.locks[lock.index()].waiting;
        match kind {
            LockKind::KFmlp { .. } | LockKind::Tokens { .. } => None,
            LockKind::Semaphore { .. }
            | LockKind::Resource { order: EngineOrder::Fifo }
            | LockKind::Engine { order: EngineOrder::Fifo, .. } => {
                waiting.first().map(|&(first, _)| first).filter(|&first| first != job)
            }
            LockKind::Resource { order: EngineOrder::Priority }
            | LockKind::Engine { order: EngineOrder::Priority, .. } => {
                let level = self.level(job)?;
                let more_urgent = |other: &JobId| self.level(*other).is_some_and(|other| other < level);
                waiting.iter().map(|&(other, _)| other).find(more_urgent)
            }
        }
    }

    fn unlock(&mut self, job: JobId, lock: LockId, replica: ReplicaId, report: &mut Report) {
        let now = self.now;
        let state = self.locks.get_mut(lock.index()).and_then(|state| state.replicas.get_mut(replica.index()));
        match state.filter(|state| state.holder == Some(job)) {
            Some(state) => *state = Replica { holder: None, free_since: now },
            None => return self.found(job, Problem::NotHeld { lock, replica }, report),
        }
        self.suspect(lock);
    }

    fn withdraw(&mut self, job: JobId, lock: LockId, report: &mut Report) {
        match self.locks.get_mut(lock.index()).filter(|state| state.waits(job)) {
            Some(state) => state.waiting.retain(|(by, _)| *by != job),
            None => self.found(job, Problem::NotRequested { lock }, report),
        }
    }

    fn complete(&mut self, job: JobId, report: &mut Report) {
        if let Some(lock) = self.lock_that(|state| state.holds(job)) {
            self.found(job, Problem::CompletedHolding { lock }, report);
        }
        if let Some(lock) = self.lock_that(|state| state.waits(job)) {
            self.found(job, Problem::CompletedWaiting { lock }, report);
        }
        if let Some(priorities) = self.priorities.get_mut(job.task.index()) {
            priorities.jobs.retain(|(of, _)| *of != job);
        }
    }

    fn lock_that(&self, condition: impl Fn(&Lock) -> bool) -> Option<LockId> {
        self.locks.iter().position(condition).map(|index| LockId(index as u16))
    }

    /// A lock of one replica must be looked at when the instant is over.
    fn suspect(&mut self, lock: LockId) {
        if self.locks[lock.index()].replicas.len() == 1 && !self.suspects.contains(&lock.index()) {
            self.suspects.push(lock.index());
        }
    }

    /// Nobody waits for a free lock at the end of an instant. Its waiters are then not judged again at their grants.
    fn judge_idle(&mut self, report: &mut Report) {
        while let Some(index) = self.suspects.pop() {
            let lock = &mut self.locks[index];
            let Some(&(job, _)) = lock.waiting.first() else { continue };
            if lock.replicas[0].holder.is_none() {
                let what = Problem::ReplicaIdle { lock: LockId(index as u16), replica: ReplicaId(0) };
                // Reported once: from here on the lock counts as free since for ever.
                lock.replicas[0].free_since = Instant::NEVER;
                self.found(job, what, report);
            }
        }
    }
}

impl Lock {
    fn waits(&self, job: JobId) -> bool {
        self.waiting.iter().any(|(by, _)| *by == job)
    }

    fn holds(&self, job: JobId) -> bool {
        self.replicas.iter().any(|replica| replica.holder == Some(job))
    }
}
