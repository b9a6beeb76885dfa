//! Programs in C: the examples and this crate's, built with a C compiler against the library as installed, and run.

#[path = "support/linking.rs"]
mod linking;
mod support;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use laxity_model::TaskId;
use laxity_testing::Directory;
use laxity_trace::codec::read_all;
use laxity_trace::{Event, Record, check};
use linking::{command, flag, libraries};
use support::{PREFIX, root, run, stdout};

#[derive(Clone, Copy, PartialEq)]
enum Linked {
    Shared,
    /// Laxity's library alone is inside.
    Static,
    /// Those of the system are, too.
    Whole,
}

const PIPELINE: &str = "10 images, 45 is the sum of their first pixels, doubled: 90\n";

#[test]
fn the_pipeline_filters_every_image_whichever_of_its_processes_starts_first() {
    let program = build("examples/c/pipeline.c", Linked::Shared);
    for roles in [["camera", "filter", "display"], ["display", "filter", "camera"], ["filter", "camera", "display"]] {
        let place = Directory::new(&roles.join("-"));
        assert_eq!(said_together(|| command(&program), &roles, &place), PIPELINE);
    }
}

/// The same loop without a graph.
#[test]
fn fed_back_values_arrive_two_jobs_later() {
    let (mut temperature, mut ordered) = (0, vec![0, 0]);
    let mut expected = Vec::new();
    for step in 0..20 {
        temperature += ordered[step];
        ordered.push((200 - temperature) / 4);
        expected.push(temperature.to_string());
    }
    assert_eq!(said("examples/c/feedback.c").trim_end(), expected.join(" "));
}

/// The images are squares, so their differences are odd numbers.
#[test]
fn objects_are_changed_in_place_and_remembered_in_a_delay() {
    assert_eq!(said("examples/c/objects.c"), "0 1 3 5 7 9 11 13 15 17 \n");
}

#[test]
fn a_static_library_needs_nothing_where_it_runs() {
    for linked in [Linked::Static, Linked::Whole] {
        let program = build("examples/c/pipeline.c", linked);
        let place = Directory::new("static");
        let bare = || {
            let mut command = Command::new(&program);
            command.env_remove("LD_LIBRARY_PATH");
            command
        };
        assert_eq!(said_together(bare, &["camera", "filter", "display"], &place), PIPELINE);
    }
}

#[test]
fn the_guide_links_with_the_libraries_that_the_static_one_needs() {
    let guide = fs::read_to_string(root().join("docs/guides/c.md")).expect("a guide");
    let private = private_libraries().join(" ");
    let line = format!("-Wl,-Bstatic -llaxity -Wl,-Bdynamic {private}\n");
    assert!(guide.contains(&line), "the guide does not say {line}");
}

/// Neither process knows whether the other has started.
#[test]
fn fork_and_join_are_processes_that_start_in_any_order() {
    let program = build("examples/c/fork_join.c", Linked::Shared);
    for roles in [["split", "join"], ["join", "split"]] {
        let place = Directory::new(&format!("{}-first", roles[0]));
        let said = said_together(|| command(&program), &roles, &place);
        assert_eq!(said, "joined 25 times: sum 4950, count 100\n");
    }
}

#[test]
fn every_process_reads_user_data_and_messages_are_passed_on_without_a_copy() {
    for source in ["capi/tests/c/data.c", "capi/tests/c/swap.c", "capi/tests/c/latest.c"] {
        let program = build(source, Linked::Shared);
        let place = Directory::new(program.file_name().and_then(OsStr::to_str).expect("a name"));
        assert_eq!(stdout(&run(command(&program).arg(place.path()))), "ok\n");
        assert!(place.is_empty());
    }
}

#[test]
fn misuse_gets_a_number_and_a_text() {
    let program = build("capi/tests/c/misuse.c", Linked::Shared);
    let place = Directory::new("misuse");
    assert_eq!(stdout(&run(command(&program).arg(place.path()))), "ok\n");
    assert!(place.is_empty());
}

