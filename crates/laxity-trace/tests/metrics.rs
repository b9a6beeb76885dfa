//! The metrics of drawn schedules are what a person would read off them.

mod check_reference;

use check_reference::hand::*;
use check_reference::{Setup, UNIT, any_setup, at};
use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadKind, SignedNanos};
use laxity_trace::check::DeadlineCheck;
use laxity_trace::metrics::{JobSummary, Metrics, OverheadUse, WaitCause, measure};
use laxity_trace::{Event, LockInfo, LockKind, Record, Sink, TraceHeader};
use proptest::prelude::*;

const A: JobId = job(0, 0);
const A1: JobId = job(0, 1);
const B: JobId = job(1, 0);
const C: JobId = job(2, 0);

/// Relative deadlines 10, 26 and 9 on two CPUs.
fn header() -> TraceHeader {
    let mut setup = Setup::edf(2, &[(5, 10), (11, 26), (12, 9)], 0);
    setup.tasks[2].wcet = 12;
    setup.header()
}

/// ```text
///        0         1         2
///        0123456789012345678901234567890
///   cpu0 rrscBBrrscAAAA...llA.........t     r s c t overheads, l lock wait, B misses its cache for 3 units at 13
///   cpu1 CCCCCCCCCCCC.BBBBBBBBBBB......
/// ```
fn eventful() -> Vec<Record> {
    trace(&[
        (0, release(B, 26)),
        (0, release(C, 9)),
        (0, ready(C)),
        (0, link(1, C)),
        (0, dispatch(1, C)),
        (0, overhead(0, OverheadKind::Release, 2)),
        (2, ready(B)),
        (2, link(0, B)),
        (2, overhead(0, OverheadKind::Scheduling, 1)),
        (3, overhead(0, OverheadKind::ContextSwitch, 1)),
        (4, dispatch(0, B)),
        (6, release(A, 16)),
        (6, overhead(0, OverheadKind::Release, 2)),
        (8, ready(A)),
        (8, link(0, A)),
        (8, overhead(0, OverheadKind::Scheduling, 1)),
        (9, preempt(0, B)),
        (9, overhead(0, OverheadKind::ContextSwitch, 1)),
        (10, dispatch(0, A)),
        (12, complete(1, C)),
        (12, link(1, B)),
        (12, Event::Ipi { from: CpuId(0), to: CpuId(1), latency: UNIT }),
        (13, dispatch(1, B)),
        (13, cache_delay(1, B, OverheadKind::CacheMigration, 3)),
        (14, suspend(0, A)),
        (17, resume(A)),
        (17, link(0, A)),
        (17, lock_wait(0, 2)),
        (19, dispatch(0, A)),
        (20, complete(0, A)),
        (20, release(A1, 30)),
        (24, complete(1, B)),
        (29, overhead(0, OverheadKind::Tick, 5)),
        (30, Event::End),
    ])
}

fn units(units: u64) -> Nanos {
    Nanos(units * UNIT.0)
}

fn signed(units: i64) -> SignedNanos {
    SignedNanos(units * UNIT.0 as i64)
}

/// A suspends itself for 3 units, and then waits for 2 until its server has a budget.
fn throttled() -> Vec<Record> {
    let replenish = |deadline| Event::Replenish { task: A.task, budget: UNIT, deadline: at(deadline) };
    trace(&[
        (0, release(A, 16)),
        (0, replenish(9)),
        (0, ready(A)),
        (0, dispatch(0, A)),
        (2, suspend(0, A)),
        (5, resume(A)),
        (5, dispatch(0, A)),
        (7, suspend(0, A)),
        (9, replenish(18)),
        (9, resume(A)),
        (9, dispatch(0, A)),
        (10, complete(0, A)),
        (10, Event::End),
    ])
}

#[test]
fn a_wait_for_a_budget_is_no_suspension_with_locks_and_without() {
    let alone = header();
    let mut with_locks = header();
    let kind = LockKind::Resource { order: laxity_model::EngineOrder::Priority };
    with_locks.locks = vec![LockInfo { name: "map".to_owned(), kind, replicas: 1 }];
    for header in [alone, with_locks] {
        let summary = measure(&header, &throttled(), at(10));
        let waits = &summary.tasks[0].waits;
        let told: Vec<_> = waits.iter().map(|wait| (wait.cause, wait.count, wait.total, wait.max)).collect();
        let suspension = (WaitCause::Suspension, 1, units(3), units(3));
        assert_eq!(told, [suspension, (WaitCause::Budget, 1, units(2), units(2))]);
        assert_eq!(summary.tasks[0].jobs.suspensions, 1);
    }
}

