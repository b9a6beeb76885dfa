//! Budgets of tasks that are threads of any program: enforced amid code that does not call Laxity.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use laxity_model::{Instant, LockId, Nanos, ServerKind};
use laxity_sched::{Config, LockConfig, LockProgress, LockRequest, Parameters, Rule, System, Task, TaskState};
use laxity_sys::clock::{now, sleep_until, thread_cpu_time};
use laxity_testing::{on_a_calm_machine, skip, until};
use support::{StopAtEnd, execute, keep_off_its_cpu, on, one_cpu, release, spin_until, task, usable};

const MS: Nanos = Nanos::from_millis(1);

fn times(count: u64) -> Nanos {
    Nanos(count * MS.0)
}

/// A task that may take `budget` ms in each `period` ms.
fn server(system: &System, kind: ServerKind, budget: u64, period: u64) -> Task {
    let parameters = Parameters::periodic("server", times(period));
    let budget = Some(times(budget));
    system.begin(Parameters { budget, server: Some(kind), ..parameters }).expect("there is room")
}

/// Computes for ever, without a call, beside a task that has the CPU of an EDF system half of the time.
fn endless(test: &str, kind: ServerKind) {
    let Some((_registry, system)) = one_cpu(test) else { return };
    // It shares one CPU with a server of a fifth of it: each of its jobs gets 15 ms within 40.
    on_a_calm_machine(|| {
        let (due, over) = beside_an_endless_job(&system, kind);
        if over <= due + times(5) {
            Ok(())
        } else {
            Err(format!("the last job, due at {due}, is over at {over}").into())
        }
    });
}

/// When the twentieth job of the task beside it was due, and when it was over.
fn beside_an_endless_job(system: &System, kind: ServerKind) -> (Instant, Instant) {
    let (stop, has_begun) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            let server = server(system, kind, 4, 20);
            release(&server, 0);
            has_begun.store(true, Ordering::SeqCst);
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            server.complete().expect("it has a job");
        });
        until("the endless job computes", || has_begun.load(Ordering::SeqCst));
        let _stop = StopAtEnd(&stop);
        let victim = task(system, "victim", 40);
        for _ in 0..20 {
            victim.wait_for_next_job().expect("it is a task");
            execute(times(15));
        }
        let last = (victim.job().deadline, now());
        victim.complete().expect("it has a job");
        last
    })
}

#[test]
fn an_endless_job_of_a_hard_server_leaves_the_others_their_time() {
    endless("hard", ServerKind::CbsHard);
}

#[test]
fn an_endless_job_of_a_soft_server_leaves_the_others_their_time() {
    endless("soft", ServerKind::CbsSoft);
}

#[test]
fn an_endless_job_of_a_sporadic_server_leaves_the_others_their_time() {
    endless("sporadic", ServerKind::Sporadic);
}

#[test]
fn a_job_without_a_budget_is_shown_as_throttled_and_goes_on_with_the_next_one() {
    let Some((_registry, system)) = one_cpu("shown") else { return };
    if !keep_off_its_cpu() {
        return skip("one CPU, where the job that is looked for keeps this test from looking");
    }
    let shown = |state| system.snapshot().expect("sound").tasks.iter().any(|task| task.state == state);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let server = server(&system, ServerKind::CbsHard, 20, 200);
            release(&server, 0);
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            server.complete().expect("it has a job");
        });
        let _stop = StopAtEnd(&stop);
        until("its budget is used up", || shown(TaskState::Throttled));
        until("it has the next one", || shown(TaskState::Linked));
        until("that is used up, too", || shown(TaskState::Throttled));
    });
}

#[test]
fn a_late_call_charges_what_was_computed_and_the_next_job_waits_for_its_budget() {
    let Some((_registry, system)) = one_cpu("late") else { return };
    let server = server(&system, ServerKind::CbsHard, 10, 100);
    let first = server.wait_for_next_job().expect("it is a task");
    server.enter_section().expect("it has a job");
    // Nothing interrupts a section, which takes two budgets.
    execute(times(20));
    assert_eq!(system.snapshot().expect("sound").tasks[0].state, TaskState::Linked);
    server.leave_section().expect("it is in one");
    // The job waited for the next budget in that call, and owes a part of it.
    assert!(now() >= first.release + times(100), "it left its section {} after its release", now() - first.release);
    assert_eq!(server.job(), first, "its own deadline stays what it was");
    server.complete().expect("it has a job");
    let second = server.wait_for_next_job().expect("it is a task");
    assert_eq!(second.release, first.release + times(100));
    server.complete().expect("it has a job");
}

#[test]
fn what_a_job_computes_between_two_suspensions_is_charged() {
    let Some((_registry, system)) = one_cpu("parts") else { return };
    // What calls cost, and what the machine takes amid them, is charged, too.
    on_a_calm_machine(|| {
        let server = server(&system, ServerKind::CbsHard, 10, 1000);
        let job = server.wait_for_next_job().expect("it is a task");
        let next = job.release + times(1000);
        for _ in 0..3 {
            execute(times(3));
            server.suspend().expect("it has a job");
            sleep_until(now() + MS);
            server.resume().expect("it is suspended");
        }
        let over = now();
        execute(times(3));
        server.suspend().expect("it has a job");
        server.resume().expect("it is suspended");
        assert!(now() >= next, "12 of 10 ms are not to be had in one period");
        server.complete().expect("it has a job");
        if over < next {
            Ok(())
        } else {
            Err(format!("9 of 10 ms were used at {over}, in the period after {next}").into())
        }
    });
}

#[test]
fn a_holder_of_a_lock_is_not_throttled_before_it_unlocks() {
    let cpu = *usable().last().expect("it runs somewhere");
    let order = laxity_model::EngineOrder::Priority;
    let lock = LockConfig::Queue { replicas: 1, order, progress: LockProgress::Inheritance };
    let config = Config { locks: vec![lock], ..Config::new(Rule::Edf, vec![vec![cpu]]) };
    let Some((_registry, system)) = on("holder", config) else { return };
    let server = server(&system, ServerKind::CbsHard, 5, 100);
    let job = server.wait_for_next_job().expect("it is a task");
    server.lock(LockRequest::of(LockId(0)), &mut ()).expect("it is free");
    let before = thread_cpu_time();
    spin_until(|| thread_cpu_time() >= before + times(10));
    assert_eq!(system.snapshot().expect("sound").tasks[0].state, TaskState::Linked);
    server.unlock(LockId(0), &mut ()).expect("it holds it");
    assert!(now() >= job.release + times(100), "then it waits for its budget");
    server.complete().expect("it has a job");
}

#[test]
fn what_cannot_be_a_server_is_refused() {
    let Some((_registry, system)) = one_cpu("refused") else { return };
    let text = |parameters| system.begin(parameters).expect_err("it cannot be").to_string();
    let periodic = || Parameters { server: Some(ServerKind::CbsHard), ..Parameters::periodic("t", times(10)) };
    assert_eq!(text(periodic()), "task t: its budget is to be enforced and none is said; say what a job may take");
    assert_eq!(
        text(Parameters { budget: Some(times(20)), ..periodic() }),
        "task t: server budget 20 ms in period 10 ms; it must be above 0 and at most the period"
    );
    assert!(system.snapshot().expect("sound").tasks.is_empty());
}
