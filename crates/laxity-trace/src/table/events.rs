//! One row per record.

use laxity_model::{CpuId, JobId, LockId, Nanos, OverheadKind, ReplicaId, TaskId};
use serde::Serialize;

use super::{Owner, Row, task_name};
use crate::{DeviceId, Event, Outsider, Record, TraceHeader};

/// An event. Columns that do not apply to it are null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
pub struct EventRow<'a> {
    /// When, in ns since the start of the trace.
    pub at_ns: u64,
    /// Which: `release`, `ready`, `link`, `dispatch`, `preempt`, `suspend`, `resume`, `complete`,
    /// `non_preemptive_begin`, `non_preemptive_end`, `overhead`, `lock_wait`, `cache_delay`, `ipi`, `engine_begin`,
    /// `engine_end`, `interrupt`, `bottom_half_begin`, `bottom_half_end`, `serve`, `request`, `grant`, `unlock`,
    /// `withdraw`, `priority`, `produce`, `consume`, `spin_begin`, `spin_end`, `replenish`, `end`.
    pub event: &'static str,
    /// Where; the sender of an inter-processor interrupt; where a device's interrupt is routed to.
    pub cpu: Option<u16>,
    /// The receiver of an inter-processor interrupt.
    pub to_cpu: Option<u16>,
    /// The number of the job's task.
    pub task: Option<u32>,
    /// The name of the job's task.
    pub task_name: Option<&'a str>,
    /// Which job of the task; the first is 0.
    pub job: Option<u32>,
    /// The released job's absolute deadline, or that of a replenished server; null of a job that has none: a best-effort one, or a
    /// program's.
    pub deadline_ns: Option<u64>,
    /// The source of an overhead or cache-related delay.
    pub kind: Option<&'static str>,
    /// How long an overhead, lock wait or cache-related delay lasts, or an inter-processor interrupt is on its way; the
    /// budget of a replenished server.
    pub duration_ns: Option<u64>,
    /// The number of the GPU.
    pub gpu: Option<u16>,
    /// Its engine: `EE`, `CE0`, `CE1`.
    pub engine: Option<&'static str>,
    /// The number of the device that raised an interrupt.
    pub device: Option<u16>,
    /// The number of the lock.
    pub lock: Option<u16>,
    /// The replica granted or unlocked.
    pub replica: Option<u16>,
    /// The job on whose behalf an interrupt is handled; null where it is anonymous.
    pub owner: Option<Owner<'a>>,
    /// The number of the graph's edge.
    pub edge: Option<u32>,
    /// How many tokens were put on the edge or taken from it.
    pub tokens: Option<u32>,
    /// The effective priority from now on: an absolute deadline in ns under EDF, a rank plus 1 under fixed priorities.
    pub level: Option<u64>,
    /// The number of the task whose priority that is.
    pub of_task: Option<u32>,
    /// The name of the operation on the engine, where the trace has names.
    pub operation: Option<&'a str>,
    /// The name of the thread that is no task, or of the interrupt; `kind` says which: `thread`, `interrupt`,
    /// `soft_interrupt`.
    pub outsider: Option<&'a str>,
    /// The number of that thread in Linux.
    pub thread: Option<u32>,
}

impl Row for EventRow<'_> {
    const TABLE: &'static str = "events";
    const COLUMNS: &'static [&'static str] = &[
        "at_ns",
        "event",
        "cpu",
        "to_cpu",
        "task",
        "task_name",
        "job",
        "deadline_ns",
        "kind",
        "duration_ns",
        "gpu",
        "engine",
        "device",
        "lock",
        "replica",
        "owner",
        "edge",
        "tokens",
        "level",
        "of_task",
        "operation",
        "outsider",
        "thread",
    ];
}

/// Every record of the trace, in order. Tasks that the header does not know have an empty name.
pub fn events<'a>(header: &'a TraceHeader, records: &'a [Record]) -> impl Iterator<Item = EventRow<'a>> {
    records.iter().map(move |record| row(header, record))
}

