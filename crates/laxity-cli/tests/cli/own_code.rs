//! Tasks and nodes that run the user's code: a library in C, programs, and what becomes of code that fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use laxity_testing::{Alone, skip};
use tempfile::TempDir;

use crate::support::{folder, run};

/// Functions of a library: each of `camera` and `fuse` checks what it is given.
const CODE: &str = r#"
#include <laxity/code.h>
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
LAXITY_CODE_LIBRARY
struct state { unsigned long calls; int warm; };
static unsigned long word(const struct laxity_code_message *message) {
    unsigned long value;
    memcpy(&value, message->data, sizeof value);
    return value;
}
LAXITY_CODE int begin(const char *task, void **state) {
    *state = calloc(1, sizeof(struct state));
    return strcmp(task, "g/camera") == 0 && *state ? 0 : 1;
}
LAXITY_CODE void end(void *state) {
    struct state *it = state;
    FILE *file = fopen("calls.txt", "w");
    fprintf(file, "%lu %d", it->calls, it->warm);
    fclose(file);
    free(it);
}
LAXITY_CODE int camera(struct laxity_code_call *call) {
    struct state *it = call->state;
    if (call->job == LAXITY_CODE_WARM_UP) {
        it->warm = it->calls == 0 && call->outputs[0].count == 0;
        return 0;
    }
    struct laxity_code_message *message = &call->outputs[0].messages[0];
    if (call->job != it->calls++ || call->input_count != 0 || message->length != 1000 || call->step != 0)
        return 1;
    if (call->deadline_ns - call->release_ns != 20000000 || strcmp(call->outputs[0].peer, "fuse") != 0)
        return 2;
    unsigned long job = call->job;
    memcpy(message->data, &job, sizeof job);
    message->length = 8 + job;
    return 0;
}
/* Two steps: CPU time in a critical section, and a suspension. Both see the same two messages. */
LAXITY_CODE int fuse(struct laxity_code_call *call) {
    const struct laxity_code_edge *edge = &call->inputs[0];
    if (edge->count != 2 || edge->taken != 2 || strcmp(edge->peer, "camera") != 0)
        return 3;
    for (int i = 0; i < 2; i++)
        if (word(&edge->messages[i]) != 2 * call->job + i || edge->messages[i].length != 8 + 2 * call->job + i)
            return 4;
    if (call->step > 1 || call->kind != (call->step == 0 ? LAXITY_CODE_CPU : LAXITY_CODE_SUSPEND))
        return 5;
    return 0;
}
LAXITY_CODE int fails(struct laxity_code_call *call) { return call->job == 3 ? 7 : 0; }
LAXITY_CODE int crashes(struct laxity_code_call *call) {
    if (call->job == 3)
        *(volatile int *)16 = 1;
    return 0;
}
LAXITY_CODE int hangs(struct laxity_code_call *call) {
    while (call->job == 3) {
    }
    return 0;
}
"#;

/// The code as a library in `folder`; `None` without a C compiler.
fn build(folder: &Path, code: &str, name: &str) -> Option<PathBuf> {
    let (source, library) = (folder.join(name).with_extension("c"), folder.join(name));
    fs::write(&source, code).expect("a folder");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../capi/include");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"]).arg(&library).arg(&source);
    match compiler.arg("-I").arg(include).status() {
        Ok(status) => assert!(status.success(), "{name} compiles"),
        Err(error) => {
            skip(format!("no C compiler: {error}"));
            return None;
        }
    }
    Some(library)
}

/// A workload in a folder of its own, with the library beside it.
fn workload(text: &str) -> Option<(TempDir, String)> {
    let folder = folder();
    build(folder.path(), CODE, "libown.so")?;
    let file = folder.path().join("own.toml");
    let head = "laxity = 1\nname = \"own\"\nscheduler = \"P-RM\"\nplatform.cpus = 1\n";
    fs::write(&file, format!("{head}{text}")).expect("a folder");
    let file = file.display().to_string();
    Some((folder, file))
}

