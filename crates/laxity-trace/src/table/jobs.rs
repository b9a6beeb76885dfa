//! One row per job.

use std::collections::BTreeMap;

use laxity_model::{JobId, Nanos};
use serde::Serialize;

use super::{Owner, Row, task_name};
use crate::intervals::{Activity, JobHistory, Timeline, TrackError};
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
    /// Its absolute deadline; null of a best-effort job, which has none.
    pub deadline_ns: Option<u64>,
    /// When it completed; null if it was pending when the trace ended.
    pub completion_ns: Option<u64>,
    /// Completion minus arrival.
    pub response_time_ns: Option<u64>,
    /// Completion minus deadline, negative where early; null without a deadline.
    pub lateness_ns: Option<i64>,
    /// Lateness where positive, else 0; null without a deadline.
    pub tardiness_ns: Option<u64>,
    /// Times it was switched out though it could go on.
    pub preemptions: u32,
    /// Dispatches on another CPU than the one where it last executed.
    pub migrations: u32,
    /// Time it executed, cache refills included, overheads not.
    pub executed_ns: u64,
    /// Whether it completed after its deadline, or was incomplete when the trace ended, no earlier than its deadline.
    pub missed: bool,
    /// Time it had a CPU and waited by spinning.
    pub spinning_ns: u64,
    /// Time it waited for locks, suspended, spinning or preempted; a wait inside another counts twice.
    pub awaiting_locks_ns: u64,
    /// Time it had a priority that it inherited.
    pub inheriting_ns: u64,
    /// Time its operations occupied engines; two at once count twice.
    pub operations_ns: u64,
    /// Time bottom halves on its behalf took from other jobs, on their CPUs' stacks. Interrupt threads are jobs with
    /// rows of their own, and name their owner.
    pub bottom_halves_ns: u64,
    /// Of a job of an interrupt thread: the job on whose behalf it ran; null where that is anonymous.
    pub owner: Option<Owner<'a>>,
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
        "spinning_ns",
        "awaiting_locks_ns",
        "inheriting_ns",
        "operations_ns",
        "bottom_halves_ns",
        "owner",
    ];
}

/// Every job of the trace, ordered by release.
///
/// Errors: [`TrackError`].
pub fn jobs<'a>(header: &'a TraceHeader, records: &[Record]) -> Result<Vec<JobRow<'a>>, TrackError> {
    let timeline = Timeline::of(header, records)?;
    let totals = totals(&timeline);
    let row = |history: &JobHistory| {
        let total = totals.get(&history.job).copied().unwrap_or_default();
        let source = timeline.served.get(&history.job);
        let has_deadline = !header.has_made_up_deadlines(history.job.task);
        JobRow {
            task: history.job.task.0,
            task_name: task_name(header, history.job.task),
            job: history.job.index,
            release_ns: history.released.map(|released| released.release.0),
            arrival_ns: history.released.map(|released| released.arrival.0),
            deadline_ns: history.released.filter(|_| has_deadline).map(|released| released.deadline.0),
            completion_ns: history.completion().map(|at| at.0),
            response_time_ns: history.response_time().map(|span| span.0),
            lateness_ns: history.lateness().filter(|_| has_deadline).map(|span| span.0),
            tardiness_ns: history.tardiness().filter(|_| has_deadline).map(|span| span.0),
            preemptions: history.preemptions,
            migrations: history.migrations,
            executed_ns: history.executed.0,
            missed: history.is_missed(timeline.end),
            spinning_ns: total.spinning.0,
            awaiting_locks_ns: total.awaiting_locks.0,
            inheriting_ns: total.inheriting.0,
            operations_ns: total.operations.0,
            bottom_halves_ns: total.bottom_halves.0,
            owner: source.and_then(|source| source.owner).map(|owner| Owner::of(header, owner)),
        }
    };
    Ok(timeline.jobs.iter().map(row).collect())
}

/// What the intervals of a job add up to.
#[derive(Clone, Copy, Default)]
struct Totals {
    spinning: Nanos,
    awaiting_locks: Nanos,
    inheriting: Nanos,
    operations: Nanos,
    bottom_halves: Nanos,
}

fn totals(timeline: &Timeline) -> BTreeMap<JobId, Totals> {
    let mut totals: BTreeMap<JobId, Totals> = BTreeMap::new();
    for interval in &timeline.intervals {
        let owner = interval.activity.source().and_then(|source| source.owner);
        let Some(job) = interval.activity.job().or(owner) else { continue };
        let total = totals.entry(job).or_default();
        let sum = match interval.activity {
            Activity::Spinning { .. } => &mut total.spinning,
            Activity::AwaitingLock { .. } => &mut total.awaiting_locks,
            Activity::Inheritance { .. } => &mut total.inheriting,
            Activity::Operation { .. } => &mut total.operations,
            Activity::BottomHalf { .. } => &mut total.bottom_halves,
            _ => continue,
        };
        *sum = Nanos(sum.0.saturating_add(interval.duration().0));
    }
    totals
}
