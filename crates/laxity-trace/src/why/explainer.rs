//! Follows records one by one and says what the jobs in question spent their time with.

use std::collections::{BTreeMap, VecDeque};

use laxity_model::{CpuId, EdgeId, Instant, JobId, LockId, Nanos, OverheadKind, PriorityRule, TaskId};

use super::draft::{After, Draft, Life};
use super::{Account, Cause, Standing};
use crate::intervals::{TrackError, admit};
use crate::replay::{Change, Replay, Running, occupies_cpu};
use crate::{Event, Record, TaskKind, TraceHeader};

/// Of each CPU so many times are kept that it was stolen, or that something had it that is no task: a job that was to be released
/// or woken up meanwhile says only later that this was its CPU.
const LATELY: usize = 1024;

/// A CPU was taken from its jobs, from when to when, by what.
type Taken = (Instant, Instant, Cause);

/// Keeps the newest.
fn keep(taken: &mut VecDeque<Taken>, newest: Taken) {
    taken.truncate(LATELY - 1);
    taken.push_front(newest);
}

/// Turns records into [`Account`]s as they come, in memory that grows with the pieces of pending jobs.
#[derive(Clone, Debug)]
pub struct Explainer<'a, W> {
    header: &'a TraceHeader,
    wanted: W,
    replay: Replay,
    lives: BTreeMap<JobId, Life>,
    /// Of each CPU, the overhead or lock wait that ends last, and when.
    covers: Vec<(Instant, Cause)>,
    /// Of each CPU, when it was stolen from all threads lately, or something that is no task had it; the newest first.
    taken: Vec<VecDeque<Taken>>,
    /// Whether each CPU's budget of memory traffic is used up.
    throttled: Vec<bool>,
    /// On each edge.
    tokens: Vec<u64>,
    /// The edges into each task.
    inbound: Vec<Vec<usize>>,
    now: Instant,
}

impl<'a, W: Fn(JobId) -> bool> Explainer<'a, W> {
    /// For the records of one trace; explains the jobs that `wanted` says yes to.
    pub fn new(header: &'a TraceHeader, wanted: W) -> Self {
        let none = |cpu| (Instant::ZERO, Cause::SchedulerLock(CpuId(cpu as u16)));
        Explainer {
            header,
            wanted,
            replay: Replay::new(header),
            lives: BTreeMap::new(),
            covers: (0..header.cpus).map(none).collect(),
            taken: vec![VecDeque::new(); header.cpus],
            throttled: vec![false; header.cpus],
            tokens: header.edges.iter().map(|edge| u64::from(edge.initial)).collect(),
            inbound: header.edges_by(|edge| edge.consumer),
            now: Instant::ZERO,
        }
    }

    /// Takes the next record. Returns the account of the job that completed.
    ///
    /// Errors leave the explainer as it was; the caller may skip the record and go on.
    pub fn follow(&mut self, record: &Record) -> Result<Option<Account>, TrackError> {
        let Record { at, event } = *record;
        if at < self.now {
            return Err(TrackError::OutOfOrder { at, previous: self.now });
        }
        admit(self.header, at, &event)?;
        self.advance(at);
        self.cover(at, event);
        self.end_outside(at, event);
        let change = self.replay.apply(at, event);
        Ok(self.note(at, event, change))
    }

    /// Keeps when something that is no task had the CPU, now that it has it no longer.
    fn end_outside(&mut self, at: Instant, event: Event) {
        let Event::Outside { cpu, .. } = event else { return };
        if let (Running::Outside(by), from) = self.replay.cpus()[cpu.index()].running()
            && from < at
        {
            keep(&mut self.taken[cpu.index()], (from, at, Cause::Outside(cpu, by)));
        }
    }

    /// Ends the trace at the last record. Returns the accounts of the jobs that are pending then, by job.
    pub fn finish(self) -> Vec<Account> {
        let end = self.now;
        self.lives.into_iter().map(|(job, life)| life.account(job, end, false)).collect()
    }

