//! Which priorities jobs have: their own, and those that locks and the owners of interrupts give them.

mod protocols;
mod threads;

use std::collections::{BTreeMap, BTreeSet};

use laxity_model::{Instant, JobId, LockId, Nanos, PriorityRule, TaskId};

use self::protocols::{Protocol, Protocols};
use self::threads::Threads;
use super::super::{Problem, Report, Violation};
use super::links::{BELOW_ALL, urgency};
use crate::replay::{Level, Replay};
use crate::{Event, Origin, TraceHeader};

/// Judges the priorities that simulated jobs have when an instant is over, as far as a header and records tell.
///
/// ```text
///   own: deadline, rank, deadline of a budget ---.
///   ceiling of a lock that the job holds --------+--> the highest is that of the job
///   those of jobs that wait for the job ---------'
/// ```
///
/// - *A priority has a source.* It is the job's own, or the own one of a job that waits, perhaps through others, for what
///   the job holds; or a ceiling.
/// - *A holder inherits.* No job that waits is more urgent than the holder.
/// - *What was lent is given back.* As nothing is held, or no job waits, only its own priority is left.
/// - *Threads* of interrupts are judged by [`Threads`].
///
/// Live, the arbiter decides before the clusters of CPUs follow, a job may give itself the highest priority, and the
/// scheduler in the kernel records no requests: such traces are not judged.
#[derive(Clone, Debug)]
pub(super) struct Priorities {
    by_deadline: bool,
    tasks: Vec<OfTask>,
    protocols: Protocols,
    threads: Threads,
    /// The tasks and locks to look at when the instant is over.
    touched: BTreeSet<TaskId>,
    touched_locks: BTreeSet<LockId>,
}

#[derive(Clone, Copy, Debug)]
struct OfTask {
    /// The job that competes for CPUs and locks: ready or suspended.
    active: Option<JobId>,
    /// Under EDF, the server that ranks its jobs.
    server: Option<OfServer>,
    /// What was last found, which is reported once.
    found: Option<Problem>,
}

#[derive(Clone, Copy, Debug)]
struct OfServer {
    /// The deadline of its budget.
    deadline: Option<Instant>,
    period: Nanos,
    /// The relative deadline of its task, by which a server without a period of its own may rank.
    relative: Option<Nanos>,
}

/// Where a priority comes from.
enum Source {
    Known,
    /// The ceiling of this lock, if its protocol has ceilings.
    Ceiling(LockId),
    Unknown,
}

/// A job in the order of urgency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ranked {
    level: Level,
    job: JobId,
}

/// A level to compare with others: no task counts above all.
fn comparable((level, of): Level) -> Level {
    (level, if level == 0 { TaskId(0) } else { of })
}

impl Priorities {
    /// `None` for traces that are not judged.
    pub fn new(header: &TraceHeader) -> Option<Priorities> {
        // The fair class has no priorities.
        if header.origin != Origin::Simulated || header.scheduler.rule == PriorityRule::Fair {
            return None;
        }
        let by_deadline = header.scheduler.rule.goes_by_deadline();
        let mut tasks = vec![OfTask { active: None, server: None, found: None }; header.tasks.len()];
        for server in header.servers.iter().filter(|_| by_deadline) {
            let Some(info) = header.tasks.get(server.task.index()) else { continue };
            let relative = (info.period == server.period).then_some(info.deadline);
            tasks[server.task.index()].server = Some(OfServer { deadline: None, period: server.period, relative });
        }
        Some(Priorities {
            by_deadline,
            tasks,
            protocols: Protocols::new(header),
            threads: Threads::new(header),
            touched: BTreeSet::new(),
            touched_locks: BTreeSet::new(),
        })
    }

