//! Programs of ours and the vendor's Python bindings on the soft driver.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use laxity_softgpu::SoftGpu;
use support::{Reach, bindings, on_soft, own_program, python, run, said};

#[test]
fn wrong_calls_are_answered_as_the_documentation_says_however_the_driver_is_reached() {
    for reach in Reach::ALL {
        let program = own_program("errors", reach);
        let output = run(on_soft(&mut Command::new(program), "errors"));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "end\n", "{reach:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        let named = errors.matches("cuTexRefCreate is not supported").count();
        assert_eq!(named, 1, "what is not supported is named once: {errors}");
        assert!(errors.contains("kernel nothing is no soft kernel and has no time"), "{errors}");
    }
}

/// The output of a program that reaches the driver by `cuGetProcAddress`.
#[track_caller]
fn printed(name: &str) -> String {
    said(on_soft(&mut Command::new(own_program(name, Reach::ProcAddress)), name))
}

#[test]
fn a_stream_goes_on_after_each_of_many_waits_for_another() {
    assert_eq!(printed("waits"), "end\n");
}

#[test]
fn events_are_passed_with_their_stream_and_have_times_in_its_order() {
    assert_eq!(printed("events"), "not ready 0 0 0 0\nwrong times 0\n");
}

#[test]
fn graphs_that_two_threads_launch_into_one_stream_are_each_carried_out_whole() {
    assert_eq!(printed("launches"), "nodes 8000, out of order 0\n");
}

#[test]
fn copies_and_fills_beyond_an_allocation_are_refused_in_two_and_three_dimensions() {
    assert_eq!(printed("bounds"), "end\n");
}

#[test]
fn a_capture_leaves_nothing_behind_and_forbids_others_only_what_its_mode_says() {
    assert_eq!(printed("captures"), "end\n");
}

#[test]
fn a_thread_whose_context_was_destroyed_is_told_so_and_gets_no_other() {
    assert_eq!(printed("contexts"), "end\n");
}

/// A program that has printed a line, and goes on when its input ends.
struct Paused {
    program: Child,
    output: BufReader<ChildStdout>,
    line: String,
    /// The name of its soft GPU.
    gpu: String,
}

impl Paused {
    fn start(name: &str) -> Paused {
        let mut command = Command::new(own_program(name, Reach::ProcAddress));
        let command = on_soft(&mut command, name).env("LAXITY_SOFTCUDA_TIMES", "timed=1000s");
        let gpu = command.get_envs().find(|(name, _)| *name == "LAXITY_SOFTCUDA_NAME").and_then(|(_, value)| value);
        let gpu = format!("{}0", gpu.expect("of this test").to_string_lossy());
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let (mut output, mut line) = (BufReader::new(program.stdout.take().expect("piped")), String::new());
        output.read_line(&mut line).expect("text");
        Paused { program, output, line, gpu }
    }

    /// The rest of its output.
    fn go_on(mut self) -> String {
        drop(self.program.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).expect("text");
        assert!(self.program.wait().expect("it ends").success());
        text
    }
}

#[test]
fn the_stream_of_a_thread_goes_with_the_thread() {
    let program = Paused::start("threads");
    assert_eq!(program.line, "launches 600\n");
    // The shared one, and the last thread's. The program tells the server, which need not have read that yet.
    let streams = || laxity_softgpu::look(&program.gpu).expect("it answers").expect("it is open").streams;
    let patience = Instant::now() + Duration::from_secs(20);
    while streams() > 2 && Instant::now() < patience {
        sleep(Duration::from_millis(10));
    }
    assert!(streams() <= 2, "{} streams of 600 threads that have ended", streams());
    assert_eq!(program.go_on(), "");
}

#[test]
fn no_stream_waits_for_a_soft_gpu_that_is_lost() {
    let program = Paused::start("lost");
    assert_eq!(program.line, "issued\n");
    let config = laxity_softgpu::look(&program.gpu).expect("it answers").expect("it is open").config;
    let gpu = SoftGpu::open(&program.gpu, config).expect("it is there");
    run(Command::new("kill").arg("-KILL").arg(gpu.server().expect("Linux knows").to_string()));
    // CUDA_ERROR_DEVICE_UNAVAILABLE
    assert_eq!(program.go_on(), "second 46\nfirst 46\nall 46\nevent 0\n");
}

#[test]
fn the_official_python_bindings_run_unmodified() {
    let Some(python) = python() else { return };
    let mut command = Command::new(python);
    let text = said(on_soft(command.arg(bindings()), "bindings"));
    assert_eq!(text, "compute 166096224 550584242 1302484296\norder 1 2\ngraph 3 12\nend\n");
}

#[test]
fn a_setting_that_is_wrong_is_named_with_what_can_be() {
    let program = own_program("errors", Reach::Dlsym);
    let mut command = Command::new(program);
    let output = on_soft(&mut command, "settings").env("LAXITY_SOFTCUDA_DEVICES", "many").output().expect("it starts");
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("LAXITY_SOFTCUDA_DEVICES=\"many\" is not a number from 0 to 16"), "{errors}");
}
