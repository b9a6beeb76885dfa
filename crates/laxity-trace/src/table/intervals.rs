//! One row per interval.

use serde::Serialize;

use super::{Row, task_name};
use crate::intervals::{Activity, Begin, Interval, Stop, Timeline, TrackError};
use crate::{Record, TraceHeader};

/// Something that lasted. What does not apply to it is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct IntervalRow<'a> {
    /// When it began, in ns since the start of the trace.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
    /// How long it lasted.
    pub duration_ns: u64,
    /// What it was: `execution`, `suspension`, `non_preemptive`, `lock_wait`, or the name of an overhead.
    pub activity: &'static str,
    /// Where.
    pub cpu: Option<u16>,
    /// The number of the job's task.
    pub task: Option<u32>,
    /// The name of the job's task.
    pub task_name: Option<&'a str>,
    /// Which job of the task; the first is 0.
    pub job: Option<u32>,
    /// How an execution began: `first`, `again`, `migrated`, `after_overhead`.
    pub begin: Option<&'static str>,
    /// Why an execution stopped: `overhead`, `preempted`, `suspended`, `completed`, `trace_ended`.
    pub stop: Option<&'static str>,
    /// Where a job that migrated had executed before.
    pub migrated_from_cpu: Option<u16>,
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
    let job = interval.activity.job();
    let (begin, stop) = match interval.activity {
        Activity::Execution { begin, end, .. } => (Some(begin), Some(end)),
        _ => (None, None),
    };
    IntervalRow {
        from_ns: interval.from.0,
        to_ns: interval.to.0,
        duration_ns: interval.duration().0,
        activity: interval.activity.name(),
        cpu: interval.activity.cpu().map(|cpu| cpu.0),
        task: job.map(|job| job.task.0),
        task_name: job.map(|job| task_name(header, job.task)),
        job: job.map(|job| job.index),
        begin: begin.map(begin_name),
        stop: stop.map(stop_name),
        migrated_from_cpu: match begin {
            Some(Begin::Migrated { from }) => Some(from.0),
            _ => None,
        },
    }
}

fn begin_name(begin: Begin) -> &'static str {
    match begin {
        Begin::First => "first",
        Begin::Again => "again",
        Begin::Migrated { .. } => "migrated",
        Begin::AfterOverhead => "after_overhead",
    }
}

fn stop_name(stop: Stop) -> &'static str {
    match stop {
        Stop::Overhead => "overhead",
        Stop::Preempted => "preempted",
        Stop::Suspended => "suspended",
        Stop::Completed => "completed",
        Stop::TraceEnded => "trace_ended",
    }
}
