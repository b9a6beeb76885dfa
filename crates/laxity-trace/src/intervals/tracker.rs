//! Follows records one by one and says what they add up to.

use std::collections::BTreeMap;

use laxity_model::{CpuId, Instant, JobId, LockId, Nanos, TaskId};

use super::{Activity, Begin, Interval, JobHistory, Released, Stop, TrackError, admit};
use crate::replay::{Cpu, Details, Named, Replay, Running, Section};
use crate::{Event, Record, TraceHeader};

/// Turns records into [`Interval`]s and [`JobHistory`]s as they come.
///
/// A CPU executes the job it dispatched except while it is busy with overhead:
///
/// ```text
///   records    Dispatch   Overhead(Tick)        Overhead(Scheduling)  Preempt
///   cpu        |----------|~~~~~~~~~~~~|--------|~~~~~~~~~~~~~~~~~~~~~|
///   intervals   piece 1      overhead   piece 2  overhead
///               stops: Overhead         stops: Preempted, although the switch came after the overhead
/// ```
///
/// To know why a piece stopped, the tracker holds it back until the dispatch goes on or ends. A bottom half on the CPU's
/// stack takes the CPU as overhead does, and is itself interrupted by overhead.
#[derive(Clone, Debug)]
pub struct Tracker<'a> {
    header: &'a TraceHeader,
    replay: Replay,
    dispatches: Vec<Dispatch>,
    /// Jobs that were named and did not complete.
    jobs: BTreeMap<JobId, JobHistory>,
    /// Of each CPU, since when it is throttled, and because of which task.
    throttled: Vec<Option<(Instant, Option<TaskId>)>>,
    /// Of each CPU, until when it was stolen last.
    stolen: Vec<Instant>,
    now: Instant,
    complete: bool,
}

/// What the pieces of the dispatch on a CPU do not say themselves.
#[derive(Clone, Copy, Debug)]
struct Dispatch {
    /// How the next piece begins.
    begin: Begin,
    /// The last piece; why it stopped is not yet known.
    held: Option<Interval>,
}

/// A suspended job and since when, and a non-preemptive section.
type Pauses = (Option<(JobId, Instant)>, Option<Section>);

impl<'a> Tracker<'a> {
    /// A tracker for the records of one trace.
    pub fn new(header: &'a TraceHeader) -> Self {
        Tracker {
            header,
            replay: Replay::new(header),
            dispatches: vec![Dispatch { begin: Begin::First, held: None }; header.cpus],
            jobs: BTreeMap::new(),
            throttled: vec![None; header.cpus],
            stolen: vec![Instant::ZERO; header.cpus],
            now: Instant::ZERO,
            complete: false,
        }
    }

    /// The time of the last record.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Whether the trace ended deliberately: its last record so far is [`Event::End`].
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// What is known so far of `job`, if it is pending.
    pub fn pending(&self, job: JobId) -> Option<&JobHistory> {
        self.jobs.get(&job)
    }

    /// Takes the next record. Pushes the intervals that are now known in full (ordered by end on every CPU, but an
    /// overhead's duration is known when it begins) and returns the history of the job that completed.
    ///
    /// Errors leave the tracker as it was; the caller may skip the record and go on.
    pub fn follow(&mut self, record: &Record, intervals: &mut Vec<Interval>) -> Result<Option<JobHistory>, TrackError> {
        let Record { at, event } = *record;
        if at < self.now {
            return Err(TrackError::OutOfOrder { at, previous: self.now });
        }
        admit(self.header, at, &event)?;
        self.now = at;
        self.complete = event == Event::End;
        let details = self.replay.details();
        push_ended(details, at, event, intervals);
        let pauses = ended_pauses(details, event);
        let activity = covers(details, event);
        let before = event.cpus()[0].map(|cpu| (cpu, *self.cpu(cpu)));
        self.replay.apply(at, event);
        if let Some((cpu, before)) = before {
            self.end_pieces(cpu, &before, event, intervals);
        }
        if let Some((duration, activity)) = activity {
            push(intervals, at, at.saturating_add(duration), activity);
        }
        push_pauses(at, pauses, intervals);
        self.throttle(event, intervals);
        self.steal(event, intervals);
        Ok(self.note(at, event))
    }

