//! Measured overheads, the bounds that follow from them, and the response times of the same workload run live. Alone in its
//! program, so that no other test runs beside.
//!
//! A hypervisor and other processes may take the CPUs, and no bound of the analysis knows them: how much they took is
//! measured over the run. On a calm machine a response time that exceeds its bound fails the test.
#![cfg(target_os = "linux")]

#[path = "cli/support.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use std::fs;

use laxity_testing::{Late, on_a_calm_machine};
use serde_json::Value;

use support::{folder, run};

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
    min: u64,
    max: u64,
}

#[test]
fn no_live_response_time_exceeds_its_bound_on_a_calm_machine() {
    on_a_calm_machine(|| {
        let (excesses, stolen) = excesses().map_err(|what| Late { what, calm: Some(false) })?;
        if excesses.is_empty() {
            return Ok(());
        }
        let what = format!("stolen: {stolen}: {}", excesses.join("; "));
        Err(Late { what, calm: (!stolen.is_null()).then_some(false) })
    });
}

/// Measures this machine, and runs the workload: the tasks whose longest response time exceeds its bound, and what was stolen
/// of the CPU meanwhile; or why there is nothing to compare.
fn excesses() -> Result<(Vec<String>, Value), String> {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (profile, workload) = (path("profile.toml"), path("witness.toml"));
    fs::write(&workload, WORKLOAD).expect("a file");
    let (code, _, err) = run(["measure", "--for", "800ms", "--worst", "p99.9", "--quiet", "--out", &profile]);
    assert_eq!(code, 0, "{err}");
    let (_, checked, err) = run(["check", &workload, "--overheads", &profile, "--no-scaling", "--json"]);
    let checked: Value = serde_json::from_str(&checked).expect(&err);
    if checked["hard"]["status"] != "schedulable" {
        return Err(format!("this machine costs too much to prove anything: {}", checked["overheads"]));
    }
    let (code, ran, err) = run(["run", &workload, "--scheduler", "fifo", "--for", "800ms", "--watch-cpus", "--json"]);
    if err.contains("not permitted") {
        return Err(err);
    }
    assert_eq!(code, 0, "{err}");
    let ran: Value = serde_json::from_str(&ran).expect("JSON");
    let mut excesses = Vec::new();
    for Found { name, wcet, bound, jobs, min, max } in found(&checked, &ran) {
        assert!(jobs > 0 && bound >= wcet, "{name}: {jobs} jobs, bound {bound} ns");
        assert!(min >= wcet, "{name} responded after {min} ns, and every job of it computes for {wcet} ns");
        if max > bound {
            excesses.push(format!("the longest of {jobs} response times of {name} is {max} ns, its bound {bound} ns"));
        }
    }
    Ok((excesses, ran["stolen"].clone()))
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
            min: number(&response["min"]),
            max: number(&response["max"]),
        }
    });
    both.collect()
}