    /// Takes notice of an event, which `replay` has applied.
    pub fn observe(&mut self, at: Instant, event: Event, replay: &Replay, report: &mut Report) {
        match event {
            Event::Ready { job, .. } => self.begin(job, replay),
            Event::Complete { job, .. } => self.end(job),
            Event::Replenish { task, deadline, .. } => {
                let server = self.tasks.get_mut(task.index()).and_then(|task| task.server.as_mut());
                if let Some(server) = server {
                    server.deadline = Some(deadline);
                    self.touched.insert(task);
                }
            }
            Event::Request { job, lock } => {
                self.protocols.learn_user(lock, job.task);
                self.touch(job, lock);
            }
            Event::Withdraw { job, lock } | Event::Unlock { job, lock, .. } => self.touch(job, lock),
            // Part of what a request or an unlock led to.
            Event::Grant { job, lock, .. } => {
                self.touched.insert(job.task);
                self.touched_locks.insert(lock);
            }
            Event::Serve { thread, device, job } => self.threads.serve(thread, device, job),
            Event::Priority { job, level, of } => {
                self.touched.insert(job.task);
                if self.threads.has(job.task) {
                    let found = self.judge_thread(job, (level, of), replay);
                    self.report(at, job, found, report);
                }
            }
            _ => {}
        }
    }

    fn begin(&mut self, job: JobId, replay: &Replay) {
        if let Some(task) = self.tasks.get_mut(job.task.index()) {
            task.active = Some(job);
            // Most jobs begin with their own priority.
            if task.server.is_some() || replay.details().queues.named(job).is_some() {
                self.touched.insert(job.task);
            }
            self.threads.owner_changed(job.task);
        }
    }

    fn end(&mut self, job: JobId) {
        if let Some(task) = self.tasks.get_mut(job.task.index()) {
            (task.active, task.found) = (None, None);
            self.threads.owner_changed(job.task);
        }
    }

    /// The job asks for the lock or gives it up, or its request: priorities follow at once.
    fn touch(&mut self, job: JobId, lock: LockId) {
        self.touched.insert(job.task);
        self.touched_locks.insert(lock);
        self.threads.follow();
    }

    /// The instant `at` is over: judges what it changed.
    pub fn judge(&mut self, at: Instant, replay: &Replay, report: &mut Report) {
        if self.touched.is_empty() && self.touched_locks.is_empty() {
            return;
        }
        self.spread(replay);
        let mut found = BTreeMap::new();
        for lock in std::mem::take(&mut self.touched_locks) {
            self.judge_lock(at, lock, replay, &mut found);
        }
        let touched = std::mem::take(&mut self.touched);
        for &task in &touched {
            let Some(job) = self.active(task).filter(|_| !self.threads.has(task)) else { continue };
            if let Some(what) = self.judge_job(at, job, replay) {
                found.entry(task).or_insert(what);
            }
        }
        for thread in self.threads.take_followers() {
            let Some(job) = self.active(thread) else { continue };
            let level = replay.level(job);
            if let Some(what) = level.and_then(|level| self.judge_thread(job, level, replay)) {
                found.entry(thread).or_insert(what);
            }
        }
        let others: BTreeSet<TaskId> = found.keys().copied().chain(touched).collect();
        for task in others {
            if let Some(job) = self.active(task).filter(|_| !self.threads.has(task) || found.contains_key(&task)) {
                self.report(at, job, found.get(&task).copied(), report);
            }
        }
        self.protocols.refuted().for_each(|violation| report.push(violation));
    }

    /// Reports what was found of a job, unless it was before.
    fn report(&mut self, at: Instant, job: JobId, found: Option<Problem>, report: &mut Report) {
        let Some(task) = self.tasks.get_mut(job.task.index()) else { return };
        let before = std::mem::replace(&mut task.found, found);
        if let Some(what) = found.filter(|_| found != before) {
            report.push(Violation { at, cpu: None, job: Some(job), what });
        }
    }

    fn active(&self, task: TaskId) -> Option<JobId> {
        self.tasks.get(task.index())?.active
    }

    /// The effective priority of a job that competes, to be compared.
    fn level(&self, job: JobId, replay: &Replay) -> Option<Level> {
        let is_active = self.active(job.task) == Some(job);
        replay.level(job).filter(|_| is_active).map(comparable)
    }

    /// The job and its effective priority, if it competes.
    fn ranked(&self, job: JobId, replay: &Replay) -> Option<Ranked> {
        self.level(job, replay).map(|level| Ranked { level, job })
    }

