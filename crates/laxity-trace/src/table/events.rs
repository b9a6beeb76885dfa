//! One row per record.

use laxity_model::{CpuId, JobId, Nanos, OverheadKind};
use serde::Serialize;

use super::{Row, task_name};
use crate::{Event, Record, TraceHeader};

/// An event. What does not apply to it is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct EventRow<'a> {
    /// When, in ns since the start of the trace.
    pub at_ns: u64,
    /// Which: `release`, `ready`, `link`, `dispatch`, `preempt`, `suspend`, `resume`, `complete`,
    /// `non_preemptive_begin`, `non_preemptive_end`, `overhead`, `lock_wait`, `cache_delay`, `ipi`, `end`.
    pub event: &'static str,
    /// Where; the sender of an inter-processor interrupt.
    pub cpu: Option<u16>,
    /// The receiver of an inter-processor interrupt.
    pub to_cpu: Option<u16>,
    /// The number of the job's task.
    pub task: Option<u32>,
    /// The name of the job's task.
    pub task_name: Option<&'a str>,
    /// Which job of the task; the first is 0.
    pub job: Option<u32>,
    /// The released job's absolute deadline.
    pub deadline_ns: Option<u64>,
    /// The source of an overhead or cache-related delay.
    pub kind: Option<&'static str>,
    /// How long an overhead, lock wait or cache-related delay lasts, or an interrupt is on its way.
    pub duration_ns: Option<u64>,
}

impl Row for EventRow<'_> {
    const TABLE: &'static str = "events";
    const COLUMNS: &'static [&'static str] =
        &["at_ns", "event", "cpu", "to_cpu", "task", "task_name", "job", "deadline_ns", "kind", "duration_ns"];
}

/// Every record of the trace, in order. Tasks that the header does not know have an empty name.
pub fn events<'a>(header: &'a TraceHeader, records: &'a [Record]) -> impl Iterator<Item = EventRow<'a>> {
    records.iter().map(move |record| row(header, record))
}

fn row<'a>(header: &'a TraceHeader, record: &Record) -> EventRow<'a> {
    let base = |event| EventRow {
        at_ns: record.at.0,
        event,
        cpu: None,
        to_cpu: None,
        task: None,
        task_name: None,
        job: None,
        deadline_ns: None,
        kind: None,
        duration_ns: None,
    };
    let of_job = |event, job: JobId| EventRow {
        task: Some(job.task.0),
        task_name: Some(task_name(header, job.task)),
        job: Some(job.index),
        ..base(event)
    };
    let on = |event, cpu: CpuId, job| EventRow { cpu: Some(cpu.0), ..of_job(event, job) };
    let lasts = |row: EventRow<'a>, cpu: CpuId, kind: Option<OverheadKind>, duration: Nanos| EventRow {
        cpu: Some(cpu.0),
        kind: kind.map(OverheadKind::name),
        duration_ns: Some(duration.0),
        ..row
    };
    match record.event {
        Event::Release { job, deadline } => EventRow { deadline_ns: Some(deadline.0), ..of_job("release", job) },
        Event::Ready { job, cpu } => on("ready", cpu, job),
        Event::Link { cpu, job: Some(job) } => on("link", cpu, job),
        Event::Link { cpu, job: None } => EventRow { cpu: Some(cpu.0), ..base("link") },
        Event::Dispatch { cpu, job } => on("dispatch", cpu, job),
        Event::Preempt { cpu, job } => on("preempt", cpu, job),
        Event::Suspend { cpu, job } => on("suspend", cpu, job),
        Event::Resume { cpu, job } => on("resume", cpu, job),
        Event::Complete { cpu, job } => on("complete", cpu, job),
        Event::NonPreemptiveBegin { cpu, job } => on("non_preemptive_begin", cpu, job),
        Event::NonPreemptiveEnd { cpu, job } => on("non_preemptive_end", cpu, job),
        Event::Overhead { cpu, kind, duration } => lasts(base("overhead"), cpu, Some(kind), duration),
        Event::LockWait { cpu, duration } => lasts(base("lock_wait"), cpu, None, duration),
        Event::CacheDelay { cpu, job, kind, duration } => lasts(of_job("cache_delay", job), cpu, Some(kind), duration),
        Event::Ipi { from, to, latency } => EventRow { to_cpu: Some(to.0), ..lasts(base("ipi"), from, None, latency) },
        Event::EngineBegin { job, .. } => of_job("engine_begin", job),
        Event::EngineEnd { job, .. } => of_job("engine_end", job),
        Event::Interrupt { cpu, .. } => EventRow { cpu: Some(cpu.0), ..base("interrupt") },
        Event::BottomHalfBegin { cpu, .. } => EventRow { cpu: Some(cpu.0), ..base("bottom_half_begin") },
        Event::BottomHalfEnd { cpu, .. } => EventRow { cpu: Some(cpu.0), ..base("bottom_half_end") },
        Event::Serve { thread, .. } => of_job("serve", thread),
        Event::Request { job, .. } => of_job("request", job),
        Event::Grant { job, .. } => of_job("grant", job),
        Event::Unlock { job, .. } => of_job("unlock", job),
        Event::Withdraw { job, .. } => of_job("withdraw", job),
        Event::Priority { job, .. } => of_job("priority", job),
        Event::Produce { job, .. } => of_job("produce", job),
        Event::Consume { job, .. } => of_job("consume", job),
        Event::SpinBegin { cpu, job } => on("spin_begin", cpu, job),
        Event::SpinEnd { cpu, job } => on("spin_end", cpu, job),
        Event::Replenish { .. } => base("replenish"),
        Event::End => base("end"),
    }
}
