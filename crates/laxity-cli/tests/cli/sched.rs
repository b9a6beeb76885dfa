//! `laxity sched`: live systems, seen from outside.

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
