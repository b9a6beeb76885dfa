//! From the history of a soft GPU to a trace.

use std::collections::BTreeMap;

use laxity_model::{CpuId, GpuId, Instant, JobId, Nanos, Scheduler, TaskId};
use laxity_sys::scheduling;
use laxity_trace::{DeviceId, DeviceInfo, Event, GpuInfo, Origin, Record, TaskInfo, TaskKind, TraceHeader};

use crate::client::SoftGpu;
use crate::error::GpuError;
use crate::server::history::{Entry, What};

/// What the engines of a soft GPU did, for all processes. Each stream is a task, which no CPU executes. Its operations
/// are for the jobs that its owner stated ([`Stream::set_job`](crate::Stream::set_job)); without a statement, each is a
/// job. A task has its stream's name, with the stream's number if several have that name. The name of the workload says
/// that the GPU is soft. An interrupt's CPU is the one on which the server raised it. Times count from the first
/// record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The beginning of the trace.
    pub header: TraceHeader,
    /// The records. The last is `End` unless entries are missing.
    pub records: Vec<Record>,
    /// Entries that were forgotten before they were read.
    pub lost: u64,
}

impl SoftGpu {
    /// What the engines did last.
    ///
    /// # Errors
    /// [`GpuError::Gone`], [`GpuError::Inside`].
    pub fn trace(&self) -> Result<Trace, GpuError> {
        let (lost, entries) = self.entries()?;
        let mut tasks: BTreeMap<u32, TaskId> = BTreeMap::new();
        for entry in &entries {
            let next = TaskId(tasks.len() as u32);
            tasks.entry(entry.stream).or_insert(next);
        }
        let mut names = BTreeMap::new();
        for &stream in tasks.keys() {
            names.insert(stream, self.stream_name(stream)?);
        }
        let mut infos: Vec<_> = tasks.iter().map(|(&stream, &id)| task(full_name(stream, &names), id)).collect();
        infos.sort_by_key(|info| info.rank);
        Ok(Trace { header: self.header(infos), records: records(&entries, &tasks, lost == 0), lost })
    }

    /// How many entries are forgotten, and the others.
    fn entries(&self) -> Result<(u64, Vec<Entry>), GpuError> {
        let (mut entries, mut next, mut lost) = (Vec::new(), 0, 0);
        loop {
            let (first, some) = self.history(next)?;
            if some.is_empty() {
                return Ok((lost, entries));
            }
            if first > next {
                // Entries before a gap are of no use: a trace has no gaps.
                entries.clear();
                lost = first;
            }
            next = first + some.len() as u64;
            entries.extend(some);
        }
    }

    fn header(&self, tasks: Vec<TaskInfo>) -> TraceHeader {
        let name = format!("soft GPU {}", self.name());
        TraceHeader {
            tasks,
            gpus: vec![GpuInfo { name: name.clone(), cluster: 0, copy_engines: self.config().copy_engines }],
            devices: vec![DeviceInfo { name: name.clone() }],
            ..TraceHeader::new(Origin::Live, &name, scheduling::cpus(), Scheduler::GLOBAL_EDF)
        }
    }
}

/// A name that no other stream has.
fn full_name(stream: u32, names: &BTreeMap<u32, String>) -> String {
    let name = &names[&stream];
    match names.values().filter(|&other| other == name).count() {
        _ if name.is_empty() => format!("stream {stream}"),
        1 => name.clone(),
        _ => format!("{name}/{stream}"),
    }
}

fn task(name: String, task: TaskId) -> TaskInfo {
    // The owner states none.
    let unknown = Nanos::ZERO;
    TaskInfo { name, period: unknown, deadline: unknown, wcet: unknown, cluster: 0, rank: task.0, kind: TaskKind::Task }
}

fn records(entries: &[Entry], tasks: &BTreeMap<u32, TaskId>, is_whole: bool) -> Vec<Record> {
    let origin = entries.first().map_or(Instant::ZERO, |entry| entry.at);
    let (gpu, device) = (GpuId(0), DeviceId(0));
    // An operation that began before the first entry has no begin record, so its end is left out.
    let mut is_busy = [false; 3];
    let mut records = Vec::new();
    for entry in entries {
        let engine = entry.engine;
        let job = JobId { task: tasks[&entry.stream], index: entry.job.unwrap_or(entry.index) };
        let busy = &mut is_busy[engine.index()];
        let event = match entry.what {
            What::Began => {
                *busy = true;
                Event::EngineBegin { gpu, engine, job }
            }
            What::Ended if std::mem::take(busy) => Event::EngineEnd { gpu, engine, job },
            What::Interrupted => Event::Interrupt { cpu: CpuId(entry.cpu), device, job: Some(job) },
            What::Issued | What::Ended => continue,
        };
        records.push(Record { at: Instant(entry.at.saturating_since(origin).0), event });
    }
    if is_whole {
        let at = records.last().map_or(Instant::ZERO, |record| record.at);
        records.push(Record { at, event: Event::End });
    }
    records
}
