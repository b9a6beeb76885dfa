//! Programs with the layer and without, under an arbitration that the test has made.
#![allow(dead_code, reason = "each test uses a part")]

#[path = "../../../tests/support/place.rs"]
mod place;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use laxity_trace::{Event, Record};

pub use place::Place;

/// The name of the arbitration.
pub const NAME: &str = "opencl";

/// The folder of the layer and of what tests build.
fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// The layer, which cargo has built for this test.
pub fn layer() -> PathBuf {
    let test = std::env::current_exe().expect("this test");
    let folder = test.parent().and_then(Path::parent).expect("target/PROFILE/deps");
    // `cargo build` copies it out of `deps`, `cargo test` does not.
    let places = [folder.join("liblaxity_opencl.so"), folder.join("deps/liblaxity_opencl.so")];
    let built = |path: &PathBuf| fs::metadata(path).and_then(|file| file.modified()).ok();
    places.into_iter().filter(|path| path.exists()).max_by_key(built).expect("cargo builds the library with its tests")
}

/// Has `command` run with the layer.
fn put_layer(command: &mut Command) {
    command.env("OPENCL_LAYERS", layer());
}

/// How many operations began on an engine.
pub fn operations(records: &[Record]) -> usize {
    records.iter().filter(|record| matches!(record.event, Event::EngineBegin { .. })).count()
}

/// A program in C, built for the test `name` from `source` in `tests/c`; `None`: there is no OpenCL here, which is noted.
#[track_caller]
pub fn program(name: &str, source: &str) -> Option<PathBuf> {
    build(name, source, &["-lOpenCL", "-lpthread"])
}

/// As [`program`], with these options.
#[track_caller]
pub fn build(name: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
    if !has_opencl() {
        laxity_testing::skip("no OpenCL device or no headers: run scripts/opencl.sh as root");
        return None;
    }
    let folder = target().join("opencl-tests");
    fs::create_dir_all(&folder).expect("a folder");
    let out = folder.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(source);
    let mut compile = Command::new("cc");
    compile.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"]).arg(&out).arg(source).args(options);
    run(&mut compile);
    Some(out)
}

/// Whether programs can be built, and find a device.
pub fn has_opencl() -> bool {
    let headers = Path::new("/usr/include/CL/cl_layer.h").exists();
    let icd = fs::read_dir("/etc/OpenCL/vendors").is_ok_and(|mut vendors| vendors.next().is_some());
    headers && icd
}

/// `program`, without any layer.
pub fn plain(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove("OPENCL_LAYERS").env("POCL_CACHE_DIR", target().join("pocl-cache"));
    fs::create_dir_all(target().join("pocl-cache")).expect("a folder");
    command.stdin(Stdio::null());
    command
}

/// Its output, if it succeeds.
#[track_caller]
pub fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    output
}

/// What it prints, if it succeeds.
#[track_caller]
pub fn said(command: &mut Command) -> String {
    String::from_utf8_lossy(&run(command).stdout).into_owned()
}
