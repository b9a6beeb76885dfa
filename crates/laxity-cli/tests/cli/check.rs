//! `laxity check FILE`.

use std::collections::BTreeSet;

use predicates::prelude::*;
use serde_json::Value;

use crate::support::{example, fixture, folder, laxity, run, stderr, stdout};

fn check(file: &str, flags: &[&str]) -> (i32, String, String) {
    let output = laxity().arg("check").arg(fixture(file)).args(flags).output().expect("runs");
    (output.status.code().expect("not killed"), stdout(&output), stderr(&output))
}

/// The terms of "fast": a piece of scheduler code takes 9 us, so interrupts may be pending for 9 + 11 + 3 * 7 = 41 us.
/// In 5.041 ms come 6 ticks and, beside its own release, 3: of its next job and one of each of the others.
#[test]
fn explain_shows_what_makes_up_each_inflated_wcet() {
    let expected = "\
costly
tasks      3 tasks, utilization 0.455, inflated 0.665
platform   2 CPUs, quantum 1 ms
scheduler  G-EDF/CEm (coarse-grained queue, event-driven, interrupts on all CPUs)
overheads  by hand, at 3 tasks, safe accounting

        period  deadline  ── wcet, ms ───  ── util., % ───  response  tardiness     laxity
task        ms        ms    own  inflated    own  inflated   max, ms    max, ms  least, ms  bound by
────────────────────────────────────────────────────────────────────────────────────────────────────
fast     5.000     5.000  0.400     1.032   8.00     20.64     1.032      0.000      3.968  rta
middle  10.000     8.000  2.000     2.665  20.00     26.65     2.665      0.000      5.335  rta
slow    20.000    20.000  3.500     3.839  17.50     19.20     4.871      0.000     15.129  rta

inflated wcet, us  execution  blocking  scheduling  timer rearming  context switches  hold off  ipi latency  own releases  other releases    ticks       sum
────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
fast                 400.000   500.000      10.000           2.000             6.000    18.000        2.000         7.000          21.000   66.000  1032.000
middle              2000.000   500.000      10.000           2.000             6.000    18.000        2.000         7.000          21.000   99.000  2665.000
slow                3500.000         -      10.000           2.000             6.000    18.000        2.000         7.000          63.000  231.000  3839.000

hard: schedulable (gfb); least laxity 3.968 ms (fast)
soft: schedulable (gfb); never tardy
growth: hard schedulability is proven up to 2.225 times all execution times
";
    let (code, out, err) = check("costly.toml", &["--explain"]);
    assert_eq!(out, expected);
    assert_eq!((code, err.as_str()), (0, ""));
}

#[test]
fn what_is_not_proven_fails_with_the_reason_and_soft_judges_by_tardiness() {
    let quickstart = example("quickstart.toml");
    let file = quickstart.as_os_str();
    let quanta = ["--policy", "CQm"].map(AsRef::as_ref);
    let check = |flags: &[&std::ffi::OsStr]| run(["check".as_ref(), file].iter().chain(&quanta).chain(flags).copied());
    let (code, out, err) = check(&[]);
    assert_eq!(code, 1);
    assert_eq!(err, "error: not proven that no deadline is missed under G-EDF/CQm\n");
    assert!(out.contains("hard: not proven\n  gfb: the total density exceeds"), "{out}");
    assert!(out.contains("4 more reasons: --explain\n"), "{out}");
    let (code, explained, _) = check(&["--explain".as_ref()]);
    assert_eq!(code, 1);
    assert!(explained.contains("  rta: not applicable: it is proven for deadlines up to the period only and that of"));
    let (code, soft, err) = check(&["--soft".as_ref()]);
    assert_eq!((code, err.as_str()), (0, ""), "{soft}");
    assert!(soft.contains("soft: schedulable (srt); tardy by at most "), "{soft}");
    assert!(soft.contains("growth: bounded tardiness is proven up to "), "{soft}");
}