#[test]
fn jobs_are_counted_per_task_and_in_total() {
    let summary = measure(&header(), &eventful(), at(30));
    let counts = |jobs: &JobSummary| (jobs.released, jobs.completed, jobs.missed, jobs.preemptions, jobs.migrations);
    assert_eq!(counts(&summary.total), (4, 3, 3, 1, 1));
    assert_eq!(counts(&summary.tasks[0].jobs), (2, 1, 2, 0, 0), "one late, one incomplete");
    assert_eq!(counts(&summary.tasks[1].jobs), (1, 1, 0, 1, 1));
    assert_eq!(counts(&summary.tasks[2].jobs), (1, 1, 1, 0, 0));
    assert_eq!((summary.total.missed_incomplete, summary.total.suspensions), (1, 1));
    assert_eq!((summary.tasks[0].jobs.missed_incomplete, summary.tasks[0].jobs.suspensions), (1, 1));
}

#[test]
fn a_job_whose_deadline_lies_beyond_the_end_is_not_missed() {
    let mut metrics = Metrics::new(&header());
    metrics.record(at(0), release(A, 10));
    assert_eq!(metrics.summary(Instant(at(10).0 - 1)).total.missed, 0);
    assert_eq!(metrics.summary(at(10)).total.missed, 1);
}

#[test]
fn response_time_lateness_tardiness_and_laxity_are_those_of_the_completed_jobs() {
    let summary = measure(&header(), &eventful(), at(30));
    let total = &summary.total;
    let response = total.response_time.expect("three jobs completed");
    // 12, 14 and 24 units.
    assert_eq!((response.min, response.max), (units(12), units(24)));
    assert_eq!(response.mean, Nanos(units(50).0 / 3));
    assert!(response.p50 >= units(14) && response.p50.0 <= units(14).0 * 65 / 64, "{}", response.p50);
    assert_eq!((response.p90, response.p99), (units(24), units(24)), "no percentile exceeds the longest");
    let lateness = total.lateness.expect("three jobs completed");
    // -2, 3 and 4 units.
    assert_eq!((lateness.min, lateness.max), (signed(-2), signed(4)));
    assert_eq!(lateness.mean, SignedNanos(signed(5).0 / 3));
    let tardiness = total.tardiness.expect("three jobs completed");
    assert_eq!((tardiness.mean, tardiness.max), (Nanos(units(7).0 / 3), units(4)));
    assert_eq!((total.laxity_min, total.laxity_min_job), (Some(signed(-4)), None));
    let second = &summary.tasks[1].jobs;
    assert_eq!((second.laxity_min, second.laxity_min_job), (Some(signed(2)), Some(0)));
    assert_eq!(second.tardiness.expect("it completed").max, Nanos::ZERO);
}

/// A log of a program whose jobs have no deadlines says ten years.
#[test]
fn a_job_without_a_deadline_is_neither_early_nor_late() {
    let mut header = header();
    header.tasks[0].deadline = Nanos::LONGEST;
    let never = |job, from: u64| Event::Release { job, deadline: at(from).saturating_add(Nanos::LONGEST) };
    let events = [(0, never(A, 0)), (0, release(B, 26)), (12, complete(0, A)), (20, complete(0, B))];
    let summary = measure(&header, &trace(&events), at(31));
    let [first, second] = [0, 1].map(|task| &summary.tasks[task].jobs);
    assert_eq!((first.completed, first.laxity_min, first.laxity_min_job), (1, None, None));
    assert!(first.lateness.is_none() && first.tardiness.is_none() && first.response_time.is_some());
    assert_eq!((second.laxity_min, second.laxity_min_job), (Some(signed(6)), Some(0)));
    let total = &summary.total;
    assert_eq!((total.completed, total.laxity_min), (2, Some(signed(6))));
    assert_eq!(total.lateness.expect("one had a deadline").mean, signed(-6));
    let is_void = |events: &[(u64, Event)]| {
        let mut check = DeadlineCheck::new(&header);
        trace(events).iter().for_each(|record| check.record(record.at, record.event));
        check.is_void()
    };
    assert!(is_void(&[(0, never(A, 0))]));
    assert!(!is_void(&events), "one has a deadline");
    assert!(!is_void(&[]), "none is late");
}

