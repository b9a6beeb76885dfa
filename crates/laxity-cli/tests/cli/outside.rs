//! `laxity run --watch-threads`: other threads of the machine, named in traces.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use laxity_model::Nanos;
use laxity_sys::{clock, scheduling};
use laxity_testing::skip;
use serde_json::Value;

use crate::support::{fixture, folder, run};

const WORKLOAD: &str = r#"laxity = 1
name = "robbed"
[platform]
cpus = 1
[scheduler]
policy = "P-RM"
[[task]]
name = "victim"
period = "10 ms"
wcet = "6 ms"
"#;

/// Once `trace` has begun to grow, a thread above all jobs has `cpu` for 3 ms eight times, each time elsewhere in the jobs' period. Answers
/// how long it computed.
fn rob(cpu: usize, trace: &Path) -> Result<Nanos, String> {
    while fs::metadata(trace).map_or(0, |file| file.len()) == 0 {
        thread::sleep(Duration::from_millis(5));
    }
    // The run begins soon after that.
    thread::sleep(Duration::from_millis(300));
    scheduling::pin(cpu).and_then(|()| scheduling::set_fifo(90)).map_err(|error| error.to_string())?;
    let mut computed = Nanos::ZERO;
    for time in 0..8 {
        thread::sleep(Duration::from_millis(13 + time));
        let before = clock::thread_cpu_time();
        while clock::thread_cpu_time().0 - before.0 < 3_000_000 {}
        computed += clock::thread_cpu_time().saturating_sub(before);
    }
    Ok(computed)
}

/// The numbers of jobs that another thread had the CPU of, by `laxity trace FILE why`, and for how long.
fn blamed(out: &str, thread: &str) -> (usize, u64) {
    let json: Value = serde_json::from_str(out).expect("JSON");
    let jobs = json["jobs"].as_array().expect("jobs").iter();
    let parts = jobs.flat_map(|job| job["parts"].as_array().expect("parts"));
    let wanted = format!("thread {thread} (");
    let is_thief = |part: &&Value| {
        part["cause"] == "other_thread" && part["description"].as_str().is_some_and(|text| text.contains(&wanted))
    };
    let times: Vec<u64> = parts.filter(is_thief).filter_map(|part| part["time_ns"].as_u64()).collect();
    (times.len(), times.iter().sum())
}

#[test]
fn a_thread_that_takes_the_cpu_is_named_by_why_and_in_tables_with_its_time() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (workload, trace) = (path("robbed.toml"), path("robbed.lxt"));
    fs::write(&workload, WORKLOAD).expect("a file");
    let cpu = scheduling::usable_cpus().expect("this process has CPUs")[0];
    if let Some(refusal) = laxity_runtime::threads_refused() {
        return skip(refusal);
    }
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("laxity"))
        .args(["run", &workload, "--scheduler", "fifo", "--for", "1500ms", "--watch-threads", "--quiet", "--json"])
        .args(["--trace", &trace])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let thief = trace.clone();
    let body = move || rob(cpu, Path::new(&thief));
    let thief = thread::Builder::new().name("thief".to_owned()).spawn(body).expect("a thread");
    while !thief.is_finished() && child.try_wait().expect("a child of ours").is_none() {
        thread::sleep(Duration::from_millis(10));
    }
    let ended = child.wait_with_output().expect("a child of ours");
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    if err.contains("not permitted") {
        // The thief may wait for a trace that does not come: it ends with the program.
        return skip(err);
    }
    assert_eq!(ended.status.code(), Some(0), "{err}");
    let computed = match thief.join().expect("it ends") {
        Ok(computed) => computed.0,
        Err(refusal) => return skip(refusal),
    };
    let ran: Value = serde_json::from_str(&out).expect("JSON");
    let threads = &ran["outside"][0]["threads"];
    assert!(threads["total_ns"].as_u64().expect("a time") >= computed - computed / 10, "{} of {computed}", threads);

    let table = path("intervals.csv");
    let (code, _, err) = run(["trace", &trace, "export", "--table", "intervals", "-o", &table]);
    assert_eq!(code, 0, "{err}");
    let out = fs::read_to_string(&table).expect("a table");
    let names: Vec<&str> = out.lines().next().expect("names of columns").split(',').collect();
    let column = |name| names.iter().position(|other| *other == name).expect("a column");
    let (activity, outsider, time) = (column("activity"), column("outsider"), column("duration_ns"));
    let rows = out.lines().skip(1).map(|line| line.split(',').collect::<Vec<&str>>());
    let had = rows.filter(|row| row[activity] == "outside" && row[outsider] == "thief");
    let had: u64 = had.map(|row| row[time].parse::<u64>().expect("a time")).sum();
    // Interrupts count apart; what it takes to get into the thread and out of it counts, too, and so may a hypervisor.
    assert!((computed - computed / 10..2 * computed).contains(&had), "{had} of {computed} ns");

    let (code, out, err) = run(["trace", &trace, "why", "--worst", "1000", "--json"]);
    assert_eq!(code, 0, "{err}");
    let (jobs, time) = blamed(&out, "thief");
    // Jobs are there three fifths of the time.
    assert!(jobs >= 2 && time >= had / 10 && time <= had, "{time} of {had} ns, from {jobs} jobs: {out}");
    assert_eq!(run(["trace", &trace, "check", "--ignore-deadlines"]).0, 0);

    let (_, info, _) = run(["trace", &trace, "info"]);
    assert!(info.contains("Linux, SCHED_FIFO"), "{info}");
    assert!(info.contains("times that another thread or an interrupt had a CPU"), "{info}");
    assert!(info.lines().all(|line| !line.starts_with("lost")), "Linux had room for all: {info}");
}

/// Started without the capabilities that let root record, and with the limits of other users: Linux refuses.
#[test]
fn a_run_that_may_not_record_what_cpus_do_is_refused_with_the_way_out() {
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if level.trim().parse().is_ok_and(|level: i32| level <= 0) {
        return skip(format!("every user may record: kernel.perf_event_paranoid is {}", level.trim()));
    }
    if level.is_empty() {
        return skip("this Linux records nothing");
    }
    let without = ["--bounding-set=-perfmon,-sys_admin", "--inh-caps=-perfmon,-sys_admin"];
    if !Command::new("setpriv").args(without).arg("true").status().is_ok_and(|status| status.success()) {
        return skip("no setpriv that drops CAP_PERFMON");
    }
    let refused = Command::new("setpriv")
        .args(without)
        .arg(assert_cmd::cargo::cargo_bin!("laxity"))
        .args(["run", "--for", "20ms", "--scheduler", "other", "--watch-threads"])
        .arg(fixture("two.toml"))
        .output()
        .expect("setpriv starts");
    let err = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{err}");
    let wanted = format!(
        "Linux does not let this user record what CPUs do: kernel.perf_event_paranoid is {}, where at most 0 is needed; \
         `sysctl kernel.perf_event_paranoid=-1`, or give CAP_PERFMON",
        level.trim()
    );
    assert!(err.contains(&wanted), "{err}");
}
