//! `laxity graph watch`.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::graph::{json, memory};
use crate::graph_live::{Run, await_that, command, errors, start};
use crate::graph_run::{completed, end};
use crate::terminal::{self, Terminal};

#[test]
fn a_graph_of_others_is_watched_until_it_ends() {
    let folder = memory();
    let (child, graph) = start(folder.path(), &["--for", "80000 h", "--json"]);
    let pid = child.id();
    let watch = command(folder.path(), &["watch", "abc", "--json", "--every", "20ms"]).stdout(Stdio::piped()).spawn();
    let mut watch = watch.expect("runs");
    let mut first = String::new();
    let mut lines = BufReader::new(watch.stdout.take().expect("a pipe"));
    lines.read_line(&mut first).expect("a look");
    let completed = graph.status(2).completed;
    await_that("it goes on", || graph.status(2).completed > completed + 20);
    drop(graph);
    assert_eq!(crate::graph::graph(folder.path(), &["terminate", "abc"]).0, 0);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("UTF-8");
    assert_eq!(watch.wait().expect("ends with the graph").code(), Some(0));
    let run: Value =
        serde_json::from_slice(&child.into_child().wait_with_output().expect("ends").stdout).expect("JSON");
    let looks: Vec<Value> =
        (first + &rest).lines().map(|line| serde_json::from_str(line).expect("a line of JSON for each look")).collect();
    let jobs = |look: &Value| look["nodes"][2]["completed"].as_u64().expect("a number");
    assert!(looks.len() >= 2 && looks.windows(2).all(|pair| jobs(&pair[0]) <= jobs(&pair[1])));
    let (first, last) = (&looks[0], &looks[looks.len() - 1]);
    assert_eq!((&first["graph"], &first["nodes"][0]["pid"]), (&"abc".into(), &pid.into()));
    let response = |field: &str| first["nodes"][2][field].as_u64().expect("it completed jobs");
    assert!(response("response_p50_ns") > 0 && response("response_p50_ns") <= response("response_max_ns"));
    assert!(looks.iter().any(|look| look["nodes"][0]["rate_per_s"].as_f64().is_some_and(|rate| rate > 0.0)));
    assert_eq!(last["nodes"][2]["state"], "ended");
    assert_eq!(jobs(last), completed_of(&run, 2));
}

fn completed_of(run: &Value, node: usize) -> u64 {
    completed(run)[node]
}

#[test]
fn a_watch_of_what_is_killed_says_so() {
    let folder = memory();
    let (child, graph) = start(folder.path(), &["--for", "80000 h", "--cost", "B=4ms"]);
    let watch = command(folder.path(), &["watch", "abc"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let watch = watch.expect("runs");
    // The watch is attached when there are three: the run, this test, and it.
    let pid = watch.id();
    await_that("the watch is there", || is_attached(pid));
    drop(graph);
    end(child.into_child(), Signal::SIGKILL);
    let output = watch.wait_with_output().expect("ends");
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), errors(&output));
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("error: graph abc: all its processes have ended, 3 nodes in the middle"), "{errors}");
    // Node, state, jobs, jobs a second, response times, how often it was lost.
    let last: Vec<&str> = out.lines().last().expect("a table").split_whitespace().collect();
    assert_eq!((last[0], last[1], last[6]), ("C", "lost", "1"), "{out}");
}

/// Whether a process has the thread that each process has that is attached to a graph.
fn is_attached(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
    let name = |task: fs::DirEntry| fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    tasks.flatten().any(|task| name(task).starts_with("laxity-guardian"))
}

#[test]
fn a_node_that_stays_lost_was_lost_once() {
    let folder = memory();
    let running = crate::graph::create(folder.path());
    let mut camera = running.claim("camera").expect("it is free");
    assert_eq!(camera.wait().expect("there is room").index(), 0);
    // In the middle of a job.
    drop(camera);
    let words = ["watch", "car", "--json", "--every", "20ms"];
    let mut watch = Run(Some(command(folder.path(), &words).stdout(Stdio::piped()).spawn().expect("runs")));
    let lines = BufReader::new(watch.stdout.take().expect("a pipe")).lines().take(4);
    for line in lines {
        let look: Value = serde_json::from_str(&line.expect("UTF-8")).expect("a line of JSON for each look");
        assert_eq!((&look["nodes"][0]["state"], &look["nodes"][0]["lost"]), (&"lost".into(), &1.into()));
        assert_eq!((&look["nodes"][1]["state"], &look["nodes"][1]["lost"]), (&"free".into(), &0.into()));
    }
}

#[test]
fn a_watch_in_a_terminal_leaves_the_last_table() {
    let folder = memory();
    let (child, graph) = start(folder.path(), &["--for", "80000 h"]);
    let watch = Terminal::start(command(folder.path(), &["watch", "abc", "--every", "20ms"]));
    await_that("the watch is there", || is_attached(watch.id()));
    drop(graph);
    end(child.into_child(), Signal::SIGINT);
    let written = watch.finish();
    let screen = terminal::screen(&written);
    let is_ended = |line: &String| line.split_whitespace().nth(1) == Some("ended");
    assert!(screen.len() == 6 && screen[3..].iter().all(is_ended), "{screen:#?}");
}

#[test]
fn one_look_is_a_table_or_a_line() {
    let folder = memory();
    let (child, graph) = start(folder.path(), &["--for", "80000 h"]);
    let (code, out, err) = crate::graph::graph(folder.path(), &["watch", "abc", "--once"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.lines().last().is_some_and(|line| line.starts_with("C ")), "{out}");
    let look = json(folder.path(), &["watch", "abc", "--once", "--json"]);
    assert_eq!(look["edges"][1]["from"], "B");
    drop(graph);
    end(child.into_child(), Signal::SIGINT);
    let (code, _, err) = crate::graph::graph(folder.path(), &["watch", "abc"]);
    assert!(code == 2 && err.contains("does not exist"), "{err}");
}
