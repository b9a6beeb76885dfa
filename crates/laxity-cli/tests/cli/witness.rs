//! Measured overheads, the bounds that follow from them, and the response times of the same workload run live.
//!
//! A machine owes nobody its bounds: others may take its CPUs, and what was the worst case while it was measured need
//! not be later. So a miss is reported with what the machine did meanwhile. What fails is what no machine can do.

use std::fs;

use laxity_testing::skip;
use serde_json::Value;

use crate::support::{folder, run};

/// Three tasks that need a fifth of a CPU together. Ticks of Linux are 10 ms apart at most and 1 ms at least; those of
/// the usual 250 Hz are charged.
const WORKLOAD: &str = r#"laxity = 1
name = "witness"
[platform]
cpus = 1
tick = "4 ms"
quantum = "4 ms"
[scheduler]
policy = "P-RM"
[[task]]
name = "fast"
period = "40 ms"
wcet = "2 ms"
[[task]]
name = "middle"
period = "80 ms"
wcet = "4 ms"
[[task]]
name = "slow"
period = "200 ms"
wcet = "20 ms"
"#;

/// What JSON says of a task.
struct Found {
    name: String,
    wcet: u64,
    /// The bound on its response time.
    bound: u64,
    jobs: u64,
    median: u64,
    min: u64,
    max: u64,
}

#[test]
fn live_response_times_lie_within_the_bounds_of_measured_overheads_or_the_machine_says_why_not() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (profile, workload) = (path("profile.toml"), path("witness.toml"));
    fs::write(&workload, WORKLOAD).expect("a file");
    let (code, _, err) = run(["measure", "--for", "800ms", "--worst", "p99.9", "--quiet", "--out", &profile]);
    assert_eq!(code, 0, "{err}");
    let (_, checked, err) = run(["check", &workload, "--overheads", &profile, "--no-scaling", "--json"]);
    let checked: Value = serde_json::from_str(&checked).expect(&err);
    if checked["hard"]["status"] != "schedulable" {
        return skip(format_args!("this machine costs too much to prove anything: {}", checked["overheads"]));
    }
    let before = stolen();
    let (code, ran, err) = run(["run", &workload, "--scheduler", "fifo", "--for", "800ms", "--json"]);
    if err.contains("not permitted") {
        return skip(err);
    }
    assert_eq!(code, 0, "{err}");
    let stolen = stolen() - before;
    let ran: Value = serde_json::from_str(&ran).expect("JSON");
    for task in found(&checked, &ran) {
        let Found { name, wcet, bound, jobs, median, min, max } = task;
        assert!(jobs > 0 && bound >= wcet, "{name}: {jobs} jobs, bound {bound} ns");
        assert!(min >= wcet, "{name} responded after {min} ns, and every job of it computes for {wcet} ns");
        if max > bound {
            eprintln!(
                "{name}: the longest of {jobs} response times, {max} ns, exceeds the bound of {bound} ns by {} ns; others \
                 took {stolen} ticks from this machine's CPUs meanwhile",
                max - bound
            );
        }
        // Under SCHED_FIFO nothing of this machine delays every other job, and the bound has all that delays the worst.
        assert!(median <= bound || stolen > 0, "{name}: half the response times exceed {bound} ns: {median} ns");
    }
}

/// The tasks of both, in their order.
fn found(checked: &Value, ran: &Value) -> Vec<Found> {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("a number: {value}"));
    let (checked, ran) = (checked["tasks"].as_array().expect("tasks"), ran["tasks"].as_array().expect("tasks"));
    assert_eq!(checked.len(), ran.len());
    let both = checked.iter().zip(ran).map(|(checked, ran)| {
        assert_eq!(checked["name"], ran["name"]);
        let response = &ran["response_time_ns"];
        Found {
            name: ran["name"].to_string(),
            wcet: number(&ran["wcet_ns"]),
            bound: number(&checked["response_time_ns"]),
            jobs: number(&ran["completed"]),
            median: number(&response["p50"]),
            min: number(&response["min"]),
            max: number(&response["max"]),
        }
    });
    both.collect()
}

/// For how long, in ticks, a hypervisor ran others while this machine had something to run; 0 where Linux does not say.
fn stolen() -> u64 {
    let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
    let all = stat.lines().next().unwrap_or_default();
    // user, nice, system, idle, iowait, irq, softirq, steal
    all.split_whitespace().nth(8).and_then(|steal| steal.parse().ok()).unwrap_or(0)
}