#[test]
fn a_forked_child_has_no_part_in_what_its_parent_is_attached_to() {
    let program = build("capi/tests/c/forked.c", Linked::Shared);
    let place = Directory::new("forked");
    assert_eq!(stdout(&run(command(&program).arg(place.path()))), "ok\n");
    assert!(place.is_empty(), "the children left nothing, too");
}

/// It gives programs another auxiliary vector than Linux: the library asks glibc for it.
#[test]
fn programs_run_under_valgrind() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return laxity_testing::skip("there is no valgrind");
    }
    let program = build("capi/tests/c/swap.c", Linked::Shared);
    let place = Directory::new("valgrind");
    let mut valgrind = command(Path::new("valgrind"));
    assert_eq!(stdout(&run(valgrind.arg("--quiet").arg(&program).arg(place.path()))), "ok\n");
    assert!(place.is_empty());
}

#[test]
fn messages_of_every_kind_of_channel_are_polled_for() {
    let program = build("capi/tests/c/links.c", Linked::Shared);
    let place = Directory::new("links");
    assert_eq!(stdout(&run(command(&program).arg(place.path()))), "ok\n");
    assert!(place.is_empty());
}

/// The program checks the results of its calls; this test reads the trace that they wrote.
#[test]
fn jobs_have_releases_and_deadlines_and_leave_a_trace() {
    let program = build("capi/tests/c/times.c", Linked::Shared);
    let place = Directory::new("times");
    assert_eq!(stdout(&run(command(&program).arg(place.path()))), "ok\n");
    let path = place.path().join("run.lxt");
    let trace = read_all(&*fs::read(&path).expect("it was recorded")).expect("it is a trace");
    assert!(trace.damage.is_none());
    let completed = |task| {
        let is_it = |record: &&Record| matches!(record.event, Event::Complete { job, .. } if job.task == TaskId(task));
        trace.records.iter().filter(is_it).count()
    };
    assert_eq!([completed(0), completed(1)], [5, 4]);
    assert_eq!(trace.records.last().map(|record| record.event), Some(Event::End));
    assert!(check::legality(&trace.header, &trace.records, |_| None).violations.is_empty());
    fs::remove_file(path).expect("it is there");
    assert!(place.is_empty());
}

/// The program checks its messages and results; this test reads the trace that it wrote.
#[test]
fn a_workload_file_runs_functions_of_the_program() {
    let program = build("capi/tests/c/workload.c", Linked::Shared);
    let place = Directory::new("workload");
    let graph = format!("c-workload-{}", std::process::id());
    let text = format!(
        r#"laxity = 1
name = "car"
scheduler = "P-RM"
platform.cpus = 1
task = [{{ name = "beside", period = "50 ms", wcet = "1 ms" }}]
[[graph]]
name = "{graph}"
edge = [{{ from = "camera", to = "fuse", message = "64 B" }}]
node = [{{ name = "camera", period = "20 ms", wcet = "1 ms" }}, {{ name = "fuse", wcet = "1 ms" }}]
"#
    );
    let (file, path) = (place.path().join("car.toml"), place.path().join("car.lxt"));
    fs::write(&file, text).expect("a folder");
    assert_eq!(stdout(&run(command(&program).arg(&file).arg(&path))), "ok\n");
    let trace = read_all(&*fs::read(&path).expect("it was recorded")).expect("it is a trace");
    assert!(trace.damage.is_none());
    let completed = trace.records.iter().filter(|record| matches!(record.event, Event::Complete { .. })).count();
    assert_eq!(completed, 5 + 5 + 2);
    assert!(check::legality(&trace.header, &trace.records, |_| None).violations.is_empty());
    let left = fs::read_dir("/dev/shm")
        .expect("Linux")
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().contains(&graph));
    assert_eq!(left.count(), 0, "the graph is gone");
}