    /// The priority of a job in its own right. A server without a period of its own has the deadlines of its task, one
    /// with a period those of its budgets, and a header does not tell such servers apart whose periods are their tasks'.
    fn own(&self, job: JobId, replay: &Replay) -> [Option<Level>; 2] {
        let server = self.tasks.get(job.task.index()).and_then(|task| task.server);
        let Some((server, deadline)) = server.and_then(|server| Some((server, server.deadline?))) else {
            return [replay.own_level(job), None];
        };
        let of_task =
            |relative: Nanos| (deadline.0.saturating_sub(server.period.0).saturating_add(relative.0), job.task);
        [Some((deadline.0, job.task)), server.relative.map(of_task)]
    }

    /// Adds to what is to be looked at the locks of the tasks there, their holders, and so on.
    fn spread(&mut self, replay: &Replay) {
        let held = &replay.details().locks;
        let mut tasks: Vec<TaskId> = self.touched.iter().copied().collect();
        let mut locks: Vec<LockId> = self.touched_locks.iter().copied().collect();
        loop {
            if let Some(task) = tasks.pop() {
                let Some(job) = self.active(task) else { continue };
                let requested = held.request(job).map(|request| request.lock);
                for lock in held.held_by(job).map(|(lock, _)| lock).chain(requested) {
                    if self.touched_locks.insert(lock) {
                        locks.push(lock);
                    }
                }
            } else if let Some(lock) = locks.pop() {
                let is_tokens = matches!(self.protocols.of(lock), Protocol::Tokens { .. });
                let holders = held.holders(lock).map(|holder| holder.job);
                // A job that waits for a token may have the priority of another one that does.
                let waiting = held.waiting(lock).filter(|_| is_tokens);
                for job in holders.chain(waiting) {
                    if self.touched.insert(job.task) {
                        tasks.push(job.task);
                    }
                }
            } else {
                return;
            }
        }
    }

    /// Whether the holders of `lock` have at least the priorities that they must have.
    fn judge_lock(&mut self, at: Instant, lock: LockId, replay: &Replay, found: &mut BTreeMap<TaskId, Problem>) {
        let protocol = self.protocols.of(lock);
        let locks = &replay.details().locks;
        let holders = locks.holders(lock).filter_map(|holder| Some((self.ranked(holder.job, replay)?, holder.since)));
        let waiting = || locks.waiting(lock).filter_map(|job| self.ranked(job, replay)).min();
        let mut lacking = Vec::new();
        let mut below_ceiling = false;
        match protocol {
            Protocol::None => {}
            Protocol::Highest => {
                for (holder, _) in holders.filter(|(holder, _)| holder.level.0 != 0) {
                    let urgency = urgency(holder.level.0, self.by_deadline);
                    found.entry(holder.job.task).or_insert(Problem::BelowCeiling { lock, urgency });
                }
            }
            Protocol::Inheritance => lacking.extend(waiting().map(|waiting| (holders.collect(), waiting))),
            Protocol::Resource => {
                let holders: Vec<(Ranked, Instant)> = holders.collect();
                below_ceiling =
                    holders.iter().any(|&(holder, since)| self.protocols.is_below_ceiling(lock, since, holder.level));
                lacking.extend(waiting().map(|waiting| (holders, waiting)));
            }
            // One of the holders has the job that waits in its queue.
            Protocol::OneInherits => lacking.extend(waiting().and_then(|it| Some((vec![holders.min()?], it)))),
            Protocol::Tokens { is_one_gpu: true } => {
                let own = |job| Some(Ranked { level: self.own(job, replay)[0]?, job });
                let waiting = locks.waiting(lock).filter_map(own).min();
                lacking.extend(waiting.and_then(|it| Some((vec![holders.min()?], it))));
            }
            Protocol::Tokens { is_one_gpu: false } => {}
        }
        // Only then is inheritance all that is left.
        if below_ceiling {
            self.protocols.refute_ceiling(lock);
        }
        for (holders, waiting) in lacking {
            for (holder, _) in holders.into_iter().filter(|(holder, _)| holder.level > waiting.level) {
                let [urgency, waiting_urgency] =
                    [holder, waiting].map(|ranked| urgency(ranked.level.0, self.by_deadline));
                let what = Problem::NotInherited { lock, urgency, waiting: waiting.job, waiting_urgency };
                let violation = Violation { at, cpu: None, job: Some(holder.job), what };
                if self.protocols.refute_inheritance(lock, violation) {
                    found.entry(holder.job.task).or_insert(what);
                }
            }
        }
    }

