//! `laxity validate` and `laxity schema`.

use predicates::prelude::*;

use crate::support::{example, fixture, laxity, run, stderr, stdout};

#[test]
fn every_error_of_a_file_is_reported_at_its_place() {
    let output = laxity().arg("validate").arg(fixture("wrong.toml")).output().expect("runs");
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(stdout(&output), "");
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 3, "{error}");
    for (line, parts) in lines.iter().zip([
        ["wrong.toml:10:12: task 0 \"late\":", "wcet 7 ms exceeds relative deadline 5 ms"],
        ["wrong.toml:13:1: task 1 \"typo\":", "`period` is missing"],
        ["wrong.toml:15:1: task 1 \"typo\":", "did you mean `period`?"],
    ]) {
        assert!(line.starts_with("error: ") && parts.iter().all(|part| line.contains(part)), "{line}");
    }
}

#[test]
fn errors_come_after_what_is_valid() {
    let output = laxity()
        .arg("validate")
        .args([fixture("wrong.toml"), fixture("two.toml"), fixture("no-such.toml")])
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(stdout(&output).ends_with("two.toml: valid: \"two\", 2 tasks, utilization 0.58 on 1 CPU\n"));
    let error = stderr(&output);
    assert!(error.contains("no-such.toml: no such file"), "{error}");
    assert!(error.ends_with("error: 2 of 3 files are wrong\n"), "{error}");
}

#[test]
fn an_overload_is_legal_and_warned_about() {
    laxity()
        .arg("validate")
        .arg(fixture("overload.toml"))
        .assert()
        .code(0)
        .stderr(predicate::str::starts_with("warning: ").and(predicate::str::contains("the tasks need 1.250 CPUs")));
}

#[test]
fn nodes_of_graphs_count_and_an_overload_is_told_as_check_tells_it() {
    let (code, out, err) = run(["validate".as_ref(), example("fusion.toml").as_os_str()]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("utilization 0.81 on 2 CPUs"), "{out}");
    let folder = crate::support::folder();
    let file = folder.path().join("full.toml");
    // 0.7 and 0.5, of which no sum of rounded shares is 1.2.
    let text = "laxity = 1\nname = \"full\"\n[platform]\ncpus = 1\n\
                [[task]]\nname = \"a\"\nperiod = \"10 ms\"\nwcet = \"7 ms\"\n\
                [[task]]\nname = \"b\"\nperiod = \"10 ms\"\nwcet = \"5 ms\"\n";
    std::fs::write(&file, text).expect("written");
    let (_, _, err) = run(["validate".as_ref(), file.as_os_str()]);
    assert!(err.contains("the tasks need 1.200 CPUs and 1 run jobs"), "{err}");
    let (_, out, _) = run(["check".as_ref(), file.as_os_str()]);
    assert!(out.contains("utilization 1.200"), "{out}");
}

#[test]
fn every_example_is_valid() {
    let folder = example("");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).expect("examples").map(|entry| entry.expect("entry").path()).collect();
    files.sort();
    assert!(files.len() >= 3, "{files:?}");
    laxity().arg("validate").args(files).assert().code(0);
}

#[test]
fn bad_toml_names_file_line_and_column() {
    laxity()
        .args(["validate", "-"])
        .write_stdin("laxity = 1\nname = \"x\n")
        .assert()
        .code(2)
        .stderr(predicate::str::starts_with("error: <stdin>:2:"));
}

#[test]
fn the_schema_is_the_published_one() {
    let (code, out, _) = run(["schema"]);
    let schema: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(code, 0);
    assert_eq!(schema["title"], "Laxity workload, format 1");
    assert_eq!(schema["properties"]["laxity"]["const"], 1);
}
