//! `check` and the simulator on the same workload: the largest load that is proven, and whether observations keep to it.

use laxity_analysis::check::{Criterion, Options, Report, check};
use laxity_model::{Instant, Nanos, Scheduler, Workload};
use laxity_trace::metrics::{Summary, measure};
use laxity_trace::{Event, Record};
use laxity_tune::{Part, scaled};

use crate::simulate;
use crate::systems::UNIT;

/// What `check` says of it, safely accounted.
pub fn checked(workload: &Workload, scheduler: &Scheduler) -> Report {
    check(workload, scheduler, &Options { scaling: false, ..Options::default() })
}

/// The largest of some scales of `workload` for which `criterion` is proven, and the report.
pub fn just_proven(workload: &Workload, scheduler: &Scheduler, criterion: Criterion) -> Option<(Workload, Report)> {
    let (mut low, mut high, mut best) = (0, 6_000, None);
    while high - low > low / 50 + 5 {
        let middle = (low + high) / 2;
        let scaled = scaled(workload, middle, Part::All);
        let report = checked(&scaled, scheduler);
        // The shorter the steps, the less of them is between a resource and the bandwidth lock, which may then be refused.
        let may_be_refused = workload.gpu_management.bandwidth_lock.is_some();
        assert!(may_be_refused || report.refusals.is_empty(), "{:?}", report.refusals);
        if report.finding(criterion).is_schedulable() {
            (low, best) = (middle, Some((scaled, report)));
        } else {
            high = middle;
        }
    }
    best
}

/// Simulates 150 ms, and a little more: jobs that wait are complete at multiples of [`UNIT`], and one that is due just when the
/// simulation ends would be late if it has nothing left but an instant.
pub fn observe(workload: &Workload, scheduler: &Scheduler, seed: u64) -> (Summary, Vec<Record>) {
    let end = Instant(1_500 * UNIT + UNIT / 8);
    let (header, records) = simulate(workload, scheduler, end, seed);
    (measure(&header, &records, end), records)
}

/// Panics if an observation of `workload`, whatever its tasks' arrivals, exceeds what `report` promises.
pub fn compare(report: &Report, workload: &Workload, (summary, records): &(Summary, Vec<Record>), context: &str) {
    for (task, observed) in report.tasks.iter().zip(&summary.tasks) {
        let (Some(bound), Some(tardiness)) = (task.response_time, task.tardiness) else { continue };
        let response = observed.jobs.response_time.map_or(Nanos::ZERO, |times| times.max);
        let late = observed.jobs.tardiness.map_or(Nanos::ZERO, |tardiness| tardiness.max);
        assert!(late <= tardiness, "{context}: {} is {late} late, at most {tardiness}", task.name);
        assert!(response <= bound.time, "{context}: {} responds in {response}, {bound:?}", task.name);
    }
    if report.hard.is_schedulable() {
        let missed: u64 = summary.tasks[..report.tasks.len()].iter().map(|task| task.jobs.missed).sum();
        assert_eq!(missed, 0, "{context}: accepted by {:?}", report.hard.tests);
    }
    // What is bounded of a node is counted from the n-th of its periods after the first source of its graph arrives.
    for (graph, bounds) in workload.graphs.iter().zip(&report.graphs) {
        let sources = graph.nodes.iter().filter(|node| node.period.is_some());
        let origin = sources.map(|node| node.phase).min().unwrap_or(Nanos::ZERO);
        let seen = summary.graphs.iter().find(|seen| seen.name == graph.name).and_then(|seen| seen.end_to_end);
        if let (Some(bound), Some(seen)) = (bounds.end_to_end, seen) {
            assert!(seen.max <= bound, "{context}: {} takes {} from end to end, at most {bound}", graph.name, seen.max);
        }
        for node in bounds.nodes.iter().flatten() {
            for record in records {
                if let Event::Complete { job, .. } = record.event
                    && job.task.index() == node.task
                {
                    // Early releases let it complete before that.
                    let begins = origin.0 + u64::from(job.index) * report.tasks[node.task].period.0;
                    let after = Nanos(record.at.0.saturating_sub(begins));
                    assert!(after <= node.completion, "{context}: {job:?} completes {after} of {}", node.completion);
                }
            }
        }
    }
}