    /// Ends the trace at the last record: pushes what was under way and returns the histories of the jobs still
    /// pending, ordered by job.
    pub fn finish(mut self, intervals: &mut Vec<Interval>) -> Vec<JobHistory> {
        let end = self.now;
        for index in 0..self.dispatches.len() {
            let cpu = CpuId(index as u16);
            self.end_piece(cpu, &self.cpu(cpu).clone(), intervals);
            self.release_held(cpu, Stop::TraceEnded, intervals);
        }
        push_under_way(self.replay.details(), end, intervals);
        for cpu in 0..self.throttled.len() {
            self.end_throttling(CpuId(cpu as u16), intervals);
        }
        self.jobs.into_values().collect()
    }

    /// Ends the piece on `cpu` if the event changed what it runs, and says why the dispatch ended if it did.
    fn end_pieces(&mut self, cpu: CpuId, before: &Cpu, event: Event, intervals: &mut Vec<Interval>) {
        if before.running() != self.cpu(cpu).running() {
            self.end_piece(cpu, before, intervals);
        }
        let why = match event {
            Event::Dispatch { .. } => Stop::Preempted,
            Event::Preempt { job, .. } if before.job() == Some(job) => Stop::Preempted,
            Event::Suspend { job, .. } if before.job() == Some(job) => Stop::Suspended,
            Event::Complete { job, .. } if before.job() == Some(job) => Stop::Completed,
            Event::SpinBegin { job, .. } if before.job() == Some(job) => Stop::Spinning,
            Event::SpinEnd { job, .. } if before.job() == Some(job) => {
                let begin = &mut self.dispatches[cpu.index()].begin;
                if *begin == Begin::AfterOverhead {
                    *begin = Begin::AfterSpinning;
                }
                return;
            }
            _ => return,
        };
        self.release_held(cpu, why, intervals);
    }

    /// Follows which CPUs are throttled.
    fn throttle(&mut self, event: Event, intervals: &mut Vec<Interval>) {
        match event {
            Event::Throttle { cpu, task } => {
                self.end_throttling(cpu, intervals);
                self.throttled[cpu.index()] = Some((self.now, task));
            }
            Event::Unthrottle { cpu, .. } => self.end_throttling(cpu, intervals),
            _ => {}
        }
    }

    /// A CPU was stolen until now. A record that reaches back into the time of another is cut: that time was told.
    fn steal(&mut self, event: Event, intervals: &mut Vec<Interval>) {
        if let Event::Stolen { cpu, duration } = event {
            let until = std::mem::replace(&mut self.stolen[cpu.index()], self.now);
            let from = Instant(self.now.0.saturating_sub(duration.0));
            push(intervals, from.max(until), self.now, Activity::Stolen { cpu });
        }
    }

    fn end_throttling(&mut self, cpu: CpuId, intervals: &mut Vec<Interval>) {
        if let Some((since, task)) = self.throttled[cpu.index()].take() {
            push(intervals, since, self.now, Activity::Throttled { cpu, task });
        }
    }

