//! Follows a trace and writes it as Perfetto packets.

mod slices;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use laxity_model::{EdgeId, Instant, JobId, Nanos, TaskId};

use self::tokens::Tokens;
use super::ExportError;
use super::messages::{DebugAnnotation, Value};
use super::names::{Category, Fact, Name};
use super::sched::{Switches, ThreadState};
use super::writer::{Arrows, LaneKind, PacketWriter, Track, What, fact, job_name};
use crate::intervals::{Interval, JobHistory, Source, Tracker};
use crate::{Event, Record, TraceHeader};

/// Writes a trace record by record. Memory grows with the number of tasks, CPUs, locks, pending jobs and tokens on edges
/// only.
pub struct Exporter<'a, W> {
    header: &'a TraceHeader,
    packets: PacketWriter<W>,
    /// The header, with what the records tell of outsiders.
    names: TraceHeader,
    tracker: Tracker<'a>,
    switches: Switches<'a>,
    intervals: Vec<Interval>,
    /// Deadlines that have not passed, and whether they are known to be met.
    deadlines: BTreeMap<(Instant, JobId), bool>,
    /// The tracks of every task: one track per job that is pending at the same time.
    lanes: Vec<Lanes>,
    tokens: Tokens,
    flows: u64,
}

/// The tracks of a task's jobs.
#[derive(Clone, Default)]
struct Lanes {
    of: BTreeMap<JobId, u32>,
    free: BTreeSet<u32>,
}

impl<'a, W: io::Write> Exporter<'a, W> {
    /// Starts a trace and describes its tracks.
    pub fn new(header: &'a TraceHeader, writer: W) -> Result<Self, ExportError> {
        Ok(Exporter {
            header,
            packets: PacketWriter::new(writer, header)?,
            names: header.clone(),
            tracker: Tracker::new(header),
            switches: Switches::new(header),
            intervals: Vec::new(),
            deadlines: BTreeMap::new(),
            lanes: vec![Lanes::default(); header.tasks.len()],
            tokens: Tokens::new(header),
            flows: 0,
        })
    }

