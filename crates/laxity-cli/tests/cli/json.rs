//! `--json`: the fields that `docs/reference/json.md` promises, exactly.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{example, fixture, folder, laxity, trace_of};

fn parse(words: &[&str], file: &std::path::Path) -> Value {
    let output = laxity().args(words).arg(file).output().expect("runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.stderr, b"", "nothing but JSON");
    serde_json::from_slice(&output.stdout).expect("one JSON value")
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

const JOBS: [&str; 14] = [
    "released",
    "completed",
    "missed",
    "missed_incomplete",
    "preemptions",
    "migrations",
    "suspensions",
    "response_time_ns",
    "lateness_ns",
    "tardiness_ns",
    "laxity_min_ns",
    "laxity_min_job",
    "execution_ns",
    "cache_delay_ns",
];

fn with<'a>(more: &[&'a str]) -> BTreeSet<&'a str> {
    JOBS.iter().chain(more).copied().collect()
}

#[test]
fn a_run_has_exactly_the_documented_keys() {
    let run = parse(&["simulate", "--json"], &example("quickstart.toml"));
    let top = [
        "laxity",
        "workload",
        "scheduler",
        "origin",
        "overheads",
        "seed",
        "simulated_ns",
        "interrupted",
        "tasks",
        "total",
        "cpus",
        "machine",
    ];
    assert_eq!(keys(&run), top.into_iter().collect());
    assert_eq!(keys(&run["overheads"]), ["costs_ns", "profile"].into_iter().collect());
    assert_eq!(keys(&run["total"]), with(&[]));
    for task in run["tasks"].as_array().expect("tasks") {
        assert_eq!(keys(task), with(&["task", "name", "period_ns", "deadline_ns", "wcet_ns"]));
        let response = ["max", "mean", "min", "p50", "p90", "p99"];
        assert_eq!(keys(&task["response_time_ns"]), response.into_iter().collect());
    }
    let usage = ["busy_ns", "idle_ns", "lock_wait_ns", "overheads", "utilization"];
    assert_eq!(keys(&run["machine"]), usage.into_iter().collect());
    for cpu in run["cpus"].as_array().expect("cpus") {
        assert_eq!(keys(cpu), usage.into_iter().chain(["cpu"]).collect());
    }
}

/// The schedule is drawn in the fixture.
#[test]
fn the_numbers_are_those_of_the_schedule() {
    let run = parse(&["simulate", "--json", "--seed", "3", "--for", "12ms"], &fixture("two.toml"));
    assert_eq!(run["laxity"], env!("CARGO_PKG_VERSION"));
    assert_eq!(run["workload"], "two");
    assert_eq!(run["scheduler"], "G-EDF/CEm");
    assert_eq!(run["origin"], "simulated");
    assert_eq!(run["seed"], 3);
    assert_eq!(run["simulated_ns"], 12_000_000);
    assert_eq!(run["interrupted"], false);
    assert_eq!(run["overheads"]["profile"], "none");
    assert_eq!(run["overheads"]["costs_ns"]["release"], 0);
    let task = &run["tasks"][1];
    assert_eq!(task["name"], "t1");
    assert_eq!([&task["period_ns"], &task["deadline_ns"], &task["wcet_ns"]], [6_000_000, 6_000_000, 2_000_000]);
    for (key, expected) in [("min", 2_000_000), ("mean", 2_500_000), ("max", 3_000_000)] {
        assert_eq!(task["response_time_ns"][key], expected, "{key}");
    }
    let total = &run["total"];
    let counts = ["released", "completed", "missed", "preemptions", "migrations"].map(|key| &total[key]);
    assert_eq!(counts, [5, 5, 0, 0, 0]);
    assert_eq!(run["cpus"][0]["busy_ns"], 7_000_000);
    assert_eq!(run["machine"]["idle_ns"], 5_000_000);
}

