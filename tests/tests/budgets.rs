//! `check` against the simulator where all happens at whole milliseconds, and where jobs use up budgets exactly: no simulated job exceeds
//! what is proven of it. `LAXITY_SYSTEMS=10000 cargo test -p laxity-tests --test budgets` tries more, from `LAXITY_FIRST_SEED` on.

use laxity_model::{Instant, Nanos, Workload};
use laxity_tests::budgets::{coinciding, exhausting};
use laxity_tests::judge::{checked, compare};
use laxity_tests::simulate;
use laxity_tests::systems::patterns;
use laxity_trace::check;
use laxity_trace::metrics::measure;

/// The value of an environment variable, or what it is without one.
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().expect("a number of systems"))
}

fn workload(text: &str) -> Workload {
    Workload::from_toml(text, "budgets.toml").unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

/// The longest response time of task `task` in `seconds`, and how many of its jobs were late.
fn simulated(workload: &Workload, task: usize, seconds: u64) -> (Nanos, u64) {
    let end = Instant(seconds * 1_000_000_000);
    let (header, records) = simulate(workload, &workload.scheduler, end, 0);
    let jobs = measure(&header, &records, end).tasks[task].jobs.clone();
    (jobs.response_time.expect("jobs are complete").max, jobs.missed)
}

#[test]
fn no_job_exceeds_what_is_proven_where_budgets_are_used_up_exactly() {
    let (count, hard, served) = judge(exhausting);
    assert!(hard > count / 8 && served as u64 > count / 8, "{hard} and {served} are too few to tell");
}

#[test]
fn no_job_exceeds_what_is_proven_where_waits_end_as_others_arrive() {
    let (count, hard, _) = judge(coinciding);
    assert!(hard > count / 8, "{hard} are too few to tell");
}

/// How many systems there are, how many of these meet all deadlines, and how many servers have bounds.
fn judge(system: fn(u64) -> Option<(Workload, String)>) -> (u64, u64, usize) {
    let (first, count) = (number("LAXITY_FIRST_SEED", 0), number("LAXITY_SYSTEMS", 600));
    let (mut hard, mut soft, mut served) = (0, 0, 0);
    for seed in first..first + count {
        let Some((workload, text)) = system(seed) else { continue };
        let report = checked(&workload, &workload.scheduler);
        if !report.refusals.is_empty() {
            continue;
        }
        let bounded = report.tasks.iter().zip(&workload.tasks).filter(|(task, _)| task.response_time.is_some());
        served += bounded.clone().filter(|(_, task)| task.server.is_some()).count();
        hard += u64::from(report.hard.is_schedulable());
        soft += u64::from(report.soft.is_schedulable() && !report.hard.is_schedulable());
        if report.tasks.iter().all(|task| task.response_time.is_none()) {
            continue;
        }
        // Not just when a wait ends: a job that is due then, and has nothing left but an instant, would count as late.
        let end = Instant(3_000_500_000);
        let mut arrivals = patterns(&workload, seed);
        // Some budgets begin at arrivals, which these make uneven.
        arrivals.truncate(if report.hard.is_schedulable() || report.soft.is_schedulable() { 3 } else { 2 });
        for (number, pattern) in arrivals.iter().enumerate() {
            let (header, records) = simulate(pattern, &workload.scheduler, end, seed);
            let context = format!("seed {seed}, pattern {number}\n{text}");
            let summary = measure(&header, &records, end);
            compare(&report, pattern, &(summary, records.clone()), &context);
            for report in [check::legality(&header, &records, |_| None), check::policy(&header, &records)] {
                assert!(report.violations.is_empty(), "{context}: {:?}", report.violations);
            }
        }
    }
    eprintln!("of {count}: {hard} hard, {soft} soft, {served} servers with bounds");
    (count, hard, served)
}

/// A job has nothing left but a wait, which ends just when a more urgent job arrives: then it is complete after that one.
#[test]
fn what_arrives_as_the_last_wait_ends_delays_its_job() {
    for (scheduler, cpus) in [("P-RM", 1), ("P-EDF", 1), ("G-RM", 2), ("G-EDF", 2)] {
        let urgent: String = (0..cpus)
            .map(|index| format!("[[task]]\nname = \"u{index}\"\nperiod = \"12 ms\"\nwcet = \"5 ms\"\n"))
            .collect();
        let waiting = "period = \"60 ms\"\nbody = [{ cpu = \"5 ms\" }, { suspend = \"2 ms\" }]";
        let workload = workload(&format!(
            "laxity = 1\nname = \"tie\"\nscheduler = \"{scheduler}\"\n[platform]\ncpus = {cpus}\n{urgent}[[task]]\nname = \"w\"\n{waiting}\n"
        ));
        let report = checked(&workload, &workload.scheduler);
        let bound = report.tasks[cpus].response_time.expect("a bound").time;
        let (seen, _) = simulated(&workload, cpus, 1);
        assert_eq!(seen, Nanos::from_millis(17), "{scheduler}");
        assert!(bound >= seen, "{scheduler}: {bound}");
    }
}

fn one(scheduler: &str, server: &str, body: &str) -> Workload {
    workload(&format!(
        r#"
laxity = 1
name = "one"
scheduler = "{scheduler}"
[platform]
cpus = 1
[[platform.gpu]]
name = "gpu"
bandwidth = "12 GB/s"
[[resource]]
name = "r"
[[task]]
name = "t"
period = "10 ms"
deadline = "5 ms"
{server}
body = [{body}]
"#
    ))
}

#[test]
fn a_budget_that_suffices_exactly_and_a_wait_after_it_prove_nothing() {
    let servers = [
        "budget = \"2 ms\"",
        "server = { kind = \"sporadic\", budget = \"2 ms\" }",
        "server = { kind = \"cbs_hard\", budget = \"2 ms\", period = \"10 ms\" }",
        "server = { kind = \"sporadic\", budget = \"2 ms\", period = \"8 ms\" }",
    ];
    let waits = [
        "{ suspend = \"1 ms\" }",
        "{ kernel = \"1 ms\" }",
        "{ kernel = \"1 ms\", asynchronous = true }",
        "{ critical = \"r\", body = [{ suspend = \"1 ms\" }] }",
    ];
    for scheduler in ["P-RM", "P-EDF"] {
        for (server, wait) in servers.iter().flat_map(|server| waits.map(|wait| (server, wait))) {
            let of = |body: &str| one(scheduler, server, body);
            let exactly = of(&format!("{{ cpu = \"2 ms\" }}, {wait}"));
            let report = checked(&exactly, &exactly.scheduler);
            assert!(!report.hard.is_schedulable(), "{scheduler}, {server}, {wait}: {:?}", report.hard.tests);
            let (response, missed) = simulated(&exactly, 0, 1);
            assert!(missed > 90 && response > Nanos::from_millis(8), "{scheduler}, {server}, {wait}: {response}");
            // A little less, or the wait before the last step, and nothing changes for the worse.
            for body in [
                format!("{{ cpu = \"1.999 ms\" }}, {wait}"),
                format!("{{ cpu = \"1 ms\" }}, {wait}, {{ cpu = \"1 ms\" }}"),
            ] {
                let is_asynchronous = body.contains("asynchronous") && body.ends_with("{ cpu = \"1 ms\" }");
                let less = of(&body);
                let report = checked(&less, &less.scheduler);
                assert!(
                    report.hard.is_schedulable() || is_asynchronous,
                    "{scheduler}, {server}, {body}: {:?}",
                    report.hard
                );
                // That one is waited for at the end, without budget.
                assert_eq!(simulated(&less, 0, 1).1 > 0, is_asynchronous, "{scheduler}, {server}, {body}");
            }
        }
    }
}

/// A job of a soft server that has used up its budget goes on as if it were due later.
#[test]
fn a_soft_server_that_waits_without_budget_is_less_urgent_then() {
    let text = r#"
laxity = 1
name = "soft"
scheduler = "P-EDF"
[platform]
cpus = 1
[[task]]
name = "served"
period = "10 ms"
server = { kind = "cbs_soft", budget = "2 ms" }
body = [{ cpu = "2 ms" }, { suspend = "1 ms" }]
[[task]]
name = "other"
period = "30 ms"
deadline = "19 ms"
wcet = "12 ms"
"#;
    let workload = workload(text);
    assert!(!checked(&workload, &workload.scheduler).hard.is_schedulable());
    assert!(simulated(&workload, 0, 1).0 > Nanos::from_millis(10));
}

/// The first job is complete exactly when the second one is released: it has its own budget, and not what the first left.
#[test]
fn a_job_that_is_released_when_the_one_before_is_complete_begins_a_budget() {
    let text = r#"
laxity = 1
name = "meeting"
scheduler = "P-RM"
[platform]
cpus = 1
[[task]]
name = "high"
period = "10 ms"
wcet = "5 ms"
[[task]]
name = "low"
period = "20 ms"
wcet = "10 ms"
budget = "10.5 ms"
"#;
    let workload = workload(text);
    let report = checked(&workload, &workload.scheduler);
    assert!(report.hard.is_schedulable());
    for pattern in 0..40 {
        for arrivals in patterns(&workload, pattern) {
            let end = Instant(2_000_000_000);
            let (header, records) = simulate(&arrivals, &workload.scheduler, end, pattern);
            let summary = measure(&header, &records, end);
            compare(&report, &arrivals, &(summary, records), &format!("pattern {pattern}"));
        }
    }
    let (_, records) = simulate(&workload, &workload.scheduler, Instant(100_000_000), 0);
    let given: Vec<(u64, Nanos)> = records
        .iter()
        .filter_map(|record| match record.event {
            laxity_trace::Event::Replenish { budget, .. } => Some((record.at.0 / 1_000_000, budget)),
            _ => None,
        })
        .collect();
    let whole = Nanos(10_500_000);
    assert_eq!(given, [0, 20, 40, 60, 80, 100].map(|at| (at, whole))[..given.len()], "one for each job");
}

/// Late jobs share budgets, and may be late without limit.
#[test]
fn nothing_bounds_the_tardiness_of_servers_that_may_be_late_beyond_their_period() {
    let late = |scheduler: &str, kind: &str| {
        workload(&format!(
            r#"
laxity = 1
name = "late"
scheduler = "{scheduler}"
[platform]
cpus = 1
[[task]]
name = "t1"
period = "70 ms"
wcet = "26 ms"
[[task]]
name = "t2"
period = "100 ms"
wcet = "62 ms"
server = {{ kind = "{kind}", budget = "62 ms" }}
"#
        ))
    };
    for kind in ["cbs_hard", "sporadic"] {
        let workload = late("P-RM", kind);
        let report = checked(&workload, &workload.scheduler);
        assert!(!report.soft.is_schedulable(), "{kind}: {:?}", report.soft.tests);
        assert!(report.tasks[1].tardiness.is_none());
        assert!(simulated(&workload, 1, 60).0 > Nanos::from_millis(1_000), "{kind}");
    }
    // It never waits, and keeps its priority.
    let workload = late("P-RM", "cbs_soft");
    let report = checked(&workload, &workload.scheduler);
    assert!(report.soft.is_schedulable());
    let bound = report.tasks[1].response_time.expect("a bound").time;
    assert!(simulated(&workload, 1, 60).0 <= bound);
}
