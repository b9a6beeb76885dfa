//! `laxity gen`.

use std::fs;

use predicates::prelude::*;

use crate::support::{folder, laxity, run};

#[test]
fn a_generated_set_is_a_workload_that_says_how_to_draw_it_again() {
    let (code, out, err) = run(["gen", "uni-light/moderate", "cap=2", "--seed", "7"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("# Drawn by: laxity gen 'uni-light/moderate cap=2' --seed 7\n"), "{out}");
    assert!(out.contains("name = \"uni-light/moderate cap=2 seed=7 laxity-gen 1\"\n"));
    laxity().args(["validate", "-"]).write_stdin(out.clone()).assert().success();
    assert_eq!(run(["gen", "uni-light/moderate cap=2", "--seed", "7"]).1, out, "quoted or not, the same bytes");
    assert_ne!(run(["gen", "uni-light/moderate", "cap=2", "--seed", "8"]).1, out);
}

#[test]
fn many_sets_go_to_a_folder_and_each_can_be_drawn_alone() {
    let folder = folder();
    let sets = folder.path().join("new/sets");
    laxity().args(["gen", "bimo-medium/long", "cap=4", "-n", "3", "-o"]).arg(&sets).assert().success();
    let mut names: Vec<_> = fs::read_dir(&sets).expect("made").map(|entry| entry.expect("entry").file_name()).collect();
    names.sort();
    assert_eq!(names, ["set-000.toml", "set-001.toml", "set-002.toml"]);
    let text = fs::read_to_string(sets.join("set-001.toml")).expect("a set");
    let seed = text.lines().next().and_then(|line| line.rsplit(' ').next()).expect("the seed").to_owned();
    assert_eq!(run(["gen", "bimo-medium/long", "cap=4", "--seed", &seed]).1, text);
}

#[test]
fn platform_scheduler_and_overheads_can_be_chosen() {
    let words = ["gen", "uni-light/short", "cap=2", "--cpus", "8", "--policy", "CQ1"];
    let (_, out, _) = run(words.into_iter().chain(["--overheads", "brandenburg2009-worst"]));
    assert!(out.contains("cpus = 8\n") && out.contains("policy = \"G-EDF/CQ1\"\n"), "{out}");
    assert!(out.contains("brandenburg2009-CQ1-worst-aligned"), "{out}");
    let (_, out, _) = run(["gen", "exp-heavy/multimedia", "cap=8", "gpu=0.2..0.3"]);
    assert!(out.contains("cpus = 12\n") && out.contains("[[platform.gpu]]"), "{out}");
}

#[test]
fn a_json_file_is_json() {
    let folder = folder();
    let path = folder.path().join("set.json");
    laxity().args(["gen", "uni-light/short", "cap=1", "-o"]).arg(&path).assert().success();
    let value: serde_json::Value = serde_json::from_slice(&fs::read(&path).expect("written")).expect("JSON");
    assert_eq!(value["laxity"], 1);
    laxity().arg("validate").arg(&path).assert().success();
}

#[test]
fn what_cannot_be_generated_is_refused_with_the_way_out() {
    for (words, complaint) in [
        (&["gen", "uni-lite/short", "cap=1"][..], "`uni-lite`"),
        (&["gen", "uni-light/short"], "cap is missing"),
        (&["gen", "uni-light/short", "cap=1", "-n", "2"], "2 sets need a folder"),
        (&["gen", "uni-light/short", "cap=1", "-n", "0"], "0 is not in 1..=1000000"),
        (&["gen", "uni-light/short", "cap=1", "-n", "2", "-o", "sets.json"], "name a folder, as in -o sets/"),
        (&["gen", "uni-light/short", "cap=1", "--policy", "all"], "a file has one scheduler"),
        (&["gen"], "required"),
    ] {
        laxity().args(words).assert().code(2).stderr(predicate::str::contains(complaint));
    }
}

#[test]
fn the_list_names_every_generator() {
    let (code, out, _) = run(["gen", "--list"]);
    assert_eq!(code, 0);
    for name in
        ["uni-light", "exp-heavy", "bimo-medium", "uunifast-discard", "randfixedsum", "multimedia", "log-uniform"]
    {
        assert!(out.contains(name), "{name}");
    }
}
