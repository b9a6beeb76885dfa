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