#[test]
fn what_no_scheduler_could_do_is_called_infeasible() {
    let (code, out, err) = check("overload.toml", &[]);
    assert_eq!(code, 1);
    assert!(out.contains("hard: infeasible\n  utilization 1.250 exceeds 1 CPU, overheads not counted\n"), "{out}");
    assert!(out.contains("growth: hard schedulability is proven up to 0.800 times"), "{out}");
    assert_eq!(err, "error: not proven that no deadline is missed under G-EDF/CEm\n");
}

#[test]
fn what_cannot_be_analysed_is_refused_by_name() {
    let quanta_with_threads = ["--policy", "CQm", "--handling", "klmirqd"];
    let (code, out, err) = check("gpu.toml", &quanta_with_threads);
    assert_eq!(code, 1);
    let refusal =
        "refused: the analysis cannot treat\n  G-EDF/CQm: bottom halves that wait for a thread, or for their owner's";
    assert!(out.contains(refusal), "{out}");
    assert_eq!(err, "error: not proven that no deadline is missed under G-EDF/CQm\n");
    let (_, json, _) = check("gpu.toml", &[&quanta_with_threads[..], &["--json"]].concat());
    let report: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(report["hard"]["status"], "refused");
    assert_eq!(report["refused"][0]["subject"], "G-EDF/CQm");
}

#[test]
fn the_fair_class_of_linux_has_no_bounds() {
    let (code, out, err) = check("gpu.toml", &["--policy", "SCHED_OTHER"]);
    assert_eq!(code, 1);
    assert!(out.contains("G-CFS: not analysed: no bound exists for Linux's fair class"), "{out}");
    assert!(
        out.contains("scheduler  G-CFS (Linux's fair class, a queue for each CPU, interrupts on all CPUs)"),
        "{out}"
    );
    assert_eq!(err, "error: not proven that no deadline is missed under G-CFS\n");
}

#[test]
fn ways_to_manage_gpus_are_compared_a_row_each() {
    let (code, out, err) = check("gpu.toml", &["--explain"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("GPUs       arbitration driver, interrupts linux\n"), "{out}");
    let terms = out.lines().find(|line| line.starts_with("inflated wcet")).expect("the terms are explained");
    assert!(terms.contains("execution") && terms.contains("gpu"), "{terms}");
    let ways = ["--arbitration", "k_fmlp,semaphore", "--handling", "linux,klmirqd", "--no-scaling"];
    let (code, out, _) = check("gpu.toml", &ways);
    assert_eq!(code, 0);
    for row in ["k_fmlp linux ", "k_fmlp klmirqd ", "semaphore linux ", "semaphore klmirqd "] {
        assert!(out.contains(&format!("\nG-EDF/CEm {row}")), "{row}: {out}");
    }
    let (_, json, _) = check("gpu.toml", &["--handling", "pai", "--json"]);
    let report: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&report["arbitration"], &report["handling"]), (&Value::from("driver"), &Value::from("pai")));
    assert_eq!(report["tasks"][0]["terms_ns"]["gpu"], 5_000_000);
}

#[test]
fn several_policies_are_compared_each_with_its_own_overheads() {
    let output = laxity()
        .arg("check")
        .arg(example("quickstart.toml"))
        .args(["--policy", "CQm,P-RM/FEm", "--policy", "S-CQ1", "--no-scaling"])
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(1));
    let out = stdout(&output);
    let rows: Vec<&str> = out.lines().filter(|line| line.contains("brandenburg2009-")).collect();
    assert_eq!(rows.len(), 3, "{out}");
    for (row, (scheduler, profile)) in rows.iter().zip([
        ("G-EDF/CQm", "brandenburg2009-CQm-worst-aligned"),
        ("P-RM/FEm", "brandenburg2009-FEm-worst-aligned"),
        ("G-EDF/S-CQ1", "brandenburg2009-CQ1-worst-staggered"),
    ]) {
        assert!(row.starts_with(scheduler) && row.ends_with(profile), "{row}");
    }
    assert!(stderr(&output).ends_with("error: not proven that no deadline is missed in 2 of 3 configurations\n"));
    let all = laxity().arg("check").arg(fixture("costly.toml")).args(["--policy", "all"]).output().expect("runs");
    assert_eq!(stdout(&all).lines().filter(|line| line.starts_with("G-EDF/") && line.ends_with("by hand")).count(), 9);
}