#[test]
fn of_equally_late_jobs_the_first_is_named() {
    let events = [
        (0, release(A, 10)),
        (10, release(A1, 20)),
        (12, complete(0, A)),
        (20, release(job(0, 2), 30)),
        (22, complete(0, A1)),
        (31, complete(0, job(0, 2))),
    ];
    let jobs = &measure(&header(), &trace(&events), at(31)).tasks[0].jobs;
    assert_eq!((jobs.laxity_min, jobs.laxity_min_job), (Some(signed(-2)), Some(0)));
}

#[test]
fn execution_excludes_overheads_and_includes_cache_delays() {
    let summary = measure(&header(), &eventful(), at(30));
    let execution: Vec<Nanos> = summary.tasks.iter().map(|task| task.jobs.execution).collect();
    assert_eq!(execution, [units(5), units(13), units(12)]);
    assert_eq!(summary.total.execution, units(30));
    assert_eq!((summary.tasks[1].jobs.cache_delay, summary.total.cache_delay), (units(3), units(3)));
}

#[test]
fn the_time_of_every_cpu_is_accounted_for() {
    let summary = measure(&header(), &eventful(), at(30));
    let usage = |count, time| OverheadUse { count, time: units(time) };
    let cpu0 = &summary.cpus[0].usage;
    assert_eq!((cpu0.busy, cpu0.lock_wait, cpu0.idle), (units(7), units(2), units(12)));
    assert_eq!(cpu0.overheads.of(OverheadKind::Release), usage(2, 4));
    assert_eq!(cpu0.overheads.of(OverheadKind::Scheduling), usage(2, 2));
    assert_eq!(cpu0.overheads.of(OverheadKind::ContextSwitch), usage(2, 2));
    assert_eq!(cpu0.overheads.of(OverheadKind::Tick), usage(1, 1), "the end cuts it short");
    assert_eq!(cpu0.overheads.cpu_time(), units(9));
    let cpu1 = &summary.cpus[1].usage;
    assert_eq!((cpu1.busy, cpu1.lock_wait, cpu1.idle), (units(23), units(0), units(7)));
    assert_eq!(cpu1.overheads.of(OverheadKind::IpiLatency), usage(1, 1));
    assert_eq!(cpu1.overheads.of(OverheadKind::CacheMigration), usage(1, 3));
    assert_eq!(cpu1.overheads.cpu_time(), Nanos::ZERO, "neither occupies the CPU beside jobs");
    assert_eq!((summary.machine.busy, summary.machine.idle), (units(30), units(19)));
    assert_eq!(summary.machine.utilization, 0.5);
}

#[test]
fn measuring_can_be_asked_in_between_and_go_on() {
    let (records, mut metrics) = (eventful(), Metrics::new(&header()));
    let (before, after) = records.split_at(20);
    before.iter().for_each(|record| metrics.record(record.at, record.event));
    let early = metrics.summary(at(13));
    assert_eq!((early.total.completed, early.tasks[0].jobs.execution), (1, units(3)), "A runs since 10");
    after.iter().for_each(|record| metrics.record(record.at, record.event));
    assert_eq!(metrics.finish(at(30)), measure(&header(), &records, at(30)));
}

#[test]
fn json_has_stable_names_with_units() {
    let summary = measure(&header(), &eventful(), at(30));
    let json = serde_json::to_value(&summary).expect("a summary is JSON");
    let total = &json["total"];
    for (name, count) in [("released", 4), ("completed", 3), ("missed", 3), ("preemptions", 1), ("migrations", 1)] {
        assert_eq!(total[name], count, "{name}");
    }
    assert_eq!(json["duration_ns"], 30_000_000);
    assert_eq!(total["response_time_ns"]["max"], 24_000_000);
    assert_eq!(total["lateness_ns"]["min"], -2_000_000);
    assert_eq!(total["tardiness_ns"]["max"], 4_000_000);
    assert_eq!(total["laxity_min_ns"], -4_000_000);
    assert_eq!(total["execution_ns"], 30_000_000);
    assert_eq!((&json["tasks"][1]["task"], &json["tasks"][1]["name"]), (&1.into(), &"task1".into()));
    assert_eq!(json["tasks"][1]["migrations"], 1);
    assert_eq!(json["cpus"][0]["overheads"]["release"]["time_ns"], 4_000_000);
    assert_eq!(json["cpus"][1]["idle_ns"], 7_000_000);
    assert_eq!(json["machine"]["utilization"], 0.5);
    let nothing = serde_json::to_value(measure(&header(), &[], at(0))).expect("a summary is JSON");
    assert!(nothing["total"]["response_time_ns"].is_null() && nothing["total"]["laxity_min_ns"].is_null());
}

