//! Workloads with GPUs: compared, reported, judged.

use predicates::prelude::*;

use crate::support::{example, fixture, folder, laxity, stderr, stdout};

fn simulate(file: &str, words: &[&str]) -> String {
    let output = laxity().arg("simulate").arg(example(file)).args(words).output().expect("runs");
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

/// The row that begins with `name`, by columns.
fn row<'a>(out: &'a str, name: &str) -> Vec<&'a str> {
    let line = out.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name} in\n{out}"));
    line[name.len()..].split_whitespace().collect()
}

#[test]
fn several_handlings_are_compared_by_the_inversions_they_cause() {
    let out = simulate("interrupts.toml", &["--handling", "linux,pai,klmirqd", "--for", "200ms"]);
    assert!(out.contains("inversions, us") || out.contains("inversions, ms"), "{out}");
    let cumulative = |name: &str| -> f64 {
        let row = row(&out, &format!("G-EDF/CEm  k_fmlp, {name}"));
        row[row.len() - 4].parse().unwrap_or_else(|_| panic!("{row:?}"))
    };
    assert!(cumulative("linux") > cumulative("pai"));
    assert!(cumulative("pai") > cumulative("klmirqd"));
}

#[test]
fn all_stands_for_each_arbitration_and_each_handling() {
    let out = simulate("interrupts.toml", &["--arbitration", "all", "--handling", "pai", "--for", "50ms"]);
    for name in ["driver", "driver_spinning", "semaphore", "k_fmlp", "gpusync"] {
        row(&out, &format!("G-EDF/CEm  {name}, pai"));
    }
    let out = simulate("interrupts.toml", &["--handling", "all", "--policy", "G-EDF,P-EDF", "--for", "50ms"]);
    assert_eq!(out.lines().filter(|line| line.contains("k_fmlp, ")).count(), 10);
}

#[test]
fn a_mistyped_name_finds_the_one_meant() {
    let mistyped = |option: &str, name: &str, meant: &str| {
        laxity()
            .arg("simulate")
            .arg(example("interrupts.toml"))
            .args([option, name])
            .assert()
            .code(2)
            .stderr(predicate::str::contains(format!("'{meant}'")));
    };
    mistyped("--handling", "klmirq", "klmirqd");
    mistyped("--arbitration", "gpu_sync", "gpusync");
}

#[test]
fn where_nothing_interrupts_the_options_change_nothing_and_say_so() {
    let words = ["--handling", "pai", "--arbitration", "gpusync", "--for", "12ms"];
    let output = laxity().arg("simulate").arg(fixture("two.toml")).args(words).output().expect("runs");
    assert!(stderr(&output).contains("without a GPU, --arbitration changes nothing"));
    assert!(stderr(&output).contains("without a GPU or another device, --handling changes nothing"));
    assert!(!stdout(&output).contains("GPUs"));
}

#[test]
fn the_report_has_a_table_for_whatever_is_there() {
    let out = simulate("pedestrians.toml", &["--for", "500ms", "--per-cpu"]);
    assert!(out.contains("tasks      6 tasks"), "interrupt threads are no tasks:\n{out}");
    assert!(out.contains("GPUs       2 GPUs: gpusync, klmirqd\n"));
    for name in
        ["a bottom half waits", "lanes            GPU token", "klmirqd/left", "left EE", "right CE1", "detector "]
    {
        assert!(out.contains(name), "{name} in\n{out}");
    }
    assert!(out.contains("top halves") && out.contains("thread release"), "{out}");
}

#[test]
fn json_has_them_too() {
    let out = simulate("pedestrians.toml", &["--for", "500ms", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(json["gpu_management"], serde_json::json!({"arbitration": "gpusync", "handling": "klmirqd"}));
    assert!(json["graphs"][0]["end_to_end"]["p90_ns"].as_u64() > Some(0));
    assert!(json["engines"][0]["busy_ns"].as_u64() > Some(0));
    assert!(json["threads"][0]["response_time_ns"]["max"].as_u64() > Some(0), "{}", json["threads"][0]);
}

#[test]
fn a_trace_of_each_is_whole_clean_and_says_what_it_is_about() {
    let folder = folder();
    let trace = folder.path().join("run.lxt");
    let to = trace.to_string_lossy();
    simulate("pedestrians.toml", &["--handling", "all", "--for", "200ms", "--quiet", "--trace", &to]);
    for handling in ["linux", "preempt_rt_low", "preempt_rt_high", "pai", "klmirqd"] {
        let trace = folder.path().join(format!("run-C-EDF-CEm-{handling}.lxt"));
        laxity().arg("trace").arg(&trace).args(["check", "--ignore-deadlines"]).assert().success();
    }
    let klmirqd = folder.path().join("run-C-EDF-CEm-klmirqd.lxt");
    let output = laxity().arg("trace").arg(&klmirqd).arg("info").output().expect("runs");
    let out = stdout(&output);
    for line in [
        "tasks      6 and 2 interrupt threads",
        "GPUs       left, right; arbitration gpusync",
        "graph      detector, 4 nodes",
    ] {
        assert!(out.contains(line), "{line} in\n{out}");
    }
    let output = laxity().arg("trace").arg(&klmirqd).arg("metrics").output().expect("runs");
    assert!(stdout(&output).contains("end-to-end latency"));
}
