//! What `check` says of one system in several places agrees: verdicts, bounds, and by how much execution times may grow.
//!
//! For a campaign, `LAXITY_SYSTEMS=1000 cargo test -p laxity-tests --test verdicts -- --nocapture`; `LAXITY_FIRST_SEED` says where
//! to begin, `LAXITY_FEATURE` names one feature.

use laxity_analysis::Limits;
use laxity_analysis::check::{Criterion, Options, Report, Status, check};
use laxity_model::{Scheduler, SignedNanos, Workload};
use laxity_tests::features::Feature;
use laxity_tests::judge::checked;
use laxity_tune::{Part, scaled};

/// The value of an environment variable, or what it is without one.
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number of systems"))
}

/// Systems of all features, of loads of which nothing, something and all is proven; and what they are.
fn systems(default: u64) -> impl Iterator<Item = (Workload, Scheduler, String)> {
    let is_wanted =
        |feature: &Feature| std::env::var("LAXITY_FEATURE").map_or(true, |name| format!("{feature:?}") == name);
    let (first, count) = (number("LAXITY_FIRST_SEED", 0), number("LAXITY_SYSTEMS", default));
    let system = |feature: Feature, seed: u64| {
        let (workload, scheduler) = feature.system(seed);
        let permille = 100 << (seed % 5);
        (scaled(&workload, permille, Part::All), scheduler, format!("{feature:?}, seed {seed}, {scheduler}"))
    };
    let features = Feature::ALL.into_iter().filter(is_wanted);
    features.flat_map(move |feature| (first..first + count).map(move |seed| system(feature, seed)))
}

/// What is analysed of them.
fn analysed(default: u64) -> impl Iterator<Item = (Workload, Scheduler, String, Report)> {
    systems(default).filter_map(|(workload, scheduler, context)| {
        let report = checked(&workload, &scheduler);
        report.refusals.is_empty().then_some((workload, scheduler, context, report))
    })
}

#[test]
fn execution_times_may_grow_exactly_where_the_verdict_is_proven() {
    // Of fewer steps than by default: where tests give up, the answers agree, too.
    let limits = Limits { steps: 200_000, points: 20_000, ..Limits::default() };
    let (mut proven, mut open) = (0, 0);
    for (workload, scheduler, context, _) in analysed(20) {
        for criterion in [Criterion::Hard, Criterion::Soft] {
            let report = check(&workload, &scheduler, &Options { criterion, limits, ..Options::default() });
            let is_proven = report.finding(criterion).is_schedulable();
            let growth = report.scaling.as_ref().and_then(|scaling| scaling.permille);
            assert_eq!(growth >= Some(1_000), is_proven, "{context}, {criterion:?}: {growth:?}");
            if is_proven { proven += 1 } else { open += 1 }
        }
    }
    eprintln!("{proven} proven, {open} not");
    assert!(proven.min(open) > 20, "{proven} proven, {open} not: too few to tell");
}

#[test]
fn bounds_within_deadlines_are_proven_deadlines_and_others_have_a_reason() {
    for (_, _, context, report) in analysed(60) {
        let is_in_time = |task: &usize| report.tasks[*task].laxity.is_some_and(|laxity| laxity >= SignedNanos(0));
        for cluster in report.clusters.iter().filter(|cluster| cluster.tasks.iter().all(is_in_time)) {
            assert!(cluster.hard.is_schedulable(), "{context}: {:?}", cluster.hard);
        }
        for (index, cluster) in report.clusters.iter().enumerate() {
            let is_told = cluster.hard.failures.iter().any(|failure| failure.cluster == index);
            assert!(
                cluster.hard.status != Status::NotProven || is_told,
                "{context}, cluster {index}: {:?}",
                cluster.hard
            );
        }
    }
}
