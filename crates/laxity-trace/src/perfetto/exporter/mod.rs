//! Follows a trace and writes it as Perfetto packets.

use std::collections::BTreeMap;
use std::io;

use laxity_model::{Instant, JobId, Nanos};

use super::ExportError;
use super::messages::{DebugAnnotation, Value};
use super::names::{Category, Fact, Name};
use super::sched::{Switches, ThreadState};
use super::writer::{PacketWriter, Track, What, fact, job_name};
use crate::intervals::{Activity, Interval, JobHistory, Tracker};
use crate::{Event, Record, TraceHeader};

/// Writes a trace record by record. Memory grows with the number of tasks, CPUs and pending jobs only.
pub struct Exporter<'a, W> {
    header: &'a TraceHeader,
    packets: PacketWriter<W>,
    tracker: Tracker<'a>,
    switches: Switches<'a>,
    intervals: Vec<Interval>,
    /// Deadlines that have not passed, and whether they are known to be met.
    deadlines: BTreeMap<(Instant, JobId), bool>,
    /// The jobs on every task's tracks: one track per job that is pending at the same time.
    lanes: Vec<Vec<Option<JobId>>>,
    flows: u64,
}

impl<'a, W: io::Write> Exporter<'a, W> {
    /// Starts a trace and describes its tracks.
    pub fn new(header: &'a TraceHeader, writer: W) -> Result<Self, ExportError> {
        Ok(Exporter {
            header,
            packets: PacketWriter::new(writer, header)?,
            tracker: Tracker::new(header),
            switches: Switches::new(header),
            intervals: Vec::new(),
            deadlines: BTreeMap::new(),
            lanes: vec![Vec::new(); header.tasks.len()],
            flows: 0,
        })
    }

    /// Writes what the next record says.
    ///
    /// Errors: [`ExportError::Track`] if the record does not fit the header or comes too late; it is then skipped, and
    /// the caller may go on. [`ExportError::Write`]: the output is broken.
    pub fn record(&mut self, record: &Record) -> Result<(), ExportError> {
        let completed = self.tracker.follow(record, &mut self.intervals)?;
        self.switches.advance(record.at, &mut self.packets)?;
        self.pass_deadlines(record.at)?;
        self.write_intervals()?;
        if let Some(history) = completed {
            self.complete(record.at, &history)?;
        }
        self.write_event(record)?;
        Ok(())
    }

    /// Ends the trace and hands the writer back. Jobs still pending stay open, as the UI shows them.
    pub fn finish(mut self) -> Result<W, ExportError> {
        let end = self.tracker.now();
        self.pass_deadlines(end.saturating_add(Nanos(1)))?;
        let tracker = std::mem::replace(&mut self.tracker, Tracker::new(self.header));
        tracker.finish(&mut self.intervals);
        self.write_intervals()?;
        self.switches.finish(&mut self.packets)?;
        Ok(self.packets.finish()?)
    }

    fn write_event(&mut self, record: &Record) -> io::Result<()> {
        let Record { at, event } = *record;
        match event {
            Event::Release { job, deadline } => self.release(at, job, deadline),
            Event::Ready { job, cpu } | Event::Resume { job, cpu } => {
                self.switches.wake(cpu, job.task, &mut self.packets)
            }
            Event::Dispatch { cpu, job } => self.switches.switch_in(cpu, job.task, &mut self.packets),
            Event::Preempt { cpu, job } => {
                self.switches.switch_out(cpu, job.task, ThreadState::Preempted);
                Ok(())
            }
            Event::Suspend { cpu, job } | Event::Complete { cpu, job } => {
                self.switches.switch_out(cpu, job.task, ThreadState::Sleeping);
                Ok(())
            }
            Event::CacheDelay { cpu, job, kind, duration } => {
                let facts = vec![
                    fact(Fact::Job, Value::Unsigned(job.index.into())),
                    fact(Fact::DurationNs, Value::Unsigned(duration.0)),
                    fact(Fact::Cpu, Value::Unsigned(cpu.0.into())),
                ];
                let what = What::Instant(Name::Overhead(kind), Category::Overhead);
                self.packets.event(at, Track::task(job.task), what, facts)
            }
            Event::Ipi { from, to, latency } => {
                self.flows += 1;
                self.packets.flow(at, Track::cpu(from), Name::IpiSent, self.flows, true)?;
                let arrives = at.saturating_add(latency);
                self.packets.flow(arrives, Track::cpu(to), Name::IpiReceived, self.flows, false)
            }
            // Overheads, lock waits and sections are written as intervals; the mapping shows in the switches.
            Event::Overhead { .. }
            | Event::LockWait { .. }
            | Event::NonPreemptiveBegin { .. }
            | Event::NonPreemptiveEnd { .. }
            | Event::Link { .. }
            | Event::EngineBegin { .. }
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
            | Event::Replenish { .. }
            | Event::End => Ok(()),
        }
    }