fn task(symbol: &str) -> String {
    let run = format!("{{ library = \"libown.so\", symbol = \"{symbol}\" }}");
    format!("[[task]]\nname = \"t\"\nperiod = \"10 ms\"\nwcet = \"1 ms\"\nrun = {run}\n")
}

const LIVE: [&str; 4] = ["--for", "100ms", "--scheduler", "other"];

fn run_live(file: &str, more: &[&str]) -> (i32, String, String) {
    run(["run", file].iter().chain(&LIVE).chain(more))
}

/// Two rates, initial state, messages whose length varies, a critical section and a suspension; what is wrong with any of
/// them ends the run by a number. The same file is proven and simulated by its times.
#[test]
fn nodes_call_functions_with_messages_in_place_and_the_file_is_still_checked_and_simulated() {
    let Some((folder, file)) = workload(
        r#"
[[resource]]
name = "map"
protocol = "priority-inheritance"
[[graph]]
name = "g"
edge = [{ from = "camera", to = "fuse", consume = 2, message = "1 kB" }]
[[graph.node]]
name = "camera"
period = "20 ms"
wcet = "1 ms"
run = { library = "libown.so", symbol = "camera", init = "begin", exit = "end", warm = true }
[[graph.node]]
name = "fuse"
body = [{ critical = "map", body = [{ cpu = "1 ms" }] }, { suspend = "1 ms" }]
run = { library = "libown.so", symbol = "fuse" }
"#,
    ) else {
        return;
    };
    let name = format!("own-code-{}", std::process::id());
    let text = fs::read_to_string(&file).expect("written");
    fs::write(&file, text.replace("name = \"g\"", &format!("name = \"{name}\"")).replace("g/camera", "x"))
        .expect("a folder");
    // The function `begin` compares the name of its task.
    let code = CODE
        .replace("g/camera", &format!("{name}/camera"))
        .replace("calls.txt", &folder.path().join("calls.txt").display().to_string());
    build(folder.path(), &code, "libown.so").expect("as before");
    let trace = folder.path().join("live.lxt").display().to_string();
    let (code, out, err) = run_live(&file, &["--trace", &trace]);
    assert_eq!(code, 0, "{err}");
    let row = out.lines().find(|line| line.contains("/fuse")).unwrap_or_else(|| panic!("{out}"));
    assert!(row.split_whitespace().any(|word| word == "2"), "two jobs of five: {out}");
    assert_eq!(fs::read_to_string(folder.path().join("calls.txt")).expect("it ended"), "5 1");
    assert_eq!(run(["trace", &trace, "check", "--ignore-deadlines"]).0, 0);
    for verb in ["check", "simulate", "validate"] {
        assert_eq!(run([verb, &file]).0, 0, "{verb}");
    }
    // Without the code, jobs use up the time that the model says.
    assert_eq!(run_live(&file, &["--no-code"]).0, 0);
}

#[test]
fn a_function_that_fails_ends_the_run_and_the_error_names_task_job_and_result() {
    let Some((_folder, file)) = workload(&task("fails")) else { return };
    let (code, _, err) = run_live(&file, &[]);
    assert_eq!(code, 1);
    assert!(err.contains("task \"t\": job 3: its code failed: fails answered 7"), "{err}");
}

/// The other task's code does not return, and is in front of it in the file: that is no reason why the run ended.
#[test]
fn the_error_is_that_of_the_task_that_failed_first_and_not_of_those_that_did_not_return_then() {
    let hangs = task("hangs").replace("name = \"t\"", "name = \"stays\"");
    let Some((_folder, file)) = workload(&format!("{hangs}{}", task("fails"))) else { return };
    let (code, _, err) = run(["run", &file, "--for", "60s", "--scheduler", "other"]);
    assert!(code == 1 && err.contains("task \"t\": job 3: its code failed: fails answered 7"), "{code}: {err}");
}

