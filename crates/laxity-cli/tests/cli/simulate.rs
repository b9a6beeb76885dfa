//! `laxity simulate`.

use predicates::prelude::*;

use crate::support::{example, fixture, folder, laxity, run, stderr, stdout};

#[test]
fn the_fair_class_is_simulated_under_the_name_that_linux_gives_it() {
    let file = fixture("two.toml");
    let (code, out, err) = run([
        "simulate".as_ref(),
        file.as_os_str(),
        "--for".as_ref(),
        "12ms".as_ref(),
        "--policy".as_ref(),
        "SCHED_OTHER".as_ref(),
    ]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.contains("scheduler  G-CFS (Linux's fair class"), "{out}");
}

/// The schedule is drawn in the fixture: two releases of t1, three of t0, nothing preempted.
#[test]
fn the_tables_show_every_task_and_where_the_time_went() {
    let (code, out, err) =
        run(["simulate".as_ref(), fixture("two.toml").as_os_str(), "--for".as_ref(), "12ms".as_ref()]);
    let expected = "\
two
tasks      2 tasks, utilization 0.58 at worst
platform   1 CPU, quantum 1 ms
scheduler  G-EDF/CEm (coarse-grained queue, event-driven, interrupts on all CPUs)
overheads  none
seed       0
time       12 ms simulated

       period   wcet  util.  ────────── jobs ───────────  ─ response time, ms ─  tardiness     laxity  ────── switches ───────
task       ms     ms      %  released  completed  missed   mean    p99      max    max, ms  least, ms  preemptions  migrations
──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
t0      4.000  1.000  25.00         3          3       0  1.000  1.000    1.000      0.000      3.000            0           0
t1      6.000  2.000  33.33         2          2       0  2.500  3.000    3.000      0.000      3.000            0           0
──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
total                 58.33         5          5       0  1.600  3.000    3.000      0.000      3.000            0           0

          total  share
CPU time     ms      %  count  mean
───────────────────────────────────
jobs      7.000  58.33
idle      5.000  41.67

no deadline missed in 5 jobs; least laxity 3 ms (t0)
";
    assert_eq!(out, expected);
    assert_eq!(err, "", "no progress where there is no terminal");
    assert_eq!(code, 0);
}

#[test]
fn per_cpu_adds_a_row_for_each_cpu() {
    let output = laxity().arg("simulate").arg(example("quickstart.toml")).arg("--per-cpu").output().expect("runs");
    let out = stdout(&output);
    for cpu in ["cpu0", "cpu1", "cpu2", "cpu3", "all"] {
        assert!(out.lines().any(|line| line.starts_with(cpu)), "{cpu} in\n{out}");
    }
}

#[test]
fn without_a_duration_ten_of_the_longest_periods_are_simulated() {
    let output = laxity().arg("simulate").arg(example("quickstart.toml")).output().expect("runs");
    assert!(stdout(&output).contains("time       2 s simulated\n"));
    let output = laxity().arg("simulate").arg(fixture("two.toml")).output().expect("runs");
    assert!(stdout(&output).contains("time       1 s simulated\n"));
}

#[test]
fn a_duration_has_a_unit_and_is_not_zero() {
    for (duration, complaint) in [
        ("5", "has no unit; write 5 with one"),
        ("0 ms", "nothing happens in no time"),
        ("5 parsecs", "unknown unit"),
        ("-5ms", "does not begin with a decimal number"),
    ] {
        let words = ["simulate", "x.toml", "--for", duration];
        laxity().args(words).assert().code(2).stderr(predicate::str::contains(complaint));
    }
    laxity()
        .arg("simulate")
        .arg(fixture("two.toml"))
        .args(["--for", "0.002 min"])
        .assert()
        .success()
        .stdout(predicate::str::contains("120 ms simulated"));
}

