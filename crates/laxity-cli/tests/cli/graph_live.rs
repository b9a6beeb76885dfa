//! `laxity graph run` with processes that are killed, in terminals, without permission.

use std::fs;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use laxity_graph::{Graph, Ownership, Registry};
use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::graph::{graph, json, memory, names};
use crate::graph_run::{completed, end};
use crate::support::example;
use crate::terminal::{self, Terminal};

/// `laxity graph --folder FOLDER` with these words, as it would be in a shell, without colours from the environment.
pub fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("laxity"));
    command.args(["graph", "--folder"]).arg(folder).args(words);
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env("TERM", "xterm");
    command
}

/// A run, which ends with the test if that fails.
pub struct Run(pub Option<Child>);

impl Run {
    /// It, to be waited for.
    pub fn into_child(mut self) -> Child {
        self.0.take().expect("it is there until then")
    }
}

impl Deref for Run {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.0.as_ref().expect("it is there until it is waited for")
    }
}

impl DerefMut for Run {
    fn deref_mut(&mut self) -> &mut Child {
        self.0.as_mut().expect("it is there until it is waited for")
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Starts a run of the graph A -> B -> C and waits until each node has completed a job, however long that takes.
pub fn start(folder: &Path, words: &[&str]) -> (Run, Graph) {
    let words = [&["run", "-g", "A:B,B:C", "--rate", "200", "--name", "abc"], words].concat();
    let mut command = command(folder, &words);
    let mut child = Run(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("runs")));
    loop {
        assert_eq!(child.try_wait().expect("a child of ours"), None, "it must not end by itself");
        if let Ok(graph) = Registry::at(folder).attach("abc") {
            while (0..3).any(|node| graph.status(node).completed == 0) {
                pause();
            }
            return (child, graph);
        }
        pause();
    }
}

fn pause() {
    thread::sleep(Duration::from_millis(5));
}

/// Waits until `is_so`; if that takes a minute, it never will be.
pub fn await_that(what: &str, is_so: impl Fn() -> bool) {
    for _ in 0..12_000 {
        if is_so() {
            return;
        }
        pause();
    }
    panic!("never: {what}");
}

/// The process that has a node.
pub fn owner(graph: &Graph, node: &str) -> Pid {
    match graph.status(graph.node(node).expect(node)).ownership {
        Ownership::Claimed { pid } => Pid::from_raw(i32::try_from(pid).expect("a process id")),
        other => panic!("{node} is {other:?}"),
    }
}

/// Whether no instruction of `pid` will be carried out any more: it is gone, or waits for its parent to notice.
fn is_over(pid: Pid) -> bool {
    let is_zombie = || {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|fields| fields.trim_start().starts_with(['Z', 'X']))
    };
    kill(pid, None) == Err(Errno::ESRCH) || is_zombie()
}

pub fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// As threads do: see `graph_run`.
#[test]
fn processes_complete_as_many_jobs_as_threads() {
    let folder = memory();
    let pipeline = example("pipeline.toml");
    let file = pipeline.to_str().expect("UTF-8");
    for edges in ["counter", "ring"] {
        let words = ["run", file, "--for", "200ms", "--no-work", "--edges", edges, "--processes", "--json"];
        let run = json(folder.path(), &words);
        assert_eq!(completed(&run), [50, 28, 46], "{edges}");
        assert_eq!((&run["nodes"][2]["end_to_end"]["count"], &run["nodes"][1]["lost"]), (&46.into(), &0.into()));
        assert!(names(folder.path()).is_empty(), "nothing is left");
    }
}

#[test]
fn each_node_has_a_process_of_its_own() {
    let folder = memory();
    let (child, graph) = start(folder.path(), &["--processes", "--for", "80000 h"]);
    let mut pids = ["A", "B", "C"].map(|node| owner(&graph, node));
    pids.sort();
    assert!(pids[0] < pids[1] && pids[1] < pids[2], "{pids:?}");
    assert!(pids.iter().all(|pid| pid.as_raw().unsigned_abs() != child.id()));
    end(child.into_child(), Signal::SIGINT);
    assert!(pids.into_iter().all(is_over));
}

#[test]
fn a_process_that_is_killed_is_replaced_and_no_job_is_lost() {
    let folder = memory();
    let (child, graph) = start(folder.path(), &["--processes", "--restart", "--jobs", "500", "--json"]);
    let victim = owner(&graph, "B");
    kill(victim, Signal::SIGKILL).expect("it runs");
    let output = child.into_child().wait_with_output().expect("ends");
    let errors = errors(&output);
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let killed = format!("warning: node B: process {victim} was killed by signal 9 (SIGKILL); process ");
    assert!(errors.starts_with(&killed) && errors.ends_with(" goes on\n"), "{errors}");
    let run: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(completed(&run), [500, 500, 500]);
    let count = |node: usize, what: &str| run["nodes"][node][what]["count"].clone();
    assert_eq!([count(0, "response_time"), count(1, "response_time"), count(2, "end_to_end")], [500, 500, 500]);
    let lost = [0, 1, 2].map(|node| run["nodes"][node]["lost"].clone());
    assert_eq!(lost, [0, 1, 0]);
    drop(graph);
    assert!(names(folder.path()).is_empty());
}

