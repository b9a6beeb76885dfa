//! `laxity trace FILE export`.

use std::fs;
use std::path::Path;

use predicates::prelude::*;

use crate::support::{folder, laxity, run, trace_of};

fn export(trace: &Path, words: &[&str]) -> (i32, String, String) {
    run(["trace".as_ref(), trace.as_os_str(), "export".as_ref()].into_iter().chain(words.iter().map(AsRef::as_ref)))
}

/// The schedule is drawn in the fixture.
#[test]
fn the_table_of_jobs_has_a_row_for_each_job() {
    let folder = folder();
    let trace = trace_of("two.toml", "12 ms", &folder);
    let (code, out, err) = export(&trace, &["--format", "csv", "-o", "-"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let mut lines = out.lines();
    let columns: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let cell = |line: &str, name: &str| {
        let column = columns.iter().position(|column| *column == name).expect(name);
        line.split(',').nth(column).expect(name).to_owned()
    };
    let jobs: Vec<[String; 3]> =
        lines.map(|line| ["task_name", "job", "response_time_ns"].map(|name| cell(line, name))).collect();
    let expected = [
        ["t0", "0", "1000000"],
        ["t1", "0", "3000000"],
        ["t0", "1", "1000000"],
        ["t1", "1", "2000000"],
        ["t0", "2", "1000000"],
    ];
    assert_eq!(jobs, expected);
}

#[test]
fn json_is_one_document_with_a_line_for_each_row() {
    let folder = folder();
    let trace = trace_of("two.toml", "12 ms", &folder);
    let (_, csv, _) = export(&trace, &["--format", "csv", "--table", "events", "-o", "-"]);
    let (code, json, _) = export(&trace, &["--format", "json", "--table", "events", "-o", "-"]);
    assert_eq!(code, 0);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&json).expect("JSON");
    assert_eq!(rows.len(), csv.lines().count() - 1);
    assert_eq!(json.lines().count(), rows.len() + 2);
    assert_eq!(rows[0]["event"], "release");
    assert_eq!(rows.last().expect("rows")["event"], "end");
}

#[test]
fn the_extension_says_the_format() {
    let folder = folder();
    let trace = trace_of("two.toml", "12 ms", &folder);
    for (name, begins) in [
        ("a.csv", &b"task,"[..]),
        ("a.json", b"[\n{"),
        ("a.parquet", b"PAR1"),
        ("a.arrow", &[0xff, 0xff, 0xff, 0xff]),
        ("a.PARQUET", b"PAR1"),
        // The first field of a Perfetto trace: a packet.
        ("a.pftrace", &[0x0a]),
    ] {
        let path = folder.path().join(name);
        laxity().arg("trace").arg(&trace).args(["export", "-o"]).arg(&path).assert().success().stdout("");
        assert!(fs::read(&path).expect(name).starts_with(begins), "{name}");
    }
    for table in ["jobs", "events", "intervals"] {
        let path = folder.path().join("b.parquet");
        laxity().arg("trace").arg(&trace).args(["export", "--table", table, "-o"]).arg(&path).assert().success();
    }
}

#[test]
fn what_cannot_be_exported_is_refused_with_the_way_out() {
    let folder = folder();
    let trace = trace_of("two.toml", "12 ms", &folder);
    let (code, _, err) = export(&trace, &["-o", "jobs.xlsx"]);
    assert_eq!(code, 2);
    assert!(err.contains("`jobs.xlsx`; name it with --format: perfetto, parquet, arrow, csv or json"), "{err}");
    let (code, _, err) = export(&trace, &["-o", "a.pftrace", "--table", "jobs"]);
    assert_eq!(code, 2);
    assert!(err.contains("a Perfetto trace is no table"), "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_for_every_format() {
    let folder = folder();
    let trace = trace_of("two.toml", "1 s", &folder);
    for format in ["perfetto", "parquet", "arrow", "csv", "json"] {
        laxity()
            .arg("trace")
            .arg(&trace)
            .args(["export", "-o", "/dev/full", "--format", format])
            .assert()
            .code(1)
            .stderr(predicate::str::contains("error: cannot write /dev/full: no space left on device"));
    }
}

#[test]
fn a_cut_off_trace_is_exported_up_to_where_it_broke() {
    let folder = folder();
    let trace = trace_of("two.toml", "60 s", &folder);
    let bytes = fs::read(&trace).expect("the trace");
    fs::write(&trace, &bytes[..bytes.len() - 10]).expect("written");
    for name in ["a.csv", "a.pftrace"] {
        let path = folder.path().join(name);
        let output = path.to_str().expect("UTF-8");
        let (code, _, err) = export(&trace, &["-o", output]);
        assert_eq!(code, 1);
        assert!(err.contains("cut off"), "{err}");
        assert!(path.exists(), "{name}");
    }
}
