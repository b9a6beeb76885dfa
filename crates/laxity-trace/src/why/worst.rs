//! Which jobs are worth explaining.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use laxity_model::{Instant, JobId, Nanos, SignedNanos, TaskId};

use crate::replay::{Change, Replay};
use crate::{Event, Record, TraceHeader};

/// A job that may be worth explaining.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The job.
    pub job: JobId,
    /// Completion, or the end of the trace, minus deadline.
    pub lateness: SignedNanos,
    /// Completion, or the end of the trace, minus arrival.
    pub time: Nanos,
    /// Whether it completed.
    pub completed: bool,
}

/// The jobs that `wanted` says yes to, the latest first: by lateness, then by job. Jobs that are pending at the end are
/// among them only if they missed their deadlines; jobs that have none of their own are not.
pub fn worst(header: &TraceHeader, records: &[Record], wanted: impl Fn(JobId) -> bool) -> Vec<Candidate> {
    let mut replay = Replay::of_jobs_and_cpus(header);
    let mut end = Instant::ZERO;
    let mut candidates = Vec::new();
    let is_wanted = |job: JobId| !header.lacks_deadlines(job.task) && wanted(job);
    let candidate = |job, at: Instant, arrival: Instant, deadline: Instant, completed| Candidate {
        job,
        lateness: at.signed_since(deadline),
        time: at.saturating_since(arrival),
        completed,
    };
    for &Record { at, event } in records {
        end = end.max(at);
        let change = replay.apply(at, event);
        if let (Event::Complete { job, .. }, Change::Completed { job: Some(done), .. }) = (event, change)
            && is_wanted(job)
        {
            candidates.push(candidate(job, at, done.arrival, done.deadline, true));
        }
    }
    for (number, (task, info)) in replay.tasks().iter().zip(&header.tasks).enumerate() {
        for (index, deadline) in task.pending().iter() {
            let job = JobId { task: TaskId(number as u32), index };
            let arrival = Instant(deadline.0.saturating_sub(info.deadline.0));
            if is_wanted(job) && deadline <= end {
                candidates.push(candidate(job, end, arrival, deadline, false));
            }
        }
    }
    candidates.sort_by_key(|candidate| (Reverse(candidate.lateness), candidate.job));
    candidates
}

/// The `count` jobs of `task`, or of all tasks, that most need a reason: the latest, or those with the longest responses if
/// `by_response`; where no job has a deadline of its own, those that took longest.
pub fn worth_explaining(
    header: &TraceHeader,
    records: &[Record],
    task: Option<TaskId>,
    by_response: bool,
    count: usize,
) -> Vec<JobId> {
    let mut all = (0..header.tasks.len() as u32).map(TaskId).filter(|&each| task.is_none_or(|task| task == each));
    let is_wanted = |job: JobId| task.is_none_or(|task| job.task == task);
    if all.all(|each| header.lacks_deadlines(each)) {
        return longest(records, is_wanted).into_iter().take(count).collect();
    }
    let mut candidates = worst(header, records, is_wanted);
    if by_response {
        candidates.sort_by_key(|candidate| (Reverse(candidate.time), candidate.job));
    }
    candidates.into_iter().take(count).map(|candidate| candidate.job).collect()
}

/// The jobs that `wanted` says yes to, the ones that took longest first; those that are pending at the end took the time until
/// then.
fn longest(records: &[Record], wanted: impl Fn(JobId) -> bool) -> Vec<JobId> {
    let end = records.iter().map(|record| record.at).max().unwrap_or_default();
    let mut released = BTreeMap::new();
    let mut jobs = Vec::new();
    for &Record { at, event } in records {
        match event {
            Event::Release { job, .. } if wanted(job) => {
                released.insert(job, at);
            }
            Event::Complete { job, .. } => {
                jobs.extend(released.remove(&job).map(|release| (Reverse(at.saturating_since(release)), job)));
            }
            _ => {}
        }
    }
    jobs.extend(released.into_iter().map(|(job, release)| (Reverse(end.saturating_since(release)), job)));
    jobs.sort();
    jobs.into_iter().map(|(_, job)| job).collect()
}
