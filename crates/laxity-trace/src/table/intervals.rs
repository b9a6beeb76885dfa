//! One row per interval.

use serde::Serialize;

use super::{Owner, Row, task_name};
use crate::intervals::{Activity, Begin, Interval, Stop, Timeline, TrackError};
use crate::{Record, TraceHeader};

/// Something that lasted. Columns that do not apply to it are null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
pub struct IntervalRow<'a> {
    /// When it began, in ns since the start of the trace.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
    /// How long it lasted.
    pub duration_ns: u64,
    /// What it was: `execution`, `suspension`, `non_preemptive`, `lock_wait` (for the scheduler's lock), `bottom_half`,
    /// `spinning`, `throttled`, `stolen` (the CPU, from all threads), `outside` (other threads and interrupts), `operation` (on
    /// an engine), `awaiting_lock`, `critical_section`, `inheritance`, or the name of an overhead.
    pub activity: &'static str,
    /// Where.
    pub cpu: Option<u16>,
    /// The number of the job's task.
    pub task: Option<u32>,
    /// The name of the job's task.
    pub task_name: Option<&'a str>,
    /// Which job of the task; the first is 0.
    pub job: Option<u32>,
    /// How an execution began: `first`, `again`, `migrated`, `after_overhead`, `after_spinning`.
    pub begin: Option<&'static str>,
    /// Why an execution stopped: `overhead`, `spinning`, `preempted`, `suspended`, `completed`, `trace_ended`.
    pub stop: Option<&'static str>,
    /// Where a job that migrated had executed before.
    pub migrated_from_cpu: Option<u16>,
    /// The number of the GPU.
    pub gpu: Option<u16>,
    /// Its engine: `EE`, `CE0`, `CE1`.
    pub engine: Option<&'static str>,
    /// The number of the device whose interrupt is handled.
    pub device: Option<u16>,
    /// The number of the lock awaited or held.
    pub lock: Option<u16>,
    /// The replica held.
    pub replica: Option<u16>,
    /// The job on whose behalf an interrupt is handled; null where it is anonymous or not known.
    pub owner: Option<Owner<'a>>,
    /// The priority inherited: an absolute deadline in ns under EDF, a rank plus 1 under fixed priorities.
    pub level: Option<u64>,
    /// The number of the task whose priority that is.
    pub of_task: Option<u32>,
    /// The name of the operation on the engine, where the trace has names.
    pub operation: Option<&'a str>,
    /// What had the CPU outside the tasks: `thread`, `interrupt`, `soft_interrupt`.
    pub kind: Option<&'static str>,
    /// Its name.
    pub outsider: Option<&'a str>,
    /// The number of that thread in Linux.
    pub thread: Option<u32>,
}

impl Row for IntervalRow<'_> {
    const TABLE: &'static str = "intervals";
    const COLUMNS: &'static [&'static str] = &[
        "from_ns",
        "to_ns",
        "duration_ns",
        "activity",
        "cpu",
        "task",
        "task_name",
        "job",
        "begin",
        "stop",
        "migrated_from_cpu",
        "gpu",
        "engine",
        "device",
        "lock",
        "replica",
        "owner",
        "level",
        "of_task",
        "operation",
        "kind",
        "outsider",
        "thread",
    ];
}

/// Every interval of the trace, ordered by its beginning.
///
/// Errors: [`TrackError`].
pub fn intervals<'a>(header: &'a TraceHeader, records: &[Record]) -> Result<Vec<IntervalRow<'a>>, TrackError> {
    let timeline = Timeline::of(header, records)?;
    Ok(timeline.intervals.iter().map(|interval| row(header, interval)).collect())
}

fn row<'a>(header: &'a TraceHeader, interval: &Interval) -> IntervalRow<'a> {
    let activity = interval.activity;
    let (job, source) = (activity.job(), activity.source());
    let row = IntervalRow {
        from_ns: interval.from.0,
        to_ns: interval.to.0,
        duration_ns: interval.duration().0,
        activity: activity.name(),
        cpu: activity.cpu().map(|cpu| cpu.0),
        task: job.map(|job| job.task.0),
        task_name: job.map(|job| task_name(header, job.task)),
        job: job.map(|job| job.index),
        device: source.map(|source| source.device.0),
        owner: source.and_then(|source| source.owner).map(|owner| Owner::of(header, owner)),
        ..IntervalRow::default()
    };
    match activity {
        Activity::Execution { begin, end, .. } => IntervalRow {
            begin: Some(begin_name(begin)),
            stop: Some(stop_name(end)),
            migrated_from_cpu: match begin {
                Begin::Migrated { from } => Some(from.0),
                _ => None,
            },
            ..row
        },
        Activity::Operation { gpu, engine, name, .. } => IntervalRow {
            gpu: Some(gpu.0),
            engine: Some(engine.name()),
            operation: name.and_then(|name| header.operation(name)),
            ..row
        },
        Activity::AwaitingLock { lock, .. } => IntervalRow { lock: Some(lock.0), ..row },
        Activity::CriticalSection { lock, replica, .. } => {
            IntervalRow { lock: Some(lock.0), replica: Some(replica.0), ..row }
        }
        Activity::Inheritance { of, level, .. } => IntervalRow { level: Some(level), of_task: Some(of.0), ..row },
        Activity::Throttled { task, .. } => {
            IntervalRow { task: task.map(|task| task.0), task_name: task.map(|task| task_name(header, task)), ..row }
        }
        Activity::Outside { by, .. } => {
            let info = header.outsiders.get(usize::from(by.number));
            IntervalRow {
                kind: Some(by.kind.name()),
                outsider: info.map(|info| info.name.as_str()),
                thread: info.and_then(|info| info.thread),
                ..row
            }
        }
        Activity::Overhead { .. }
        | Activity::LockWait { .. }
        | Activity::BottomHalf { .. }
        | Activity::Stolen { .. }
        | Activity::Spinning { .. }
        | Activity::Suspension { .. }
        | Activity::NonPreemptive { .. } => row,
    }
}

fn begin_name(begin: Begin) -> &'static str {
    match begin {
        Begin::First => "first",
        Begin::Again => "again",
        Begin::Migrated { .. } => "migrated",
        Begin::AfterOverhead => "after_overhead",
        Begin::AfterSpinning => "after_spinning",
    }
}

fn stop_name(stop: Stop) -> &'static str {
    match stop {
        Stop::Overhead => "overhead",
        Stop::Spinning => "spinning",
        Stop::Preempted => "preempted",
        Stop::Suspended => "suspended",
        Stop::Completed => "completed",
        Stop::TraceEnded => "trace_ended",
    }
}