/// The graph beside it is one whose memory would stay, as a thread that is left behind has it.
#[test]
fn code_that_crashes_or_does_not_return_loses_no_trace_and_leaves_no_memory() {
    for (symbol, what) in [
        ("crashes", "job 3: its code was ended by SIGSEGV (memory that is not its own) at address 0x10"),
        ("hangs", "job 3: its code has not returned although the run has ended"),
    ] {
        let graph = format!("crash-{symbol}-{}", std::process::id());
        let node = format!(
            "{{ name = \"a\", period = \"10 ms\", wcet = \"1 ms\", run = {{ library = \"libown.so\", symbol = \"{symbol}\" }} }}"
        );
        let text = format!(
            "[[graph]]\nname = \"{graph}\"\nedge = [\"a -> b\"]\nnode = [{node}, {{ name = \"b\", wcet = \"1 ms\" }}]\n"
        );
        let Some((folder, file)) = workload(&text) else { return };
        let trace = folder.path().join("live.lxt").display().to_string();
        let (code, _, err) = if symbol == "hangs" {
            // Its jobs never end: Ctrl-C would be the user's way out.
            interrupted(&file, &trace, "other")
        } else {
            run_live(&file, &["--trace", &trace])
        };
        assert!(code == 1 && err.contains(&graph) && err.contains(what), "{code}: {err}");
        let (code, out, err) = run(["trace", &trace, "metrics"]);
        assert_eq!(code, 0, "{err}");
        let row = out.lines().find(|line| line.contains("/a")).unwrap_or_else(|| panic!("{out}"));
        assert!(row.split_whitespace().any(|word| word == "3"), "three jobs completed: {out}");
        let (_, out, _) = run(["graph", "list"]);
        assert!(!out.contains(&graph), "{out}");
    }
}

