//! `laxity graph run`: graphs of workloads, carried out by threads.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use laxity_graph::{Registry, RegistryError};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::graph::{graph, json, memory, names};
use crate::support::{example, fixture};

fn pipeline() -> String {
    example("pipeline.toml").to_str().expect("UTF-8").to_owned()
}

/// Starts a run that would take years and waits until each of its nodes has completed a job, however long that takes.
fn start(folder: &Path, words: &[&str]) -> Child {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("laxity"))
        .args(["graph", "run", "--for", "80000 h", &pipeline(), "--folder"])
        .arg(folder)
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    while !is_under_way(folder) {
        assert_eq!(child.try_wait().expect("a child of ours"), None, "it must not end by itself");
        thread::sleep(Duration::from_millis(5));
    }
    child
}

fn is_under_way(folder: &Path) -> bool {
    match Registry::at(folder).attach("rates") {
        Ok(graph) => (0..3).all(|node| graph.status(node).completed > 0),
        Err(RegistryError::NotFound { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Sends `signal` and waits for the end.
pub fn end(child: Child, signal: Signal) -> Output {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    kill(pid, signal).expect("a child of ours");
    child.wait_with_output().expect("ends")
}

/// Jobs of each node.
pub fn completed(run: &Value) -> Vec<u64> {
    let nodes = run["nodes"].as_array().expect("nodes");
    nodes.iter().map(|node| node["completed"].as_u64().expect("a number")).collect()
}

/// In 200 ms A runs 50 times and writes 200 tokens, of which B takes 28 times 7; it writes 140, of which C takes 46
/// times 3.
#[test]
fn every_release_before_the_end_is_carried_out_and_all_that_it_led_to() {
    let folder = memory();
    for edges in ["counter", "ring", "ring:4096"] {
        let words = ["run", &pipeline(), "--for", "200ms", "--no-work", "--edges", edges, "--json"];
        let run = json(folder.path(), &words);
        assert_eq!(completed(&run), [50, 28, 46], "{edges}");
        assert_eq!((&run["interrupted"], &run["nodes"][2]["end_to_end"]["count"]), (&false.into(), &46.into()));
        // The last release is 196 ms after the first.
        assert!(run["ran_ns"].as_u64().expect("a number") >= 196_000_000);
        assert!(names(folder.path()).is_empty(), "nothing is left");
    }
}

/// No latency is below the execution times on the way: 1 ms, 2 ms and 1.5 ms.
#[test]
fn jobs_use_the_cpu_for_as_long_as_the_file_says() {
    let folder = memory();
    let run = json(folder.path(), &["run", &pipeline(), "--for", "60ms", "--json"]);
    assert_eq!(completed(&run), [15, 8, 13]);
    assert!(run["nodes"][2]["end_to_end"]["min_ns"].as_u64().expect("a number") >= 4_500_000);
}

#[test]
fn the_table_has_a_row_for_each_node_and_latencies_for_sinks() {
    let folder = memory();
    let (code, out, err) = graph(folder.path(), &["run", &pipeline(), "--for", "40ms", "--no-work"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("rates: 3 nodes, ran for "), "{out}");
    let cells = |name: &str| out.lines().find(|line| line.starts_with(name)).expect(name).split_whitespace().count();
    assert_eq!((cells("A "), cells("C "), cells("total")), (6, 10, 3), "{out}");
    let (code, out, _) = graph(folder.path(), &["run", &pipeline(), "--for", "4ms", "--no-work", "--quiet"]);
    assert_eq!((code, out.as_str()), (0, ""));
}

/// Tasks and devices of the file do not run, which a user is told.
#[test]
fn what_a_file_has_beside_its_graph_is_said_to_be_left_out() {
    let folder = memory();
    let file = folder.path().join("both.toml");
    let text = std::fs::read_to_string(pipeline()).expect("an example");
    let others = "\n[[task]]\nname = \"t\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\n\n[[platform.device]]\nname = \"net\"\n\
                  period = \"5 ms\"\ntop_half = \"2 us\"\nbottom_half = \"40 us\"\ninterrupt_cpus = [0]\n";
    std::fs::write(&file, format!("{text}{others}")).expect("written");
    let file = file.to_str().expect("UTF-8");
    let words = ["run", file, "--jobs", "2", "--no-work"];
    let (code, _, err) = graph(folder.path(), &words);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("only graph rates runs, without 1 task, 1 device; `laxity run` takes whole files"), "{err}");
    let (_, _, err) = graph(folder.path(), &["run", &pipeline(), "--jobs", "2", "--no-work"]);
    assert!(!err.contains("only graph"), "{err}");
}

#[test]
fn ctrl_c_ends_a_run_at_once_and_leaves_nothing() {
    let folder = memory();
    let output = end(start(folder.path(), &[]), Signal::SIGINT);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(out.lines().next().is_some_and(|line| line.ends_with(": interrupted")), "{out}");
    assert!(err.lines().last().is_some_and(|line| line.starts_with("error: interrupted after ")), "{err}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("readable").count(), 0);
}

#[test]
fn a_run_can_be_ended_from_outside() {
    let folder = memory();
    let mut child = start(folder.path(), &["--json"]);
    assert_eq!(graph(folder.path(), &["terminate", "rates"]).0, 0);
    // A run that is not ended would go on for years: a minute is for ever.
    let ended = (0..12_000).any(|_| {
        thread::sleep(Duration::from_millis(5));
        child.try_wait().expect("a child of ours").is_some()
    });
    if !ended {
        child.kill().expect("a child of ours");
    }
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(0));
    let run: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let [a, b, c] = completed(&run)[..] else { panic!("three nodes") };
    // A may have been in a job, which it completes, but B no longer waits for.
    assert!([a * 4 / 7, (a - 1) * 4 / 7].contains(&b) && c == b * 5 / 3, "what was produced is used: {a} {b} {c}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn what_a_killed_run_leaves_is_listed_and_removed() {
    let folder = memory();
    end(start(folder.path(), &[]), Signal::SIGKILL);
    let list = json(folder.path(), &["list", "--json"]);
    assert_eq!((&list["graphs"][0]["name"], &list["graphs"][0]["in_use"]), (&"rates".into(), &false.into()));
    let (code, out, err) = graph(folder.path(), &["list"]);
    assert!(code == 0 && out.ends_with("left over\n") && err.contains("laxity graph gc"), "{out}{err}");
    let (code, _, err) = graph(folder.path(), &["show", "rates"]);
    assert!(code == 1 && err.contains("remove it with `laxity graph gc`"), "{err}");
    assert_eq!(names(folder.path()), ["rates"], "to look is not to remove");
    assert_eq!(graph(folder.path(), &["gc"]), (0, "rates\n".to_owned(), String::new()));
    assert!(names(folder.path()).is_empty());
    end(start(folder.path(), &[]), Signal::SIGKILL);
    assert_eq!(json(folder.path(), &["gc", "--json"])["removed"], Value::from(vec!["rates"]));
}

#[test]
fn a_graph_that_runs_is_not_run_twice() {
    let folder = memory();
    let child = start(folder.path(), &[]);
    let (code, _, err) = graph(folder.path(), &["run", &pipeline()]);
    assert!(code == 1 && err.starts_with("error: graph rates: exists and is in use"), "{err}");
    assert_eq!(end(child, Signal::SIGTERM).status.code(), Some(130));
}

/// The rates of the file, in a word.
#[test]
fn a_graph_can_be_written_on_the_command_line() {
    let folder = memory();
    let words = ["run", "-g", "A.4:B.7,B.5:C.3", "--period", "4ms", "--for", "200ms", "--name", "abc", "--json"];
    let run = json(folder.path(), &words);
    assert_eq!((completed(&run), run["graph"].as_str()), (vec![50, 28, 46], Some("abc")));
    assert!(names(folder.path()).is_empty());
    let words = ["run", "-g", "A:B,C:D", "--period", "2ms", "--cost", "B=1ms", "--for", "10ms", "--json"];
    let run = json(folder.path(), &words);
    assert_eq!(completed(&run), [5, 5, 5, 5]);
    assert!(run["nodes"][1]["end_to_end"]["min_ns"].as_u64().expect("a number") >= 1_000_000);
}

/// B's first job has its token before A has run: it arrives at the start, and no node begins before that.
#[test]
fn tokens_from_the_start_arrive_when_the_run_begins() {
    let folder = memory();
    let run = json(folder.path(), &["run", "-g", "A:B+1", "--rate", "500", "--jobs", "2", "--json"]);
    assert_eq!(completed(&run), [2, 3]);
    assert!(run["nodes"][1]["response_time"]["min_ns"].as_u64() > Some(0), "{run}");
}

/// 2 ms of CPU time take more than 1 ms: every job of the source is late, and later and later.
#[test]
fn late_jobs_are_counted_and_can_be_a_failure() {
    let folder = memory();
    let words = ["run", "-g", "A:B", "--period", "1ms", "--cost", "A=2ms", "--for", "20ms", "--json"];
    let run = json(folder.path(), &words);
    let a = &run["nodes"][0];
    assert_eq!((a["completed"].as_u64(), a["missed"].as_u64()), (Some(20), Some(20)));
    // Job 19 arrives after 19 ms, is due after 20 and completes after 40 at the earliest.
    assert!(a["tardiness_max_ns"].as_u64().expect("a number") >= 20_000_000);
    let (code, _, err) = graph(folder.path(), &[&words[..], &["--fail-on-miss"]].concat());
    assert!(code == 1 && err.contains("of 40 jobs missed their deadlines (--fail-on-miss)"), "{err}");
}

#[test]
fn edges_that_cannot_be_are_refused() {
    let folder = memory();
    let refused = |words: &[&str]| {
        let (code, out, err) = graph(folder.path(), &[&["run", "-g"], words].concat());
        assert_eq!(out, "", "{words:?}");
        (code, err)
    };
    let no_period = "error: node A: is a source and has no period; add one, as in --period A=10ms\n";
    assert_eq!(refused(&["A:B"]), (2, no_period.to_owned()));
    assert_eq!(refused(&["A-B", "--period", "1ms"]).0, 2);
    let (code, err) = refused(&["A:C,B:C", "--period", "A=1ms", "--period", "B=2ms"]);
    assert!(code == 2 && err.starts_with("error: -g: ") && err.contains('C'), "rates that differ: {err}");
    assert_eq!(graph(folder.path(), &["run"]).0, 2, "neither file nor edges");
}

#[test]
fn a_workload_without_the_graph_is_refused() {
    let folder = memory();
    let two = fixture("two.toml");
    let (code, _, err) = graph(folder.path(), &["run", two.to_str().expect("UTF-8")]);
    assert!(code == 2 && err.contains("the workload has no graph"), "{err}");
    let (code, _, err) = graph(folder.path(), &["run", &pipeline(), "--graph", "rate"]);
    assert!(code == 2 && err.contains("did you mean `rates`?"), "{err}");
    let (code, _, err) = graph(folder.path(), &["run", &pipeline(), "--edges", "pigeon"]);
    assert!(code == 2 && err.contains("use counter, ring, fifo, mq or tcp"), "{err}");
}
