//! `laxity trace`.

use std::fs;
use std::path::Path;

use laxity_model::{CpuId, Instant, JobId, Platform, Scheduler, Task, TaskId, Workload};
use laxity_plan::Plan;
use laxity_trace::codec::TraceWriter;
use laxity_trace::{Event, Sink};
use predicates::prelude::*;

use crate::support::{folder, laxity, run, stdout, trace_of};

fn trace(path: &Path, words: &[&str]) -> (i32, String, String) {
    run(["trace".as_ref(), path.as_os_str()].into_iter().chain(words.iter().map(AsRef::as_ref)))
}

#[test]
fn info_says_what_the_trace_is_about() {
    let folder = folder();
    let (code, out, _) = trace(&trace_of("two.toml", "12 ms", &folder), &["info"]);
    assert_eq!(code, 0);
    for line in [
        "workload   two",
        "origin     simulated, seed 0",
        "scheduler  G-EDF/CEm (coarse-grained queue, event-driven, interrupts on all CPUs)",
        "CPUs       1: 0",
        "overheads  none",
        "tasks      2",
        "time       0 ms to 12 ms",
        "           5 releases, 5 completions, 5 dispatches, 0 overheads",
    ] {
        assert!(out.lines().any(|printed| printed == line), "{line} in\n{out}");
    }
}

