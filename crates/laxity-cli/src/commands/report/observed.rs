//! What a trace shows of each task and graph: response times, and what they were spent with.

use std::collections::BTreeMap;

use laxity_model::{Instant, Nanos};
use laxity_trace::intervals::TrackError;
use laxity_trace::metrics::{EndToEndLatencies, Metrics, Summary};
use laxity_trace::why::{Account, Blame, Explainer, Part};
use laxity_trace::{Record, Sink, TraceHeader};

/// A schedule that was simulated or recorded.
pub struct Observed {
    /// What it is called beside the others: `simulated`, `live`, or the name of its file.
    pub label: String,
    /// How it came to be.
    pub how: String,
    /// Why proven bounds are not about it, if there are any.
    pub unbounded: Option<String>,
    pub header: TraceHeader,
    pub records: Vec<Record>,
    pub summary: Summary,
    /// The tasks and nodes that have deadlines, by `TaskId`; others have no jobs here.
    pub tasks: Vec<TaskTimes>,
    /// End-to-end latencies of each graph, sorted.
    pub graphs: Vec<Vec<Nanos>>,
}

/// The jobs of a task.
#[derive(Default)]
pub struct TaskTimes {
    /// The response times of the jobs that completed, sorted.
    pub times: Vec<Nanos>,
    /// What all of them were spent with.
    spent: BTreeMap<Blame, u128>,
    /// The latest job.
    pub latest: Option<Account>,
}

impl Observed {
    /// Measures and explains all jobs.
    ///
    /// Errors: [`TrackError`], for records that do not belong to the header.
    pub fn new(label: &str, how: String, header: TraceHeader, records: Vec<Record>) -> Result<Observed, TrackError> {
        let mut tasks: Vec<TaskTimes> = header.tasks.iter().map(|_| TaskTimes::default()).collect();
        let has_deadlines = |index: usize| header.tasks[index].kind.has_deadlines();
        let mut explainer = Explainer::new(&header, |job| has_deadlines(job.task.index()));
        let (mut metrics, mut latencies) = (Metrics::new(&header), EndToEndLatencies::new(&header));
        let mut end = Instant::ZERO;
        for record in &records {
            metrics.record(record.at, record.event);
            latencies.record(record.at, record.event);
            end = end.max(record.at);
            if let Some(account) = explainer.follow(record)? {
                tasks[account.job.task.index()].add(account);
            }
        }
        for account in explainer.finish() {
            tasks[account.job.task.index()].note_pending(account);
        }
        tasks.iter_mut().for_each(|task| task.times.sort_unstable());
        let mut graphs: Vec<Vec<Nanos>> = header.graphs.iter().map(|_| Vec::new()).collect();
        latencies.finish().iter().for_each(|found| graphs[found.graph].push(found.latency));
        graphs.iter_mut().for_each(|latencies| latencies.sort_unstable());
        let summary = metrics.finish(end);
        Ok(Observed { label: label.to_owned(), how, unbounded: None, header, records, summary, tasks, graphs })
    }

    /// The latest job of each task, the one that used most of its relative deadline first.
    pub fn latest(&self) -> Vec<&Account> {
        let mut latest: Vec<&Account> = self.tasks.iter().filter_map(|task| task.latest.as_ref()).collect();
        let used = |account: &Account| {
            let deadline = account.deadline.saturating_since(account.arrival).0.max(1);
            u128::from(account.time().0) * 1_000_000 / u128::from(deadline)
        };
        latest.sort_by_key(|account| (std::cmp::Reverse(used(account)), account.job));
        latest
    }
}

impl TaskTimes {
    fn add(&mut self, account: Account) {
        self.times.push(account.time());
        for Part { blame, time, .. } in account.parts() {
            *self.spent.entry(blame).or_default() += u128::from(time.0);
        }
        self.note(account);
    }

    /// A job that is pending at the end is late, or it tells nothing yet.
    fn note_pending(&mut self, account: Account) {
        if account.lateness().0 > 0 {
            self.note(account);
        }
    }

    fn note(&mut self, account: Account) {
        if self.latest.as_ref().is_none_or(|latest| latest.lateness() < account.lateness()) {
            self.latest = Some(account);
        }
    }

    /// What the mean job was spent with, in nanoseconds.
    pub fn mean(&self) -> impl Iterator<Item = (Blame, u64)> + '_ {
        let jobs = (self.times.len() as u128).max(1);
        self.spent.iter().map(move |(&blame, &time)| (blame, (time / jobs) as u64))
    }
}

/// The value that so many percent do not exceed; `times` are sorted.
pub fn percentile(times: &[Nanos], percent: usize) -> Option<Nanos> {
    let rank = (times.len() * percent).div_ceil(100).max(1);
    times.get(rank - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let times: Vec<Nanos> = (1..=200).map(Nanos).collect();
        assert_eq!(percentile(&times, 50), Some(Nanos(100)));
        assert_eq!(percentile(&times, 99), Some(Nanos(198)));
        assert_eq!(percentile(&times[..1], 99), Some(Nanos(1)));
        assert_eq!(percentile(&[], 99), None);
    }
}
