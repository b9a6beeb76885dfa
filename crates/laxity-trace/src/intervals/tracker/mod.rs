//! Follows records one by one and says what they add up to.

use std::collections::BTreeMap;

use laxity_model::{CpuId, Instant, JobId, Nanos};

use super::{Activity, Begin, Interval, JobHistory, Released, Stop, TrackError};
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
/// To know why a piece stopped, it is held back until the dispatch goes on or ends.
#[derive(Clone, Debug)]
pub struct Tracker<'a> {
    header: &'a TraceHeader,
    cpus: Vec<Cpu>,
    /// Jobs that were named and did not complete.
    jobs: BTreeMap<JobId, Live>,
    now: Instant,
    complete: bool,
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    /// Overhead lasts until then.
    busy_until: Instant,
    running: Option<Running>,
}

/// A dispatched job.
#[derive(Clone, Copy, Debug)]
struct Running {
    job: JobId,
    /// The current piece began here, or begins when the CPU's overhead is over.
    since: Instant,
    begin: Begin,
    /// The piece before, which overhead interrupted.
    held: Option<Interval>,
}

#[derive(Clone, Debug)]
struct Live {
    history: JobHistory,
    suspended: Option<Instant>,
    non_preemptive: Option<(CpuId, Instant)>,
}

impl<'a> Tracker<'a> {
    /// A tracker for the records of one trace.
    pub fn new(header: &'a TraceHeader) -> Self {
        Tracker {
            header,
            // A CpuId has 16 bits, so a header that claims more CPUs costs no more memory.
            cpus: vec![Cpu::default(); header.cpus.min(usize::from(u16::MAX) + 1)],
            jobs: BTreeMap::new(),
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
        self.jobs.get(&job).map(|live| &live.history)
    }

    /// Takes the next record. Pushes the intervals that are now known in full (ordered by end on every CPU, but an
    /// overhead's duration is known when it begins) and returns the history of the job that completed.
    ///
    /// Errors leave the tracker as it was; the caller may skip the record and go on.
    pub fn follow(&mut self, record: &Record, intervals: &mut Vec<Interval>) -> Result<Option<JobHistory>, TrackError> {
        let Record { at, event } = *record;
        self.admit(at, &event)?;
        self.now = at;
        self.complete = false;
        match event {
            Event::Release { job, deadline } => {
                let relative = self.header.tasks[job.task.index()].deadline;
                let arrival = Instant(deadline.0.saturating_sub(relative.0));
                self.live(job).history.released = Some(Released { arrival, release: at, deadline });
            }
            Event::Ready { job, cpu } => self.live(job).history.ready_on = Some(cpu),
            Event::Dispatch { cpu, job } => self.dispatch(cpu, job, intervals),
            Event::Preempt { cpu, job } => {
                let history = &mut self.live(job).history;
                history.preemptions = history.preemptions.saturating_add(1);
                self.stop(cpu, Some(job), Stop::Preempted, intervals);
            }
            Event::Suspend { cpu, job } => {
                self.stop(cpu, Some(job), Stop::Suspended, intervals);
                self.live(job).suspended = Some(at);
            }
            Event::Resume { job, .. } => {
                if let Some(from) = self.live(job).suspended.take() {
                    push(intervals, from, at, Activity::Suspension { job });
                }
            }
            Event::Complete { cpu, job } => return Ok(Some(self.complete(cpu, job, intervals))),
            Event::NonPreemptiveBegin { cpu, job } => self.live(job).non_preemptive = Some((cpu, at)),
            Event::NonPreemptiveEnd { job, .. } => {
                if let Some((cpu, from)) = self.live(job).non_preemptive.take() {
                    push(intervals, from, at, Activity::NonPreemptive { cpu, job });
                }
            }
            Event::Overhead { cpu, kind, duration } => {
                self.interrupt(cpu, duration, Activity::Overhead { cpu, kind }, intervals);
            }
            Event::LockWait { cpu, duration } => {
                self.interrupt(cpu, duration, Activity::LockWait { cpu }, intervals);
            }
            Event::Link { .. } | Event::CacheDelay { .. } | Event::Ipi { .. } => {}
            Event::EngineBegin { .. }
            | Event::EngineEnd { .. }
            | Event::Interrupt { .. }
            | Event::BottomHalfBegin { .. }
            | Event::BottomHalfEnd { .. }
            | Event::Serve { .. }
            | Event::Request { .. }
            | Event::Grant { .. }
            | Event::Unlock { .. }
            | Event::Withdraw { .. }
            | Event::Priority { .. }
            | Event::Produce { .. }
            | Event::Consume { .. }
            | Event::SpinBegin { .. }
            | Event::SpinEnd { .. }
            | Event::Replenish { .. } => {}
            Event::End => self.complete = true,
        }
        Ok(None)
    }

    /// Ends the trace at the last record: pushes what was under way and returns the histories of the jobs still
    /// pending, ordered by job.
    pub fn finish(mut self, intervals: &mut Vec<Interval>) -> Vec<JobHistory> {
        for index in 0..self.cpus.len() {
            self.stop(CpuId(index as u16), None, Stop::TraceEnded, intervals);
        }
        let end = self.now;
        for (&job, live) in &self.jobs {
            if let Some(from) = live.suspended {
                push(intervals, from, end, Activity::Suspension { job });
            }
            if let Some((cpu, from)) = live.non_preemptive {
                push(intervals, from, end, Activity::NonPreemptive { cpu, job });
            }
        }
        self.jobs.into_values().map(|live| live.history).collect()
    }

    /// Refuses a record that does not fit the header or comes too late.
    fn admit(&self, at: Instant, event: &Event) -> Result<(), TrackError> {
        if at < self.now {
            return Err(TrackError::OutOfOrder { at, previous: self.now });
        }
        let (cpus, tasks) = (self.header.cpus, self.header.tasks.len());
        let (named, job) = named(event);
        if let Some(cpu) = named.into_iter().flatten().find(|cpu| cpu.index() >= cpus) {
            return Err(TrackError::UnknownCpu { at, cpu, cpus });
        }
        match job {
            Some(job) if job.task.index() >= tasks => Err(TrackError::UnknownTask { at, job, tasks }),
            _ => Ok(()),
        }
    }

    fn live(&mut self, job: JobId) -> &mut Live {
        self.jobs.entry(job).or_insert_with(|| Live {
            history: JobHistory::new(job),
            suspended: None,
            non_preemptive: None,
        })
    }

    fn dispatch(&mut self, cpu: CpuId, job: JobId, intervals: &mut Vec<Interval>) {
        // A CPU that is dispatched to without a switch-out first: no legal schedule, but it stays drawable.
        self.stop(cpu, None, Stop::Preempted, intervals);
        let history = &mut self.live(job).history;
        let begin = match history.last_cpu {
            None => Begin::First,
            Some(last) if last == cpu => Begin::Again,
            Some(from) => {
                history.migrations = history.migrations.saturating_add(1);
                Begin::Migrated { from }
            }
        };
        history.last_cpu = Some(cpu);
        let since = self.now.max(self.cpus[cpu.index()].busy_until);
        self.cpus[cpu.index()].running = Some(Running { job, since, begin, held: None });
    }

    fn complete(&mut self, cpu: CpuId, job: JobId, intervals: &mut Vec<Interval>) -> JobHistory {
        self.stop(cpu, Some(job), Stop::Completed, intervals);
        let now = self.now;
        let Live { mut history, suspended, non_preemptive } = self.jobs.remove(&job).unwrap_or(Live {
            history: JobHistory::new(job),
            suspended: None,
            non_preemptive: None,
        });
        if let Some(from) = suspended {
            push(intervals, from, now, Activity::Suspension { job });
        }
        if let Some((cpu, from)) = non_preemptive {
            push(intervals, from, now, Activity::NonPreemptive { cpu, job });
        }
        history.completed = Some((cpu, now));
        history
    }

    /// Overhead takes `cpu`: the running job's piece ends, the next begins when the CPU is free again.
    fn interrupt(&mut self, cpu: CpuId, duration: Nanos, activity: Activity, intervals: &mut Vec<Interval>) {
        let now = self.now;
        let until = now.saturating_add(duration);
        if let Some(mut running) = self.cpus[cpu.index()].running {
            if !duration.is_zero() {
                self.close_piece(cpu, &mut running, intervals);
                running.since = running.since.max(until);
            }
            self.cpus[cpu.index()].running = Some(running);
        }
        let state = &mut self.cpus[cpu.index()];
        state.busy_until = state.busy_until.max(until);
        push(intervals, now, until, activity);
    }

    /// The job on `cpu` stops executing; does nothing if `job` is given and is not the one.
    fn stop(&mut self, cpu: CpuId, job: Option<JobId>, why: Stop, intervals: &mut Vec<Interval>) {
        let Some(mut running) = self.cpus[cpu.index()].running else { return };
        if job.is_some_and(|job| job != running.job) {
            return;
        }
        self.cpus[cpu.index()].running = None;
        self.close_piece(cpu, &mut running, intervals);
        if let Some(mut piece) = running.held {
            if let Activity::Execution { end, .. } = &mut piece.activity {
                *end = why;
            }
            intervals.push(piece);
        }
    }

    /// Ends the current piece now and holds it back; the one held before is thereby known to have been interrupted.
    fn close_piece(&mut self, cpu: CpuId, running: &mut Running, intervals: &mut Vec<Interval>) {
        let (from, to) = (running.since, self.now);
        if from >= to {
            return;
        }
        let job = running.job;
        let activity = Activity::Execution { cpu, job, begin: running.begin, end: Stop::Overhead };
        intervals.extend(running.held.replace(Interval { from, to, activity }));
        running.begin = Begin::AfterOverhead;
        running.since = to;
        let history = &mut self.live(job).history;
        history.executed = Nanos(history.executed.0.saturating_add(to.0 - from.0));
    }
}

fn push(intervals: &mut Vec<Interval>, from: Instant, to: Instant, activity: Activity) {
    if from < to {
        intervals.push(Interval { from, to, activity });
    }
}

/// The CPUs and the job that an event names.
fn named(event: &Event) -> ([Option<CpuId>; 2], Option<JobId>) {
    match *event {
        Event::Release { job, .. } => ([None, None], Some(job)),
        Event::Link { cpu, job } => ([Some(cpu), None], job),
        Event::Ready { cpu, job }
        | Event::Dispatch { cpu, job }
        | Event::Preempt { cpu, job }
        | Event::Suspend { cpu, job }
        | Event::Resume { cpu, job }
        | Event::Complete { cpu, job }
        | Event::NonPreemptiveBegin { cpu, job }
        | Event::NonPreemptiveEnd { cpu, job }
        | Event::CacheDelay { cpu, job, .. } => ([Some(cpu), None], Some(job)),
        Event::Overhead { cpu, .. } | Event::LockWait { cpu, .. } => ([Some(cpu), None], None),
        Event::Ipi { from, to, .. } => ([Some(from), Some(to)], None),
        Event::Interrupt { cpu, job, .. }
        | Event::BottomHalfBegin { cpu, job, .. }
        | Event::BottomHalfEnd { cpu, job, .. } => ([Some(cpu), None], job),
        Event::SpinBegin { cpu, job } | Event::SpinEnd { cpu, job } => ([Some(cpu), None], Some(job)),
        Event::Serve { thread, .. } => ([None, None], Some(thread)),
        Event::EngineBegin { job, .. }
        | Event::EngineEnd { job, .. }
        | Event::Request { job, .. }
        | Event::Grant { job, .. }
        | Event::Unlock { job, .. }
        | Event::Withdraw { job, .. }
        | Event::Priority { job, .. }
        | Event::Produce { job, .. }
        | Event::Consume { job, .. } => ([None, None], Some(job)),
        Event::Replenish { .. } | Event::End => ([None, None], None),
    }
}