    /// Nothing happens up to `at` but that overheads end.
    fn advance(&mut self, at: Instant) {
        let from = std::mem::replace(&mut self.now, at);
        if from >= at || self.lives.is_empty() {
            return;
        }
        let ends = self.covers.iter().map(|&(until, _)| until).filter(|&until| from < until && until < at);
        let mut bounds: Vec<Instant> = ends.chain([at]).collect();
        bounds.sort_unstable();
        bounds.dedup();
        let mut lives = std::mem::take(&mut self.lives);
        for (&job, life) in &mut lives {
            let mut from = from;
            for &to in &bounds {
                let draft = self.draft(job, life, from);
                life.push(from, to, draft);
                from = to;
            }
        }
        self.lives = lives;
    }

    /// Notes the overhead that begins, and whether a CPU is throttled.
    fn cover(&mut self, at: Instant, event: Event) {
        let (cpu, duration, cause) = match event {
            Event::Throttle { cpu, .. } => return self.throttled[cpu.index()] = true,
            Event::Unthrottle { cpu, .. } => return self.throttled[cpu.index()] = false,
            Event::Overhead { cpu, kind, duration } if occupies_cpu(kind) => {
                let source = self.replay.details().interrupts.handled_by(cpu, kind);
                (cpu, duration, Cause::Overhead { cpu, kind, source })
            }
            Event::LockWait { cpu, duration } => (cpu, duration, Cause::SchedulerLock(cpu)),
            _ => return,
        };
        let until = at.saturating_add(duration);
        let cover = &mut self.covers[cpu.index()];
        if cover.0 < until {
            *cover = (until, cause);
        }
    }

    /// Notes what the record, which was applied, says of lives.
    fn note(&mut self, at: Instant, event: Event, change: Change) -> Option<Account> {
        match event {
            Event::Release { job, deadline } if change == Change::Released && (self.wanted)(job) => {
                let info = &self.header.tasks[job.task.index()];
                let arrival = match info.kind.is_thread() {
                    true => at,
                    false => Instant(deadline.0.saturating_sub(info.deadline.0)),
                };
                self.lives.insert(job, Life::new(arrival, at, deadline));
            }
            Event::Ready { job, cpu } | Event::Resume { job, cpu } => {
                if let Some(life) = self.lives.get_mut(&job) {
                    if let Some(since) = life.open_since() {
                        let taken = self.taken[cpu.index()].iter().take_while(|&&(_, to, _)| since < to);
                        taken.for_each(|&(from, to, by)| life.take(cpu, (from, to), true, by));
                    }
                    life.settle();
                }
            }
            Event::Stolen { cpu, duration } => {
                let from = Instant(at.0.saturating_sub(duration.0));
                let by = Cause::Stolen(cpu);
                self.lives.values_mut().for_each(|life| life.take(cpu, (from, at), false, by));
                keep(&mut self.taken[cpu.index()], (from, at, by));
            }
            Event::CacheDelay { job, kind, duration, .. } => {
                if let Some(life) = self.life(job) {
                    let left = life.refill.map_or(0, |(_, left)| left.0);
                    life.refill = Some((kind, Nanos(left.saturating_add(duration.0))));
                }
            }
            Event::EngineBegin { gpu, engine, job } => {
                self.life(job).into_iter().for_each(|life| life.operation_begins(gpu, engine));
            }
            Event::EngineEnd { gpu, job, .. } => {
                self.life(job).into_iter().for_each(|life| life.after = After::Operation(gpu));
            }
            Event::Grant { job, .. } if self.replay.details().queues.suspended(job).is_some() => {
                self.life(job).into_iter().for_each(|life| life.after = After::Grant);
            }
            Event::Replenish { task, .. } => self.budget_comes(task),
            Event::Overhead { kind: OverheadKind::Release, cpu, duration } => {
                let clusters = &self.header.clusters;
                // A CPU of no cluster handles the interrupts of all.
                let is_dedicated = !clusters.iter().any(|cpus| cpus.contains(&cpu));
                for (job, life) in &mut self.lives {
                    let cluster = self.header.tasks[job.task.index()].cluster;
                    if is_dedicated || clusters.get(cluster).is_some_and(|cpus| cpus.contains(&cpu)) {
                        life.release_is_handled(at, duration);
                    }
                }
            }
            Event::Produce { edge, tokens, .. } => {
                let on_edge = &mut self.tokens[edge.index()];
                *on_edge = on_edge.saturating_add(u64::from(tokens));
            }
            Event::Consume { job, edge, tokens } => {
                let on_edge = &mut self.tokens[edge.index()];
                *on_edge = on_edge.saturating_sub(u64::from(tokens));
                self.life(job).into_iter().for_each(|life| life.has_tokens = true);
            }
            Event::Complete { job, .. } => return self.lives.remove(&job).map(|life| life.account(job, at, true)),
            _ => {}
        }
        None
    }