#[test]
fn a_process_that_is_killed_and_not_replaced_ends_the_graph() {
    let folder = memory();
    let (child, graph) = start(folder.path(), &["--processes", "--for", "80000 h"]);
    let victim = owner(&graph, "B");
    kill(victim, Signal::SIGKILL).expect("it runs");
    let output = child.into_child().wait_with_output().expect("ends");
    let errors = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let killed = format!(
        "warning: node B: process {victim} was killed by signal 9 (SIGKILL); the graph ends (--restart would start \
         another)\nerror: a node was lost, and the graph ended after "
    );
    assert!(errors.starts_with(&killed), "{errors}");
    let out = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(out.starts_with("abc: 3 nodes, ran for ") && out.contains(" lost "), "{out}");
}

/// Requests to end come more than once: Linux says the death of a parent again for each of its threads.
#[test]
fn a_process_that_is_asked_to_end_ends_its_node_and_is_no_loss() {
    let folder = memory();
    let (child, graph) = start(folder.path(), &["--processes", "--for", "80000 h", "--json"]);
    let pid = owner(&graph, "A");
    // With pauses, as requests that have not been heard are one.
    await_that("it ends", || kill(pid, Signal::SIGTERM).is_err() || is_over(pid));
    let output = child.into_child().wait_with_output().expect("ends when all that A wrote is used");
    assert_eq!((output.status.code(), errors(&output).as_str()), (Some(0), ""));
    let run: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let [a, b, c] = completed(&run)[..] else { panic!("three nodes") };
    assert!(a > 0 && (a, b) == (b, c), "{a} {b} {c}");
}

#[test]
fn processes_whose_parent_is_killed_end_and_leave_nothing() {
    let folder = memory();
    let (child, graph) = start(folder.path(), &["--processes", "--for", "80000 h"]);
    let pids = ["A", "B", "C"].map(|node| owner(&graph, node));
    drop(graph);
    end(child.into_child(), Signal::SIGKILL);
    await_that("the children end", || pids.into_iter().all(is_over));
    assert!(names(folder.path()).is_empty(), "the last one out takes the graph with it");
}

#[test]
fn ctrl_c_ends_all_processes_and_what_was_measured_is_printed() {
    let folder = memory();
    // B's second job would take half a day.
    let cost = "B={ recorded = [\"1 us\", \"12 h\"] }";
    let (child, graph) = start(folder.path(), &["--processes", "--for", "80000 h", "--cost", cost]);
    drop(graph);
    let output = end(child.into_child(), Signal::SIGTERM);
    let (out, errors) = (String::from_utf8_lossy(&output.stdout), errors(&output));
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert!(out.lines().next().is_some_and(|line| line.ends_with(": interrupted")), "{out}");
    assert!(errors.starts_with("error: interrupted after "), "an interruption is no loss: {errors}");
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0);
}

#[test]
fn a_second_ctrl_c_ends_at_once_whatever_is_going_on() {
    let folder = memory();
    let (mut child, graph) = start(folder.path(), &["--processes", "--for", "80000 h"]);
    let pids = ["A", "B", "C"].map(|node| owner(&graph, node));
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    // A process that cannot even notice keeps the run from ending by itself.
    kill(pids[1], Signal::SIGSTOP).expect("it runs");
    kill(pid, Signal::SIGINT).expect("it runs");
    await_that("the others end", || is_over(pids[0]) && is_over(pids[2]));
    assert_eq!(child.try_wait().expect("a child of ours"), None, "it waits for the one that does not end");
    // As soon as this the second request would be the first one said twice.
    std::thread::sleep(Duration::from_millis(100));
    kill(pid, Signal::SIGINT).expect("it runs");
    assert_eq!(child.wait().expect("ends").code(), Some(130));
    assert!(names(folder.path()).is_empty(), "though one process uses it");
    kill(pids[1], Signal::SIGCONT).expect("it is stopped");
    await_that("the stopped one ends", || is_over(pids[1]));
    drop(graph);
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0);
}