#[test]
fn one_unproven_configuration_among_several_is_a_failure() {
    let code = |flags: &[&str]| check("two.toml", flags).0;
    assert_eq!(code(&["--policy", "CEm,P-RM"]), 0);
    let (code, out, err) = check("two.toml", &["--policy", "CEm,CE1"]);
    assert_eq!(code, 1, "a dedicated CPU leaves none of one");
    assert!(out.contains("G-EDF/CE1: refused: G-EDF/CE1: its 1 CPU is dedicated to interrupts"), "{out}");
    assert_eq!(err, "error: not proven that no deadline is missed in 1 of 2 configurations\n");
}

#[test]
fn the_published_accounting_charges_less() {
    let inflated = |flags: &[&str]| -> u64 {
        let (_, json, _) = check("costly.toml", flags);
        let report: Value = serde_json::from_str(&json).expect("JSON");
        report["tasks"][0]["inflated_wcet_ns"].as_u64().expect("a time")
    };
    assert_eq!(inflated(&["--json"]), 1_032_000);
    // No hold-off (18 us), and neither lag (its next release; the sixth tick).
    assert_eq!(inflated(&["--json", "--accounting", "published"]), 1_032_000 - 18_000 - 7_000 - 11_000);
}

#[test]
fn quiet_prints_nothing_but_fails_all_the_same() {
    assert_eq!(check("two.toml", &["--quiet"]), (0, String::new(), String::new()));
    let (code, out, err) = check("overload.toml", &["--quiet"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert_eq!(err, "error: not proven that no deadline is missed under G-EDF/CEm\n");
}

#[test]
fn best_effort_tasks_are_left_out_and_a_note_says_so() {
    let folder = folder();
    let path = folder.path().join("with.toml");
    let two = std::fs::read_to_string(fixture("two.toml")).expect("the fixture");
    std::fs::write(&path, two + "\n[[best_effort]]\nname = \"shell\"\n").expect("written");
    laxity().arg("check").arg(&path).assert().code(0).stderr(predicate::str::contains(
        "note: no bound for 1 best-effort task, below all real-time jobs; memory traffic counts where it slows GPU operations \
         down",
    ));
}

#[test]
fn bad_usage_and_bad_workloads_have_their_own_exit_code() {
    laxity().args(["check", "no-such.toml"]).assert().code(2).stdout("");
    laxity().arg("check").arg(fixture("wrong.toml")).assert().code(2).stdout("");
    laxity().arg("check").assert().code(2);
    laxity().args(["check", "x.toml", "--policy", "CEn"]).assert().code(2).stderr(predicate::str::contains("'CEm'"));
    laxity().args(["check", "--jsonl", "--json"]).assert().code(2);
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn set<'a>(names: &[&'a str]) -> BTreeSet<&'a str> {
    names.iter().copied().collect()
}

#[test]
fn the_json_has_exactly_the_documented_keys() {
    let (code, json, err) = check("costly.toml", &["--json"]);
    assert_eq!((code, err.as_str()), (0, ""), "nothing but JSON");
    let report: Value = serde_json::from_str(&json).expect("one JSON value");
    let answer = ["status", "tests", "failures"];
    assert_eq!(
        keys(&report),
        set(&[
            "laxity",
            "workload",
            "chains",
            "scheduler",
            "arbitration",
            "handling",
            "overheads",
            "accounting",
            "arbitration",
            "handling",
            "refused",
            "hard",
            "soft",
            "utilization",
            "scaling",
            "clusters",
            "tasks",
            "graphs",
        ])
    );
    assert_eq!(keys(&report["overheads"]), set(&["profile", "costs_ns"]));
    assert_eq!(keys(&report["hard"]), set(&answer));
    assert_eq!(keys(&report["scaling"]), set(&["criterion", "permille", "is_capped"]));
    assert_eq!(keys(&report["clusters"][0]), set(&["cpus", "tasks", "utilization", "hard", "soft"]));
    let task = &report["tasks"][0];
    assert_eq!(
        keys(task),
        set(&[
            "task",
            "name",
            "cluster",
            "period_ns",
            "deadline_ns",
            "wcet_ns",
            "inflated_wcet_ns",
            "terms_ns",
            "response_time_ns",
            "response_time_by",
            "tardiness_ns",
            "laxity_ns",
        ])
    );
    let terms = task["terms_ns"].as_object().expect("terms");
    let sum: u64 = terms.values().map(|term| term.as_u64().expect("a time")).sum();
    assert_eq!((terms.len(), Some(sum)), (25, task["inflated_wcet_ns"].as_u64()));

    let (_, json, _) = check("overload.toml", &["--json", "--policy", "CEm,P-RM", "--no-scaling"]);
    let both: Value = serde_json::from_str(&json).expect("one JSON value");
    assert_eq!(keys(&both), set(&["laxity", "checks"]));
    assert_eq!(both["checks"][1]["scaling"], Value::Null);
    let failure = &both["checks"][0]["hard"]["failures"][0];
    assert_eq!(keys(failure), set(&["cluster", "test", "task", "interval_ns", "message"]));
}

