//! What the tests share.

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use tempfile::TempDir;

/// The command under test, with no colour or width taken from the environment.
pub fn laxity() -> Command {
    let mut command = assert_cmd::cargo::cargo_bin_cmd!("laxity");
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").env("TERM", "xterm");
    command
}

/// A workload of these tests.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A workload that is shown to users.
pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workloads").join(name)
}

/// A folder of its own for a test.
pub fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Standard output as text.
pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

/// Standard error as text.
pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// Runs `laxity` with these words; its exit code, standard output and standard error.
pub fn run<W: AsRef<std::ffi::OsStr>>(words: impl IntoIterator<Item = W>) -> (i32, String, String) {
    let output = laxity().args(words).output().expect("the binary starts");
    (output.status.code().expect("not killed"), stdout(&output), stderr(&output))
}

/// The trace of a fixture, simulated for `duration`.
pub fn trace_of(fixture_name: &str, duration: &str, folder: &TempDir) -> PathBuf {
    let path = folder.path().join("trace.lxt");
    laxity()
        .args(["simulate", "--quiet", "--for", duration, "--trace"])
        .args([&path, &fixture(fixture_name)])
        .assert()
        .success();
    path
}
