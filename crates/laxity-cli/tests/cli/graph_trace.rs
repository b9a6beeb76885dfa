//! Traces of live graphs: `laxity graph run --trace`, `laxity graph record`, and what `laxity trace` makes of them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use laxity_graph::{MEMBERS_MAX, Registry};
use nix::sys::signal::{Signal, kill};
use serde_json::Value;
use tempfile::TempDir;

use crate::graph::{create, graph, json, memory, names};
use crate::graph_live::{await_that, command, errors, owner, start};
use crate::graph_run::{completed, end};
use crate::support::{example, run};

/// A place for graphs and, elsewhere, for their traces.
fn places() -> (TempDir, TempDir, PathBuf) {
    let (graphs, traces) = (memory(), crate::support::folder());
    let path = traces.path().join("run.lxt");
    (graphs, traces, path)
}

/// `laxity trace PATH` with these words.
fn trace(path: &Path, words: &[&str]) -> (i32, String, String) {
    run(["trace", text(path)].iter().chain(words))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Rows of one of its tables.
fn rows(path: &Path, table: &str) -> Vec<Value> {
    let (code, out, err) = trace(path, &["export", "--table", table, "--format", "json", "-o", "-"]);
    assert_eq!((code, err.as_str()), (0, ""));
    serde_json::from_str(&out).expect("JSON")
}

/// The jobs of a node, and of each one of its columns.
fn column(path: &Path, node: &str, column: &str) -> Vec<u64> {
    let jobs = rows(path, "jobs").into_iter().filter(|job| job["task_name"] == node);
    jobs.map(|job| job[column].as_u64().expect("a number")).collect()
}

/// Complete, and legal: judged without deadlines, which the load of the machine decides.
#[track_caller]
fn assert_legal(path: &Path) {
    let (code, out, err) = trace(path, &["check", "--ignore-deadlines"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    // A recorder of a graph of others does not know their class.
    let is_live = out.contains("scheduled by SCHED_OTHER\n") || out.contains("scheduled by Linux\n");
    assert!(is_live && out.contains("yes  a legal schedule"), "{out}");
    assert!(!out.contains("follows"), "what Linux did is no claim of ours: {out}");
}

/// In a trace jobs complete a little later than where they are measured: after that was written down. So no percentile
/// is below, and deadlines that are missed there are missed here.
#[test]
fn the_trace_of_a_run_is_legal_and_agrees_with_what_the_run_prints() {
    let (folder, _traces, path) = places();
    let file = example("pipeline.toml");
    for extra in [&[][..], &["--processes"], &["--edges", "ring"]] {
        let words = ["run", text(&file), "--for", "200ms", "--no-work", "--json", "--trace", text(&path)];
        let run = json(folder.path(), &[&words, extra].concat());
        assert_legal(&path);
        let (code, out, err) = trace(&path, &["metrics", "--json"]);
        assert_eq!((code, err.as_str()), (0, ""));
        let metrics: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(metrics["origin"], "live");
        let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{value} is no number"));
        for (node, task) in metrics["tasks"].as_array().expect("tasks").iter().enumerate() {
            let ran = &run["nodes"][node];
            assert_eq!((&task["completed"], &task["released"]), (&ran["completed"], &ran["completed"]), "{extra:?}");
            assert!(number(&task["missed"]) >= number(&ran["missed"]), "{extra:?}");
        }
        let (ran, traced) = (&run["nodes"][2]["end_to_end"], &metrics["graphs"][0]["end_to_end"]);
        assert_eq!(ran["count"], traced["count"], "{extra:?}");
        for field in ["p50_ns", "p99_ns", "max_ns"] {
            assert!(number(&traced[field]) >= number(&ran[field]), "{extra:?} {field}: {traced} {ran}");
        }
        assert_eq!((&run["trace"]["lost"], run["trace"]["records"].as_u64() > Some(500)), (&0.into(), true));
    }
    assert!(names(folder.path()).is_empty());
}

/// 2 ms of CPU time every millisecond: job j begins ever later after j ms, long after others were written.
#[test]
fn late_jobs_are_released_when_they_should_have_been() {
    let (folder, _traces, path) = places();
    let words = ["run", "-g", "A:B", "--period", "1ms", "--cost", "A=2ms", "--for", "60ms", "--trace", text(&path)];
    let run = json(folder.path(), &[&words[..], &["--json"]].concat());
    assert_eq!((completed(&run), &run["trace"]["late"]), (vec![60, 60], &0.into()));
    let expected: Vec<u64> = (0..60).map(|job| job * 1_000_000).collect();
    assert_eq!(column(&path, "graph/A", "release_ns"), expected);
    let due: Vec<u64> = (1..=60).map(|job| job * 1_000_000).collect();
    assert_eq!(column(&path, "graph/A", "deadline_ns"), due);
    assert_legal(&path);
}

/// A job of A writes two tokens, so that B's second job has its token when its first has, and its release is 5 ms later.
#[test]
fn jobs_wait_for_their_releases_only_if_that_is_asked() {
    let (folder, _traces, path) = places();
    let words = ["run", "-g", "A.2:B", "--period", "10ms", "--for", "20ms", "--quiet", "--trace", text(&path)];
    let began = || {
        let began = rows(&path, "events").into_iter();
        let began = began.filter(|event| event["task_name"] == "graph/B" && event["event"] == "ready");
        began.map(|event| event["at_ns"].as_u64().expect("a number")).collect::<Vec<u64>>()
    };
    assert_eq!(graph(folder.path(), &[&words[..], &["--on-time"]].concat()), (0, String::new(), String::new()));
    let (began_on_time, released) = (began(), column(&path, "graph/B", "release_ns"));
    assert_eq!(released.len(), 4);
    assert!(began_on_time.iter().zip(&released).all(|(began, release)| began >= release));
    assert!(released[1] >= released[0] + 5_000_000 && released[3] >= released[2] + 5_000_000, "{released:?}");
    assert_eq!(graph(folder.path(), &words).0, 0);
    // In the trace a job that begins early is released then, and due as if it had not been early.
    let due = column(&path, "graph/B", "deadline_ns");
    assert_eq!(began().len(), 4);
    assert!(due[1] >= due[0] + 5_000_000 && due[3] >= due[2] + 5_000_000, "{due:?}");
}

#[test]
fn pictures_and_tables_say_that_a_trace_is_live() {
    let (folder, traces, path) = places();
    let words = ["run", "-g", "A:B", "--rate", "500", "--jobs", "9", "--quiet", "--trace", text(&path)];
    assert_eq!(graph(folder.path(), &words), (0, String::new(), String::new()));
    let svg = traces.path().join("run.svg");
    for (words, says) in [
        (&["info"][..], "recorded live\nscheduler  Linux, SCHED_OTHER\n"),
        (&["metrics"], "scheduler  Linux, SCHED_OTHER\n"),
        (&["gantt", "--width", "80"], "graph, scheduled by SCHED_OTHER, recorded live\n"),
        (&["gantt", "--svg", text(&svg)], ""),
    ] {
        let (code, out, err) = trace(&path, words);
        assert!((code, err.as_str()) == (0, "") && out.contains(says), "{words:?}: {out}{err}");
        assert!(!out.contains("G-EDF") && !out.contains("quantum") && !out.contains("idle"), "{words:?}: {out}");
    }
    assert!(std::fs::read_to_string(&svg).expect("written").contains("scheduled by SCHED_OTHER · recorded live"));
    let perfetto = traces.path().join("run.pftrace");
    assert_eq!(trace(&path, &["export", "-o", text(&perfetto)]).0, 0);
    let bytes = std::fs::read(&perfetto).expect("written");
    let says = |what: &str| bytes.windows(what.len()).any(|window| window == what.as_bytes());
    assert!(says("graph, recorded live") && says("graph/A") && !says("G-EDF"));
}

#[test]
fn an_interrupted_run_leaves_a_whole_trace() {
    for extra in [&[][..], &["--processes"]] {
        let (folder, _traces, path) = places();
        let words = [&["--for", "80000 h", "--quiet", "--trace", text(&path)], extra].concat();
        let (child, graph) = start(folder.path(), &words);
        assert!(path.exists(), "a recording has its name from the start");
        drop(graph);
        assert_eq!(end(child.into_child(), Signal::SIGINT).status.code(), Some(130));
        assert_legal(&path);
        // The job that the interrupt found under way may have none.
        let completed = |job: &Value| job["task_name"] == "abc/C" && !job["completion_ns"].is_null();
        assert!(rows(&path, "jobs").iter().any(completed));
        assert!(names(folder.path()).is_empty());
    }
}

#[test]
fn a_node_that_is_killed_leaves_a_legal_trace_whether_or_not_it_is_replaced() {
    for extra in [&["--restart", "--jobs", "60"][..], &["--for", "80000 h"]] {
        let (folder, _traces, path) = places();
        let words = [&["--processes", "--quiet", "--trace", text(&path)], extra].concat();
        let (child, graph) = start(folder.path(), &words);
        kill(owner(&graph, "B"), Signal::SIGKILL).expect("it runs");
        drop(graph);
        let output = child.into_child().wait_with_output().expect("ends");
        let is_replaced = extra[0] == "--restart";
        assert_eq!(output.status.code(), Some(i32::from(!is_replaced)), "{}", errors(&output));
        assert_legal(&path);
        if is_replaced {
            assert_eq!(["abc/A", "abc/B", "abc/C"].map(|node| column(&path, node, "job").len()), [60; 3]);
        }
    }
}

/// 1000 jobs in 100 ms, of which nodes remember two between looks that are 20 ms apart: the trace comes from logs.
#[test]
fn the_trace_of_a_run_does_not_depend_on_what_nodes_remember() {
    let (folder, _traces, path) = places();
    let words = ["run", "-g", "A:B", "--rate", "10000", "--for", "100ms", "--recorder", "2", "--trace", text(&path)];
    let run = json(folder.path(), &[&words[..], &["--json"]].concat());
    assert_eq!((completed(&run), &run["trace"]["lost"]), (vec![1000, 1000], &0.into()));
    assert_legal(&path);
    assert_eq!(column(&path, "graph/B", "job").len(), 1000);
    assert_eq!(graph(folder.path(), &[&words[..9], &["0"]].concat()).0, 2, "without memory there are no deadlines");
}

#[test]
fn a_trace_that_cannot_be_written_is_an_error_and_leaves_nothing() {
    let (folder, traces, _) = places();
    let missing = traces.path().join("missing/run.lxt");
    let words = ["run", "-g", "A:B", "--rate", "100", "--trace", text(&missing)];
    let (code, out, err) = graph(folder.path(), &words);
    assert!((code, out.as_str()) == (1, "") && err.contains("missing/run.lxt"), "{out}{err}");
    // A full device fails in the middle, and the run ends at once.
    let words = ["run", "-g", "A:B", "--rate", "10000", "--for", "80000 h", "--trace", "/dev/full"];
    let (code, _, err) = graph(folder.path(), &words);
    assert!(code == 1 && err.contains("/dev/full"), "{err}");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_graph_of_others_is_recorded_until_it_ends() {
    let (folder, _traces, path) = places();
    let (child, live) = start(folder.path(), &["--for", "80000 h", "--quiet"]);
    let mut recording = command(folder.path(), &["record", "abc", text(&path), "--json"]);
    let recording = recording.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs");
    let part = folder.path().join("part.lxt");
    let (code, out, err) = graph(folder.path(), &["record", "abc", text(&part), "--for", "30ms"]);
    assert!((code, err.as_str()) == (0, "") && out.starts_with("abc: recorded for "), "{out}{err}");
    assert_legal(&part);
    // That it has begun is seen by its temporary file.
    let is_writing = || std::fs::read_dir(path.parent().expect("a folder")).expect("readable").count() > 0;
    await_that("it records", is_writing);
    assert_eq!(graph(folder.path(), &["terminate", "abc"]).0, 0);
    assert_eq!(child.into_child().wait().expect("ends").code(), Some(0));
    let output = recording.wait_with_output().expect("ends when the graph has");
    assert_eq!((output.status.code(), errors(&output).as_str()), (Some(0), ""));
    let recorded: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((&recorded["graph"], &recorded["lost"], &recorded["missed"]), (&"abc".into(), &0.into(), &0.into()));
    assert_legal(&path);
    assert_eq!(column(&path, "abc/C", "job").len() as u64, live.status(2).completed);
    drop(live);
    std::fs::remove_file(part).expect("it was written");
    assert!(names(folder.path()).is_empty());
}

#[test]
fn what_killed_processes_left_is_recorded_and_stays() {
    let (folder, _traces, path) = places();
    let (child, live) = start(folder.path(), &["--for", "80000 h"]);
    drop(live);
    end(child.into_child(), Signal::SIGKILL);
    for _ in 0..2 {
        let (code, out, err) = graph(folder.path(), &["record", "abc", text(&path)]);
        assert!((code, err.as_str()) == (0, "") && out.starts_with("abc: recorded for "), "{out}{err}");
        assert_legal(&path);
        assert!(!column(&path, "abc/C", "completion_ns").is_empty());
        assert_eq!(names(folder.path()), ["abc"]);
    }
    assert_eq!(graph(folder.path(), &["gc"]).1, "abc\n");
}

#[test]
fn what_does_not_exist_or_remembers_nothing_cannot_be_recorded() {
    let (folder, _traces, path) = places();
    let live = create(folder.path());
    let (code, _, err) = graph(folder.path(), &["record", "cra", text(&path)]);
    assert!(code == 2 && err.contains("did you mean `car`?"), "{err}");
    drop(live);
    let spec = create(folder.path()).spec().clone().with_recorder(0).expect("off");
    let _live = Registry::at(folder.path()).create(&spec).expect("the name is free");
    let (code, _, err) = graph(folder.path(), &["record", "car", text(&path)]);
    assert!(code == 1 && err.contains("it has no recorder"), "{err}");
    assert!(!path.exists());
}

#[test]
fn more_processes_than_fit_a_graph_are_refused_up_front() {
    let folder = memory();
    let chain: Vec<String> = (1..MEMBERS_MAX).map(|node| format!("N{}:N{node}", node - 1)).collect();
    let words = ["run", "-g", &chain.join(","), "--rate", "100", "--jobs", "1", "--quiet"];
    let (code, _, err) = graph(folder.path(), &[&words[..], &["--processes"]].concat());
    let expected = "error: --processes: the graph has 127 nodes, but only 126 can be processes; leave it out\n";
    assert_eq!((code, err.as_str()), (2, expected));
    assert_eq!(graph(folder.path(), &words), (0, String::new(), String::new()));
}

/// Where the tests have the permission; elsewhere the refusal is right.
#[test]
fn linux_reserves_cpu_time_for_deadlines_or_the_refusal_says_what_it_takes() {
    let folder = memory();
    let words = ["run", "-g", "A:B", "--rate", "100", "--cost", "100us", "--deadline-scheduling"];
    let (code, _, err) = graph(folder.path(), &[&words[..], &["--jobs", "3"]].concat());
    if code != 0 {
        assert!(code == 1 && err.starts_with("error: SCHED_DEADLINE is refused: "), "{err}");
        assert!(names(folder.path()).is_empty());
        return;
    }
    let (code, _, err) = graph(folder.path(), &[&words[..], &["--jobs", "3", "--cost", "B=9.95ms"]].concat());
    assert!(code == 2 && err.contains("node B: 10.05 ms (its cost and 100 us) exceeds its deadline of 10 ms"), "{err}");
    assert_eq!(graph(folder.path(), &[&words[..], &["--priorities", "rm"]].concat()).0, 2);
}

/// A shell's view of the whole: a run in one, its trace in another.
#[test]
fn a_trace_of_a_run_can_be_a_pipe() {
    let folder = memory();
    let laxity = assert_cmd::cargo::cargo_bin!("laxity").display().to_string();
    let script = format!(
        "mkfifo $0/pipe; {laxity} graph --folder $0 run -g A:B --rate 500 --jobs 20 --quiet --trace $0/pipe & \
         {laxity} trace - check --ignore-deadlines < $0/pipe; status=$?; wait; rm $0/pipe; exit $status"
    );
    let output = Command::new("sh").args(["-c", &script]).arg(folder.path()).output().expect("a shell");
    assert_eq!((output.status.code(), errors(&output).as_str()), (Some(0), ""));
}