    /// Slices for what lasted. Executions are told by the switches.
    fn write_intervals(&mut self) -> io::Result<()> {
        for interval in std::mem::take(&mut self.intervals) {
            let (track, name, category) = match interval.activity {
                Activity::Execution { .. } => continue,
                Activity::Overhead { cpu, kind } => (Track::cpu(cpu), Name::Overhead(kind), Category::Overhead),
                Activity::LockWait { cpu } => (Track::cpu(cpu), Name::LockWait, Category::Overhead),
                Activity::Suspension { job } | Activity::NonPreemptive { job, .. } => {
                    let Some(lane) = self.lane_of(job) else { continue };
                    let suspended = matches!(interval.activity, Activity::Suspension { .. });
                    let name = if suspended { Name::Suspended } else { Name::NonPreemptive };
                    (Track::lane(job.task, lane), name, Category::Job)
                }
            };
            self.packets.event(interval.from, track, What::Begin(name, category), Vec::new())?;
            self.packets.event(interval.to, track, What::End, Vec::new())?;
        }
        Ok(())
    }

    fn release(&mut self, at: Instant, job: JobId, deadline: Instant) -> io::Result<()> {
        let number = fact(Fact::Job, Value::Unsigned(job.index.into()));
        let what = What::Instant(Name::Release, Category::Job);
        self.packets.event(at, Track::task(job.task), what, vec![number.clone()])?;
        self.deadlines.insert((deadline, job), false);
        if self.lane_of(job).is_some() {
            return Ok(());
        }
        let lane = self.take_lane(job)?;
        let arrival = self.tracker.pending(job).and_then(|history| history.released).map_or(at, |it| it.arrival);
        let facts = vec![
            number,
            fact(Fact::ArrivalNs, Value::Unsigned(arrival.0)),
            fact(Fact::DeadlineNs, Value::Unsigned(deadline.0)),
        ];
        let name = job_name(self.header, job);
        self.packets.event(at, Track::lane(job.task, lane), What::BeginJob(name), facts)
    }

    fn complete(&mut self, at: Instant, history: &JobHistory) -> io::Result<()> {
        let job = history.job;
        // Passed deadlines are gone, so one that is still there is met.
        if let Some(met) = history.released.and_then(|released| self.deadlines.get_mut(&(released.deadline, job))) {
            *met = true;
        }
        let Some(lane) = self.lane_of(job) else { return Ok(()) };
        self.lanes[job.task.index()][lane as usize] = None;
        self.packets.event(at, Track::lane(job.task, lane), What::End, completion_facts(history))
    }

    /// Writes the deadlines before `now`. They wait until then so that none is drawn beyond the end of the trace.
    fn pass_deadlines(&mut self, now: Instant) -> io::Result<()> {
        while let Some(entry) = self.deadlines.first_entry() {
            let &(at, job) = entry.key();
            if at >= now {
                break;
            }
            let name = if entry.remove() { Name::Deadline } else { Name::DeadlineMissed };
            self.deadline(at, job, name)?;
        }
        Ok(())
    }

    fn deadline(&mut self, at: Instant, job: JobId, name: Name) -> io::Result<()> {
        let facts = vec![fact(Fact::Job, Value::Unsigned(job.index.into()))];
        self.packets.event(at, Track::task(job.task), What::Instant(name, Category::Deadline), facts)
    }

    fn lane_of(&self, job: JobId) -> Option<u32> {
        let lane = self.lanes.get(job.task.index())?.iter().position(|&other| other == Some(job))?;
        u32::try_from(lane).ok()
    }

    /// The first free track of the job's task, a new one if there is none.
    fn take_lane(&mut self, job: JobId) -> io::Result<u32> {
        let lanes = &mut self.lanes[job.task.index()];
        if let Some(free) = lanes.iter().position(Option::is_none) {
            lanes[free] = Some(job);
            return Ok(free as u32);
        }
        lanes.push(Some(job));
        let lane = (lanes.len() - 1) as u32;
        self.packets.lane(job.task, lane)?;
        Ok(lane)
    }
}

fn completion_facts(history: &JobHistory) -> Vec<DebugAnnotation> {
    let mut facts = vec![
        fact(Fact::ExecutedNs, Value::Unsigned(history.executed.0)),
        fact(Fact::Preemptions, Value::Unsigned(history.preemptions.into())),
        fact(Fact::Migrations, Value::Unsigned(history.migrations.into())),
    ];
    if let (Some(response_time), Some(lateness)) = (history.response_time(), history.lateness()) {
        facts.push(fact(Fact::ResponseTimeNs, Value::Unsigned(response_time.0)));
        facts.push(fact(Fact::LatenessNs, Value::Signed(lateness.0)));
        facts.push(fact(Fact::Missed, Value::Bool(lateness.0 > 0)));
    }
    facts
}
