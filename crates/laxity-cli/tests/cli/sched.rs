//! `laxity sched`: live systems, seen from outside.

use std::fs;
use std::path::Path;

use laxity_model::{Instant, Nanos};
use laxity_sched::{BeginError, Config, Job, Parameters, Registry};
use laxity_sys::clock::now;
use laxity_testing::{Alone, Directory, skip};
use serde_json::Value;

use crate::support::run;

/// `laxity sched --folder FOLDER` with these words.
fn sched(folder: &Path, words: &[&str]) -> (i32, String, String) {
    let folder = folder.to_str().expect("UTF-8");
    run(["sched", "--folder", folder].iter().chain(words))
}

#[test]
fn a_folder_without_systems_says_so_and_names_the_way_out() {
    let folder = Directory::new("sched-empty");
    let (code, out, _) = sched(folder.path(), &["list"]);
    assert_eq!(code, 0);
    assert!(out.contains("no systems in "), "{out}");
    let (code, out, err) = sched(folder.path(), &["top"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("laxity run --scheduler laxity"), "{err}");
    assert_eq!(sched(folder.path(), &["gc"]).1, "");
}

#[test]
fn the_tasks_of_a_system_are_listed_with_their_states() {
    let (_alone, folder) = (Alone::with_the_scheduler(), Directory::new("sched-tasks"));
    let registry = Registry::at(folder.path());
    let system = registry.create("car", &Config::global_edf([0])).expect("a new name");
    let task = match system.begin(Parameters::periodic("camera", Nanos::from_millis(40))) {
        Ok(task) => task,
        Err(error @ BeginError::Refused { .. }) => return skip(error),
        Err(error) => panic!("{error}"),
    };
    let release = now();
    let deadline = release + Nanos::from_secs(3_600);
    task.release(Job { index: 7, release, deadline }).expect("no job is pending");
    let (code, out, err) = sched(folder.path(), &["top", "car", "--once", "--json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let line: Value = serde_json::from_str(&out).expect("JSON");
    let camera = &line["tasks"][0];
    assert_eq!((camera["name"].as_str(), camera["state"].as_str()), (Some("camera"), Some("runs")));
    assert_eq!((camera["job"].as_u64(), camera["cpu"].as_u64()), (Some(7), Some(0)));
    let due = camera["due_in_ns"].as_i64().expect("a number");
    assert!((1..=3_600_000_000_000).contains(&due), "{due}");
    let (_, table, _) = sched(folder.path(), &["top", "--once"]);
    assert!(table.contains("camera") && table.contains("runs"), "{table}");
    let (_, list, _) = sched(folder.path(), &["list", "--json"]);
    let list: Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!((list["systems"][0]["name"].as_str(), list["systems"][0]["linked"].as_u64()), (Some("car"), Some(1)));
    task.complete().expect("it has a job");
    let (code, _, err) = sched(folder.path(), &["top", "cat", "--once"]);
    assert_eq!(code, 2);
    assert!(err.contains("did you mean `car`?"), "{err}");
    assert!(release > Instant::ZERO);
}

#[test]
fn the_doctor_names_what_a_kernel_lacks_and_the_way_out() {
    let machine = Directory::new("sched-doctor");
    for (path, text) in [
        ("proc/sys/kernel/osrelease", "6.18.1\n"),
        ("sys/kernel/btf/vmlinux", "types"),
        ("proc/self/status", "CapEff:\t0000008000000000\n"),
    ] {
        let path = machine.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
    let root = machine.path().to_str().expect("UTF-8");
    let (code, out, err) = run(["sched", "doctor", "--root", root]);
    assert_eq!(code, 1);
    for expected in
        ["has   kernel     Linux 6.18.1", "lacks sched_ext", "CONFIG_SCHED_CLASS_EXT=y", "without CAP_PERFMON"]
    {
        assert!(out.contains(expected), "{expected}: {out}");
    }
    assert!(err.contains("2 of 7 things") && err.contains("laxity run --scheduler laxity"), "{err}");
    let (code, out, _) = run(["sched", "doctor", "--root", root, "--json"]);
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, report["ready"].as_bool()), (1, Some(false)));
    let lacks = |name: &str| {
        let checks = report["checks"].as_array().expect("a list");
        checks.iter().any(|check| check["name"] == name && check["holds"] == false && check["remedy"].is_string())
    };
    assert!(lacks("sched_ext") && lacks("rights") && !lacks("btf"), "{out}");

    fs::create_dir(machine.path().join("sys/kernel/sched_ext")).expect("a folder");
    fs::write(machine.path().join("proc/self/status"), "CapEff:\t000001ffffffffff\n").expect("a file");
    let (code, out, err) = run(["sched", "doctor", "--root", root, "--json"]);
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, err.as_str(), report["ready"].as_bool()), (0, "", Some(true)));
}