/// The output of all processes, one for each role, started in this order. They leave no file.
fn said_together(program: impl Fn() -> Command, roles: &[&str], place: &Directory) -> String {
    let start = |role: &&str| {
        let mut command = program();
        command.arg(role).env("LAXITY_DIRECTORY", place.path()).stdout(std::process::Stdio::piped());
        command.spawn().expect("it was built")
    };
    let processes: Vec<_> = roles.iter().map(start).collect();
    let outputs: Vec<Output> =
        processes.into_iter().map(|process| process.wait_with_output().expect("it ends")).collect();
    assert!(outputs.iter().all(|output| output.status.success()));
    assert!(place.is_empty(), "the last one out took the graph along");
    outputs.iter().map(stdout).collect()
}

/// The output of an example, which leaves no file.
fn said(source: &str) -> String {
    let program = build(source, Linked::Shared);
    let place = Directory::new(program.file_name().and_then(OsStr::to_str).expect("a name"));
    let said = stdout(&run(command(&program).env("LAXITY_DIRECTORY", place.path())));
    assert!(place.is_empty(), "the last one out took the graph along");
    said
}

/// One GPU, one token: its holder excludes the other process.
#[test]
fn two_processes_take_turns_on_a_gpu() {
    let program = build("examples/c/gpu_token.c", Linked::Shared);
    let place = Directory::new("gpu");
    let start = |name: &str| {
        let mut command = command(&program);
        command.arg(name).env("LAXITY_DIRECTORY", place.path()).stdout(std::process::Stdio::piped());
        command.spawn().expect("it was built")
    };
    let processes = ["camera", "lidar"].map(start);
    let outputs = processes.map(|process| process.wait_with_output().expect("it ends"));
    assert!(outputs.iter().all(|output| output.status.success()));
    let said = outputs.each_ref().map(stdout);
    assert_eq!(said, ["camera", "lidar"].map(|name| format!("{name}: 100 jobs, 1000 chunks\n")));
    assert!(place.is_empty(), "the last one out took the arbitration along");
}

#[test]
fn misuse_of_gpus_gets_a_number_and_a_text() {
    let program = build("capi/tests/c/gpu_misuse.c", Linked::Shared);
    let place = Directory::new("gpu-misuse");
    assert_eq!(stdout(&run(command(&program).arg(place.path()))), "ok\n");
    assert!(place.is_empty());
}

/// With a scheduler they run in the kernel lab.
#[test]
fn without_a_scheduler_in_the_kernel_programs_are_told_how_to_start_it() {
    let said = stdout(&run(&mut command(&build("capi/tests/c/kernel_tasks.c", Linked::Shared))));
    let Some(error) = said.strip_prefix("none: ") else { return assert_eq!(said, "ok\n") };
    assert!(error.contains("`laxity sched start`, as root, loads it"), "{error}");
    let output = command(&build("examples/c/in_kernel.c", Linked::Shared)).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`laxity sched start`"), "{output:?}");
}

#[test]
fn without_a_scheduler_in_the_kernel_a_program_in_cpp_catches_that() {
    if Command::new("c++").arg("--version").output().is_err() {
        return laxity_testing::skip("there is no c++");
    }
    let said = stdout(&run(&mut command(&build("capi/tests/cpp/kernel.cpp", Linked::Shared))));
    let Some(error) = said.strip_prefix("none: ") else { return assert_eq!(said, "ok\n") };
    assert!(error.contains("`laxity sched start`, as root, loads it"), "{error}");
}

#[test]
fn threads_become_tasks_and_misuse_gets_a_number_and_a_text() {
    let program = build("capi/tests/c/tasks.c", Linked::Shared);
    let place = Directory::new("tasks");
    let said = stdout(&run(command(&program).arg(place.path())));
    match said.strip_prefix("skipped: ") {
        Some(reason) => laxity_testing::skip(reason),
        None => assert_eq!(said, "ok\n"),
    }
    assert!(place.is_empty(), "the last one out took the system along");
}

