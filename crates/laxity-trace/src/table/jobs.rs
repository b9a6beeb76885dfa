//! One row per job.

use serde::Serialize;

use super::{Row, task_name};
use crate::intervals::{Timeline, TrackError};
use crate::{Record, TraceHeader};

/// How a job fared. Times are in ns since the start of the trace, spans in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct JobRow<'a> {
    /// The task's number.
    pub task: u32,
    /// The task's name.
    pub task_name: &'a str,
    /// Which job of the task; the first is 0.
    pub job: u32,
    /// When it became eligible to run; null if the trace begins later.
    pub release_ns: Option<u64>,
    /// When it arrived: release minus jitter.
    pub arrival_ns: Option<u64>,
    /// Its absolute deadline.
    pub deadline_ns: Option<u64>,
    /// When it completed; null if it was pending when the trace ended.
    pub completion_ns: Option<u64>,
    /// Completion minus arrival.
    pub response_time_ns: Option<u64>,
    /// Completion minus deadline, negative where early.
    pub lateness_ns: Option<i64>,
    /// Lateness where positive, else 0.
    pub tardiness_ns: Option<u64>,
    /// Times it was switched out though it could go on.
    pub preemptions: u32,
    /// Dispatches on another CPU than the one where it last executed.
    pub migrations: u32,
    /// Time it executed, cache refills included, overheads not.
    pub executed_ns: u64,
    /// Whether it completed after its deadline, or was incomplete when the trace ended, no earlier than its deadline.
    pub missed: bool,
}

impl Row for JobRow<'_> {
    const TABLE: &'static str = "jobs";
    const COLUMNS: &'static [&'static str] = &[
        "task",
        "task_name",
        "job",
        "release_ns",
        "arrival_ns",
        "deadline_ns",
        "completion_ns",
        "response_time_ns",
        "lateness_ns",
        "tardiness_ns",
        "preemptions",
        "migrations",
        "executed_ns",
        "missed",
    ];
}

/// Every job of the trace, ordered by release.
///
/// Errors: [`TrackError`].
pub fn jobs<'a>(header: &'a TraceHeader, records: &[Record]) -> Result<Vec<JobRow<'a>>, TrackError> {
    let timeline = Timeline::of(header, records)?;
    let row = |history: &crate::intervals::JobHistory| JobRow {
        task: history.job.task.0,
        task_name: task_name(header, history.job.task),
        job: history.job.index,
        release_ns: history.released.map(|released| released.release.0),
        arrival_ns: history.released.map(|released| released.arrival.0),
        deadline_ns: history.released.map(|released| released.deadline.0),
        completion_ns: history.completion().map(|at| at.0),
        response_time_ns: history.response_time().map(|span| span.0),
        lateness_ns: history.lateness().map(|span| span.0),
        tardiness_ns: history.tardiness().map(|span| span.0),
        preemptions: history.preemptions,
        migrations: history.migrations,
        executed_ns: history.executed.0,
        missed: history.is_missed(timeline.end),
    };
    Ok(timeline.jobs.iter().map(row).collect())
}
