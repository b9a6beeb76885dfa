//! Slices for what lasted.

use std::io;

use super::Exporter;
use crate::OutsiderKind;
use crate::intervals::{Activity, Interval};
use crate::perfetto::messages::{DebugAnnotation, Value};
use crate::perfetto::names::{Category, Fact, Name};
use crate::perfetto::writer::{LaneKind, Track, What, fact, job_name};
use laxity_model::{JobId, OverheadKind};

/// Where an interval is shown, and how.
struct Slice {
    track: Track,
    what: What,
    facts: Vec<DebugAnnotation>,
}

impl Slice {
    fn new(track: Track, name: Name, category: Category) -> Self {
        Slice { track, what: What::Begin(name, category), facts: Vec::new() }
    }
}

impl<W: io::Write> Exporter<'_, W> {
    /// Writes the intervals that are known in full.
    pub(super) fn write_intervals(&mut self) -> io::Result<()> {
        for interval in std::mem::take(&mut self.intervals) {
            if let Some(Slice { track, what, facts }) = self.slice(&interval)? {
                self.packets.event(interval.from, track, what, facts)?;
                self.packets.event(interval.to, track, What::End, Vec::new())?;
            }
        }
        Ok(())
    }

    /// How the interval is shown; `None` if the switches tell of it, or its job has no track.
    fn slice(&mut self, interval: &Interval) -> io::Result<Option<Slice>> {
        let job_fact = |job: JobId| fact(Fact::Job, Value::Unsigned(job.index.into()));
        let slice = match interval.activity {
            // Instants say when throttling begins and ends: a slice would overlap those of interrupts.
            Activity::Execution { .. } | Activity::Throttled { .. } => return Ok(None),
            Activity::Overhead { cpu, kind, source } => {
                let facts = source.map(|source| self.source_facts(source)).unwrap_or_default();
                Slice { facts, ..Slice::new(Track::cpu(cpu), Name::Overhead(kind), Category::Overhead) }
            }
            Activity::Stolen { cpu } => Slice::new(self.packets.stolen(cpu)?, Name::Stolen, Category::Interrupt),
            Activity::Outside { cpu, by } => {
                let name = match by.kind {
                    OutsiderKind::Thread => self.names.outsider_name(by),
                    OutsiderKind::Interrupt => format!("interrupt {}", self.names.outsider_name(by)),
                    OutsiderKind::SoftInterrupt => format!("softirq {}", self.names.outsider_name(by)),
                };
                let what = What::BeginNamed(name, Category::Interrupt);
                Slice { track: self.packets.outside(cpu)?, what, facts: Vec::new() }
            }
            Activity::LockWait { cpu } => Slice::new(Track::cpu(cpu), Name::LockWait, Category::Overhead),
            Activity::BottomHalf { cpu, source } => {
                let name = Name::Overhead(OverheadKind::BottomHalf);
                let facts = self.source_facts(source);
                Slice { facts, ..Slice::new(Track::cpu(cpu), name, Category::Interrupt) }
            }
            // Among the overheads: time in which the CPU is occupied and no job gets on.
            Activity::Spinning { cpu, job } => {
                let facts = vec![fact(Fact::Owner, Value::Text(job_name(self.header, job)))];
                Slice { facts, ..Slice::new(Track::cpu(cpu), Name::Spins, Category::Job) }
            }
            // With a name of its own an operation is called by that, and its job is told beside it.
            Activity::Operation { gpu, engine, job, name } => match name.and_then(|name| self.header.operation(name)) {
                Some(name) => Slice {
                    track: Track::engine(gpu, engine),
                    what: What::BeginNamed(name.to_owned(), Category::Gpu),
                    facts: vec![fact(Fact::Owner, Value::Text(job_name(self.header, job)))],
                },
                None => Slice {
                    track: Track::engine(gpu, engine),
                    what: What::BeginNamed(self.task_name(job), Category::Gpu),
                    facts: vec![job_fact(job)],
                },
            },
            Activity::Suspension { job } => return self.on_lane(job, LaneKind::Jobs, |_| Name::Suspended.of_job()),
            Activity::NonPreemptive { job, .. } => {
                return self.on_lane(job, LaneKind::Jobs, |_| Name::NonPreemptive.of_job());
            }
            Activity::AwaitingLock { job, lock } => {
                return self.on_lane(job, LaneKind::LockWaits, |exporter| {
                    let name = exporter.header.locks.get(lock.index()).map_or("", |lock| lock.name.as_str());
                    What::BeginNamed(format!("waits for {name}"), Category::Lock)
                });
            }
            Activity::CriticalSection { job, lock, replica } => Slice {
                track: self.packets.replica(self.header, lock, replica)?,
                what: What::BeginNamed(job_name(self.header, job), Category::Lock),
                facts: vec![job_fact(job)],
            },
            Activity::Inheritance { job, of, level } => {
                let slice = self.on_lane(job, LaneKind::Priority, |exporter| {
                    let name = exporter.header.tasks.get(of.index()).map_or("", |task| task.name.as_str());
                    What::BeginNamed(format!("inherits from {name}"), Category::Lock)
                });
                let facts = vec![job_fact(job), fact(Fact::Level, Value::Unsigned(level))];
                return Ok(slice?.map(|slice| Slice { facts, ..slice }));
            }
        };
        Ok(Some(slice))
    }

    /// A slice on one of the job's tracks: those of each kind have slices that do not overlap.
    fn on_lane(&mut self, job: JobId, kind: LaneKind, what: impl Fn(&Self) -> What) -> io::Result<Option<Slice>> {
        let Some(lane) = self.lane_of(job) else { return Ok(None) };
        let track = self.packets.lane(job.task, lane, kind)?;
        Ok(Some(Slice { track, what: what(self), facts: Vec::new() }))
    }

    fn task_name(&self, job: JobId) -> String {
        self.header.tasks.get(job.task.index()).map(|task| task.name.clone()).unwrap_or_default()
    }
}

impl Name {
    const fn of_job(self) -> What {
        What::Begin(self, Category::Job)
    }
}
