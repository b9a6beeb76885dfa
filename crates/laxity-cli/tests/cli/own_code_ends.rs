//! Code that a workload names and that ends in another way than by returning: exceptions of C++, `abort`, `exit`,
//! `pthread_exit`; and code that says too much. Each run ends with an error that names task and job, with a trace of what was
//! before, and without names in shared memory.

use std::fs;
use std::path::Path;
use std::process::Command;

use laxity_testing::skip;

use crate::support::{folder, run};

const CODE: &str = r#"
#include <laxity/code.hpp>
#include <pthread.h>
#include <cstdlib>
#include <stdexcept>
#ifndef PLAIN
LAXITY_CODE_LIBRARY
#else
extern "C" {
extern const uint32_t laxity_code_abi;
const uint32_t laxity_code_abi = LAXITY_CODE_ABI;
}
#endif
static int third(laxity_code_call *call) { return call->job == 3; }
LAXITY_CODE int throws(laxity_code_call *call)
{
    if (third(call))
        throw std::runtime_error("no more frames");
    return 0;
}
LAXITY_CODE int throws_a_number(laxity_code_call *call)
{
    if (third(call))
        throw 1;
    return 0;
}
LAXITY_CODE int aborts(laxity_code_call *call)
{
    if (third(call))
        std::abort();
    return 0;
}
LAXITY_CODE int terminates(laxity_code_call *call) noexcept { return throws(call); }
LAXITY_CODE int exits(laxity_code_call *call)
{
    if (third(call))
        std::exit(0);
    return 0;
}
LAXITY_CODE int ends_its_thread(laxity_code_call *call)
{
    if (third(call))
        pthread_exit(nullptr);
    return 0;
}
LAXITY_CODE int ends_its_thread_in_run(laxity_code_call *call)
{
    return laxity::run(call, [](laxity::Job &job) { ends_its_thread(const_cast<laxity_code_call *>(&job.call())); });
}
LAXITY_CODE int says_too_much(laxity_code_call *call)
{
    if (third(call))
        call->outputs[0].messages[0].length = 1u << 30;
    return 0;
}
LAXITY_CODE int works(laxity_code_call *) { return 0; }
LAXITY_CODE int begin(const char *, void **) { return 0; }
LAXITY_CODE int begin_throws(const char *, void **) { throw std::runtime_error("no camera"); }
LAXITY_CODE int begin_exits(const char *, void **) { std::exit(0); }
LAXITY_CODE void end(void *) {}
LAXITY_CODE void end_throws(void *) { throw std::runtime_error("no camera"); }
"#;

/// Builds the code as `libends.so`, and as `libplain.so`, which does not catch exceptions. Whether there is a compiler.
fn build(folder: &Path) -> bool {
    let source = folder.join("ends.cpp");
    fs::write(&source, CODE).expect("a folder");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../capi/include");
    for (library, more) in [("libends.so", "-DCATCHES"), ("libplain.so", "-DPLAIN")] {
        let mut compiler = Command::new("c++");
        compiler.args([
            "-std=c++17",
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            more,
            "-o",
        ]);
        match compiler.arg(folder.join(library)).arg(&source).arg("-I").arg(&include).status() {
            Ok(status) => assert!(status.success(), "{library} compiles"),
            Err(error) => {
                skip(format_args!("no C++ compiler: {error}"));
                return false;
            }
        }
    }
    true
}

/// What the run says in which node `a` has `run`, and node `b` works, after it was seen that nothing is left. It has `completed`
/// jobs of `a`, if the trace is to say so.
fn end_of(folder: &Path, case: &str, of_a: &str, completed: Option<u64>) -> String {
    let graph = format!("ends-{case}-{}", std::process::id());
    let text = format!(
        "laxity = 1\nname = \"ends\"\nscheduler = \"P-RM\"\nplatform.cpus = 1\n[[graph]]\nname = \"{graph}\"\n\
         edge = [{{ from = \"a\", to = \"b\", message = \"64 B\" }}]\nnode = [\n\
         {{ name = \"a\", period = \"10 ms\", wcet = \"1 ms\", run = {{ {of_a} }} }},\n\
         {{ name = \"b\", wcet = \"1 ms\", run = {{ library = \"libends.so\", symbol = \"works\" }} }},\n]\n"
    );
    let (file, trace) = (folder.join("ends.toml"), folder.join("live.lxt").display().to_string());
    fs::write(&file, text).expect("a folder");
    let file = file.display().to_string();
    let (code, _, err) = run(["run", &file, "--for", "100ms", "--scheduler", "other", "--trace", &trace]);
    assert_eq!(code, 1, "{case}: {err}");
    assert!(err.contains(&format!("task \"{graph}/a\"")), "{case}: {err}");
    let left = fs::read_dir("/dev/shm").expect("Linux").flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().contains(&graph));
    assert_eq!(left.count(), 0, "{case}: no name is left");
    if let Some(completed) = completed {
        let (code, out, err) = run(["trace", &trace, "metrics", "--json"]);
        assert_eq!(code, 0, "{case}: {err}");
        let metrics: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(metrics["tasks"][0]["completed"].as_u64(), Some(completed), "{case}: {out}");
    }
    err
}

#[test]
fn code_that_does_not_return_ends_the_run_with_an_error_and_a_trace() {
    let folder = folder();
    if !build(folder.path()) {
        return;
    }
    for (library, symbol, what) in [
        ("ends", "throws", "job 3: its code failed: throws threw an exception: no more frames"),
        ("ends", "throws_a_number", "throws_a_number threw an exception: it is no std::exception"),
        ("plain", "throws", "job 3: its code let an exception escape, or called pthread_exit"),
        ("ends", "ends_its_thread", "job 3: its code let an exception escape, or called pthread_exit"),
        ("ends", "ends_its_thread_in_run", "job 3: its code let an exception escape, or called pthread_exit"),
        ("plain", "ends_its_thread", "job 3: its code let an exception escape, or called pthread_exit"),
        ("ends", "aborts", "job 3: its code was ended by SIGABRT (it called abort, or let an exception escape)"),
        ("ends", "terminates", "job 3: its code was ended by SIGABRT (it called abort, or let an exception escape)"),
        ("ends", "exits", "job 3: its code called exit, which would end the process"),
        ("ends", "says_too_much", "its message 0 to b has a length of 1073741824 bytes, and 64 fit"),
    ] {
        let of_a = format!("library = \"lib{library}.so\", symbol = \"{symbol}\"");
        let err = end_of(folder.path(), &format!("{library}-{symbol}"), &of_a, Some(3));
        assert!(err.contains(what), "{symbol}: {err}");
        assert!(!err.contains("fatal runtime error"), "{symbol}: {err}");
    }
}

#[test]
fn what_begins_and_ends_with_the_code_is_watched_too() {
    let folder = folder();
    if !build(folder.path()) {
        return;
    }
    for (library, init, exit, what) in [
        ("ends", "begin_throws", "end", "its code cannot begin: begin_throws threw an exception: no camera"),
        ("plain", "begin_throws", "end", "before its first job: its code let an exception escape"),
        ("ends", "begin_exits", "end", "before its first job: its code called exit"),
        ("ends", "begin", "end_throws", "after its last job: its code let an exception escape"),
    ] {
        let of_a = format!("library = \"lib{library}.so\", symbol = \"works\", init = \"{init}\", exit = \"{exit}\"");
        let err = end_of(folder.path(), &format!("{library}-{init}"), &of_a, None);
        assert!(err.contains(what), "{init} {exit}: {err}");
    }
}