/// From its fourth job on the first task never comes back. It is the more urgent one, and there is one CPU: without its budget the
/// other one would not complete another job.
#[test]
fn code_that_never_returns_keeps_to_its_budget_and_leaves_the_cpu_to_the_others() {
    let steady = "[[task]]\nname = \"steady\"\nperiod = \"20 ms\"\nwcet = \"2 ms\"\n";
    let Some((folder, file)) = workload(&format!("{}budget = \"2 ms\"\n{steady}", task("hangs"))) else { return };
    let trace = folder.path().join("live.lxt").display().to_string();
    let _alone = Alone::with_the_scheduler();
    let (code, _, err) = interrupted(&file, &trace, "laxity");
    if err.contains("not permitted") {
        return skip(err.trim());
    }
    assert!(code == 1 && err.contains("its code has not returned although the run has ended"), "{code}: {err}");
    let (code, out, err) = run(["trace", &trace, "check", "--ignore-deadlines"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(out.contains("yes  a legal schedule") && out.contains("yes  follows P-RM"), "{out}");
    let (_, out, _) = run(["trace", &trace, "metrics", "--json"]);
    let metrics: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    let completed = |task: usize| metrics["tasks"][task]["completed"].as_u64().expect("a number");
    assert!(completed(0) == 3 && completed(1) > 10, "of 2 s: {out}");
}

/// Two requests at once are one, which the run would take seconds to follow; a later one it follows at once.
#[test]
fn a_second_request_ends_a_run_at_once_and_no_memory_of_it_is_left() {
    use nix::sys::signal::{Signal, kill};
    let graph = format!("twice-{}", std::process::id());
    let text = format!(
        "[[graph]]\nname = \"{graph}\"\nedge = [\"a -> b\"]\nnode = [{{ name = \"a\", period = \"10 ms\", wcet = \"1 ms\", \
         run = {{ library = \"libown.so\", symbol = \"hangs\" }} }}, {{ name = \"b\", wcet = \"1 ms\" }}]\n"
    );
    let Some((folder, file)) = workload(&text) else { return };
    let trace = folder.path().join("live.lxt").display().to_string();
    let _alone = Alone::with_the_scheduler();
    let mut child = start(&file, &trace, "laxity");
    if let Some(status) = child.try_wait().expect("a child of ours") {
        return skip(format_args!("Laxity's scheduler is not permitted here: {status}"));
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    let left = || {
        let entries = fs::read_dir("/dev/shm").expect("readable").map(|entry| entry.expect("one").file_name());
        let names = entries.map(|name| name.to_string_lossy().into_owned());
        let own = format!("run-{pid}-");
        names.filter(|name| name.contains(&own) || name.contains(&graph)).collect::<Vec<_>>()
    };
    assert_eq!(left().len(), 2, "its system and its graph: {:?}", left());
    for wait in [Duration::ZERO, Duration::from_millis(200), Duration::ZERO] {
        kill(pid, Signal::SIGINT).expect("it lives");
        std::thread::sleep(wait);
    }
    assert_eq!(child.wait().expect("a child of ours").code(), Some(130));
    assert_eq!(left(), [""; 0]);
}

/// A run whose code does not return any more.
fn start(file: &str, trace: &str, scheduler: &str) -> std::process::Child {
    use std::process::Stdio;
    let mut command = Command::new(env!("CARGO_BIN_EXE_laxity"));
    command.args(["run", file, "--for", "60s", "--scheduler", scheduler, "--trace", trace]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    std::thread::sleep(Duration::from_secs(2));
    child
}

/// What a run says that is interrupted while code does not return.
fn interrupted(file: &str, trace: &str, scheduler: &str) -> (i32, String, String) {
    use nix::sys::signal::{Signal, kill};
    let child = start(file, trace, scheduler);
    kill(nix::unistd::Pid::from_raw(child.id() as i32), Signal::SIGINT).expect("it lives");
    let output = child.wait_with_output().expect("it ends");
    (output.status.code().expect("not killed"), String::new(), crate::support::stderr(&output))
}

#[test]
fn code_that_cannot_be_called_is_an_error_with_file_line_and_field() {
    let Some((folder, file)) = workload(&task("nothing")) else { return };
    let wrong = |run: &str| {
        let text = fs::read_to_string(&file).expect("written");
        let file = folder.path().join("wrong.toml").display().to_string();
        let start = text.find("run =").expect("a task with code");
        fs::write(&file, format!("{}run = {run}\n", &text[..start])).expect("a folder");
        let (code, out, err) = run_live(&file, &[]);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains("wrong.toml:9:"), "the line of the task's `run`: {err}");
        err
    };
    let (code, _, err) = run_live(&file, &[]);
    assert!(code == 2 && err.contains("own.toml:9:41: task 0 \"t\" run: "), "{err}");
    assert!(err.contains("has no symbol nothing") && err.contains("nm -D"), "{err}");
    let err = wrong("{ library = \"libnone.so\", symbol = \"x\" }");
    assert!(err.contains("there is no file") && err.contains("libnone.so"), "{err}");
    build(folder.path(), "int x(void) { return 0; }", "libplain.so");
    assert!(wrong("{ library = \"libplain.so\", symbol = \"x\" }").contains("does not define laxity_code_abi"));
    let other = "#include <stdint.h>\nconst uint32_t laxity_code_abi = 9;\nint x(void) { return 0; }";
    build(folder.path(), other, "libother.so");
    assert!(wrong("{ library = \"libother.so\", symbol = \"x\" }").contains("built for version 9 of laxity/code.h"));
    fs::write(folder.path().join("text.so"), "no library").expect("a folder");
    assert!(wrong("{ library = \"text.so\", symbol = \"x\" }").contains("text.so"));
    assert!(wrong("{ command = [\"./none\"] }").contains("there is no file"));
    assert!(wrong("{ command = [] }").contains("names no program"));
}

#[test]
fn a_program_is_started_for_each_job_and_its_failure_is_the_jobs() {
    let Some((folder, file)) = workload("") else { return };
    let program = folder.path().join("append.sh");
    fs::write(&program, "#!/bin/sh\necho $LAXITY_JOB $1 >>jobs.txt\n[ $LAXITY_JOB != 4 ]\n").expect("a folder");
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
    let head = fs::read_to_string(&file).expect("written");
    let run = "run = { command = [\"./append.sh\", \"once\"] }";
    fs::write(&file, format!("{head}[[task]]\nname = \"t\"\nperiod = \"50 ms\"\nwcet = \"20 ms\"\n{run}\n"))
        .expect("a folder");
    let (code, _, err) = crate::support::run(["run", &file, "--for", "1s", "--scheduler", "other"]);
    assert!(code == 1 && err.contains("job 4: its code failed") && err.contains("exit code 1"), "{err}");
    let jobs = fs::read_to_string(folder.path().join("jobs.txt")).expect("it was started");
    assert_eq!(jobs, "0 once\n1 once\n2 once\n3 once\n4 once\n");
    let (code, _, err) = crate::support::run(["run", &file, "--for", "1s", "--scheduler", "laxity"]);
    assert!(code != 0 && (err.contains("--scheduler fifo") || err.contains("not permitted")), "{err}");
}

/// A class with state, a function, messages in place by memoryview and their lengths; an exception ends the run.
#[test]
fn python_functions_are_called_with_messages_in_place() {
    let Some((folder, file)) = workload("") else { return };
    let name = format!("python-{}", std::process::id());
    let code = "import pickle

class Camera:
    def __init__(self):
        self.calls, self.warm = 0, False
    def __call__(self, job):
        if job.is_warm_up:
            self.warm = True
            return
        assert self.warm and job.index == self.calls and job.deadline_ns - job.release_ns == 20_000_000
        self.calls += 1
        text = b'x' * (job.index + 1)
        job.output('fuse')[0][: len(text)] = text
        job.output().resize(len(text))
    def close(self):
        open('FOLDER/closed', 'w').write(str(self.calls))

class Shut(Camera):
    def close(self):
        raise OSError('the shutter is stuck')

def fuse(job):
    assert bytes(job.input()[0]) == b'x' * (job.index + 1), bytes(job.input()[0])

def fail(job):
    if job.index == 3:
        raise RuntimeError('no more frames')

kept = []
def keep(job):
    kept.append(pickle.PickleBuffer(job.output()[0]))
";
    let code = code.replace("FOLDER", &folder.path().display().to_string());
    fs::write(folder.path().join("own_fusion.py"), code).expect("a folder");
    let head = fs::read_to_string(&file).expect("written");
    let text = |camera: &str, fuse: &str| {
        format!(
            "{head}[[graph]]\nname = \"{name}\"\nedge = [{{ from = \"camera\", to = \"fuse\", message = \"1 kB\" }}]\nnode = [\n\
             {{ name = \"camera\", period = \"20 ms\", wcet = \"2 ms\", run = {{ python = \"own_fusion:{camera}\", warm = true }} }},\n\
             {{ name = \"fuse\", wcet = \"2 ms\", run = {{ python = \"own_fusion:{fuse}\" }} }},\n]\n"
        )
    };
    fs::write(&file, text("Camera", "fuse")).expect("a folder");
    let (code, _, err) = run_live(&file, &[]);
    if err.contains("has no shared library to load") || err.contains("cannot start python3") {
        return skip(err.trim());
    }
    assert_eq!(code, 0, "{err}");
    assert_eq!(fs::read_to_string(folder.path().join("closed")).expect("it ended"), "5");
    fs::write(&file, text("Shut", "fuse")).expect("a folder");
    let (code, _, err) = run_live(&file, &[]);
    assert!(code == 1 && err.contains("after its last job: its code failed: OSError: the shutter is stuck"), "{err}");
    fs::write(&file, text("Camera", "fail")).expect("a folder");
    let (code, _, err) = run_live(&file, &[]);
    assert!(code == 1 && err.contains("job 3: its code failed: RuntimeError: no more frames"), "{err}");
    fs::write(&file, text("keep", "fuse")).expect("a folder");
    let (code, _, err) = run_live(&file, &[]);
    assert!(code == 1 && err.contains("warmed up"), "a call that warms up has no messages: {err}");
    fs::write(&file, text("keep", "fuse").replace(", warm = true", "")).expect("a folder");
    let (code, _, err) = run_live(&file, &[]);
    assert!(code == 1 && err.contains("keeps a message beyond its job"), "{err}");
    fs::write(&file, text("Camera", "nothing")).expect("a folder");
    let (code, _, err) = run_live(&file, &[]);
    assert!(code == 2 && err.contains("own.toml:10:") && err.contains("has no attribute 'nothing'"), "{err}");
}