#[test]
fn several_policies_are_compared_in_the_order_named() {
    let output = laxity()
        .arg("simulate")
        .arg(example("quickstart.toml"))
        .args(["--policy", "CQm,P-RM/FEm", "--policy", "S-CQ1"])
        .output()
        .expect("runs");
    let out = stdout(&output);
    let rows: Vec<&str> = out.lines().filter(|line| line.starts_with("G-") || line.starts_with("P-")).collect();
    assert_eq!(rows.len(), 3, "{out}");
    for (row, (scheduler, profile)) in rows.iter().zip([
        ("G-EDF/CQm", "brandenburg2009-CQm-worst-aligned"),
        ("P-RM/FEm", "brandenburg2009-FEm-worst-aligned"),
        ("G-EDF/S-CQ1", "brandenburg2009-CQ1-worst-staggered"),
    ]) {
        assert!(row.starts_with(scheduler), "{row}");
        assert!(row.ends_with(profile), "each is charged what was measured for it: {row}");
    }
}

#[test]
fn all_policies_are_the_nine_measured_ones() {
    let output = laxity().arg("simulate").arg(fixture("two.toml")).args(["--policy", "all"]).output().expect("runs");
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "a dedicated CPU leaves none of one: {error}");
    assert!(error.contains("two.toml: G-EDF/CE1 on 1 CPU"), "{error}");
    let output =
        laxity().arg("simulate").arg(example("quickstart.toml")).args(["--policy", "all"]).output().expect("runs");
    assert_eq!(stdout(&output).lines().filter(|line| line.starts_with("G-EDF/")).count(), 9);
}

#[test]
fn overheads_named_once_are_charged_to_all_and_a_note_says_so() {
    laxity()
        .arg("simulate")
        .arg(example("quickstart.toml"))
        .args(["--policy", "CEm,CQm", "--overheads", "elliott2012-klmirqd"])
        .assert()
        .success()
        .stderr(predicate::str::contains("note: all were charged elliott2012-klmirqd"));
}

#[test]
fn an_unknown_policy_or_profile_is_refused_with_a_suggestion() {
    laxity().args(["simulate", "x.toml", "--policy", "CEn"]).assert().code(2).stderr(
        predicate::str::contains("'CEn'")
            .and(predicate::str::contains("'CEm'"))
            .and(predicate::str::contains("laxity policies")),
    );
    laxity()
        .arg("simulate")
        .arg(fixture("two.toml"))
        .args(["--overheads", "brandenburg2009-wurst"])
        .assert()
        .code(2)
        .stderr("error: unknown overhead profile `brandenburg2009-wurst`; did you mean `brandenburg2009-worst`?\n");
}

#[test]
fn what_cannot_be_simulated_is_refused_by_name() {
    laxity()
        .arg("simulate")
        .arg(fixture("best-effort.toml"))
        .args(["--policy", "G-CFS"])
        .assert()
        .code(1)
        .stdout("")
        .stderr(predicate::str::contains("best-effort.toml: best-effort task \"indexer\" under G-CFS"));
}

/// The control task has 1 ms of every 30, and the indexer the rest.
#[test]
fn best_effort_tasks_have_a_table_of_what_they_executed() {
    laxity().arg("simulate").arg(fixture("best-effort.toml")).args(["--for", "300ms"]).assert().success().stdout(
        predicate::str::contains("best-effort task")
            .and(predicate::str::is_match(r"indexer +290\.0").expect("a pattern")),
    );
}

/// The same: what a best-effort task had is no job's time.
#[test]
fn time_of_best_effort_tasks_is_apart_from_that_of_jobs() {
    let rows = r"jobs +10\.000 +3\.33\nbest effort +290\.000 +96\.67\nidle +0\.000 +0\.00\n";
    let words = ["--for", "300ms", "--per-cpu"];
    let (code, said, err) = run(["simulate".as_ref(), fixture("best-effort.toml").as_os_str()]
        .into_iter()
        .chain(words.iter().map(std::ffi::OsStr::new)));
    assert_eq!(code, 0, "{err}");
    assert!(predicate::str::is_match(rows).expect("a pattern").eval(&said), "{said}");
    assert!(predicate::str::is_match(r"\ncpu0 +3\.33 +96\.67 ").expect("a pattern").eval(&said), "{said}");
}