    /// The server that is `task` has a budget: a job that had given up its CPU for that, or was to begin, is told.
    fn budget_comes(&mut self, task: TaskId) {
        let details = self.replay.details();
        for (&job, life) in self.lives.iter_mut().filter(|(job, _)| job.task == task) {
            let is_suspended = details.queues.suspended(job).is_some();
            // In a section a job needs no budget, and waits for something else.
            let waits_for_more = details.locks.request(job).is_some() || details.locks.held_by(job).next().is_some();
            if is_suspended && waits_for_more {
                continue;
            }
            life.budget_comes();
            if is_suspended {
                life.after = After::Budget;
            }
        }
    }

    fn life(&mut self, job: JobId) -> Option<&mut Life> {
        self.lives.get_mut(&job)
    }

    /// What `job` does at `at`, where the state is that of the last record.
    fn draft(&self, job: JobId, &Life { after, has_tokens, .. }: &Life, at: Instant) -> Draft {
        let details = self.replay.details();
        if let Some(cpu) = self.replay.cpu_of(job) {
            return self.on_cpu(job, after, cpu, at);
        }
        let oldest = self.replay.task(job).map_or(job.index, |task| task.pending().oldest());
        if oldest != job.index {
            return Draft::Known(vec![Cause::Predecessor(JobId { index: oldest, ..job })]);
        }
        let is_suspended = details.queues.suspended(job).is_some();
        match details.locks.request(job) {
            Some(request) if is_suspended => return self.waits_for_lock(job, request.lock, at),
            None if is_suspended => return self.waits(job, after, at),
            _ => {}
        }
        if details.queues.is_ready(job) {
            return Draft::Known(self.waits_for_cpu(job, at));
        }
        match self.lacking_edge(job).filter(|_| !has_tokens) {
            Some(edge) => Draft::Known(vec![Cause::Tokens(EdgeId(edge as u32))]),
            // A thread that Linux schedules notes that it is ready once it has a CPU.
            None if self.is_linux() => Draft::Known(self.waits_for_cpu(job, at)),
            None => Draft::Unready,
        }
    }

    /// Whether Linux schedules: then the trace says when a job goes on, and not since when it could.
    fn is_linux(&self) -> bool {
        !self.header.follows_scheduler()
    }

    /// What `job`, which has `cpu`, does.
    fn on_cpu(&self, job: JobId, after: After, cpu: CpuId, at: Instant) -> Draft {
        let (until, cover) = self.covers[cpu.index()];
        if at < until {
            return Draft::Known(vec![cover]);
        }
        match self.replay.cpus()[cpu.index()].running().0 {
            Running::BottomHalf(source) => Draft::Known(vec![Cause::BottomHalf(cpu, source)]),
            Running::Outside(by) => Draft::Known(vec![Cause::Outside(cpu, by)]),
            Running::Spinning(_) => match self.replay.details().locks.request(job) {
                Some(request) => self.waits_for_lock(job, request.lock, at),
                None => self.waits(job, after, at),
            },
            Running::Job(_) | Running::Nothing => Draft::Known(vec![Cause::Execution(cpu)]),
        }
    }

    /// `job` waits for `lock`: each of its holders is to blame.
    fn waits_for_lock(&self, job: JobId, lock: LockId, at: Instant) -> Draft {
        let holders = self.replay.details().locks.holders(lock).filter(|holder| holder.job != job);
        let causes: Vec<Cause> = holders.map(|holder| Cause::Lock { lock, holder: Some(holder.job) }).collect();
        Draft::Known(match causes.is_empty() {
            false => causes,
            // The grant is noted once the thread has a CPU.
            true if self.is_linux() => self.waits_for_cpu(job, at),
            true => vec![Cause::Lock { lock, holder: None }],
        })
    }

