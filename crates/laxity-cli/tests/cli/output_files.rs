//! Files are there whole or not at all; outputs that fail are reported.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use predicates::prelude::*;

use crate::support::{example, fixture, folder, laxity};

fn names(folder: &Path) -> Vec<OsString> {
    let mut names: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("entry").file_name()).collect();
    names.sort();
    names
}

#[test]
fn a_trace_replaces_the_old_one_and_leaves_nothing_else() {
    let folder = folder();
    let path = folder.path().join("out.lxt");
    fs::write(&path, "old").expect("written");
    laxity()
        .arg("simulate")
        .arg(fixture("two.toml"))
        .arg("--trace")
        .arg(&path)
        .assert()
        .success()
        .stderr(predicate::str::contains("note: trace in ").and(predicate::str::contains("out.lxt")));
    assert_eq!(names(folder.path()), ["out.lxt"]);
    assert!(fs::read(&path).expect("the trace").starts_with(b"LAXTRACE"));
}

#[test]
fn several_policies_write_a_trace_each() {
    let folder = folder();
    laxity()
        .arg("simulate")
        .arg(example("quickstart.toml"))
        .args(["--quiet", "--policy", "CEm,P-RM/FEm", "--trace"])
        .arg(folder.path().join("out.lxt"))
        .assert()
        .success();
    assert_eq!(names(folder.path()), ["out-CEm.lxt", "out-P-RM-FEm.lxt"]);
}