/// A waits for the token that B writes: they take turns, two jobs in flight at most.
#[test]
fn back_edges_hold_their_consumers_back() {
    let folder = memory();
    let words = ["run", "-g", "A:B,B:A@2", "--rate", "1000", "--jobs", "40", "--json"];
    for extra in [&[][..], &["--processes"]] {
        let run = json(folder.path(), &[&words[..], extra].concat());
        assert_eq!(completed(&run), [40, 40]);
        assert_eq!(run["nodes"][1]["end_to_end"]["count"], 40, "a back-edge does not keep B from being a sink");
    }
    let refused = |edges: &str| {
        let (code, _, err) = graph(folder.path(), &["run", "-g", edges, "--rate", "1000"]);
        assert_eq!(code, 2, "{err}");
        err
    };
    assert!(refused("A:B,B:A").contains("back-edge with initial tokens"));
    assert!(refused("A:B,B:A@0").contains("give it 1 or more"));
}

#[test]
fn costs_may_be_distributions_and_the_seed_chooses() {
    let folder = memory();
    let cost = "B={ recorded = [\"1 ms\", \"3 ms\"] }";
    let words = ["run", "-g", "A:B", "--rate", "100", "--jobs", "4", "--cost", cost, "--seed", "7", "--json"];
    let run = json(folder.path(), &words);
    let response = &run["nodes"][1]["response_time"];
    let at_least = |what: &str| response[what].as_u64().expect("a number");
    assert!(at_least("min_ns") >= 1_000_000 && at_least("max_ns") >= 3_000_000, "{response}");
    let (code, _, err) = graph(folder.path(), &["run", "-g", "A:B", "--rate", "1", "--cost", "{ uniform = [] }"]);
    assert!(code == 2 && err.contains("has 0 elements"), "{err}");
}

/// What Linux says of the thread called like its node in the process `pid`: a field of its status.
fn field(pid: Pid, thread: &str, field: &str) -> String {
    for task in fs::read_dir(format!("/proc/{pid}/task")).expect("it runs") {
        let status = fs::read_to_string(task.expect("an entry").path().join("status")).unwrap_or_default();
        let value = |field: &str| {
            let line = status.lines().find(|line| line.split(':').next() == Some(field));
            line.and_then(|line| Some(line.split_once(':')?.1.trim().to_owned()))
        };
        if value("Name").as_deref() == Some(thread) {
            return value(field).expect(field);
        }
    }
    panic!("process {pid} has no thread {thread}");
}

#[test]
fn a_node_keeps_to_its_cpus_and_has_its_working_set_in_memory() {
    let folder = memory();
    let (child, graph) =
        start(folder.path(), &["--processes", "--for", "80000 h", "--cpus", "B=0", "--working-set", "C=50 MB"]);
    assert_eq!(field(owner(&graph, "B"), "B", "Cpus_allowed_list"), "0");
    let resident = |node: &str| -> u64 {
        field(owner(&graph, node), node, "VmRSS").trim_end_matches(" kB").parse().expect("a number")
    };
    assert!(resident("C") >= resident("A") + 45_000, "{} and {} kB", resident("A"), resident("C"));
    end(child.into_child(), Signal::SIGINT);
    let (code, _, err) = graph_with("--cpus", "1023");
    assert!(code == 2 && err.contains("--cpus: CPU 1023 cannot be used; those that can are "), "{err}");
}

/// A run of A -> B with an option that is refused.
fn graph_with(option: &str, value: &str) -> (i32, String, String) {
    let folder = memory();
    let refused = graph(folder.path(), &["run", "-g", "A:B", "--rate", "100", option, value]);
    assert!(names(folder.path()).is_empty(), "nothing is begun");
    refused
}

/// Needs `setpriv` to give up the permission where the tests have it.
#[test]
fn priorities_without_permission_are_refused_before_anything_begins() {
    let folder = memory();
    let run = command(folder.path(), &["run", "-g", "A:B", "--rate", "100", "--jobs", "3", "--priorities", "rm"]);
    let mut without = Command::new("setpriv");
    without.args(["--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "sh", "-c", "ulimit -r 0; exec \"$@\"", "sh"]);
    without.arg(run.get_program()).args(run.get_args());
    let may_give_up = Command::new("setpriv").args(["--bounding-set=-sys_nice", "true"]).status();
    let mut run = if may_give_up.is_ok_and(|status| status.success()) { without } else { run };
    let output = run.output().expect("runs");
    let errors = errors(&output);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(
        errors.starts_with("error: SCHED_FIFO priority 1 is not permitted to this user; raise the limit"),
        "{errors}"
    );
    assert!(errors.contains("ulimit -r") && errors.contains("setcap cap_sys_nice+ep"), "{errors}");
    assert!(names(folder.path()).is_empty());
}

