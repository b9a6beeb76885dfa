//! `laxity measure`, and overheads from its files. Nothing here depends on the costs of the machine.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{example, fixture, folder, run};

/// A file as it is written, with numbers that can be recognized.
const PROFILE: &str = r#"laxity = 1
[machine]
cpus = [0]
[worst]
name = "measured-worst"
release = "7 us"
scheduling = "1 us"
[average]
name = "measured-average"
release = "3 us"
"#;

#[test]
fn a_measurement_is_a_profile_that_check_simulate_and_gen_charge() {
    let folder = folder();
    let file = folder.path().join("profile.toml").display().to_string();
    let (code, out, err) = run(["measure", "--for", "1ns", "--out", &file]);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("measured under SCHED_") && err.contains("written to"), "{err}");
    for row in ["timer_latency_idle", "yield_switch", "copy_1MiB", "context switch", "paper 002: CEm"] {
        assert!(out.contains(row), "no {row} in\n{out}");
    }
    let text = fs::read_to_string(&file).expect("written");
    assert!(text.starts_with("# Overheads of a machine, by laxity measure"), "{text}");
    let workload = example("quickstart.toml").display().to_string();
    for (suffix, name) in [("", "measured-worst"), (":worst", "measured-worst"), (":average", "measured-average")] {
        let profile = format!("{file}{suffix}");
        let (code, out, err) = run(["simulate", &workload, "--json", "--for", "10ms", "--overheads", &profile]);
        assert_eq!(code, 0, "{err}");
        assert!(out.contains(name), "{profile} is charged as {name}: {out}");
        let (code, _, err) = run(["check", &workload, "--no-scaling", "--overheads", &profile]);
        assert!(code == 0 || err.contains("not proven"), "{code}: {err}");
        let (code, out, err) = run(["gen", "uni-light/moderate", "cap=1", "--overheads", &profile]);
        assert_eq!(code, 0, "{err}");
        assert!(out.contains(&format!("name = \"{name}\"")), "{out}");
    }
}

#[test]
fn json_is_the_same_measurement_and_can_be_charged() {
    let folder = folder();
    let file = folder.path().join("profile.json");
    let cpu = laxity_sys::scheduling::usable_cpus().expect("CPUs")[0];
    let (code, out, err) =
        run(["measure", "--for", "1ns", "--json", "--cpus", &cpu.to_string(), "--out", &file.display().to_string()]);
    assert_eq!((code, err.as_str()), (0, ""), "nothing but JSON");
    let (_, _, alone) = run(["measure", "--for", "1ns", "--cpus", &cpu.to_string()]);
    assert!(alone.contains("no migration is measured"), "{alone}");
    assert_eq!(fs::read_to_string(&file).expect("written"), out);
    let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(found["machine"]["cpus"], serde_json::json!([cpu]));
    assert!(found["quantity"].as_array().is_some_and(|all| all.len() > 10), "{out}");
    let workload = fixture("two.toml").display().to_string();
    let profile = format!("{}:average", file.display());
    assert_eq!(run(["simulate", &workload, "--quiet", "--for", "10ms", "--overheads", &profile]).0, 0);
}

#[test]
fn what_a_file_says_is_what_is_charged() {
    let folder = folder();
    let file = folder.path().join("p.toml");
    fs::write(&file, PROFILE).expect("a file");
    let workload = fixture("two.toml").display().to_string();
    let explained = |profile: &str| {
        let (_, out, err) = run(["check", &workload, "--explain", "--no-scaling", "--overheads", profile]);
        assert!(out.contains("hard:"), "{out}{err}");
        out
    };
    let (worst, average) = (explained(&file.display().to_string()), explained(&format!("{}:average", file.display())));
    assert_ne!(worst, average);
    assert_eq!(worst, explained(&format!("{}:worst", file.display())));
    let (code, out, err) = run(["overheads", &format!("{}:average", file.display())]);
    assert!(code == 0 && out.contains("release") && out.contains("3.000") && !out.contains("7.000"), "{out}{err}");
}

#[test]
fn what_cannot_be_measured_or_charged_is_refused_with_the_way_out() {
    let folder = folder();
    let refused = |words: &[&str]| {
        let (code, out, err) = run(words);
        assert_eq!((code, out.as_str()), (2, ""), "{words:?}: {err}");
        err
    };
    assert!(refused(&["measure", "--cpus", "1000"]).contains("CPU 1000: this process may use"));
    assert!(refused(&["measure", "--cpus", "all"]).contains("write them as in \"0-3,8\""));
    assert!(refused(&["measure", "--worst", "mean"]).contains("write max, p99.9 or p99"));
    assert!(refused(&["measure", "--working-set", "1 B"]).contains("is outside 4096 B"));
    assert!(refused(&["measure", "--out", "profile.txt"]).contains("extension .toml or .json"));
    assert!(refused(&["measure", "--for", "soon"]).contains("soon"));
    let (code, _, err) = run(["measure", "--out", "/no/such/folder/p.toml"]);
    assert!(code == 1 && err.contains("create the folder first"), "{err}");
    let workload = fixture("two.toml").display().to_string();
    let check = |profile: &str| refused(&["check", &workload, "--overheads", profile]);
    assert!(check("/no/such/p.toml").contains("cannot read /no/such/p.toml"));
    assert!(check(&workload).contains("write one with `laxity measure --out FILE`"), "a workload is no profile");
    let wrong = folder.path().join("wrong.toml");
    fs::write(&wrong, PROFILE.replace("7 us", "7")).expect("a file");
    let said = check(&wrong.display().to_string());
    assert!(said.contains("wrong.toml:6:") && said.contains("`release`"), "{said}");
}

#[test]
fn ctrl_c_before_the_first_result_is_no_disturbance() {
    use std::io::{BufRead, BufReader};
    let usable = laxity_sys::scheduling::usable_cpus().expect("CPUs");
    if usable.len() < 2 {
        return laxity_testing::skip("one CPU has no interference");
    }
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("laxity"))
        .args(["measure", "--memory", "--for", "1 h"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    let mut err = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    assert!(err.next().expect("a line").expect("UTF-8").contains("beside a"), "it begins");
    kill(Pid::from_raw(i32::try_from(child.id()).expect("a process id")), Signal::SIGINT).expect("a child of ours");
    let last = err.last().expect("an error").expect("UTF-8");
    assert_eq!(last, "error: interrupted while it measured; nothing was written");
    assert_eq!(child.wait().expect("ends").code(), Some(130));
}

#[test]
fn ctrl_c_leaves_no_file_behind() {
    let folder = folder();
    let child = Command::new(assert_cmd::cargo::cargo_bin!("laxity"))
        .args(["measure", "--for", "1 h", "--out"])
        .arg(folder.path().join("p.toml"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    let is_there = || fs::read_dir(folder.path()).expect("a folder").count() > 0;
    while !is_there() {
        thread::sleep(Duration::from_millis(5));
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    kill(pid, Signal::SIGINT).expect("a child of ours");
    let output = child.wait_with_output().expect("ends");
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("of 3600 s; nothing was written"), "{err}");
    assert_eq!(output.status.code(), Some(130));
    assert!(!is_there(), "neither a file nor a part of it");
}