    /// Writes what the next record says.
    ///
    /// Errors: [`ExportError::Track`] if the record does not fit the header or comes too late; it is then skipped, and
    /// the caller may go on. [`ExportError::Write`]: the output is broken.
    pub fn record(&mut self, record: &Record) -> Result<(), ExportError> {
        let completed = self.tracker.follow(record, &mut self.intervals)?;
        self.names.learn(&record.event);
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
                let flow = vec![self.next_flow()];
                let sent = Arrows { through: flow.clone(), ..Arrows::default() };
                let sign = (Name::IpiSent, Category::Overhead);
                self.packets.flow(at, Track::cpu(from), sign, sent, Vec::new())?;
                let received = Arrows { ending: flow, ..Arrows::default() };
                let (arrives, sign) = (at.saturating_add(latency), (Name::IpiReceived, Category::Overhead));
                self.packets.flow(arrives, Track::cpu(to), sign, received, Vec::new())
            }
            Event::Interrupt { cpu, device, job } => {
                let facts = self.source_facts(Source { device, owner: job });
                self.packets.event(at, Track::cpu(cpu), What::Instant(Name::Interrupt, Category::Interrupt), facts)
            }
            Event::Serve { thread, device, job } => {
                let mut facts = vec![fact(Fact::Job, Value::Unsigned(thread.index.into()))];
                facts.extend(self.source_facts(Source { device, owner: job }));
                let what = What::Instant(Name::Serves, Category::Interrupt);
                self.packets.event(at, Track::task(thread.task), what, facts)
            }
            Event::Replenish { task, budget, deadline } => {
                let facts = vec![
                    fact(Fact::BudgetNs, Value::Unsigned(budget.0)),
                    fact(Fact::DeadlineNs, Value::Unsigned(deadline.0)),
                ];
                let what = What::Instant(Name::Replenished, Category::Interrupt);
                self.packets.event(at, Track::task(task), what, facts)
            }
            Event::Throttle { cpu, task } | Event::Unthrottle { cpu, task, .. } => {
                let is_throttled = matches!(event, Event::Throttle { .. });
                let name = if is_throttled { Name::Throttled } else { Name::Unthrottled };
                let task = task.and_then(|task| self.header.tasks.get(task.index())).map(|task| task.name.clone());
                let facts = task.map(|name| fact(Fact::Task, Value::Text(name))).into_iter().collect();
                self.packets.event(at, Track::cpu(cpu), What::Instant(name, Category::Memory), facts)
            }
            Event::EngineRate { gpu, engine, rate } => {
                let percent = ((u128::from(rate) * 100) >> 32) as u64;
                let facts = vec![fact(Fact::RatePercent, Value::Unsigned(percent))];
                self.packets.event(at, Track::engine(gpu, engine), What::Instant(Name::Rate, Category::Memory), facts)
            }
            Event::Produce { job, edge, tokens } => {
                let flow = self.next_flow();
                let arrows = self.tokens.produce(edge, tokens, flow);
                self.move_tokens(at, Name::Produces, job, edge, tokens, arrows)
            }
            Event::Consume { job, edge, tokens } => {
                let arrows = self.tokens.consume(edge, tokens);
                self.move_tokens(at, Name::Consumes, job, edge, tokens, arrows)
            }
            Event::Read { job, edge, value } => {
                let mut facts = vec![
                    fact(Fact::Job, Value::Unsigned(job.index.into())),
                    fact(Fact::Edge, Value::Text(self.edge_name(edge))),
                ];
                facts.extend(value.map(|value| fact(Fact::Value, Value::Unsigned(value.into()))));
                self.packets.event(at, Track::task(job.task), What::Instant(Name::Reads, Category::Graph), facts)
            }
            // Written as intervals; the mapping shows in the switches.
            Event::Overhead { .. }
            | Event::LockWait { .. }
            | Event::Stolen { .. }
            | Event::Outside { .. }
            | Event::OutsiderName { .. }
            | Event::OutsiderThread { .. }
            | Event::OutsidersLost { .. }
            | Event::NonPreemptiveBegin { .. }
            | Event::NonPreemptiveEnd { .. }
            | Event::Link { .. }
            | Event::EngineBegin { .. }
            | Event::EngineEnd { .. }
            | Event::EngineOperation { .. }
            | Event::BottomHalfBegin { .. }
            | Event::BottomHalfEnd { .. }
            | Event::Request { .. }
            | Event::Grant { .. }
            | Event::Unlock { .. }
            | Event::Withdraw { .. }
            | Event::Priority { .. }
            | Event::SpinBegin { .. }
            | Event::SpinEnd { .. }
            // One every period on every CPU: throttling shows what became of it.
            | Event::Regulate { .. }
            | Event::End => Ok(()),
        }
    }

    fn next_flow(&mut self) -> u64 {
        self.flows += 1;
        self.flows
    }

    /// An instant on the task's track, with the arrows of the tokens.
    fn move_tokens(
        &mut self,
        at: Instant,
        name: Name,
        job: JobId,
        edge: EdgeId,
        tokens: u32,
        arrows: Arrows,
    ) -> io::Result<()> {
        let facts = vec![
            fact(Fact::Job, Value::Unsigned(job.index.into())),
            fact(Fact::Edge, Value::Text(self.edge_name(edge))),
            fact(Fact::Tokens, Value::Unsigned(tokens.into())),
        ];
        self.packets.flow(at, Track::task(job.task), (name, Category::Graph), arrows, facts)
    }

    /// The tasks at both ends: `camera -> detector`.
    fn edge_name(&self, edge: EdgeId) -> String {
        let task = |task: TaskId| self.header.tasks.get(task.index()).map_or("", |task| task.name.as_str());
        let tokens = self.header.edges.get(edge.index()).map(|edge| (edge.producer, edge.consumer));
        let latest = || self.header.latest_edge(edge).map(|edge| (edge.producer, edge.consumer));
        let ends = tokens.or_else(latest);
        ends.map_or(String::new(), |(producer, consumer)| format!("{} -> {}", task(producer), task(consumer)))
    }

    /// The device that raised an interrupt, and the job whose operation completed.
    fn source_facts(&self, source: Source) -> Vec<DebugAnnotation> {
        let device = self.header.devices.get(source.device.index()).map_or("", |device| device.name.as_str());
        let mut facts = vec![fact(Fact::Device, Value::Text(device.to_owned()))];
        facts.extend(source.owner.map(|owner| fact(Fact::Owner, Value::Text(job_name(self.header, owner)))));
        facts
    }

    fn release(&mut self, at: Instant, job: JobId, deadline: Instant) -> io::Result<()> {
        let number = fact(Fact::Job, Value::Unsigned(job.index.into()));
        let what = What::Instant(Name::Release, Category::Job);
        self.packets.event(at, Track::task(job.task), what, vec![number.clone()])?;
        let has_deadline = !self.header.has_made_up_deadlines(job.task);
        if has_deadline {
            self.deadlines.insert((deadline, job), false);
        }
        if self.lane_of(job).is_some() {
            return Ok(());
        }
        let lane = self.take_lane(job)?;
        let arrival = self.tracker.pending(job).and_then(|history| history.released).map_or(at, |it| it.arrival);
        let mut facts = vec![number, fact(Fact::ArrivalNs, Value::Unsigned(arrival.0))];
        facts.extend(has_deadline.then(|| fact(Fact::DeadlineNs, Value::Unsigned(deadline.0))));
        let what = What::BeginNamed(job_name(self.header, job), Category::Job);
        self.packets.event(at, Track::lane(job.task, lane, LaneKind::Jobs), what, facts)
    }

    fn complete(&mut self, at: Instant, history: &JobHistory) -> io::Result<()> {
        let job = history.job;
        // Passed deadlines are gone, so one that is still there is met.
        if let Some(met) = history.released.and_then(|released| self.deadlines.get_mut(&(released.deadline, job))) {
            *met = true;
        }
        let lanes = &mut self.lanes[job.task.index()];
        let Some(lane) = lanes.of.remove(&job) else { return Ok(()) };
        lanes.free.insert(lane);
        let facts = completion_facts(history, !self.header.has_made_up_deadlines(job.task));
        self.packets.event(at, Track::lane(job.task, lane, LaneKind::Jobs), What::End, facts)
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
        self.lanes.get(job.task.index())?.of.get(&job).copied()
    }

    /// The first free track of the job's task, a new one if there is none.
    fn take_lane(&mut self, job: JobId) -> io::Result<u32> {
        let lanes = &mut self.lanes[job.task.index()];
        let next = lanes.of.len() as u32;
        let lane = lanes.free.pop_first().unwrap_or(next);
        lanes.of.insert(job, lane);
        if lane < next {
            return Ok(lane);
        }
        self.packets.lane(job.task, lane, LaneKind::Jobs)?;
        Ok(lane)
    }
}

fn completion_facts(history: &JobHistory, has_deadline: bool) -> Vec<DebugAnnotation> {
    let mut facts = vec![
        fact(Fact::ExecutedNs, Value::Unsigned(history.executed.0)),
        fact(Fact::Preemptions, Value::Unsigned(history.preemptions.into())),
        fact(Fact::Migrations, Value::Unsigned(history.migrations.into())),
    ];
    if let (Some(response_time), Some(lateness)) = (history.response_time(), history.lateness()) {
        facts.push(fact(Fact::ResponseTimeNs, Value::Unsigned(response_time.0)));
        if has_deadline {
            facts.push(fact(Fact::LatenessNs, Value::Signed(lateness.0)));
            facts.push(fact(Fact::Missed, Value::Bool(lateness.0 > 0)));
        }
    }
    facts
}