#[test]
fn two_periodic_tasks_of_the_example_run_all_their_jobs() {
    let program = build("examples/c/periodic.c", Linked::Shared);
    let place = Directory::new("periodic");
    let output = command(&program).env("LAXITY_DIRECTORY", place.path()).output().expect("it was built");
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(reason.contains("allow SCHED_FIFO"), "{reason}");
        return laxity_testing::skip(reason);
    }
    let mut lines: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["fast: 50 jobs", "slow: 5 jobs"]);
    assert!(place.is_empty(), "the last one out took the system along");
}

/// A soft GPU, and a token for each job.
#[test]
fn two_processes_copy_and_launch_on_a_soft_gpu() {
    let program = build("examples/c/device.c", Linked::Shared);
    let place = Directory::new("device");
    let start = |name: &str| {
        let mut command = command(&program);
        command.arg(name).env("LAXITY_DIRECTORY", place.path()).stdout(std::process::Stdio::piped());
        command.spawn().expect("it was built")
    };
    let outputs = ["camera", "lidar"].map(start).map(|process| process.wait_with_output().expect("it ends"));
    assert!(outputs.iter().all(|output| output.status.success()));
    let said = outputs.each_ref().map(stdout);
    assert_eq!(said, ["camera", "lidar"].map(|name| format!("{name}: 10 jobs, 45000 pixels are 255\n")));
    assert!(place.is_empty(), "the last one out took the arbitration along");
}

#[test]
fn jobs_that_exhaust_their_budgets_are_withdrawn_or_release_their_token() {
    let program = build("capi/tests/c/budgets.c", Linked::Shared);
    let place = Directory::new("budgets");
    assert_eq!(stdout(&run(command(&program).arg(place.path()))), "ok\n");
    assert!(place.is_empty());
}

#[test]
fn the_bandwidth_lock_nests_knows_streams_and_goes_with_its_client() {
    let program = build("capi/tests/c/bandwidth.c", Linked::Shared);
    let place = Directory::new("bandwidth");
    assert_eq!(stdout(&run(command(&program).arg(place.path()))), "ok\n");
    assert!(place.is_empty());
}

#[test]
fn misuse_of_devices_gets_a_number_and_a_text() {
    let program = build("capi/tests/c/device_misuse.c", Linked::Shared);
    let place = Directory::new("device-misuse");
    assert_eq!(stdout(&run(command(&program).arg(place.path()))), "ok\n");
    assert!(place.is_empty());
}

fn build(source: &str, linked: Linked) -> PathBuf {
    let source = root().join(source);
    let name = source.file_stem().and_then(OsStr::to_str).expect("a name");
    let suffix = match linked {
        Linked::Shared => "",
        Linked::Static => "-static",
        Linked::Whole => "-whole",
    };
    let program = PREFIX.join(format!("{name}{suffix}"));
    let is_cpp = source.extension() == Some(OsStr::new("cpp"));
    let (compiler, standard) = if is_cpp { ("c++", "-std=c++17") } else { ("cc", "-std=gnu11") };
    let mut cc = Command::new(compiler);
    cc.args([standard, "-Wall", "-Wextra", "-Werror", "-g", "-o"]).arg(&program).arg(&source);
    cc.arg(flag("-I", "include"));
    // Such as -fsanitize=address,undefined.
    cc.args(std::env::var("LAXITY_TEST_CFLAGS").unwrap_or_default().split_whitespace());
    match linked {
        Linked::Shared => cc.args(libraries()),
        Linked::Static => {
            let library = ["-Wl,-Bstatic", "-llaxity", "-Wl,-Bdynamic"];
            cc.arg(flag("-L", "lib")).args(library).args(private_libraries())
        }
        Linked::Whole => cc.arg("-static").args(libraries()).args(private_libraries()),
    };
    run(cc.arg("-pthread"));
    program
}

/// The libraries that a static library needs, from `laxity.pc`.
fn private_libraries() -> Vec<String> {
    let description = fs::read_to_string(PREFIX.join("lib/pkgconfig/laxity.pc")).expect("it is installed");
    let line = description.lines().find_map(|line| line.strip_prefix("Libs.private: ")).expect("there are some");
    line.split_whitespace().map(str::to_owned).collect()
}