#[test]
fn what_the_header_does_not_know_is_not_counted() {
    let strange = job(9, 0);
    let events = [
        (u64::MAX / UNIT.0, release(strange, 3)),
        (0, dispatch(7, A)),
        (0, dispatch(0, strange)),
        (1, preempt(0, A)),
        (2, complete(1, A)),
        (3, overhead(7, OverheadKind::Tick, 1)),
        (4, release(A1, 20)),
        (5, release(A1, 20)),
    ];
    let summary = measure(&header(), &trace(&events), at(9));
    assert_eq!((summary.total.released, summary.total.completed, summary.total.preemptions), (1, 0, 0));
}

/// The same by a scan over the records for each job.
fn naive(records: &[Record], job: JobId, end: u64) -> (u64, Option<u64>, u64, u64, bool) {
    let mut deadline = 0;
    let (mut completion, mut preemptions, mut migrations, mut last) = (None, 0, 0, None);
    let mut execution = 0;
    let mut since = 0;
    for record in records {
        let now = record.at.0;
        match record.event {
            Event::Release { job: released, deadline: due } if released == job => deadline = due.0,
            Event::Dispatch { cpu, job: dispatched } if dispatched == job => {
                migrations += u64::from(last.is_some_and(|last| last != cpu));
                last = Some(cpu);
                since = now;
            }
            Event::Preempt { job: preempted, .. } if preempted == job => {
                preemptions += 1;
                execution += now - since;
            }
            Event::Complete { job: completed, .. } if completed == job => {
                completion = Some(now);
                execution += now - since;
            }
            _ => {}
        }
    }
    let missed = completion.map_or(deadline <= end, |completion| completion > deadline);
    (execution, completion, preemptions, migrations, missed)
}

proptest! {
    #[test]
    fn totals_are_those_of_a_scan_over_the_jobs(setup in any_setup()) {
        let (header, records) = (setup.header(), setup.schedule());
        let end = at(setup.horizon);
        let summary = measure(&header, &records, end);
        for (index, task) in summary.tasks.iter().enumerate() {
            let jobs: Vec<(JobId, u64)> = records
                .iter()
                .filter_map(|record| match record.event {
                    Event::Release { job, deadline } if job.task.index() == index => Some((job, deadline.0)),
                    _ => None,
                })
                .collect();
            let scans: Vec<_> = jobs.iter().map(|&(job, _)| naive(&records, job, end.0)).collect();
            let completions = || jobs.iter().zip(&scans).filter_map(|(&(_, due), scan)| scan.1.map(|at| (due, at)));
            let lateness = completions().map(|(due, at)| at as i64 - due as i64);
            let response = completions().map(|(due, at)| at + header.tasks[index].deadline.0 - due);
            prop_assert_eq!(task.jobs.released, jobs.len() as u64);
            prop_assert_eq!(task.jobs.completed, completions().count() as u64);
            prop_assert_eq!(task.jobs.missed, scans.iter().filter(|scan| scan.4).count() as u64);
            let finished = scans.iter().filter(|scan| scan.1.is_some());
            prop_assert!(task.jobs.execution.0 >= finished.map(|scan| scan.0).sum::<u64>());
            prop_assert_eq!(task.jobs.preemptions, scans.iter().map(|scan| scan.2).sum::<u64>());
            prop_assert_eq!(task.jobs.migrations, scans.iter().map(|scan| scan.3).sum::<u64>());
            prop_assert_eq!(task.jobs.lateness.map(|lateness| lateness.max.0), lateness.clone().max());
            prop_assert_eq!(task.jobs.lateness.map(|lateness| lateness.min.0), lateness.min());
            prop_assert_eq!(task.jobs.response_time.map(|response| response.max.0), response.clone().max());
            prop_assert_eq!(task.jobs.response_time.map(|response| response.min.0), response.min());
        }
        let available = setup.horizon * UNIT.0 * u64::from(setup.cpus());
        prop_assert_eq!(summary.machine.busy.0 + summary.machine.idle.0, available);
        prop_assert_eq!(summary.machine.busy, summary.total.execution);
    }
}
