//! `laxity run`. How late jobs are is the machine's business: nothing here depends on it.

use crate::support::{fixture, folder, run};

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

#[test]
fn what_is_not_run_live_is_refused_by_name() {
    let refused = |name: &str, words: &[&str]| {
        let file = fixture(name).display().to_string();
        let (code, out, err) = run(["run", &file].iter().chain(words));
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        err
    };
    assert!(refused("gpu.toml", &[]).contains("GPU operations are not run live yet"));
    assert!(refused("best-effort.toml", &[]).contains("is not run live yet"));
    assert!(refused("two.toml", &["--scheduler", "fifo"]).contains("take --scheduler deadline"));
    assert_eq!(run(["run", "x.toml", "--scheduler", "rr"]).0, 2);
}