    /// Whether the priority of `job`, of a task that is no thread, has a source.
    fn judge_job(&mut self, at: Instant, job: JobId, replay: &Replay) -> Option<Problem> {
        let level = self.level(job, replay)?;
        let (_, of) = replay.level(job)?;
        let own = self.own(job, replay);
        let [urgency, own_urgency] = [level.0, own[0]?.0].map(|level| urgency(level, self.by_deadline));
        let what = Problem::ForeignPriority { urgency, of, own: own_urgency };
        let is_lowered = own.iter().flatten().all(|&own| level > own);
        // One above all is of no other job.
        if is_lowered || level.0 == 0 && of != job.task {
            return Some(what);
        }
        if own.contains(&Some(level)) {
            return None;
        }
        match self.source(job, level, replay) {
            Source::Known => None,
            Source::Unknown => Some(what),
            Source::Ceiling(lock) => {
                let violation = Violation { at, cpu: None, job: Some(job), what };
                self.protocols.need_ceiling(lock, level, violation);
                None
            }
        }
    }

    /// Where the priority `level` of `job` comes from: the job, those that wait for it, and so on.
    fn source(&self, job: JobId, level: Level, replay: &Replay) -> Source {
        let locks = &replay.details().locks;
        let mut seen = BTreeSet::from([job]);
        let mut left = vec![job];
        let mut ceilings = BTreeSet::new();
        while let Some(next) = left.pop() {
            if self.own(next, replay).contains(&Some(level)) {
                return Source::Known;
            }
            let mut give = |lock: LockId| left.extend(locks.waiting(lock).filter(|&job| seen.insert(job)));
            for (lock, replica) in locks.held_by(next) {
                let protocol = self.protocols.of(lock);
                match protocol {
                    Protocol::None => continue,
                    Protocol::Highest if level.0 == 0 => return Source::Known,
                    Protocol::Highest => continue,
                    Protocol::Resource => {
                        let since = locks.holder(lock, replica).map(|holder| holder.since);
                        if since.is_some_and(|since| self.protocols.may_be_ceiling(lock, since, level)) {
                            ceilings.insert(lock);
                        }
                        if self.protocols.may_inherit(lock) {
                            give(lock);
                        }
                    }
                    Protocol::Inheritance | Protocol::OneInherits | Protocol::Tokens { .. } => give(lock),
                }
            }
            // A job that waits for a token outside its queues gives to one within.
            if let Some(request) = locks.request(next)
                && matches!(self.protocols.of(request.lock), Protocol::Tokens { .. })
            {
                give(request.lock);
            }
        }
        match (ceilings.first(), ceilings.len()) {
            (None, _) => Source::Unknown,
            (Some(&lock), 1) => Source::Ceiling(lock),
            // One of several: which, nothing tells.
            (Some(_), _) => Source::Known,
        }
    }

    /// Whether the thread of `job` has another priority than those that it serves give it.
    fn judge_thread(&self, job: JobId, (level, of): Level, replay: &Replay) -> Option<Problem> {
        let level_of = |task: TaskId| self.level(self.active(task)?, replay);
        let own = || self.own(job, replay)[0];
        let expected = self.threads.expected(job, level_of, own, replay)?;
        // A priority that is of no other job is the thread's own.
        let is_own = level == 0 || level == BELOW_ALL;
        let is_right = (level == expected.0) && (if is_own { of == job.task } else { of == expected.1 });
        (!is_right).then(|| Problem::ThreadPriority {
            urgency: urgency(level, self.by_deadline),
            of,
            expected: urgency(expected.0, self.by_deadline),
        })
    }
}