fn row<'a>(header: &'a TraceHeader, record: &Record) -> EventRow<'a> {
    let base = |event| EventRow { at_ns: record.at.0, event, ..EventRow::default() };
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
    let of_lock = |event, job, lock: LockId| EventRow { lock: Some(lock.0), ..of_job(event, job) };
    let of_replica =
        |event, job, lock, replica: ReplicaId| EventRow { replica: Some(replica.0), ..of_lock(event, job, lock) };
    let handles = |row: EventRow<'a>, device: DeviceId, owner: Option<JobId>| EventRow {
        device: Some(device.0),
        owner: owner.map(|owner| Owner::of(header, owner)),
        ..row
    };
    let of_cpu = |event, cpu: CpuId| EventRow { cpu: Some(cpu.0), ..base(event) };
    let of_task = |row: EventRow<'a>, task: Option<TaskId>| EventRow {
        task: task.map(|task| task.0),
        task_name: task.map(|task| task_name(header, task)),
        ..row
    };
    let of_outsider = |row: EventRow<'a>, by: Option<Outsider>| {
        let info = by.and_then(|by| header.outsiders.get(usize::from(by.number)));
        EventRow {
            kind: by.map(|by| by.kind.name()),
            outsider: info.map(|info| info.name.as_str()),
            thread: info.and_then(|info| info.thread),
            ..row
        }
    };
    match record.event {
        Event::Release { job, deadline } => {
            let deadline = Some(deadline.0).filter(|_| !header.has_made_up_deadlines(job.task));
            EventRow { deadline_ns: deadline, ..of_job("release", job) }
        }
        Event::Ready { job, cpu } => on("ready", cpu, job),
        Event::Link { cpu, job: Some(job) } => on("link", cpu, job),
        Event::Link { cpu, job: None } => of_cpu("link", cpu),
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
        Event::EngineBegin { gpu, engine, job } => {
            EventRow { gpu: Some(gpu.0), engine: Some(engine.name()), ..of_job("engine_begin", job) }
        }
        Event::EngineEnd { gpu, engine, job } => {
            EventRow { gpu: Some(gpu.0), engine: Some(engine.name()), ..of_job("engine_end", job) }
        }
        Event::Interrupt { cpu, device, job } => handles(of_cpu("interrupt", cpu), device, job),
        Event::BottomHalfBegin { cpu, device, job } => handles(of_cpu("bottom_half_begin", cpu), device, job),
        Event::BottomHalfEnd { cpu, device, job } => handles(of_cpu("bottom_half_end", cpu), device, job),
        Event::Serve { thread, device, job } => handles(of_job("serve", thread), device, job),
        Event::Request { job, lock } => of_lock("request", job, lock),
        Event::Grant { job, lock, replica } => of_replica("grant", job, lock, replica),
        Event::Unlock { job, lock, replica } => of_replica("unlock", job, lock, replica),
        Event::Withdraw { job, lock } => of_lock("withdraw", job, lock),
        Event::Priority { job, level, of } => {
            EventRow { level: Some(level), of_task: Some(of.0), ..of_job("priority", job) }
        }
        Event::Produce { job, edge, tokens } => {
            EventRow { edge: Some(edge.0), tokens: Some(tokens), ..of_job("produce", job) }
        }
        Event::Consume { job, edge, tokens } => {
            EventRow { edge: Some(edge.0), tokens: Some(tokens), ..of_job("consume", job) }
        }
        Event::Read { job, edge, value } => {
            EventRow { edge: Some(edge.0), level: value.map(u64::from), ..of_job("read", job) }
        }
        Event::SpinBegin { cpu, job } => on("spin_begin", cpu, job),
        Event::SpinEnd { cpu, job } => on("spin_end", cpu, job),
        Event::Replenish { task, budget, deadline } => EventRow {
            task: Some(task.0),
            task_name: Some(task_name(header, task)),
            deadline_ns: Some(deadline.0),
            duration_ns: Some(budget.0),
            ..base("replenish")
        },
        Event::Regulate { cpu, budget } => EventRow { level: budget, ..of_cpu("regulate", cpu) },
        Event::Throttle { cpu, task } => of_task(of_cpu("throttle", cpu), task),
        Event::Unthrottle { cpu, task, lost } => {
            EventRow { duration_ns: Some(lost.0), ..of_task(of_cpu("unthrottle", cpu), task) }
        }
        Event::EngineRate { gpu, engine, rate } => {
            EventRow { gpu: Some(gpu.0), engine: Some(engine.name()), level: Some(rate), ..base("engine_rate") }
        }
        Event::EngineOperation { gpu, engine, name } => EventRow {
            gpu: Some(gpu.0),
            engine: Some(engine.name()),
            operation: header.operation(name),
            ..base("engine_operation")
        },
        Event::Stolen { cpu, duration } => EventRow { duration_ns: Some(duration.0), ..of_cpu("stolen", cpu) },
        Event::Outside { cpu, by } => of_outsider(of_cpu("outside", cpu), by),
        Event::OutsiderName { outsider, .. } => of_outsider(base("outsider_name"), Some(outsider)),
        Event::OutsiderThread { outsider, .. } => of_outsider(base("outsider_thread"), Some(outsider)),
        Event::OutsidersLost { cpu, records } => EventRow { level: Some(records), ..of_cpu("outsiders_lost", cpu) },
        Event::End => base("end"),
    }
}