/// The control task has 1 ms of every 30, and a best-effort task the rest.
#[test]
fn the_part_of_best_effort_tasks_is_a_part_of_what_executed() {
    let run = parse(&["simulate", "--json", "--for", "300ms"], &fixture("best-effort.toml"));
    for usage in [&run["machine"], &run["cpus"][0]] {
        let parts = ["busy_ns", "best_effort_ns", "idle_ns"].map(|key| &usage[key]);
        assert_eq!(parts, [300_000_000, 290_000_000, 0]);
    }
    assert_eq!(run["memory"]["best_effort"][0]["execution_ns"], 290_000_000);
}

#[test]
fn several_policies_are_several_runs() {
    let value = parse(&["simulate", "--json", "--for", "100ms", "--policy", "CEm,CQm"], &fixture("two.toml"));
    assert_eq!(keys(&value), ["laxity", "runs"].into_iter().collect());
    let schedulers: Vec<&Value> = value["runs"].as_array().expect("runs").iter().map(|run| &run["scheduler"]).collect();
    assert_eq!(schedulers, ["G-EDF/CEm", "G-EDF/CQm"]);
}

/// One set of metrics judges simulation and recording alike.
#[test]
fn a_trace_measures_the_same_as_the_simulation_that_wrote_it() {
    let folder = folder();
    let trace = trace_of("overload.toml", "1 s", &folder);
    let mut simulated = parse(&["simulate", "--json", "--for", "1 s"], &fixture("overload.toml"));
    let output = laxity().arg("trace").arg(&trace).args(["metrics", "--json"]).output().expect("runs");
    let measured: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // A trace records what overheads cost, not what they were called.
    simulated["overheads"]["profile"] = Value::Null;
    assert_eq!(measured, simulated);
}

#[test]
fn a_task_without_completed_jobs_has_no_response_times() {
    let run = parse(&["simulate", "--json", "--for", "1 ms"], &fixture("overload.toml"));
    assert_eq!(run["tasks"][1]["completed"], 0);
    assert_eq!(run["tasks"][1]["response_time_ns"], Value::Null);
}

/// All keys in `value`, at any depth.
fn all_keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            found.extend(fields.keys().cloned());
            fields.values().for_each(|field| all_keys(field, found));
        }
        Value::Array(values) => values.iter().for_each(|value| all_keys(value, found)),
        _ => {}
    }
}

/// Searches, schedulers and programs: no key is printed that the reference does not explain.
#[cfg(target_os = "linux")]
#[test]
fn every_key_of_other_verbs_is_in_the_reference() {
    use laxity_sched::{Config, Registry};
    let reference = include_str!("../../../../docs/reference/json.md");
    let place = laxity_testing::Directory::new("json-keys");
    let directory = place.path().to_str().expect("UTF-8");
    let cpu = laxity_sys::scheduling::usable_cpus().expect("CPUs")[0];
    let config = Config::global_edf([u16::try_from(cpu).expect("small")]);
    let _system = Registry::at(place.path()).create("s", &config).expect("the name is free");
    let file = example("quickstart.toml").display().to_string();
    let commands: [&[&str]; 5] = [
        &["tune", &file, "--within", "1s", "--json"],
        &["sched", "--folder", directory, "list", "--json"],
        &["sched", "--folder", directory, "top", "s", "--once", "--json"],
        &["sched", "doctor", "--json"],
        &["exec", "--folder", directory, "--system", "s", "--period", "10ms", "--wcet", "5ms", "--json", "--", "true"],
    ];
    for words in commands {
        let output = laxity().args(words).output().expect("runs");
        let err = String::from_utf8_lossy(&output.stderr);
        // A program has standard output for itself.
        let text = if words[0] == "exec" { err.into_owned() } else { String::from_utf8(output.stdout).expect("UTF-8") };
        if text.contains("SCHED_FIFO") || text.is_empty() && words[0] == "exec" {
            laxity_testing::skip(text);
            continue;
        }
        let mut found = BTreeSet::new();
        all_keys(&serde_json::from_str(&text).unwrap_or_else(|error| panic!("{words:?}: {error}: {text}")), &mut found);
        assert!(!found.is_empty(), "{words:?}");
        for key in found {
            assert!(reference.contains(&format!("`{key}`")), "{words:?} prints `{key}`");
        }
    }
}
