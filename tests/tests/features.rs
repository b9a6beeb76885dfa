//! `check` against the simulator, feature by feature: no simulated job exceeds what is proven, and how far the bounds lie
//! above the worst that was seen. And the judges of traces against it: they find nothing wrong.
//!
//! A run judges a few hundred systems a feature. For a campaign, `LAXITY_SYSTEMS=10000 cargo test -p laxity-tests --test
//! features -- --nocapture`; `LAXITY_FIRST_SEED` says where to
//! begin, `LAXITY_FEATURE` names one.

use laxity_analysis::check::Criterion;
use laxity_model::{Instant, Nanos, Scheduler, Workload};
use laxity_tests::features::{Feature, urgent_last};
use laxity_tests::judge::{checked, compare, just_proven, observe};
use laxity_tests::servers::outrunning;
use laxity_tests::simulate;
use laxity_tests::systems::{UNIT, patterns};
use laxity_trace::check;
use laxity_trace::metrics::measure;

/// The value of an environment variable, or what it is without one.
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number of systems"))
}

fn is_wanted(feature: &Feature) -> bool {
    std::env::var("LAXITY_FEATURE").map_or(true, |name| format!("{feature:?}") == name)
}

/// What was found about the systems of a feature.
#[derive(Default)]
struct Tightness {
    proven: usize,
    /// Of each task: its bound in thousandths of the worst response that was seen.
    permille: Vec<u64>,
    /// The same of the latency of each graph from end to end.
    latencies: Vec<u64>,
}

impl Tightness {
    fn at(&self, percent: usize) -> f64 {
        Self::share(&self.permille, percent)
    }

    fn share(permille: &[u64], percent: usize) -> f64 {
        let mut sorted = permille.to_vec();
        sorted.sort_unstable();
        let at = (sorted.len().saturating_sub(1)) * percent / 100;
        sorted.get(at).map_or(f64::NAN, |&permille| permille as f64 / 1_000.0)
    }
}

/// By what the system of a seed is judged: deadlines, or tardiness that is bounded.
fn judged_by(seed: u64) -> Criterion {
    if seed.is_multiple_of(3) { Criterion::Soft } else { Criterion::Hard }
}

/// Simulates the largest scale of a system that is proven.
fn judge(feature: Feature, seed: u64, tightness: &mut Tightness) {
    let (workload, scheduler) = feature.system(seed);
    if feature.may_be_refused() && !checked(&workload, &scheduler).refusals.is_empty() {
        return;
    }
    let Some((workload, report)) = just_proven(&workload, &scheduler, judged_by(seed)) else { return };
    tightness.proven += 1;
    let mut worst = vec![0; report.tasks.len()];
    let mut longest = vec![0; report.graphs.len()];
    let mut arrivals = patterns(&workload, seed);
    arrivals.extend([seed, !seed].map(|seed| urgent_last(&workload, seed)));
    for (number, pattern) in arrivals.iter().enumerate() {
        let context = context(feature, seed, number, &workload, &scheduler);
        let seen = observe(pattern, &scheduler, seed);
        compare(&report, pattern, &seen, &context);
        for (longest, graph) in longest.iter_mut().zip(&seen.0.graphs) {
            *longest = graph.end_to_end.map_or(0, |times| times.max.0).max(*longest);
        }
        for (worst, task) in worst.iter_mut().zip(&seen.0.tasks) {
            *worst = task.jobs.response_time.map_or(0, |times| times.max.0).max(*worst);
        }
    }
    for (graph, &longest) in report.graphs.iter().zip(&longest).filter(|&(_, &longest)| longest > 0) {
        tightness.latencies.extend(graph.end_to_end.map(|bound| bound.0.saturating_mul(1_000) / longest));
    }
    for (task, &worst) in report.tasks.iter().zip(&worst).filter(|&(_, &worst)| worst > 0) {
        if let Some(bound) = task.response_time {
            tightness.permille.push(bound.time.0.saturating_mul(1_000) / worst);
        }
    }
}

fn context(feature: Feature, seed: u64, pattern: usize, workload: &Workload, scheduler: &Scheduler) -> String {
    let management = &workload.gpu_management;
    let (arbitration, handling) = (management.arbitration, management.handling);
    format!("{feature:?}, seed {seed}, pattern {pattern}, {scheduler}, {arbitration:?}, {handling:?}")
}

#[test]
fn no_job_exceeds_what_is_proven_whatever_the_feature() {
    let (first, count) = (number("LAXITY_FIRST_SEED", 0), number("LAXITY_SYSTEMS", 150));
    eprintln!("bound / worst simulated  proven            median     p90");
    for feature in Feature::ALL.into_iter().filter(is_wanted) {
        let mut proven = 0;
        for criterion in [Criterion::Hard, Criterion::Soft] {
            let seeds: Vec<u64> = (first..first + count).filter(|&seed| judged_by(seed) == criterion).collect();
            let mut tightness = Tightness::default();
            seeds.iter().for_each(|&seed| judge(feature, seed, &mut tightness));
            let (median, p90, name) =
                (tightness.at(50), tightness.at(90), format!("{feature:?}, {}", criterion.name()));
            eprintln!("{name:<24} {:>5} of {:<5} {median:>8.2} {p90:>7.2}", tightness.proven, seeds.len());
            if !tightness.latencies.is_empty() {
                let [median, p90] = [50, 90].map(|percent| Tightness::share(&tightness.latencies, percent));
                let graphs = tightness.latencies.len();
                eprintln!("{:<24} {graphs:>5} graphs   {median:>8.2} {p90:>7.2}", "    from end to end");
            }
            proven += tightness.proven as u64;
        }
        assert!(proven > count / 4, "{feature:?}: {proven} systems are too few to tell");
    }
}