#[test]
fn the_doctor_answers_for_this_machine_as_its_kernel_does() {
    let (code, out, _) = run(["sched", "doctor", "--json"]);
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(code == 0, report["ready"] == true);
    let checks = report["checks"].as_array().expect("a list");
    let sched_ext = checks.iter().find(|check| check["name"] == "sched_ext").expect("a check");
    assert_eq!(sched_ext["holds"] == true, Path::new("/sys/kernel/sched_ext").exists());
}

#[test]
fn settings_that_the_kernel_side_cannot_have_are_bad_usage() {
    for (words, reason) in [
        (&["--policy", "G-CFS"][..], "Linux has its own fair class"),
        (&["--policy", "round-robin"], "G-, C- and P- with EDF, RM, DM and FP"),
        (&["--policy", "C-EDF", "--cpus", "0-2", "--cluster-size", "2"], "3 CPUs"),
        (&["--policy", "P-RM", "--realization", "FE1", "--cpus", "3"], "which leaves none for jobs"),
        (&["--policy", "G-EDF/CQm", "--realization", "CE1"], "name the realization once"),
        (&["--realization", "soon"], "G-EDF/soon"),
        (&["--cpus", "0,0"], "CPU 0 is named twice"),
        (&["--cpus", "64"], "CPU 64 is beyond the 64 CPUs"),
        (&["--cpus", "all"], "lists no CPUs"),
    ] {
        let (code, out, err) = run(["sched", "start"].iter().chain(words));
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {err}");
        assert!(err.contains(reason), "{words:?}: {err}");
    }
}

#[test]
fn measurements_that_cannot_be_are_bad_usage() {
    for (words, reason) in [
        (&["--tasks", "50,25"][..], "each number larger than the one before"),
        (&["--tasks", "0,5"], "at least one task"),
        (&["--tasks", "256"], "255 at most"),
        (&["--for", "10ms"], "at least 100 ms"),
        (&["--realization", "XEm"], "--realization XEm: there are CEm, CQm, S-CQm, CE1, CQ1, S-CQ1, FEm"),
        (&["--realization", "CE1", "--cpus", "3"], "which leaves none for jobs"),
        (&["--outliers", "50"], "no share of the samples"),
        (&["--load", "0"], "1..=90"),
        (&["--cpus", "64"], "CPU 64 is beyond the 64 CPUs"),
    ] {
        let (code, out, err) = run(["sched", "measure"].iter().chain(words));
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {err}");
        assert!(err.contains(reason), "{words:?}: {err}");
    }
    let (code, _, err) = run(["sched", "start", "--overheads"]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("--trace"), "{err}");
    if Path::new("/sys/kernel/sched_ext").exists() {
        return skip("this kernel has sched_ext: tests/python/kernel_lab_measures.py asks there");
    }
    let (code, _, err) = run(["sched", "measure", "--realization", "CEm"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("laxity sched doctor"), "{err}");
}

#[test]
fn without_a_scheduler_in_the_kernel_status_top_and_stop_say_how_to_start_it() {
    if Path::new("/sys/kernel/sched_ext").exists() {
        return skip(
            "this kernel has sched_ext, and may have Laxity's scheduler: tests/python/test_kernel_lab.py asks there",
        );
    }
    for verb in [&["status"][..], &["top", "--kernel"], &["top", "--kernel", "--once", "--json"], &["stop"]] {
        let (code, out, err) = run(["sched"].iter().chain(verb));
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert!(err.contains("laxity sched start"), "{err}");
    }
    let (code, _, err) = run(["sched", "start"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("laxity sched doctor") && err.contains("laxity run --scheduler laxity"), "{err}");
}