/// Where the tests have the permission; elsewhere the refusal is right.
#[test]
fn priorities_are_those_that_the_rule_gives() {
    let folder = memory();
    let words = ["run", "-g", "A:B", "--rate", "100", "--jobs", "3", "--priorities", "depth", "--json"];
    let (code, _, err) = graph(folder.path(), &words);
    if code != 0 {
        assert!(err.contains("is not permitted"), "{err}");
        return;
    }
    let extra = ["--processes", "--for", "80000 h", "--priorities", "depth", "--priority", "A=9"];
    let (child, graph) = start(folder.path(), &extra);
    let priority = |node: &str| {
        let pid = owner(&graph, node);
        let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("it runs");
        let stat =
            threads.map(|task| fs::read_to_string(task.expect("an entry").path().join("stat")).expect("a thread"));
        let stat = stat.into_iter().find(|stat| stat.contains(&format!("({node})"))).expect("a thread for the node");
        // Fields 40 and 41 of /proc/PID/stat: priority and policy, of which 1 is SCHED_FIFO.
        let fields: Vec<String> =
            stat.rsplit(')').next().expect("fields").split_whitespace().skip(37).map(str::to_owned).collect();
        (fields[0].clone(), fields[1].clone())
    };
    let found = ["A", "B", "C"].map(priority);
    end(child.into_child(), Signal::SIGINT);
    assert_eq!(found, ["9", "2", "3"].map(|priority| (priority.to_owned(), "1".to_owned())));
}

#[test]
fn a_terminal_shows_a_table_in_its_place_and_keeps_only_the_summary() {
    let folder = memory();
    let words = ["run", "-g", "A:B", "--rate", "100", "--for", "600ms", "--every", "30ms"];
    let written = Terminal::start(command(folder.path(), &words)).finish();
    assert!(written.contains("waiting") && written.contains("tokens waiting"), "{written}");
    let screen = terminal::screen(&written);
    assert!(screen[0].starts_with("graph: 2 nodes, ran for "), "{screen:#?}");
    assert!(screen.last().is_some_and(|line| line.starts_with("total ")), "{screen:#?}");
    assert_eq!(screen.len(), 9, "heading, empty, three lines of headings, two nodes, rule, total: {screen:#?}");
}

#[test]
fn a_terminal_without_colour_gets_none() {
    let folder = memory();
    let words = ["run", "-g", "A:B", "--rate", "100", "--for", "300ms", "--every", "30ms"];
    let mut command = command(folder.path(), &words);
    command.env("NO_COLOR", "1");
    let written = Terminal::start(command).finish();
    let coloured = written.split("\u{1b}[").skip(1).filter(|rest| {
        rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ';').starts_with('m')
    });
    assert_eq!(coloured.count(), 0, "{written:?}");
    assert!(written.contains("waiting"), "{written:?}");
}

#[test]
fn what_is_no_terminal_gets_a_line_now_and_then_and_no_colour() {
    let folder = memory();
    let words = ["run", "-g", "A:B", "--rate", "100", "--for", "600ms", "--every", "50ms"];
    let (code, out, err) = graph(folder.path(), &words);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("graph: 2 nodes"), "{out}");
    let is_line =
        |line: &str| line.starts_with("graph: ") && line.contains(" of 600 ms, ") && line.contains(" late, 0 lost");
    assert!(err.lines().count() > 0 && err.lines().all(is_line), "{err}");
    assert!(err.lines().last().is_some_and(|line| line.contains("B end to end ")), "{err}");
    assert!(!err.contains('\u{1b}'), "{err:?}");
}

#[test]
fn options_that_cannot_be_are_refused_before_anything_begins() {
    let refused = [
        ("--priority", "A=0", "no priority; write NODE=1"),
        ("--priority", "Z=5", "no node is called Z"),
        ("--priorities", "fair", "write rm, dm, depth, or a number"),
        ("--cpus", "two", "write them as in"),
        ("--rate", "A=0", "is no rate"),
        ("--rate", "B=5", "is no source"),
        ("--working-set", "64", "has no unit"),
        ("--edges", "A:C=ring", "no edge is called A:C; did you mean `A:B`?"),
        ("--jobs", "0", "0 is not in 1.."),
    ];
    for (option, value, expected) in refused {
        let (code, out, err) = graph_with(option, value);
        assert_eq!((code, out.as_str()), (2, ""), "{option} {value}: {err}");
        assert!(err.contains(expected), "{option} {value}: {err}");
    }
    let (code, _, err) = graph_with("--restart", "");
    assert!(code == 2, "it needs processes: {err}");
    // More than any address space has.
    let (code, _, err) = graph_with("--working-set", "16000000 TB");
    assert!(code == 1 && err.contains("make it smaller"), "{err}");
}
