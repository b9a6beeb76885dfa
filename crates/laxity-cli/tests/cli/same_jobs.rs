//! One file and one seed: `laxity simulate`, `laxity run` and `laxity graph run` execute the same jobs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::graph::memory;
use crate::support::{folder, run};

/// A task in front of the graph, so that its nodes do not have the numbers that they would have alone; GPU operations, a
/// critical section and a non-preemptive one, which `laxity graph run` is to execute, too.
const WORKLOAD: &str = r#"laxity = 1
name = "same"
[platform]
cpus = 1
[[platform.gpu]]
name = "gpu0"
bandwidth = "12 GB/s"
[scheduler]
policy = "G-EDF"
[gpu_management]
arbitration = "k_fmlp"
[[resource]]
name = "door"
[[task]]
name = "control"
period = "50 ms"
phase = "30 ms"
body = [{ cpu = "2 ms", actual = { uniform = ["100 us", "2 ms"] } }]
[[graph]]
name = "NAME"
edge = ["camera -> detect"]
[[graph.node]]
name = "camera"
period = "50 ms"
body = [
    { cpu = "4 ms", actual = { uniform = ["200 us", "4 ms"] } },
    { suspend = "6 ms", actual = { uniform = ["1 ms", "6 ms"] } },
    { critical = "door", body = [{ cpu = "1 ms", actual = { uniform = ["100 us", "1 ms"] } }] },
]
[[graph.node]]
name = "detect"
body = [
    { nonpreemptive = "2 ms", actual = { uniform = ["100 us", "2 ms"] } },
    { kernel = "8 ms", actual = { uniform = ["1 ms", "8 ms"] } },
    { cpu = "3 ms", actual = { uniform = ["200 us", "3 ms"] } },
]
"#;

/// A job: when it was released and due, and how long it took from its beginning to its completion.
type Jobs = BTreeMap<(String, u64), (u64, u64, u64)>;

/// The complete jobs of the trace at `path`.
fn jobs(path: &Path) -> Jobs {
    let rows = |table: &str| -> Vec<Value> {
        let path = path.to_str().expect("UTF-8");
        let (code, out, err) = run(["trace", path, "export", "--table", table, "--format", "json", "-o", "-"]);
        assert_eq!(code, 0, "{err}");
        serde_json::from_str(&out).expect("JSON")
    };
    let key = |row: &Value| Some((row["task_name"].as_str()?.to_owned(), row["job"].as_u64()?));
    let events = rows("events");
    let ready = events.iter().filter(|event| event["event"] == "ready");
    let begun: BTreeMap<_, u64> = ready.filter_map(|event| Some((key(event)?, event["at_ns"].as_u64()?))).collect();
    let job = |row: &Value| {
        let key = key(row)?;
        let number = |column: &str| row[column].as_u64();
        let took = number("completion_ns")? - begun.get(&key)?;
        Some((key, (number("release_ns")?, number("deadline_ns")?, took)))
    };
    rows("jobs").iter().filter_map(job).filter(|((name, _), _)| !name.starts_with("irq/")).collect()
}

/// No two simulated jobs want the CPU at the same time: each takes what it needs, and a live job takes no less. Of jobs that
/// were drawn with another key about every other one would.
#[test]
fn one_file_and_one_seed_are_the_same_jobs_simulated_run_and_run_as_a_graph() {
    let (folder, graphs) = (folder(), memory());
    let name = format!("same-{}", std::process::id());
    let path = |file: &str| folder.path().join(file).display().to_string();
    let (file, simulated, ran, graph_ran) = (path("w.toml"), path("s.lxt"), path("r.lxt"), path("g.lxt"));
    fs::write(&file, WORKLOAD.replace("NAME", &name)).expect("a file");
    let done = |words: &[&str]| {
        let (code, _, err) = run(words);
        assert_eq!(code, 0, "{words:?}: {err}");
    };
    done(&["simulate", &file, "--for", "1 s", "--seed", "5", "--quiet", "--trace", &simulated]);
    done(&["run", &file, "--for", "600 ms", "--seed", "5", "--quiet", "--scheduler", "other", "--trace", &ran]);
    let graphs = graphs.path().to_str().expect("UTF-8");
    let words = ["graph", "--folder", graphs, "run", &file, "--for", "600 ms", "--seed", "5", "--quiet", "--trace"];
    done(&[&words[..], &[&graph_ran]].concat());
    let (simulated, ran, graph_ran) = (jobs(Path::new(&simulated)), jobs(Path::new(&ran)), jobs(Path::new(&graph_ran)));
    assert_eq!((ran.len(), graph_ran.len()), (36, 24), "all that is released before the end, and the task is no node");
    let source = format!("{name}/camera");
    for (key, &(release, deadline, took)) in ran.iter().chain(&graph_ran) {
        let &(expected_release, expected_deadline, needed) = simulated.get(key).expect("it is simulated, too");
        assert!(took >= needed, "{key:?} took {took} ns and needs {needed} ns");
        if key.0 == source || key.0 == "control" {
            assert_eq!((release, deadline), (expected_release, expected_deadline), "{key:?}");
        }
    }
}

/// Each grant of a lock, each operation and each section is in the trace of a graph that runs by itself.
#[test]
fn graph_run_executes_resources_and_gpu_operations() {
    let (folder, graphs) = (folder(), memory());
    let path = |file: &str| folder.path().join(file).display().to_string();
    let (file, trace) = (path("w.toml"), path("g.lxt"));
    fs::write(&file, WORKLOAD.replace("NAME", "both")).expect("a file");
    let graphs = graphs.path().to_str().expect("UTF-8");
    let words = ["graph", "--folder", graphs, "run", &file, "--for", "200 ms", "--trace", &trace];
    let (code, _, err) = run(words);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("GPUs are soft") && err.contains("can be preempted under SCHED_OTHER"), "{err}");
    let (code, out, err) = run(["trace", &trace, "check", "--ignore-deadlines"]);
    assert_eq!(code, 0, "{out}{err}");
    let (_, out, _) = run(["trace", &trace, "export", "--table", "events", "--format", "json", "-o", "-"]);
    let events: Vec<Value> = serde_json::from_str(&out).expect("JSON");
    let count = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((count("grant"), count("unlock"), count("engine_begin"), count("engine_end")), (8, 8, 4, 4));
    let (code, _, err) = run(["graph", "--folder", graphs, "run", &file, "--for", "200 ms", "--processes"]);
    assert!(code == 1 && err.contains("leave out --processes, or take --no-work"), "{err}");
}
