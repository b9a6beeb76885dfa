//! Follows records one by one and says what they add up to.

mod admit;
mod cpu;
mod interrupts;
mod open;

use std::collections::BTreeMap;

use laxity_model::{CpuId, Instant, JobId};

use self::cpu::Cpu;
use self::open::Open;
use super::{Activity, Interval, JobHistory, Released, Source, Stop, TrackError};
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
/// To know why a piece stopped, it is held back until the dispatch goes on or ends. A bottom half on the CPU's stack
/// takes the CPU as overhead does, and is itself interrupted by overhead.
#[derive(Clone, Debug)]
pub struct Tracker<'a> {
    header: &'a TraceHeader,
    cpus: Vec<Cpu>,
    /// Jobs that were named and did not complete.
    jobs: BTreeMap<JobId, Live>,
    open: Open,
    now: Instant,
    complete: bool,
}

/// A job that was named and did not complete.
#[derive(Clone, Debug)]
struct Live {
    history: JobHistory,
    suspended: Option<Instant>,
    non_preemptive: Option<(CpuId, Instant)>,
    /// Where it has a CPU, it waits by spinning.
    spins: bool,
}

impl Live {
    fn new(job: JobId) -> Self {
        Live { history: JobHistory::new(job), suspended: None, non_preemptive: None, spins: false }
    }
}

impl<'a> Tracker<'a> {
    /// A tracker for the records of one trace.
    pub fn new(header: &'a TraceHeader) -> Self {
        Tracker {
            header,
            // A CpuId has 16 bits, so a header that claims more CPUs costs no more memory.
            cpus: vec![Cpu::default(); header.cpus.min(usize::from(u16::MAX) + 1)],
            jobs: BTreeMap::new(),
            open: Open::default(),
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
        if at < self.now {
            return Err(TrackError::OutOfOrder { at, previous: self.now });
        }
        admit::admit(self.header, at, &event)?;
        self.now = at;
        self.complete = false;
        self.open.follow(at, &event, intervals);
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
            Event::Overhead { cpu, kind, duration } => self.overhead(cpu, kind, duration, intervals),
            Event::LockWait { cpu, duration } => {
                self.interrupt(cpu, duration, Activity::LockWait { cpu }, intervals);
            }
            Event::Interrupt { cpu, device, job } => {
                self.raise(cpu, Source { device, owner: job });
            }
            Event::BottomHalfBegin { cpu, device, job } => {
                self.begin_bottom_half(cpu, Source { device, owner: job }, intervals);
            }
            Event::BottomHalfEnd { cpu, .. } => self.end_bottom_half(cpu, intervals),
            Event::Serve { device, job, .. } => self.settle(Source { device, owner: job }),
            Event::SpinBegin { cpu, job } => self.begin_spinning(cpu, job, intervals),
            Event::SpinEnd { cpu, job } => self.end_spinning(cpu, job, intervals),
            // Followed above: they are not about CPUs.
            Event::EngineBegin { .. }
            | Event::EngineEnd { .. }
            | Event::Request { .. }
            | Event::Grant { .. }
            | Event::Unlock { .. }
            | Event::Withdraw { .. }
            | Event::Priority { .. } => {}
            // Nothing lasts.
            Event::Link { .. }
            | Event::CacheDelay { .. }
            | Event::Ipi { .. }
            | Event::Produce { .. }
            | Event::Consume { .. }
            | Event::Replenish { .. } => {}
            Event::End => self.complete = true,
        }
        Ok(None)
    }

    /// Ends the trace at the last record: pushes what was under way and returns the histories of the jobs still
    /// pending, ordered by job.
    pub fn finish(mut self, intervals: &mut Vec<Interval>) -> Vec<JobHistory> {
        for index in 0..self.cpus.len() {
            self.end_bottom_half(CpuId(index as u16), intervals);
            self.stop(CpuId(index as u16), None, Stop::TraceEnded, intervals);
        }
        let end = self.now;
        self.open.finish(end, intervals);
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

    fn live(&mut self, job: JobId) -> &mut Live {
        self.jobs.entry(job).or_insert_with(|| Live::new(job))
    }

    fn complete(&mut self, cpu: CpuId, job: JobId, intervals: &mut Vec<Interval>) -> JobHistory {
        self.stop(cpu, Some(job), Stop::Completed, intervals);
        let now = self.now;
        let live = self.jobs.remove(&job).unwrap_or_else(|| Live::new(job));
        let Live { mut history, suspended, non_preemptive, .. } = live;
        if let Some(from) = suspended {
            push(intervals, from, now, Activity::Suspension { job });
        }
        if let Some((cpu, from)) = non_preemptive {
            push(intervals, from, now, Activity::NonPreemptive { cpu, job });
        }
        history.completed = Some((cpu, now));
        history
    }
}

fn push(intervals: &mut Vec<Interval>, from: Instant, to: Instant, activity: Activity) {
    if from < to {
        intervals.push(Interval { from, to, activity });
    }
}
