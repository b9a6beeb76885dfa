//! Ctrl-C, requests to terminate, and kills in the middle of a simulation that would take years.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{example, folder, laxity};

/// Starts a simulation and waits until its trace grows, however long that takes.
fn start(folder: &Path, words: &[&str]) -> Child {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("laxity"))
        .arg("simulate")
        .arg(example("quickstart.toml"))
        .args(["--for", "80000 h", "--trace"])
        .arg(folder.join("out.lxt"))
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    let grows = || {
        let sizes =
            fs::read_dir(folder).expect("a folder").filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len()));
        sizes.max().is_some_and(|size| size > 100_000)
    };
    while !grows() {
        assert_eq!(child.try_wait().expect("a child of ours"), None, "it must not end by itself");
        thread::sleep(Duration::from_millis(5));
    }
    child
}

fn end(child: Child, signal: Signal) -> Output {
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    kill(pid, signal).expect("a child of ours");
    child.wait_with_output().expect("ends")
}

fn files(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("entry").file_name().to_string_lossy().into_owned();
    fs::read_dir(folder).expect("a folder").map(name).collect()
}

#[test]
fn ctrl_c_keeps_summary_and_trace_up_to_the_time_reached() {
    let folder = folder();
    let output = end(start(folder.path(), &[]), Signal::SIGINT);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(out.contains("simulated of 288000000 s: interrupted\n"), "{out}");
    let last = err.lines().last().expect("an error");
    assert!(
        last.starts_with("error: interrupted at ") && last.ends_with("; the trace is complete up to there"),
        "{err}"
    );
    assert_eq!(files(folder.path()), ["out.lxt"]);
    laxity().arg("trace").arg(folder.path().join("out.lxt")).arg("check").assert().success();
}

#[test]
fn a_request_to_terminate_is_an_interruption_that_json_tells() {
    let folder = folder();
    let output = end(start(folder.path(), &["--json"]), Signal::SIGTERM);
    assert_eq!(output.status.code(), Some(130));
    let run: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(run["interrupted"], true);
    let path = folder.path().join("out.lxt");
    let measured = laxity().arg("trace").arg(path).args(["metrics", "--json"]).output().expect("runs");
    let measured: serde_json::Value = serde_json::from_slice(&measured.stdout).expect("JSON");
    assert_eq!(measured["simulated_ns"], run["simulated_ns"]);
    assert_eq!(measured["total"], run["total"]);
}

#[test]
fn a_kill_leaves_nothing_under_the_traces_name() {
    let folder = folder();
    let output = end(start(folder.path(), &[]), Signal::SIGKILL);
    assert_eq!(output.status.code(), None, "killed");
    assert!(!folder.path().join("out.lxt").exists());
    let left = files(folder.path());
    assert!(left.iter().all(|name| name.starts_with(".out.lxt.") && name.ends_with(".part")), "{left:?}");
}
