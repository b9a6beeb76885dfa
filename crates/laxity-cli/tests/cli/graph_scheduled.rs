//! `laxity graph run --processes --scheduler laxity`: the nodes' processes are the tasks of one system.

use std::fs;

use laxity_testing::{Alone, skip};
use nix::sys::signal::{Signal, kill};

use crate::graph::{memory, names};
use crate::graph_live::{await_that, command, errors, owner, start};
use crate::support::{example, run};

/// A workload whose only graph has deadlines beyond periods.
fn pipeline() -> String {
    example("pipeline.toml").to_str().expect("UTF-8").to_owned()
}

/// Whether Linux does not let this user have real-time threads.
fn is_refused(errors: &str) -> bool {
    let refused = errors.contains("SCHED_FIFO") || errors.contains("is not permitted");
    if refused {
        skip(errors);
    }
    refused
}

#[test]
fn processes_of_nodes_are_tasks_of_one_system_and_their_trace_is_judged_by_its_policy() {
    let (_alone, folder, traces) = (Alone::with_the_scheduler(), memory(), crate::support::folder());
    let path = traces.path().join("run.lxt");
    let trace = path.to_str().expect("UTF-8");
    let file = pipeline();
    for policy in ["G-EDF", "G-DM"] {
        let words = ["run", &file, "--for", "300ms", "--processes", "--scheduler", "laxity", "--policy", policy];
        let output = command(folder.path(), &[&words[..], &["--trace", trace]].concat()).output().expect("it starts");
        let said = errors(&output);
        if is_refused(&said) {
            return;
        }
        assert_eq!((output.status.code(), said.as_str()), (Some(0), ""), "{policy}");
        let (code, out, err) = run(["trace", trace, "check", "--ignore-deadlines"]);
        assert_eq!((code, err.as_str()), (0, ""), "{policy}: {out}");
        assert!(out.contains("yes  a legal schedule") && out.contains(&format!("yes  follows {policy}")), "{out}");
        let (_, jobs, _) = run(["trace", trace, "metrics", "--json"]);
        let jobs: serde_json::Value = serde_json::from_str(&jobs).expect("JSON");
        assert!(jobs["total"]["jobs"]["completed"].as_u64().is_none_or(|completed| completed > 10), "{jobs}");
    }
    assert!(names(folder.path()).is_empty());
}

/// The second node needs four budgets a job. Neither as a thread nor as a process does it get more than them, and what waits
/// beside it is in time.
#[test]
fn a_node_with_a_budget_keeps_to_it_as_a_thread_and_as_a_process() {
    let (_alone, folder, files) = (Alone::with_the_scheduler(), memory(), crate::support::folder());
    let path = |name: &str| files.path().join(name).to_str().expect("UTF-8").to_owned();
    let (file, trace) = (path("served.toml"), path("run.lxt"));
    let server = "server = { kind = \"cbs_hard\", budget = \"1 ms\", period = \"10 ms\" }";
    let text = format!(
        "laxity = 1\nname = \"served\"\nscheduler = \"P-EDF\"\nplatform.cpus = 1\n\
         [[graph]]\nname = \"served-{}\"\nedge = [\"a -> b\"]\n\
         [[graph.node]]\nname = \"a\"\nperiod = \"50 ms\"\nwcet = \"2 ms\"\n\
         [[graph.node]]\nname = \"b\"\nwcet = \"4 ms\"\n{server}\n",
        std::process::id()
    );
    fs::write(&file, text).expect("a folder");
    for kind in [&[][..], &["--processes"]] {
        let words = ["run", &file, "--for", "500ms", "--scheduler", "laxity", "--policy", "P-EDF", "--trace", &trace];
        let output = command(folder.path(), &[&words[..], kind].concat()).output().expect("it starts");
        let said = errors(&output);
        if is_refused(&said) {
            return;
        }
        assert_eq!(output.status.code(), Some(0), "{kind:?}: {said}");
        let (code, out, err) = run(["trace", &trace, "check", "--ignore-deadlines"]);
        assert_eq!((code, err.as_str()), (0, ""), "{kind:?}: {out}");
        assert!(out.contains("yes  a legal schedule") && out.contains("yes  follows P-EDF"), "{kind:?}: {out}");
        let (_, events, _) = run(["trace", &trace, "export", "--table", "events", "--format", "csv", "-o", "-"]);
        let replenished = events.lines().filter(|line| line.contains(",replenish,")).count();
        assert!(replenished >= 30, "{kind:?}: ten jobs of four budgets, not {replenished} budgets: {events}");
    }
}

/// Others decide what follows from a death, and have no log: the trace ends before it, and nothing in it is wrong.
#[test]
fn a_process_that_is_killed_ends_the_run_and_its_trace_is_right_up_to_there() {
    let (_alone, folder, traces) = (Alone::with_the_scheduler(), memory(), crate::support::folder());
    let path = traces.path().join("run.lxt");
    let trace = path.to_str().expect("UTF-8");
    let probe = ["run", &pipeline(), "--for", "1ms", "--processes", "--scheduler", "laxity"];
    if is_refused(&errors(&command(folder.path(), &probe).output().expect("it starts"))) {
        return;
    }
    let words = ["--processes", "--scheduler", "laxity", "--for", "80000 h", "--trace", trace];
    let (child, graph) = start(folder.path(), &words);
    let node = graph.node("B").expect("it has one");
    await_that("jobs are complete", || graph.status(node).completed > 20);
    kill(owner(&graph, "B"), Signal::SIGKILL).expect("it lives");
    drop(graph);
    let output = child.into_child().wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
    assert!(errors(&output).contains("was killed by signal"), "{}", errors(&output));
    let (_, out, err) = run(["trace", trace, "check", "--ignore-deadlines"]);
    assert!(out.contains("yes  a legal schedule") && out.contains("yes  follows"), "{out}{err}");
    assert!(names(folder.path()).is_empty());
    let left = fs::read_dir("/dev/shm").expect("readable").filter_map(Result::ok).map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("laxity-sched.run-")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn no_process_takes_the_place_of_one_that_laxity_schedules() {
    let folder = memory();
    let words = ["run", &pipeline(), "--processes", "--restart", "--scheduler", "laxity"];
    let output = command(folder.path(), &words).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2), "{}", errors(&output));
    assert!(errors(&output).contains("--restart"), "{}", errors(&output));
}
