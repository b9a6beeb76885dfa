//! `laxity trace FILE why`.

use predicates::prelude::*;
use serde_json::Value;

use crate::support::{example, folder, laxity, run, trace_of};

#[test]
fn why_names_what_a_job_waited_for_and_its_parts_sum_to_the_response_time() {
    let folder = folder();
    let path = folder.path().join("camera.lxt");
    laxity()
        .args(["simulate", "--quiet", "--for", "200ms", "--trace"])
        .args([&path, &example("camera.toml")])
        .assert()
        .success();
    let path = path.to_str().expect("UTF-8");
    let (code, out, err) = run(["trace", path, "why", "lidar#0"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("lidar#0  took 59.2 ms, 20.8 ms before its deadline\n"), "{out}");
    assert!(out.contains("A  waits for a CPU  camera has it, more urgent  24.000   40.54"), "{out}");
    assert!(out.lines().any(|line| line.starts_with("AAAA") && line.contains('█')), "a life on one line: {out}");
    let (code, out, _) = run(["trace", path, "why", "--worst", "3", "--json"]);
    assert_eq!(code, 0);
    let json: Value = serde_json::from_str(&out).expect("JSON");
    let jobs = json["jobs"].as_array().expect("jobs");
    assert_eq!(jobs.len(), 3);
    for job in jobs {
        let sum =
            |of: &str, time: &dyn Fn(&Value) -> u64| job[of].as_array().expect("a list").iter().map(time).sum::<u64>();
        let whole = job["time_ns"].as_u64().expect("a time");
        assert_eq!(
            job["completion_ns"].as_u64().map(|end| end - job["arrival_ns"].as_u64().expect("a time")),
            Some(whole)
        );
        assert_eq!(sum("parts", &|part| part["time_ns"].as_u64().expect("a time")), whole, "{job}");
        let piece =
            |piece: &Value| piece["to_ns"].as_u64().expect("a time") - piece["from_ns"].as_u64().expect("a time");
        assert_eq!(sum("pieces", &piece), whole, "{job}");
    }
}

/// A byte of the first chunk is another one: nothing is left, and the reason is not that the recording was too short.
#[test]
fn a_damaged_trace_is_named_as_the_reason_by_every_command() {
    let folder = folder();
    let path = trace_of("overload.toml", "1 s", &folder);
    let mut bytes = std::fs::read(&path).expect("a trace");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).expect("written");
    let path = path.to_str().expect("UTF-8");
    let (page, table) = (folder.path().join("page.html"), folder.path().join("jobs.csv"));
    let [page, table] = [&page, &table].map(|path| path.to_str().expect("UTF-8"));
    let commands: [&[&str]; 9] = [
        &["trace", path, "why"],
        &["trace", path, "why", "--json"],
        &["trace", path, "info"],
        &["trace", path, "metrics"],
        &["trace", path, "check"],
        &["trace", path, "gantt"],
        &["trace", path, "export", "-o", table],
        &["report", path, "-o", page],
        &["report", path, "--quiet", "-o", page],
    ];
    for words in commands {
        let (code, _, err) = run(words);
        let last = err.lines().last().expect("an error");
        assert!(
            last.starts_with("error: ") && last.contains("checksum") && !last.contains("longer"),
            "{words:?}: {err}"
        );
        assert_eq!(code, 1, "{words:?}: {err}");
    }
}

#[test]
fn why_says_the_latest_job_unless_told_which() {
    let folder = folder();
    let path = trace_of("overload.toml", "1 s", &folder);
    let path = path.to_str().expect("UTF-8");
    let (code, out, _) = run(["trace", path, "why"]);
    assert_eq!(code, 0, "{out}");
    assert!(out.lines().next().expect("a line").contains("late"), "{out}");
    laxity()
        .args(["trace", path, "why", "nothing#3"])
        .assert()
        .code(2)
        .stderr(predicate::str::contains("no task is called `nothing`; the trace has"));
    let name = out.split('#').next().expect("a name");
    laxity()
        .args(["trace", path, "why", &format!("{name}#999999")])
        .assert()
        .code(1)
        .stderr(predicate::str::contains("is not released in this trace"));
}

const BEST_EFFORT: &str = r#"
laxity = 1
name = "w"
scheduler = "P-RM"
platform = { cpus = 1 }
task = [{ name = "rt", period = "10 ms", wcet = "4 ms" }]
best_effort = [{ name = "a", weight = 2048 }, { name = "b" }, { name = "c", work = "50 ms" }]
"#;

/// A job without a deadline was "315359999 s before its deadline", and its task was said to have completed none.
#[test]
fn a_best_effort_job_has_no_deadline() {
    let folder = folder();
    let (file, path) = (folder.path().join("w.toml"), folder.path().join("w.lxt"));
    std::fs::write(&file, BEST_EFFORT).expect("written");
    let words = ["simulate".as_ref(), "--quiet".as_ref(), "--for".as_ref(), "1s".as_ref(), file.as_os_str()];
    laxity().args(words).arg("--trace").arg(&path).assert().success();
    let path = path.to_str().expect("UTF-8");
    let (code, out, err) = run(["trace", path, "why", "c"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with("c#0  took ") && out.contains(", best effort, complete at "), "{out}");
    assert!(!out.contains("deadline") && !out.contains("due") && !out.contains("less urgent"), "{out}");
    assert!(out.contains("a has it, sharing it") && out.contains("rt has it, more urgent"), "{out}");
    let (_, pending, _) = run(["trace", path, "why", "a"]);
    assert!(pending.starts_with("a#0  pending for ") && !pending.contains("due"), "{pending}");
    let (_, json, _) = run(["trace", path, "why", "c#0", "--json"]);
    let account: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let job = &account["jobs"][0];
    assert!(job["deadline_ns"].is_null() && job["lateness_ns"].is_null() && job["completion_ns"].is_u64(), "{job}");
    let (_, table, _) = run(["trace", path, "export", "--format", "json", "-o", "-"]);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&table).expect("JSON");
    for row in rows {
        let is_best_effort = row["task_name"] != "rt";
        assert_eq!(row["deadline_ns"].is_null(), is_best_effort, "{row}");
        assert!(!is_best_effort || row["lateness_ns"].is_null() && row["tardiness_ns"].is_null(), "{row}");
    }
}

#[test]
fn no_job_is_explained_where_none_is_asked_for_and_none_has_such_a_number() {
    let folder = folder();
    let path = trace_of("overload.toml", "1 s", &folder);
    let path = path.to_str().expect("UTF-8");
    let (code, _, err) = run(["trace", path, "why", "--worst", "0"]);
    assert!(code == 2 && err.contains("that shows nothing; write 1 or more"), "{err}");
    let (_, out, _) = run(["trace", path, "why"]);
    let job = format!("{}#99999999999999999999", out.split('#').next().expect("a name"));
    let (code, _, err) = run(["trace", path, "why", &job]);
    assert!(code == 2 && err.contains("the number of a job is at most 4294967295"), "{err}");
}
