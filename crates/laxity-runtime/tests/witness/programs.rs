//! Programs that a run starts for its jobs: they end with it, and why it ended is said.

use std::path::Path;
use std::sync::Arc;

use laxity_model::Nanos;
use laxity_runtime::code::{Code, Edges, View};
use laxity_runtime::{Ended, LinuxScheduler, LivePlan, Next, Options};
use laxity_sys::clock;
use laxity_testing::skip;
use laxity_trace::{Event, Record};

use crate::harness::{SEED, ms, start, workload};

/// Its thread is in its code for longer than a run waits for that.
struct Sleeps;

impl Code for Sleeps {
    fn call(&mut self, _: &mut View<'_>) -> Result<(), String> {
        clock::sleep_until(clock::now() + ms(4000));
        Ok(())
    }
}

struct Fails;

impl Code for Fails {
    fn call(&mut self, _: &mut View<'_>) -> Result<(), String> {
        Err("tested".to_owned())
    }
}

/// A task of that name whose jobs are the shell's `script`.
fn task(name: &str, more: &str, script: &str) -> String {
    format!(
        "[[task]]\nname = \"{name}\"\nperiod = \"50 ms\"\nwcet = \"1 ms\"\n{more}\nrun = {{ command = [\"sh\", \"-c\", \"{script}\"] }}\n"
    )
}

/// Runs `tasks` on one CPU, with a program that a [`Code`] is in place of, if one is named; stops them after `stop`. Nothing if the
/// class is not permitted here.
fn run(tasks: &str, linux: LinuxScheduler, code: Option<&str>, stop: Nanos) -> Option<(Ended, Vec<Record>, Nanos)> {
    let workload = workload(&format!("scheduler = \"P-RM\"\nplatform.cpus = 1\n{tasks}"));
    let options = Options { scheduler: workload.scheduler, linux: Some(linux), seed: SEED, duration: ms(60_000) };
    let mut plan = match LivePlan::new(&workload, &options) {
        Ok(plan) => plan,
        Err(refusal) => {
            skip(refusal);
            return None;
        }
    };
    if let Some(name) = code {
        plan.bind(name, Arc::new(|_: &str, _: &Edges| Ok(Box::new(Sleeps) as Box<dyn Code>)), false).expect("a task");
        plan.bind("fails", Arc::new(|_: &str, _: &Edges| Ok(Box::new(Fails) as Box<dyn Code>)), false).expect("a task");
    }
    plan.load_code(Path::new(".")).expect("there is a shell");
    let mut records = Vec::new();
    let (began, run) = (clock::now(), start(&plan).expect("it starts"));
    let ended = run.carry_on(&mut records, |_, _, _| Next::stop_if(clock::now() >= began + stop));
    Some((ended, records, clock::now().saturating_since(began)))
}

/// Under `SCHED_FIFO` the thread of the task does not have its CPU any more: it is not what ends the program.
#[test]
fn a_program_that_spins_is_ended_with_the_run_and_its_job_is_no_failure() {
    for linux in [LinuxScheduler::Other, LinuxScheduler::Fifo] {
        let spins = task("spins", "", "while :; do :; done");
        let Some((ended, records, _)) = run(&spins, linux, None, ms(300)) else { return };
        assert_eq!(ended.failed, Ok(()), "{linux}");
        assert!(!records.iter().any(|record| matches!(record.event, Event::Complete { .. })), "{linux}");
    }
}

#[test]
fn a_failure_ends_the_programs_of_other_tasks_and_is_the_error() {
    let tasks = task("sleeps", "", "sleep 600") + &task("fails", "phase = \"20 ms\"", "exit 3");
    let (ended, _, took) = run(&tasks, LinuxScheduler::Other, None, ms(50_000)).expect("permitted everywhere");
    let error = ended.failed.expect_err("a program failed");
    assert!(error.contains("its code failed") && error.contains("ended with exit code 3"), "{error}");
    assert!(took < ms(50_000), "the run was stopped");
}

/// The thread that is left behind belongs to the task that is the first one.
#[test]
fn code_that_does_not_return_after_a_failure_is_not_the_error() {
    let tasks = task("stays", "", "true") + &task("fails", "phase = \"20 ms\"", "true");
    let (ended, ..) = run(&tasks, LinuxScheduler::Other, Some("stays"), ms(50_000)).expect("permitted everywhere");
    let error = ended.failed.expect_err("code failed");
    assert!(error.contains("tested") && !error.contains("has not returned"), "{error}");
}

/// Its task's thread has the same priority and CPU.
#[test]
fn a_program_that_spins_under_fifo_keeps_to_its_budget() {
    let spins = task("spins", "budget = \"5 ms\"", "while :; do :; done");
    let Some((ended, records, _)) = run(&spins, LinuxScheduler::Fifo, None, ms(500)) else { return };
    assert_eq!(ended.failed, Ok(()));
    let stops = records.iter().filter(|record| matches!(record.event, Event::Suspend { .. })).count();
    assert!(stops >= 2, "{stops} stops");
}
