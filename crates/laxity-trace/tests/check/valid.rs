//! Correct schedules pass every checker, and a correct schedule with one fault does not.

use std::collections::{BTreeMap, BTreeSet};

use super::check_reference::strange::any_records;
use super::check_reference::{Setup, UNIT, any_setup, at};
use laxity_model::{CpuId, Instant, JobId, Nanos, PriorityRule, Quanta};
use laxity_trace::check::{self, Problem};
use laxity_trace::metrics::measure;
use laxity_trace::{Event, Record};
use proptest::prelude::*;

/// The first record of a kind, to begin a fault with.
fn position(records: &[Record], wanted: impl Fn(&Event) -> bool) -> Option<usize> {
    records.iter().position(|record| wanted(&record.event))
}

/// The jobs that run after each instant, wherever they do.
fn running_sets(records: &[Record]) -> BTreeMap<Instant, BTreeSet<JobId>> {
    let mut running = BTreeSet::new();
    let mut sets = BTreeMap::new();
    for record in records {
        match record.event {
            Event::Dispatch { job, .. } => running.insert(job),
            Event::Preempt { job, .. } | Event::Complete { job, .. } => running.remove(&job),
            _ => continue,
        };
        sets.insert(record.at, running.clone());
    }
    sets
}

proptest! {
    #[test]
    fn the_reference_schedule_is_legal_and_follows_its_policy(setup in any_setup()) {
        let (header, records) = (setup.header(), setup.schedule());
        let legality = check::legality(&header, &records, |job| Some(setup.cost(job)));
        prop_assert!(legality.is_clean(), "{legality}");
        let policy = check::policy(&header, &records);
        prop_assert!(policy.is_clean(), "{policy}");
    }

    #[test]
    fn deadline_violations_are_those_of_a_scan_over_the_jobs(setup in any_setup()) {
        let (header, records) = (setup.header(), setup.schedule());
        let mut missed = 0;
        for record in &records {
            let Event::Release { job, deadline } = record.event else { continue };
            let completed = records.iter().find(|record| matches!(record.event, Event::Complete { job: done, .. } if done == job));
            missed += u64::from(completed.map_or(deadline <= at(setup.horizon), |record| record.at > deadline));
        }
        prop_assert_eq!(check::deadlines(&header, &records).count(), missed);
    }

    #[test]
    fn a_schedule_of_one_rule_is_caught_under_the_other_unless_the_same_jobs_run(setup in any_setup()) {
        // Fixed ranks are in reverse of the tie order: with a queue, the orders soon differ. (With staggered quanta the
        // jobs' CPUs matter too.)
        let setup = Setup { rule: PriorityRule::Given, quanta: Quanta::Aligned, ..setup };
        let (mut header, records) = (setup.header(), setup.schedule());
        header.scheduler.rule = PriorityRule::Edf;
        let other = Setup { rule: PriorityRule::Edf, ..setup };
        let differs = running_sets(&records) != running_sets(&other.schedule());
        prop_assert_eq!(!check::policy(&header, &records).is_clean(), differs);
    }

    #[test]
    fn a_job_whose_cost_is_off_by_a_nanosecond_is_caught(setup in any_setup()) {
        let (header, records) = (setup.header(), setup.schedule());
        let completions = records.iter().filter(|record| matches!(record.event, Event::Complete { .. })).count();
        let more = check::legality(&header, &records, |job| setup.cost(job).checked_add(Nanos(1)));
        prop_assert_eq!(more.count(), completions as u64);
        let all_wrong = more.violations.iter().all(|found| matches!(found.what, Problem::WrongExecution { .. }));
        prop_assert!(all_wrong, "{more}");
    }

    #[test]
    fn losing_a_record_that_ends_or_begins_a_stint_is_illegal(setup in any_setup(), which in any::<prop::sample::Index>()) {
        let (header, records) = (setup.header(), setup.schedule());
        let vital: Vec<usize> = (0..records.len())
            .filter(|&index| matches!(records[index].event, Event::Dispatch { .. } | Event::Preempt { .. } | Event::Ready { .. }))
            // Records lost at the very end go unnoticed.
            .filter(|&index| {
                let job = match records[index].event {
                    Event::Dispatch { job, .. } | Event::Preempt { job, .. } | Event::Ready { job, .. } => job,
                    _ => unreachable!("filtered"),
                };
                records[index + 1..].iter().any(|later| matches!(later.event, Event::Complete { job: done, .. } if done == job))
            })
            .collect();
        prop_assume!(!vital.is_empty());
        let mut damaged = records.clone();
        damaged.remove(vital[which.index(vital.len())]);
        prop_assert!(!check::legality(&header, &damaged, |job| Some(setup.cost(job))).is_clean());
    }
}

proptest! {
    #[test]
    fn no_records_make_a_checker_or_the_metrics_panic(setup in any_setup(), records in any_records(), sorted: bool) {
        let (mut header, mut records) = (setup.header(), records);
        if sorted {
            records.sort_by_key(|record| record.at);
        }
        header.quantum = Nanos(header.quantum.0 % 7);
        header.costs.tick = Nanos(records.len() as u64 % 2);
        check::legality(&header, &records, |_| Some(Nanos(u64::MAX)));
        check::policy(&header, &records);
        check::deadlines(&header, &records);
        measure(&header, &records, Instant::NEVER);
        measure(&header, &records, Instant::ZERO);
    }
}

#[test]
fn a_late_link_is_caught_even_if_nothing_else_happens_at_its_instant() {
    // T0 and T1 on two CPUs; T1's link and dispatch come a unit too late.
    let setup = Setup::edf(2, &[(2, 10), (3, 20)], 9);
    let (header, mut records) = (setup.header(), setup.schedule());
    assert!(check::policy(&header, &records).is_clean());
    let late = position(&records, |event| matches!(event, Event::Link { cpu: CpuId(1), .. })).expect("T1 is linked");
    for record in &mut records[late..late + 2] {
        record.at += UNIT;
    }
    let report = check::policy(&header, &records);
    assert_eq!(report.to_string(), "at 0 ms cpu1 runs nothing while T1.0 (deadline 20 ms) is ready and unlinked\n");
}