/// Source every 4 ms; the file's comments derive the other periods.
#[test]
fn graphs_get_end_to_end_bounds() {
    let pipeline = example("pipeline.toml");
    let (code, out, _) = run(["check".as_ref(), pipeline.as_os_str()]);
    assert_eq!(code, 0);
    assert!(out.contains("graph rates: complete at most 22.9 ms after its sources' release\n"), "{out}");
    let (_, json, _) = run(["check".as_ref(), pipeline.as_os_str(), "--json".as_ref()]);
    let report: Value = serde_json::from_str(&json).expect("JSON");
    let graph = &report["graphs"][0];
    assert_eq!(keys(graph), set(&["name", "end_to_end_ns", "reason", "nodes"]));
    assert_eq!(graph["end_to_end_ns"], 22_900_000);
    assert_eq!(
        keys(&graph["nodes"][0]),
        set(&["task", "offset_ns", "completion_ns", "released_after_source_ns", "complete_after_source_ns", "is_sink"])
    );
    assert_eq!(report["tasks"][2]["period_ns"], 4_200_000);
}

/// Programs join proven and simulated tables by name.
#[test]
fn check_and_simulate_call_tasks_and_nodes_alike() {
    let names = |verb: &str, flags: &[&str]| -> Vec<String> {
        let file = example("fusion.toml");
        let words = [&[verb, file.to_str().expect("UTF-8"), "--json"], flags].concat();
        let report: Value = serde_json::from_str(&run(words).1).expect("JSON");
        let tasks = report["tasks"].as_array().expect("a list");
        tasks.iter().map(|task| task["name"].as_str().expect("text").to_owned()).collect()
    };
    let proven = names("check", &[]);
    let simulated = names("simulate", &["--for", "100 ms"]);
    assert_eq!(proven, simulated);
    assert_eq!(proven[..2], ["car/camera", "car/detect"]);
}

/// Of several thousand tasks: the analysis says nothing for seconds but that it goes on.
#[cfg(target_os = "linux")]
#[test]
fn a_long_analysis_says_on_a_terminal_that_it_goes_on() {
    let folder = crate::support::folder();
    let file = folder.path().join("many.toml");
    let task = |index: usize| {
        format!("[[task]]\nname = \"t{index}\"\nperiod = \"{} us\"\nwcet = \"10 us\"\n", 60_000 + 7 * index)
    };
    let head = "laxity = 1\nname = \"many\"\nscheduler = \"G-EDF\"\n[platform]\ncpus = 4\n".to_owned();
    std::fs::write(&file, (0..8_000).map(task).fold(head, |text, task| text + &task)).expect("written");
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("laxity"));
    command.arg("check").arg(&file);
    let mut terminal = crate::terminal::Terminal::start(command);
    terminal.read_until("analyses 8000 tasks under G-EDF/CEm");
    let id = nix::unistd::Pid::from_raw(terminal.id() as i32);
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGKILL).expect("a child of ours");
    terminal.finish();
}