    /// `job` waits for no lock: for an operation of its own, or for something that the trace has yet to tell.
    fn waits(&self, job: JobId, after: After, at: Instant) -> Draft {
        let engines = &self.replay.details().engines;
        if let Some(own) = engines.operations().find(|operation| operation.job == job) {
            return Draft::Known(vec![Cause::Operation(own.gpu, own.engine)]);
        }
        if after != After::Nothing && self.is_linux() {
            let causes = self.waits_for_cpu(job, at);
            if causes.iter().all(|cause| matches!(cause, Cause::OtherJob { .. } | Cause::Outside(..))) {
                return Draft::Known(causes);
            }
        }
        Draft::Waits(engines.operations().collect(), after)
    }

    /// The first edge on which `job` lacks tokens, if it is a node's.
    fn lacking_edge(&self, job: JobId) -> Option<usize> {
        let is_node = matches!(self.header.tasks[job.task.index()].kind, TaskKind::Node { .. });
        let lacks = |&edge: &usize| self.tokens[edge] < u64::from(self.header.edges[edge].threshold);
        self.inbound[job.task.index()].iter().copied().filter(|_| is_node).find(lacks)
    }

    /// What has the CPUs on which `job`, which could run, might.
    fn waits_for_cpu(&self, job: JobId, at: Instant) -> Vec<Cause> {
        let linked = self.replay.details().queues.link_of(job.task);
        if let Some(cpu) = linked.filter(|_| self.replay.details().queues.is_ready(job)) {
            return vec![self.occupant(job, cpu, at)];
        }
        let cluster = self.header.tasks[job.task.index()].cluster;
        let cpus = self.header.clusters.get(cluster).into_iter().flatten();
        let causes: Vec<Cause> =
            cpus.filter(|cpu| cpu.index() < self.header.cpus).map(|&cpu| self.occupant(job, cpu, at)).collect();
        // Of a task that may have one CPU only the trace does not say so.
        if causes.contains(&Cause::Throttled) {
            return vec![Cause::Throttled];
        }
        if let Some(&idle) = causes.iter().find(|cause| matches!(cause, Cause::Unoccupied(_))) {
            return vec![idle];
        }
        let in_the_way = |cause: &&Cause| {
            matches!(cause, Cause::OtherJob { standing: Standing::NonPreemptive | Standing::LessUrgent, .. })
        };
        let less_urgent: Vec<Cause> = causes.iter().filter(in_the_way).copied().collect();
        match (less_urgent.is_empty(), causes.is_empty()) {
            (false, _) => less_urgent,
            (true, false) => causes,
            // A cluster without CPUs: no legal header.
            (true, true) => vec![Cause::Release],
        }
    }

    /// What has `cpu`, for which `job` waits.
    fn occupant(&self, job: JobId, cpu: CpuId, at: Instant) -> Cause {
        let (until, cover) = self.covers[cpu.index()];
        if at < until {
            return cover;
        }
        match self.replay.cpus()[cpu.index()].running().0 {
            Running::Nothing if self.throttled[cpu.index()] && self.header.is_best_effort(job.task) => Cause::Throttled,
            Running::Nothing => Cause::Unoccupied(cpu),
            Running::BottomHalf(source) => Cause::BottomHalf(cpu, source),
            Running::Outside(by) => Cause::Outside(cpu, by),
            Running::Job(other) | Running::Spinning(other) => {
                Cause::OtherJob { cpu, job: other, standing: self.standing(other, job) }
            }
        }
    }

    /// Why `other` has a CPU, and not `job`.
    fn standing(&self, other: JobId, job: JobId) -> Standing {
        let queues = &self.replay.details().queues;
        if self.header.is_thread(other.task) {
            return Standing::InterruptThread;
        }
        let are_best_effort = [other, job].iter().all(|job| self.header.is_best_effort(job.task));
        if self.header.scheduler.rule == PriorityRule::Fair || are_best_effort {
            return Standing::Equal;
        }
        let is_more_urgent = match (self.replay.level(other), self.replay.level(job)) {
            (Some(theirs), Some(own)) => theirs < own && !self.header.is_best_effort(other.task),
            _ => false,
        };
        match queues.named(other) {
            Some(named) if is_more_urgent && named.level.1 != other.task => Standing::Inherits(named.level.1),
            _ if is_more_urgent => Standing::MoreUrgent,
            _ if queues.section(other).is_some() => Standing::NonPreemptive,
            _ => Standing::LessUrgent,
        }
    }
}