/// Decision 158: to the nearest, as `check` does; and nothing is no more than nothing where there are no tasks.
#[test]
fn shares_are_rounded_as_their_total_is() {
    let simulated = |tasks: &str| {
        let file = format!("laxity = 1\nname = \"w\"\n[platform]\ncpus = 1\n{tasks}");
        let output = laxity().args(["simulate", "-"]).write_stdin(file).output().expect("the binary starts");
        stdout(&output)
    };
    let task = |name: &str, period: &str, wcet: &str| {
        format!("[[task]]\nname = \"{name}\"\nperiod = \"{period}\"\nwcet = \"{wcet}\"\n")
    };
    let tasks = [task("seven", "1 s", "700 us"), task("half", "3 ms", "2 ms"), task("least", "1 s", "1 us")].concat();
    let said = simulated(&tasks);
    for row in
        [r"seven +1000\.000 +0\.700 +0\.07 ", r"half +3\.000 +2\.000 +66\.67 ", r"least .* <0\.01 ", r"total +66\.74 "]
    {
        assert!(predicate::str::is_match(row).expect("a pattern").eval(&said), "{row}: {said}");
    }
    let none = simulated("");
    assert!(none.contains("0 tasks, utilization 0.00 at worst") && !none.contains("-0.0"), "{none}");
}

#[test]
fn missed_deadlines_are_a_failure_only_on_request() {
    let run = |flags: &[&str]| {
        laxity().arg("simulate").arg(fixture("overload.toml")).args(["--for", "60ms"]).args(flags).assert()
    };
    run(&[])
        .code(0)
        .stdout(predicate::str::contains(
            "22 of 25 jobs missed their deadlines, in 2 of 2 tasks; tardy by at most 12 ms, 5 of them still",
        ))
        .stderr(predicate::str::contains("overload.toml: the tasks need 1.250 CPUs and 1 run jobs"));
    run(&["--fail-on-miss"]).code(1).stderr(
        predicate::str::is_match(r"error: \d+ of 25 jobs missed their deadlines \(--fail-on-miss\)\n$")
            .expect("a pattern"),
    );
    laxity().arg("simulate").arg(fixture("two.toml")).arg("--fail-on-miss").assert().code(0);
}

/// The only job that is complete by then was in time: "tardy by at most 0 ns" was said of it.
#[test]
fn jobs_that_are_late_and_incomplete_are_tardy_by_nothing_known() {
    let folder = folder();
    let file = folder.path().join("late.toml");
    let task = |name: &str| format!("{{ name = \"{name}\", period = \"10 ms\", wcet = \"10 ms\" }}");
    let tasks = format!("[{}, {}]", task("a"), task("b"));
    let text = format!("laxity = 1\nname = \"w\"\nscheduler = \"G-EDF\"\nplatform = {{ cpus = 1 }}\ntask = {tasks}\n");
    std::fs::write(&file, text).expect("written");
    let done = laxity().arg("simulate").arg(&file).args(["--for", "15ms"]).assert().success();
    let said = String::from_utf8_lossy(&done.get_output().stdout).into_owned();
    let line = "1 of 4 jobs missed their deadlines, in 1 of 2 tasks, 1 of them still incomplete at the end";
    assert!(said.contains(line), "{said}");
}

#[test]
fn quiet_prints_nothing() {
    laxity().arg("simulate").arg(fixture("overload.toml")).arg("--quiet").assert().success().stdout("").stderr("");
}

#[test]
fn a_workload_is_read_from_standard_input_as_toml_or_json() {
    let toml = std::fs::read_to_string(fixture("two.toml")).expect("the fixture");
    let run = |text: String| laxity().args(["simulate", "-", "--for", "12ms", "--json"]).write_stdin(text).assert();
    let from_toml = run(toml).success().get_output().stdout.clone();
    let json = r#"{
        "laxity": 1, "name": "two", "platform": { "cpus": 1 },
        "task": [
            { "name": "t0", "period": "4 ms", "wcet": "1 ms" },
            { "name": "t1", "period": "6 ms", "wcet": "2 ms" }
        ]
    }"#;
    let from_json = run(json.to_owned()).success().get_output().stdout.clone();
    assert_eq!(String::from_utf8(from_toml), String::from_utf8(from_json));
    run("laxity = 1\nname = \n".to_owned()).code(2).stderr(predicate::str::contains("error: <stdin>:2:"));
}

#[test]
fn a_missing_file_is_named() {
    laxity()
        .args(["simulate", "no-such.toml"])
        .assert()
        .code(2)
        .stdout("")
        .stderr("error: cannot read no-such.toml: no such file or directory\n");
}