/// A source that waits for tokens, and then for its period: once called complete too early.
#[test]
fn no_job_exceeds_what_is_proven_where_a_source_waits() {
    let mut tightness = Tightness::default();
    judge(Feature::Rates, 600_525, &mut tightness);
    assert_eq!(tightness.proven, 1);
}

/// Whatever the jobs of a server need: those of others respond within their bounds.
#[test]
fn no_job_exceeds_what_is_proven_beside_servers_that_need_more_than_they_have() {
    let (first, count) = (number("LAXITY_FIRST_SEED", 0), number("LAXITY_SYSTEMS", 600));
    eprintln!("bound / worst simulated, others     proven   median   p90");
    for (own_period, name) in [(0, "servers of their tasks' period"), (1, "servers of periods of their own")] {
        let (mut tightness, mut outrun) = (Tightness::default(), 0);
        for seed in (first..first + count).filter(|seed| seed % 2 == own_period) {
            outrun += judge_others(seed, &mut tightness);
        }
        let (median, p90) = (tightness.at(50), tightness.at(90));
        eprintln!("{name:<33} {:>5} of {} {median:>8.2} {p90:>7.2}", tightness.proven, count / 2);
        let proven = tightness.proven as u64;
        assert!(
            proven > count / 8 && outrun > count / 8,
            "{name}: {proven} systems, jobs late in {outrun} runs: too few"
        );
    }
}

/// Simulates a system with servers that are outrun; answers in how many runs jobs were late.
fn judge_others(seed: u64, tightness: &mut Tightness) -> u64 {
    let (workload, scheduler) = outrunning(seed);
    let report = checked(&workload, &scheduler);
    assert!(report.refusals.is_empty(), "seed {seed}: {:?}", report.refusals);
    let bounded = report.tasks.iter().filter(|task| task.response_time.is_some()).count();
    if bounded == 0 || bounded == report.tasks.len() {
        return 0;
    }
    tightness.proven += 1;
    let mut arrivals = patterns(&workload, seed);
    if seed.is_multiple_of(2) {
        // Budgets begin at arrivals, so that these are exactly a period apart.
        arrivals.truncate(2);
    }
    arrivals.push(urgent_last(&workload, seed));
    let (mut late, mut worst) = (0, vec![0; report.tasks.len()]);
    for (number, pattern) in arrivals.iter().enumerate() {
        let seen = observe(pattern, &scheduler, seed);
        compare(&report, pattern, &seen, &format!("seed {seed}, pattern {number}, {scheduler}"));
        late += u64::from(seen.0.tasks.iter().any(|task| task.jobs.missed > 0));
        for (worst, task) in worst.iter_mut().zip(&seen.0.tasks) {
            *worst = task.jobs.response_time.map_or(0, |times| times.max.0).max(*worst);
        }
    }
    for (task, &worst) in report.tasks.iter().zip(&worst).filter(|&(_, &worst)| worst > 0) {
        tightness.permille.extend(task.response_time.map(|bound| bound.time.0.saturating_mul(1_000) / worst));
    }
    late
}

/// The judges of traces find nothing wrong with what the simulator does.
#[test]
fn every_schedule_is_legal_and_follows_its_policy_whatever_the_feature() {
    let (first, count) = (number("LAXITY_FIRST_SEED", 0), number("LAXITY_SYSTEMS", 150));
    let end = Instant(2_000 * UNIT);
    for feature in Feature::ALL.into_iter().filter(is_wanted) {
        for seed in first..first + count {
            let (workload, scheduler) = feature.system(seed);
            if feature.may_be_refused() && !checked(&workload, &scheduler).refusals.is_empty() {
                continue;
            }
            let (header, records) = simulate(&workload, &scheduler, end, seed);
            for report in [check::legality(&header, &records, |_| None), check::policy(&header, &records)] {
                assert!(report.violations.is_empty(), "{feature:?}, seed {seed}, {scheduler}: {:?}", report.violations);
            }
        }
    }
}

/// `b` is late for long, and when its jobs are short again many are complete one after the other: so many of `c` are released
/// together, before they arrive, and delay `d`.
const BURSTS: &str = r#"
laxity = 1
name = "bursts"
scheduler = "P-RM"
platform = { cpus = 2 }
[[graph]]
name = "g"
edge = ["a -> b", "b -> c"]
node = [
    { name = "a", period = "10 ms", wcet = "1 ms", cluster = 0 },
    { name = "b", wcet = "5 ms", actual = { uniform = ["0 ms", "5 ms"] }, cluster = 0,
      server = { kind = "cbs_hard", budget = "1 ms", period = "4 ms" } },
    { name = "c", wcet = "1 ms", cluster = 1 },
]
[[task]]
name = "d"
period = "12 ms"
wcet = "10 ms"
cluster = 1
"#;

#[test]
fn nothing_is_proven_of_nodes_behind_a_server_without_a_bound_nor_of_tasks_beside_them() {
    let workload = Workload::from_toml(BURSTS, "bursts.toml").expect("a valid workload");
    let scheduler: Scheduler = "P-RM".parse().expect("a name");
    let report = checked(&workload, &scheduler);
    let bounded: Vec<&str> =
        report.tasks.iter().filter(|task| task.response_time.is_some()).map(|task| task.name.as_str()).collect();
    assert_eq!(bounded, ["g/a"]);
    // With a job of `c` every 10 ms it would be 13 ms.
    let end = Instant(10_000_000_000);
    let (header, records) = simulate(&workload, &scheduler, end, 0);
    let seen = measure(&header, &records, end).tasks[0].jobs.response_time.expect("jobs are complete").max;
    assert!(seen > Nanos::from_millis(13), "{seen}");
}
