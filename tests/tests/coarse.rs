//! `check`, the simulator and the judges of traces where all times are multiples of one, so that waits end, jobs arrive, budgets come
//! back and quanta begin at the same instants, which random nanoseconds never show.
//!
//! For a campaign, `LAXITY_SYSTEMS=10000 cargo test -p laxity-tests --test coarse -- --nocapture`; `LAXITY_FIRST_SEED` says
//! where to begin, `LAXITY_FEATURE` names one feature.

use std::fmt::Debug;

use laxity_analysis::check::Criterion;
use laxity_model::{Instant, Nanos, Scheduler, Workload};
use laxity_tests::coarse::rounded;
use laxity_tests::features::{Feature, urgent_last};
use laxity_tests::fixed_priority::{self, EMPHASES};
use laxity_tests::judge::{checked, compare, just_proven, observe};
use laxity_tests::simulate;
use laxity_tests::systems::{UNIT, patterns};
use laxity_trace::check;

/// The value of an environment variable, or what it is without one.
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number of systems"))
}

fn features() -> impl Iterator<Item = Feature> {
    let is_wanted =
        |feature: &Feature| std::env::var("LAXITY_FEATURE").map_or(true, |name| format!("{feature:?}") == name);
    Feature::ALL.into_iter().filter(is_wanted)
}

fn seeds() -> std::ops::Range<u64> {
    let first = number("LAXITY_FIRST_SEED", 0);
    first..first + number("LAXITY_SYSTEMS", 60)
}

/// What times are multiples of.
fn grain(seed: u64) -> Nanos {
    Nanos([UNIT / 4, UNIT, 5 * UNIT][(seed % 3) as usize])
}

/// What the failed system is, with its file.
fn context(kind: impl Debug, seed: u64, pattern: &Workload, scheduler: &Scheduler) -> String {
    format!("{kind:?}, seed {seed}, {scheduler}\n{}", pattern.to_toml())
}

#[test]
fn every_schedule_is_legal_and_follows_its_policy() {
    let end = Instant(2_000 * UNIT);
    for feature in features() {
        let mut judged = 0;
        for seed in seeds() {
            let (workload, scheduler) = feature.system(seed);
            let workload = rounded(&workload, grain(seed));
            if feature.may_be_refused() && !checked(&workload, &scheduler).refusals.is_empty() {
                continue;
            }
            judged += 1;
            let (header, records) = simulate(&workload, &scheduler, end, seed);
            for report in [check::legality(&header, &records, |_| None), check::policy(&header, &records)] {
                let context = context(feature, seed, &workload, &scheduler);
                assert!(report.violations.is_empty(), "{context}: {:?}", report.violations);
            }
        }
        assert!(judged > seeds().count() / 4, "{feature:?}: {judged} systems are too few to tell");
    }
}

#[test]
fn no_job_exceeds_what_is_proven() {
    for feature in features() {
        let mut proven = 0;
        for seed in seeds() {
            proven += usize::from(judge(feature, seed));
        }
        eprintln!("{feature:?}: {proven} of {}", seeds().count());
        assert!(proven > seeds().count() / 16, "{feature:?}: {proven} systems are too few to tell");
    }
}

/// A job holds what another waits for while the bottom half of its operation, which it did not wait for, runs in its place.
#[test]
fn bottom_halves_of_earlier_operations_delay_those_that_wait_for_a_section() {
    assert!(judge(Feature::SharedThreads, 1_393));
}

#[test]
fn no_job_of_one_cpu_exceeds_what_is_proven() {
    for emphasis in EMPHASES {
        let proven =
            seeds().filter(|&seed| exceeds_nothing(emphasis, fixed_priority::system(emphasis, seed), seed)).count();
        eprintln!("{emphasis:?}: {proven} of {}", seeds().count());
        assert!(proven > seeds().count() / 8, "{emphasis:?}: {proven} systems are too few to tell");
    }
}

fn judge(feature: Feature, seed: u64) -> bool {
    let (workload, scheduler) = feature.system(seed);
    let is_analysed = !feature.may_be_refused() || checked(&workload, &scheduler).refusals.is_empty();
    is_analysed && exceeds_nothing(feature, (workload, scheduler), seed)
}

/// Simulates a system near the largest scale that is proven, rounded; whether anything is proven of it then.
fn exceeds_nothing(kind: impl Debug, (workload, scheduler): (Workload, Scheduler), seed: u64) -> bool {
    let criterion = if seed.is_multiple_of(2) { Criterion::Soft } else { Criterion::Hard };
    let Some((workload, _)) = just_proven(&workload, &scheduler, criterion) else { return false };
    let workload = rounded(&workload, grain(seed));
    let report = checked(&workload, &scheduler);
    if !report.refusals.is_empty() || report.tasks.iter().all(|task| task.response_time.is_none()) {
        return false;
    }
    let mut arrivals = patterns(&workload, seed);
    arrivals.push(urgent_last(&workload, seed));
    let coarse: Vec<Workload> = arrivals.iter().map(|pattern| rounded(pattern, grain(seed))).collect();
    arrivals.extend(coarse);
    for pattern in &arrivals {
        let seen = observe(pattern, &scheduler, seed);
        compare(&report, pattern, &seen, &context(&kind, seed, pattern, &scheduler));
    }
    true
}