#[test]
fn a_file_that_is_no_text_is_refused_with_its_line() {
    let folder = folder();
    let path = folder.path().join("binary.toml");
    std::fs::write(&path, b"laxity = 1\nname = \"\xff\"\n").expect("written");
    laxity().arg("simulate").arg(&path).assert().code(2).stderr(predicate::str::contains("binary.toml:2: not UTF-8"));
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let folder = folder();
    let trace = |name: &str, seed: &str| {
        let path = folder.path().join(name);
        laxity()
            .arg("simulate")
            .arg(example("quickstart.toml"))
            .args(["--quiet", "--seed", seed, "--trace"])
            .arg(&path)
            .assert()
            .success();
        std::fs::read(path).expect("the trace")
    };
    let first = trace("a.lxt", "1");
    assert_eq!(first, trace("b.lxt", "1"));
    assert_ne!(first, trace("c.lxt", "2"));
}

#[test]
fn colour_is_for_terminals_unless_asked_for() {
    let colours = |flags: &[&str]| {
        let output = laxity().args(flags).arg("simulate").arg(fixture("two.toml")).output().expect("runs");
        stdout(&output).contains('\u{1b}')
    };
    assert!(!colours(&[]));
    assert!(!colours(&["--color", "never"]));
    assert!(colours(&["--color", "always"]));
}

/// Tasks of utilization 0.7, 0.7 and 0.6 need two CPUs and fit on none together with another: a placement fails, though the
/// whole set does not need more than there is.
#[test]
fn tasks_that_no_placement_fits_are_warned_of() {
    let folder = crate::support::folder();
    let file = folder.path().join("three.toml");
    let task = |name: &str, wcet| format!("[[task]]\nname = \"{name}\"\nperiod = \"10 ms\"\nwcet = \"{wcet} ms\"\n");
    let head = "laxity = 1\nname = \"three\"\nscheduler = \"P-EDF\"\n[platform]\ncpus = 2\n";
    std::fs::write(&file, [head, &task("a", 7), &task("b", 7), &task("c", 6)].concat()).expect("written");
    let warned = |words: &[&str]| {
        let (code, _, err) = crate::support::run(
            ["simulate".as_ref(), file.as_os_str()].into_iter().chain(words.iter().map(std::convert::AsRef::as_ref)),
        );
        assert_eq!(code, 0, "{err}");
        err.contains("under P-EDF/CEm the tasks on cpu") && err.contains("need 1.300 CPUs of 1")
    };
    assert!(warned(&[]));
    assert!(!warned(&["--policy", "G-EDF"]));
}

/// The placement was said to have failed, and a `cluster` to be the way out, where it was the cause.
#[test]
fn tasks_that_were_placed_on_a_cpu_too_small_for_them_are_named_as_the_cause() {
    let folder = crate::support::folder();
    let file = folder.path().join("placed.toml");
    let task = |name| format!("[[task]]\nname = \"{name}\"\nperiod = \"10 ms\"\nwcet = \"6 ms\"\ncluster = 0\n");
    let text =
        format!("laxity = 1\nname = \"w\"\nscheduler = \"P-RM\"\n[platform]\ncpus = 2\n{}{}", task("a"), task("b"));
    std::fs::write(&file, text).expect("written");
    let (code, _, err) = run(["simulate".as_ref(), file.as_os_str()]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("2 of them have `cluster = 0`: give some another, or none"), "{err}");
    assert!(!err.contains("no placement was found"), "{err}");
}

#[test]
fn a_seed_that_is_too_large_is_refused_with_its_range() {
    let seed = "18446744073709551616";
    let (code, _, err) = run(["simulate".as_ref(), fixture("two.toml").as_os_str(), "--seed".as_ref(), seed.as_ref()]);
    assert_eq!(code, 2, "{err}");
    assert!(err.contains("write a whole number of 0 to 18446744073709551615"), "{err}");
}

#[test]
fn the_command_that_a_note_suggests_can_be_pasted() {
    let folder = crate::support::folder();
    let path = folder.path().join("n x\"u.lxt");
    let (code, _, err) =
        run(["simulate".as_ref(), fixture("two.toml").as_os_str(), "--trace".as_ref(), path.as_os_str()]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains(&format!("`laxity trace '{}' gantt`", path.display())), "{err}");
}
