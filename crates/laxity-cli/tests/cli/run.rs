//! `laxity run`. How late jobs are is the machine's business: nothing here depends on it.

use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{example, fixture, folder, run};
use crate::terminal::Terminal;

#[test]
fn a_live_run_is_measured_as_a_simulation_and_leaves_a_trace_that_is_one() {
    let folder = folder();
    let trace = folder.path().join("live.lxt").display().to_string();
    let file = fixture("two.toml").display().to_string();
    let (code, out, err) = run(["run", &file, "--for", "60ms", "--scheduler", "other", "--trace", &trace]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("Linux schedules the tasks by SCHED_OTHER"), "{err}");
    assert!(out.contains("recorded live\n"), "{out}");
    assert!(out.lines().any(|line| line.starts_with("total") && line.contains(" 25         25 ")), "15 and 10:\n{out}");
    let (code, out, err) = run(["trace", &trace, "check", "--ignore-deadlines"]);
    assert_eq!(code, 0, "{out}{err}");
    for verb in ["metrics", "gantt", "info"] {
        assert_eq!(run(["trace", &trace, verb]).0, 0, "{verb}");
    }
}

/// A recording grows under its own name and is written about twice a second, so that SIGKILL loses no more.
#[test]
fn the_trace_of_a_killed_run_has_what_happened_up_to_the_last_second() {
    let folder = folder();
    let trace = folder.path().join("live.lxt");
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("laxity"))
        .args(["run", "--quiet", "--for", "60s", "--scheduler", "other", "--trace"])
        .args([trace.as_path(), fixture("two.toml").as_path()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary starts");
    // However slow this machine is: until something was written after the header.
    let info = || run(["trace".as_ref(), trace.as_os_str(), "info".as_ref()]);
    let has_jobs = || info().1.lines().any(|line| line.contains("completion") && !line.contains(" 0 completions"));
    while !has_jobs() {
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(child.try_wait().expect("a child of ours"), None, "it runs for a minute");
    }
    kill(Pid::from_raw(child.id() as i32), Signal::SIGKILL).expect("a child of ours");
    child.wait().expect("a child of ours");
    let (code, out, err) = info();
    assert_eq!(code, 1, "{out}{err}");
    assert!(out.contains("where it was cut off"), "{out}");
    let (code, out, err) = run(["trace".as_ref(), trace.as_os_str(), "why".as_ref()]);
    assert!(code == 1 && out.contains("took") && err.contains("the results are of what was read"), "{out}{err}");
}

#[test]
fn what_is_not_run_live_is_refused_by_name() {
    let refused = |name: &str, words: &[&str]| {
        let file = fixture(name).display().to_string();
        let (code, out, err) = run(["run", &file].iter().chain(words));
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        err
    };
    assert!(refused("semaphore.toml", &["--scheduler", "other"]).contains("take --scheduler laxity, or simulate"));
    assert!(refused("best-effort.toml", &["--policy", "G-CFS"]).contains("\"indexer\" under G-CFS"));
    assert!(refused("two.toml", &["--scheduler", "fifo"]).contains("take --scheduler laxity, or a policy"));
    assert_eq!(run(["run", "x.toml", "--scheduler", "rr"]).0, 2);
}

/// A graph, GPUs under GPUSync, resources and plain tasks in one run; the trace is one that checkers and pictures take.
#[test]
fn graphs_and_gpus_run_in_one_process_and_leave_one_trace() {
    let folder = folder();
    let trace = folder.path().join("live.lxt").display().to_string();
    let file = example("live-gpu.toml").display().to_string();
    let (code, out, err) = run(["run", &file, "--for", "300ms", "--scheduler", "other", "--trace", &trace]);
    assert_eq!(code, 0, "{err}");
    let row = |name: &str| out.lines().find(|line| line.starts_with(name)).map(str::to_owned).unwrap_or_default();
    for (task, jobs) in [("control", "30"), ("recorder", "2"), ("vision/camera", "10"), ("vision/show", "10")] {
        assert!(row(task).split_whitespace().any(|word| word == jobs), "{task}: {jobs}\n{out}");
    }
    let (code, out, err) = run(["trace", &trace, "info"]);
    assert_eq!(code, 0, "{out}{err}");
    for verb in ["metrics", "gantt"] {
        assert_eq!(run(["trace", &trace, verb]).0, 0, "{verb}");
    }
}

/// In the middle of jobs, with tokens held and waited for, and beside work that never ends.
#[test]
fn ctrl_c_ends_a_run_at_once_and_leaves_nothing() {
    let folder = folder();
    let trace = folder.path().join("live.lxt");
    let file = folder.path().join("long.toml");
    let name = format!("interrupted-{}", std::process::id());
    let text = std::fs::read_to_string(example("live-gpu.toml")).expect("an example");
    let text = text.replace("name = \"vision\"", &format!("name = \"{name}\""));
    let endless = "\n[[best_effort]]\nname = \"endless\"\nmemory_demand = \"100 MB/s\"\n";
    std::fs::write(&file, text + endless).expect("a folder");
    let child = Command::new(assert_cmd::cargo::cargo_bin!("laxity"))
        .args(["run", "--for", "10 h", "--scheduler", "other", "--trace"])
        .args([&trace, &file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    let (pid, is_there) = (child.id(), |folder: &str, text: &str| {
        let mut entries = std::fs::read_dir(folder).expect("a folder");
        entries.any(|entry| entry.expect("entry").file_name().to_string_lossy().contains(text))
    });
    let arbitration = format!("run-{pid}-");
    while !is_there("/dev/shm", &name) || !is_there("/dev/shm", &arbitration) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(300));
    kill(Pid::from_raw(i32::try_from(pid).expect("a process id")), Signal::SIGINT).expect("a child of ours");
    let output = child.wait_with_output().expect("ends");
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!is_there("/dev/shm", &name) && !is_there("/dev/shm", &arbitration));
    let (code, out, err) = run(["trace", trace.to_str().expect("UTF-8"), "info"]);
    assert_eq!(code, 0, "{out}{err}");
}

#[test]
fn on_a_terminal_a_table_shows_what_tasks_do() {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("laxity"));
    command.args(["run", "--for", "2s", "--scheduler", "other"]).arg(fixture("gpu.toml"));
    let mut terminal = Terminal::start(command);
    // The last column, which the summary does not have.
    terminal.read_until("now");
    let written = terminal.finish();
    assert!(written.contains("recorded live"), "{written}");
}
