//! Vision graphs from C and C++: programs built against the library as installed, and run.

#[path = "support/linking.rs"]
mod linking;
mod support;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use laxity_testing::{Alone, Directory};
use linking::{command, flag, libraries};
use support::{PREFIX, root, run, stdout};

#[test]
fn a_graph_in_cpp_computes_fails_and_uses_a_gpu() {
    let Some(program) = build("capi/tests/cpp/vx.cpp") else { return };
    let _alone = Alone::with_the_scheduler();
    let place = Directory::new("cpp");
    let server = PREFIX.join("bin/laxity-softgpu-server");
    assert_eq!(stdout(&run(command(&program).arg(place.path()).arg(server))), "ok\n");
    assert!(place.is_empty(), "graphs are gone with their runs");
}

#[test]
fn a_graph_in_c_fails_with_its_own_words() {
    let Some(program) = build("capi/tests/c/vx.c") else { return };
    let place = Directory::new("c");
    assert_eq!(stdout(&run(command(&program).arg(place.path()))), "ok\n");
    assert!(place.is_empty(), "graphs are gone with their runs");
}

/// With the sanitizers of the compiler: what is freed too early is an error of theirs.
#[test]
fn misuse_in_cpp_is_refused_and_nothing_is_used_after_its_end() {
    let Some(plain) = build("capi/tests/cpp/misuse.cpp") else { return };
    let place = Directory::new("misuse-cpp");
    let workload = root().join("examples/workloads/camera.toml");
    let sanitized = build_with("capi/tests/cpp/misuse.cpp", "-fsanitize=address,undefined");
    for program in [Some(plain), sanitized].iter().flatten() {
        assert_eq!(stdout(&run(command(program).arg(place.path()).arg(&workload))), "ok\n");
        assert!(place.is_empty(), "graphs are gone with their runs");
    }
}

/// A bar of 2 pixels moves to the right: its new and its old place differ, in 240 rows.
#[test]
fn the_example_counts_the_pixels_that_move() {
    let Some(program) = build("examples/cpp/motion.cpp") else { return };
    let place = Directory::new("motion");
    let said = stdout(&run(command(&program).env("LAXITY_DIRECTORY", place.path())));
    let expected: Vec<String> = (0..30).map(|frame| if frame < 2 { 480 } else { 960 }.to_string()).collect();
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), expected);
    assert!(place.is_empty(), "graphs are gone with their runs");
}

/// The program made of `source`. `None`, and a message, if there is no compiler.
fn build(source: &str) -> Option<PathBuf> {
    let program = build_with(source, "");
    if program.is_none() {
        laxity_testing::skip(format_args!("there is no compiler for {source}"));
    }
    program
}

/// With one more option, or none; `None` if the compiler, or what the option needs, is not there.
fn build_with(source: &str, option: &str) -> Option<PathBuf> {
    let source = root().join(source);
    let is_cpp = source.extension() == Some(OsStr::new("cpp"));
    let (compiler, standard) = if is_cpp { ("c++", "-std=c++17") } else { ("cc", "-std=gnu11") };
    let name = source.file_stem().and_then(OsStr::to_str).expect("a name");
    let program = PREFIX.join(format!("{name}-{compiler}{}", if option.is_empty() { "" } else { "-with" }));
    if !can_link(compiler, option, &program.with_extension("probe")) {
        return None;
    }
    let mut compile = Command::new(compiler);
    compile.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror", "-g", "-O1", "-o"]);
    compile.arg(&program).arg(&source).arg(flag("-I", "include")).args(libraries());
    // Such as -fsanitize=address,undefined.
    compile.args(std::env::var("LAXITY_TEST_CFLAGS").unwrap_or_default().split_whitespace());
    compile.args((!option.is_empty()).then_some(option));
    run(compile.arg("-pthread"));
    Some(program)
}

/// Whether `compiler` makes a program with `option`.
fn can_link(compiler: &str, option: &str, probe: &Path) -> bool {
    let mut compile = Command::new(compiler);
    compile.args((!option.is_empty()).then_some(option)).args(["-x", "c", "-", "-o"]);
    let child = compile.arg(probe).stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = child else { return false };
    let written =
        child.stdin.take().is_some_and(|mut source| source.write_all(b"int main(void) { return 0; }\n").is_ok());
    let is_linked = child.wait().is_ok_and(|status| status.success());
    let _ = std::fs::remove_file(probe);
    written && is_linked
}
