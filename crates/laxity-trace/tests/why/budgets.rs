//! Jobs whose budgets are exhausted, and best-effort jobs on CPUs whose budget of memory traffic is.

use laxity_model::{CpuId, Nanos, OverheadKind};
use laxity_trace::{Event, TaskKind};

use super::check_reference::hand::*;
use super::{A, B, C, account, header, told};

/// ```text
///   cpu0   C C . . .   C A C      . throttled: C is a best-effort task, and A is none
///          0 1 2 3 4 5 6 7 8
/// ```
#[test]
fn a_best_effort_job_waits_for_the_budget_of_its_cpu() {
    let mut header = header(2);
    header.tasks[2].kind = TaskKind::BestEffort;
    let (cpu, task) = (CpuId(0), Some(C.task));
    let events = [
        (0, release(C, 40)),
        (0, ready(C)),
        (0, dispatch(0, C)),
        (2, Event::Throttle { cpu, task }),
        (2, preempt(0, C)),
        (5, Event::Unthrottle { cpu, task, lost: Nanos(0) }),
        (6, dispatch(0, C)),
        (7, preempt(0, C)),
        (7, release(A, 12)),
        (7, ready(A)),
        (7, dispatch(0, A)),
        (8, complete(0, A)),
        (8, dispatch(0, C)),
        (9, complete(0, C)),
        (9, Event::End),
    ];
    let idle = "waits for the scheduler: a CPU is idle";
    let expected =
        ["0-2 executes", "2-5 budget exhausted", &format!("5-6 {idle}"), "6-7 executes", &format!("7-8 {idle}")];
    assert_eq!(told(&header, &account(&header, &events, C))[..5], expected);
}

#[test]
fn a_suspension_that_a_new_budget_ends_was_throttling() {
    let header = header(1);
    let replenish = Event::Replenish { task: A.task, budget: Nanos(1), deadline: laxity_model::Instant(9) };
    let events = [
        (0, release(A, 10)),
        (0, ready(A)),
        (0, dispatch(0, A)),
        (1, cache_delay(0, A, OverheadKind::CacheMigration, 1)),
        (4, suspend(0, A)),
        (6, replenish),
        (6, resume(A)),
        (6, dispatch(0, A)),
        (7, complete(0, A)),
        (7, Event::End),
    ];
    let account = account(&header, &events, A);
    assert_eq!(
        told(&header, &account),
        [
            "0-1 executes",
            "1-2 executes, cache lost: cache migration",
            "2-4 executes",
            "4-6 budget exhausted",
            "6-7 executes"
        ]
    );
}

/// ```text
///   A      ~ # # x x ~ #      ~ release overhead, x without budget
///          0 1 2 3 4 5 6
/// ```
#[test]
fn the_interrupts_that_release_a_served_job_and_end_its_throttling_are_told_from_the_throttling() {
    let header = header(1);
    let replenish = Event::Replenish { task: A.task, budget: Nanos(1), deadline: laxity_model::Instant(9) };
    let events = [
        (0, release(A, 10)),
        (0, overhead(0, OverheadKind::Release, 1)),
        (1, replenish),
        (1, ready(A)),
        (1, dispatch(0, A)),
        (3, suspend(0, A)),
        (5, replenish),
        (5, overhead(0, OverheadKind::Release, 1)),
        (6, resume(A)),
        (6, dispatch(0, A)),
        (7, complete(0, A)),
        (7, Event::End),
    ];
    let account = account(&header, &events, A);
    assert_eq!(
        told(&header, &account),
        [
            "0-1 its release: not handled yet",
            "1-3 executes",
            "3-5 budget exhausted",
            "5-6 is woken up: its lock is granted, or its budget is there",
            "6-7 executes"
        ]
    );
}

/// ```text
///   A      ~ x x #      ~ its release overhead; B's is at 2, x without budget
///          0 1 2 3
/// ```
#[test]
fn a_job_that_is_released_without_budget_waits_for_one_once_its_release_is_handled() {
    let header = header(1);
    let replenish = Event::Replenish { task: A.task, budget: Nanos(1), deadline: laxity_model::Instant(9) };
    let events = [
        (0, release(A, 10)),
        (0, overhead(0, OverheadKind::Release, 1)),
        (2, release(B, 22)),
        (2, overhead(0, OverheadKind::Release, 1)),
        (3, ready(B)),
        (3, replenish),
        (3, ready(A)),
        (3, dispatch(0, A)),
        (4, complete(0, A)),
        (4, Event::End),
    ];
    let account = account(&header, &events, A);
    assert_eq!(told(&header, &account), ["0-1 its release: not handled yet", "1-3 budget exhausted", "3-4 executes"]);
}