    /// Notes what the record says of jobs, after the replay took it. Returns the history of the job that completed.
    fn note(&mut self, at: Instant, event: Event) -> Option<JobHistory> {
        match event {
            Event::Release { job, deadline } => {
                let relative = self.header.tasks[job.task.index()].deadline;
                let arrival = Instant(deadline.0.saturating_sub(relative.0));
                self.history(job).released = Some(Released { arrival, release: at, deadline });
            }
            Event::Ready { job, cpu } => self.history(job).ready_on = Some(cpu),
            Event::Dispatch { cpu, job } => {
                let history = self.history(job);
                let begin = match history.last_cpu.replace(cpu) {
                    None => Begin::First,
                    Some(last) if last == cpu => Begin::Again,
                    Some(from) => {
                        history.migrations = history.migrations.saturating_add(1);
                        Begin::Migrated { from }
                    }
                };
                self.dispatches[cpu.index()] = Dispatch { begin, held: None };
            }
            Event::Preempt { job, .. } => {
                let history = self.history(job);
                history.preemptions = history.preemptions.saturating_add(1);
            }
            Event::Suspend { job, .. }
            | Event::Resume { job, .. }
            | Event::NonPreemptiveBegin { job, .. }
            | Event::NonPreemptiveEnd { job, .. }
            | Event::SpinBegin { job, .. } => {
                self.history(job);
            }
            Event::Complete { cpu, job } => {
                let history = self.jobs.remove(&job).unwrap_or_else(|| self.unknown(job));
                return Some(JobHistory { completed: Some((cpu, at)), ..history });
            }
            _ => {}
        }
        None
    }

    fn history(&mut self, job: JobId) -> &mut JobHistory {
        let unknown = self.unknown(job);
        self.jobs.entry(job).or_insert(unknown)
    }

    /// The history of a job that was not named before.
    fn unknown(&self, job: JobId) -> JobHistory {
        JobHistory::new(job, !self.header.lacks_deadlines(job.task))
    }

    fn cpu(&self, cpu: CpuId) -> &Cpu {
        &self.replay.cpus()[cpu.index()]
    }

    /// Ends the piece of what ran on `cpu` now. A job's execution is held back; the piece held before is thereby known to
    /// have been interrupted.
    fn end_piece(&mut self, cpu: CpuId, before: &Cpu, intervals: &mut Vec<Interval>) {
        let (running, from) = before.running();
        let to = self.now;
        match running {
            _ if from >= to => {}
            Running::Nothing => {}
            Running::Spinning(job) => push(intervals, from, to, Activity::Spinning { cpu, job }),
            Running::BottomHalf(source) => push(intervals, from, to, Activity::BottomHalf { cpu, source }),
            Running::Outside(by) => push(intervals, from, to, Activity::Outside { cpu, by }),
            Running::Job(job) => {
                let dispatch = &mut self.dispatches[cpu.index()];
                let activity = Activity::Execution { cpu, job, begin: dispatch.begin, end: Stop::Overhead };
                intervals.extend(dispatch.held.replace(Interval { from, to, activity }));
                dispatch.begin = Begin::AfterOverhead;
                let history = self.history(job);
                history.executed = Nanos(history.executed.0.saturating_add(to.0 - from.0));
            }
        }
    }

    /// Pushes the piece that was held back, now that it is known why it stopped.
    fn release_held(&mut self, cpu: CpuId, why: Stop, intervals: &mut Vec<Interval>) {
        if let Some(mut piece) = self.dispatches[cpu.index()].held.take() {
            if let Activity::Execution { end, .. } = &mut piece.activity {
                *end = why;
            }
            intervals.push(piece);
        }
    }
}

/// The overhead or lock wait that begins with the event, and how long it takes its CPU.
fn covers(before: &Details, event: Event) -> Option<(Nanos, Activity)> {
    match event {
        Event::Overhead { cpu, kind, duration } => {
            Some((duration, Activity::Overhead { cpu, kind, source: before.interrupts.handled_by(cpu, kind) }))
        }
        Event::LockWait { cpu, duration } => Some((duration, Activity::LockWait { cpu })),
        _ => None,
    }
}