#[test]
fn a_place_that_does_not_exist_is_named_with_the_way_out() {
    laxity()
        .arg("simulate")
        .arg(fixture("two.toml"))
        .args(["--trace", "no/such/folder/out.lxt"])
        .assert()
        .code(1)
        .stdout("")
        .stderr("error: cannot write no/such/folder/out.lxt: no such file or directory; create the folder first\n");
    let folder = folder();
    laxity()
        .arg("simulate")
        .arg(fixture("two.toml"))
        .arg("--trace")
        .arg(folder.path())
        .assert()
        .code(1)
        .stderr(predicate::str::contains("is a directory").and(predicate::str::contains("name a file in it")));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported() {
    laxity()
        .arg("simulate")
        .arg(example("quickstart.toml"))
        .args(["--trace", "/dev/full"])
        .assert()
        .code(1)
        .stderr(predicate::str::contains("error: cannot write /dev/full: no space left on device; free some space"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_below_standard_output_is_reported() {
    let full = fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let output = Command::new(assert_cmd::cargo::cargo_bin!("laxity"))
        .arg("policies")
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "error: cannot write to standard output: no space left on device\n"
    );
}

/// The limit on file sizes stands in for a disk that fills up while the trace grows. The simulation would take years:
/// that the test ends shows that it does not go on without its trace.
#[cfg(unix)]
#[test]
fn a_trace_that_cannot_grow_ends_the_simulation_and_leaves_no_file() {
    let folder = folder();
    let path = folder.path().join("out.lxt");
    let output = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 200; exec \"$@\"", "sh"])
        .arg(assert_cmd::cargo::cargo_bin!("laxity"))
        .arg("simulate")
        .arg(example("quickstart.toml"))
        .args(["--for", "80000 h", "--trace"])
        .arg(&path)
        .output()
        .expect("runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("out.lxt: file too large"), "{error}");
    assert_eq!(names(folder.path()), Vec::<OsString>::new());
}

#[cfg(unix)]
#[test]
fn a_new_file_has_the_permissions_of_any_other() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let (ours, plain) = (folder.path().join("out.lxt"), folder.path().join("plain"));
    fs::write(&plain, "").expect("written");
    laxity().arg("simulate").arg(fixture("two.toml")).args(["--quiet", "--trace"]).arg(&ours).assert().success();
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode();
    assert_eq!(mode(&ours), mode(&plain));
}

#[cfg(unix)]
#[test]
fn a_link_is_followed() {
    let folder = folder();
    let (target, link) = (folder.path().join("target.lxt"), folder.path().join("link.lxt"));
    fs::write(&target, "old").expect("written");
    std::os::unix::fs::symlink(&target, &link).expect("linked");
    laxity().arg("simulate").arg(fixture("two.toml")).args(["--quiet", "--trace"]).arg(&link).assert().success();
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
    assert!(fs::read(&target).expect("the trace").starts_with(b"LAXTRACE"));
}

/// As in `laxity ... | head -1`: the reader goes away in the middle of more than a pipe holds.
#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("laxity"))
        .args(["gen", "uni-light/long", "cap=200", "--cpus", "200"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

/// A folder with a workload, a trace of it, and other names of both.
#[cfg(unix)]
fn inputs() -> tempfile::TempDir {
    let folder = folder();
    let [workload, trace] = ["k.toml", "s.lxt"].map(|name| folder.path().join(name));
    fs::copy(example("quickstart.toml"), &workload).expect("copied");
    laxity().args(["simulate", "--quiet", "--for", "1s", "--trace"]).args([&trace, &workload]).assert().success();
    for (name, of) in [("link.toml", &workload), ("link.lxt", &trace)] {
        std::os::unix::fs::symlink(of, folder.path().join(name)).expect("linked");
    }
    for (name, of) in [("hard.toml", &workload), ("hard.lxt", &trace)] {
        fs::hard_link(of, folder.path().join(name)).expect("linked");
    }
    folder
}

#[cfg(unix)]
#[test]
fn no_output_replaces_what_it_is_made_of_under_whichever_name() {
    let folder = inputs();
    let before = names(folder.path());
    let [workload, trace] = ["k.toml", "s.lxt"].map(|name| fs::read(folder.path().join(name)).expect("there"));
    let refused = |words: &[&str], input: &str, output: &str| {
        let words: Vec<String> = words.iter().map(|word| word.replace("OUT", output)).collect();
        let expected = match input == output {
            true => format!("error: {output} is an input, which this command reads, and would be lost"),
            false => format!("error: {output} is {input}, which this command reads, and would be lost"),
        };
        let assert = laxity().current_dir(folder.path()).args(&words).assert();
        assert.code(2).stdout("").stderr(predicate::str::contains(expected));
        assert_eq!(names(folder.path()), before, "{words:?}");
        assert_eq!(fs::read(folder.path().join("k.toml")).expect("there"), workload, "{words:?}");
        assert_eq!(fs::read(folder.path().join("s.lxt")).expect("there"), trace, "{words:?}");
    };
    for output in ["k.toml", "link.toml", "hard.toml"] {
        refused(&["simulate", "k.toml", "--trace", "OUT"], "k.toml", output);
        #[cfg(target_os = "linux")]
        refused(
            &["run", "k.toml", "--cpus", "1", "--scheduler", "other", "--for", "10ms", "--trace", "OUT"],
            "k.toml",
            output,
        );
        refused(&["report", "k.toml", "--no-run", "-o", "OUT"], "k.toml", output);
        refused(&["report", "k.toml", "s.lxt", "-o", "OUT"], "k.toml", output);
        refused(&["tune", "k.toml", "--within", "1s", "-o", "OUT"], "k.toml", output);
    }
    for output in ["s.lxt", "link.lxt", "hard.lxt"] {
        refused(&["trace", "s.lxt", "gantt", "--svg", "OUT"], "s.lxt", output);
        refused(&["trace", "s.lxt", "export", "-o", "OUT", "--format", "csv"], "s.lxt", output);
        refused(&["report", "s.lxt", "-o", "OUT"], "s.lxt", output);
    }
    // Standard input has a name, too, where a shell opened it.
    let workload = fs::File::open(folder.path().join("k.toml")).expect("there");
    let output = Command::new(assert_cmd::cargo::cargo_bin!("laxity"))
        .args(["simulate", "-", "--trace", "k.toml"])
        .current_dir(folder.path())
        .stdin(workload)
        .output()
        .expect("runs");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("k.toml is <stdin>, which this command reads"), "{err}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_recording_is_that_of_one_process() {
    let folder = folder();
    let path = folder.path().join("same.lxt");
    let run = |verb: &str, duration: &str| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("laxity"));
        command.arg(verb).arg(example("quickstart.toml")).args(["--quiet", "--for", duration, "--trace"]).arg(&path);
        if verb == "run" {
            command.args(["--cpus", "1", "--scheduler", "other"]);
        }
        command.stderr(Stdio::piped());
        command
    };
    let mut first = run("run", "600s").spawn().expect("runs");
    laxity_testing::until("it records", || fs::metadata(&path).is_ok_and(|file| file.len() > 0));
    for verb in ["run", "simulate"] {
        let second = run(verb, "10ms").output().expect("runs");
        let err = String::from_utf8_lossy(&second.stderr);
        assert_eq!(second.status.code(), Some(1), "{verb}: {err}");
        assert!(err.contains("same.lxt is being recorded by another process; wait until that ends"), "{verb}: {err}");
    }
    let pid = nix::unistd::Pid::from_raw(first.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("it lives");
    assert_eq!(first.wait().expect("ends").code(), Some(130));
    laxity().arg("trace").arg(&path).arg("info").assert().success();
    assert!(run("run", "10ms").output().expect("runs").status.success(), "it is free again");
}

/// Rust opens /dev/null where standard output is closed, and exit codes said that all went well.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_standard_output_is_reported() {
    let folder = folder();
    let trace = crate::support::trace_of("two.toml", "1 s", &folder);
    let binary = assert_cmd::cargo::cargo_bin!("laxity").to_str().expect("UTF-8");
    let trace = trace.to_str().expect("UTF-8");
    for words in ["policies", "--help", &format!("trace {trace} export --format csv -o -")] {
        let command = format!("exec {binary} {words} >&-");
        let output = Command::new("sh").args(["-c", &command]).output().expect("runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{words}: {said}");
        assert_eq!(said, "error: cannot write to standard output: bad file descriptor\n", "{words}");
    }
    let command = format!("exec {binary} simulate --quiet {} >&-", example("quickstart.toml").display());
    let status = Command::new("sh").args(["-c", &command]).status().expect("runs");
    assert_eq!(status.code(), Some(0), "where nothing is printed, nothing is lost");
}

/// It said that no part of this file was left behind.
#[cfg(target_os = "linux")]
#[test]
fn an_export_to_a_full_standard_output_is_not_a_file() {
    let folder = folder();
    let trace = crate::support::trace_of("two.toml", "1 s", &folder);
    let full = fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let output = Command::new(assert_cmd::cargo::cargo_bin!("laxity"))
        .arg("trace")
        .arg(trace)
        .args(["export", "--format", "csv", "-o", "-"])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .expect("runs");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "error: cannot write to standard output: no space left on device\n");
}