#[test]
fn metrics_prints_the_tables_of_the_simulation() {
    let folder = folder();
    let (code, out, err) = trace(&trace_of("two.toml", "12 ms", &folder), &["metrics"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let simulated = laxity().arg("simulate").arg(crate::support::fixture("two.toml")).args(["--for", "12ms"]).output();
    assert_eq!(out, stdout(&simulated.expect("runs")));
}

#[test]
fn a_schedule_of_ours_passes_every_check() {
    let folder = folder();
    let path = trace_of("two.toml", "1 s", &folder);
    let (code, out, err) = trace(&path, &["check"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let verdicts: Vec<&str> = out.lines().skip(1).collect();
    assert_eq!(verdicts, ["  yes  a legal schedule", "  yes  follows G-EDF/CEm", "  yes  deadlines met"]);
}

#[test]
fn missed_deadlines_fail_the_check_unless_they_are_ignored() {
    let folder = folder();
    let path = trace_of("overload.toml", "1 s", &folder);
    let (code, out, err) = trace(&path, &["check", "--limit", "3"]);
    assert_eq!(code, 1);
    assert!(out.contains("  yes  a legal schedule") && out.contains("  no   deadlines met: "), "{out}");
    let listed = out.lines().filter(|line| line.starts_with("         ")).count();
    assert_eq!(listed, 4, "three and how many more:\n{out}");
    assert!(err.starts_with("error: ") && err.trim_end().ends_with("violations"), "{err}");
    assert!(
        out.contains('#') && !out.contains(" T0.") && !out.contains(" T1."),
        "jobs have their tasks' names:\n{out}"
    );
    assert_eq!(trace(&path, &["check", "--ignore-deadlines"]).0, 0);
}

/// A job that runs without having been released.
#[test]
fn an_illegal_schedule_fails_the_check() {
    let workload = Workload::new(
        "w",
        Platform::identical(1),
        vec![Task::periodic("t", laxity_model::Nanos(1), laxity_model::Nanos(9))],
    );
    let plan = Plan::new(&workload, &Scheduler::GLOBAL_EDF, 0).expect("only CPU steps");
    let mut writer = TraceWriter::new(Vec::new(), &plan.header).expect("memory");
    let (cpu, job) = (CpuId(0), JobId { task: TaskId(0), index: 0 });
    writer.record(Instant(5), Event::Dispatch { cpu, job });
    writer.record(Instant(6), Event::Complete { cpu, job });
    writer.record(Instant(9), Event::End);
    let folder = folder();
    let path = folder.path().join("illegal.lxt");
    fs::write(&path, writer.finish().expect("memory")).expect("written");
    let (code, out, err) = trace(&path, &["check"]);
    assert_eq!(code, 1, "{out}");
    assert!(out.contains("  no   a legal schedule"), "{out}");
    assert!(err.contains("illegal.lxt: "), "{err}");
}

#[test]
fn the_chart_fits_the_width_and_can_be_ascii() {
    let folder = folder();
    let path = trace_of("two.toml", "12 ms", &folder);
    let (code, out, _) = trace(&path, &["gantt", "--width", "60", "--ascii", "--by", "cpu"]);
    assert_eq!(code, 0);
    assert!(out.is_ascii() && out.lines().all(|line| line.len() <= 60), "{out}");
    assert!(out.contains("cpu0") && !out.lines().any(|line| line.starts_with("t0")), "{out}");
    let (_, out, _) = trace(&path, &["gantt", "--by", "task", "--from", "4ms", "--to", "8 ms"]);
    assert!(out.contains("4 ms to 8 ms") && !out.contains("cpu0"), "{out}");
    let (code, _, err) = trace(&path, &["gantt", "--from", "8ms", "--to", "4ms"]);
    assert_eq!(code, 2);
    assert!(err.contains("--from 8 ms --to 4 ms shows no time"), "{err}");
}

#[test]
fn the_chart_as_svg_goes_to_a_file() {
    let folder = folder();
    let path = trace_of("two.toml", "12 ms", &folder);
    let svg = folder.path().join("fig.svg");
    laxity().arg("trace").arg(&path).args(["gantt", "--svg"]).arg(&svg).assert().success().stdout("");
    let text = fs::read_to_string(svg).expect("the file");
    assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
}

#[test]
fn a_trace_is_read_from_standard_input() {
    let folder = folder();
    let path = trace_of("two.toml", "12 ms", &folder);
    laxity()
        .args(["trace", "-", "check"])
        .pipe_stdin(path)
        .expect("opened")
        .assert()
        .success()
        .stdout(predicate::str::starts_with("<stdin>: "));
}

/// Records before the break are used, the break is reported last, and the exit code tells of it.
#[test]
fn a_cut_off_trace_is_used_up_to_where_it_broke() {
    let folder = folder();
    let path = trace_of("overload.toml", "60 s", &folder);
    let bytes = fs::read(&path).expect("the trace");
    assert!(bytes.len() > 100_000, "more than one chunk");
    fs::write(&path, &bytes[..bytes.len() - 100]).expect("written");
    for words in [&["metrics"][..], &["info"], &["check", "--ignore-deadlines"], &["gantt", "--to", "50ms"]] {
        let (code, out, err) = trace(&path, words);
        assert_eq!(code, 1, "{words:?}: {err}");
        assert!(!out.is_empty());
        assert!(err.contains("cut off") && err.contains("the results are of what was read, up to"), "{words:?}: {err}");
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    let folder = folder();
    let path = folder.path().join("no.lxt");
    fs::write(&path, "once upon a time").expect("written");
    let (code, out, err) = trace(&path, &["metrics"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("no.lxt: not a Laxity trace"), "{err}");
    let (code, _, err) = trace(Path::new("no-such.lxt"), &["info"]);
    assert_eq!((code, err.as_str()), (2, "error: cannot read no-such.lxt: no such file or directory\n"));
}

/// The time after the end was drawn as idle.
#[test]
fn a_chart_ends_with_its_trace() {
    let folder = folder();
    let path = trace_of("two.toml", "700 ms", &folder);
    let path = path.to_str().expect("UTF-8");
    let (code, out, err) = run(["trace", path, "gantt", "--from", "650ms", "--to", "900ms"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("650 ms to 700 ms, where the trace ends"), "{out}");
    let (code, out, err) = run(["trace", path, "gantt", "--from", "5s", "--to", "6s"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("the trace ends at 700 ms, so that it has nothing from 5 s on"), "{err}");
}