/// The suspension and the non-preemptive section that the event ends.
fn ended_pauses(before: &Details, event: Event) -> Pauses {
    let queues = &before.queues;
    let suspension = |job| queues.suspended(job).map(|since| (job, since));
    match event {
        Event::Resume { job, .. } => (suspension(job), None),
        Event::NonPreemptiveEnd { job, .. } => (None, queues.section(job)),
        Event::Complete { job, .. } => (suspension(job), queues.section(job)),
        _ => (None, None),
    }
}

/// Pushes what the event ends on engines and of locks and priorities, of which `before` knows.
fn push_ended(before: &Details, at: Instant, event: Event, intervals: &mut Vec<Interval>) {
    let Details { queues, locks, engines, .. } = before;
    match event {
        // An engine or a replica that is taken already: no legal schedule, but it stays drawable.
        Event::EngineBegin { gpu, engine, .. } => {
            if let Some(operation) = engines.on(gpu, engine) {
                push(intervals, operation.since, at, operation.activity());
            }
        }
        Event::EngineEnd { gpu, engine, job } => {
            if let Some(operation) = engines.on(gpu, engine).filter(|operation| operation.job == job) {
                push(intervals, operation.since, at, operation.activity());
            }
        }
        Event::Grant { job, lock, replica } => {
            push_wait(locks.requested(job, lock), at, job, lock, intervals);
            if let Some(holder) = locks.holder(lock, replica) {
                push(intervals, holder.since, at, Activity::CriticalSection { job: holder.job, lock, replica });
            }
        }
        Event::Withdraw { job, lock } => push_wait(locks.requested(job, lock), at, job, lock, intervals),
        Event::Unlock { job, lock, replica } => {
            if let Some(holder) = locks.holder(lock, replica).filter(|holder| holder.job == job) {
                push(intervals, holder.since, at, Activity::CriticalSection { job, lock, replica });
            }
        }
        Event::Priority { job, level, of } => {
            push_inheritance(queues.named(job).filter(|named| named.level != (level, of)), at, intervals);
        }
        Event::Complete { job, .. } => push_inheritance(queues.named(job), at, intervals),
        _ => {}
    }
}

/// Pushes what goes on when the trace ends, but for the CPUs: ordered by kind and then by engine, lock or job.
fn push_under_way(details: &Details, end: Instant, intervals: &mut Vec<Interval>) {
    let Details { queues, locks, engines, .. } = details;
    for operation in engines.operations() {
        push(intervals, operation.since, end, operation.activity());
    }
    for request in locks.requests() {
        push_wait(Some(request.since), end, request.job, request.lock, intervals);
    }
    for (lock, replica, holder) in locks.held() {
        push(intervals, holder.since, end, Activity::CriticalSection { job: holder.job, lock, replica });
    }
    for (.., named) in queues.lasting() {
        push_inheritance(named, end, intervals);
    }
    for (suspended, section, _) in queues.lasting() {
        push_pauses(end, (suspended, section), intervals);
    }
}

fn push_wait(since: Option<Instant>, to: Instant, job: JobId, lock: LockId, intervals: &mut Vec<Interval>) {
    if let Some(since) = since {
        push(intervals, since, to, Activity::AwaitingLock { job, lock });
    }
}

fn push_pauses(to: Instant, (suspended, section): Pauses, intervals: &mut Vec<Interval>) {
    if let Some((job, since)) = suspended {
        push(intervals, since, to, Activity::Suspension { job });
    }
    if let Some(Section { job, cpu, since }) = section {
        push(intervals, since, to, Activity::NonPreemptive { cpu, job });
    }
}

/// Only another task's priority is inherited.
fn push_inheritance(named: Option<Named>, to: Instant, intervals: &mut Vec<Interval>) {
    if let Some(Named { job, level: (level, of), since }) = named.filter(|named| named.level.1 != named.job.task) {
        push(intervals, since, to, Activity::Inheritance { job, of, level });
    }
}

fn push(intervals: &mut Vec<Interval>, from: Instant, to: Instant, activity: Activity) {
    if from < to {
        intervals.push(Interval { from, to, activity });
    }
}
