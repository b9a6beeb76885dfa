//! Ceilings, floors and boosts: the holder is raised from grant to unlock, whether or not another task waits.

use laxity_model::{EngineOrder, Instant, Nanos, TaskId};
use laxity_policy::cpu::Priority;
use laxity_policy::lock::{Action, Config, Progress};

use crate::schedule::{A, B, Schedule};

fn mutex(progress: Progress) -> Config {
    Config::Queue { replicas: 1, order: EngineOrder::Fifo, progress }
}

/// The ceiling is the level of T1, the highest user. T0 has it though T1 never asks; T1's request does not raise it.
#[test]
fn a_ceiling_holds_from_grant_to_unlock() {
    let ceiling = Progress::Ceiling { level: Priority::of(2, TaskId(1)).level() };
    let mut schedule = Schedule::new(&[mutex(ceiling)], &[3, 2, 1]);
    schedule.request(0, A).request(1, A).unlock(0, A).unlock(1, A).request(2, A);
    schedule.assert_drawn(
        "
             0+A   1+A   0-A   1-A   2+A
        T0   A=1   A=1   .     .     .
        T1   .     a     A     .     .
        T2   .     .     .     .     A
        ",
    );
}

/// Nested ceilings: the highest counts, and the inner unlock leaves the outer one in force.
#[test]
fn the_highest_of_nested_ceilings_counts() {
    let outer = Progress::Ceiling { level: Priority::of(2, TaskId(1)).level() };
    let inner = Progress::Ceiling { level: Priority::of(1, TaskId(2)).level() };
    let mut schedule = Schedule::new(&[mutex(outer), mutex(inner)], &[3, 2, 1]);
    schedule.request(0, A).request(0, B).unlock(0, B).request(0, B).unlock(0, A).unlock(0, B);
    schedule.assert_drawn(
        "
             0+A   0+B   0-B   0+B   0-A   0-B
        T0   A=1   AB=2  A=1   AB=2  B=2   .
        T1   .     .     .     .     .     .
        T2   .     .     .     .     .     .
        ",
    );
}

/// Deadline floor: T0 is due at 100, the shortest relative deadline among the users is 20. Granted at 30 it is due at
/// 50; granted at 90 the floor of 110 would be later than its own deadline, which stays.
#[test]
fn a_deadline_floor_counts_from_the_grant() {
    let floor = Progress::Floor { deadline: Nanos(20), tie: 1 };
    let mut schedule = Schedule::new(&[mutex(floor)], &[100, 40]);
    let floored = Priority { major: 50, tie: 1, task: TaskId(0) };

    schedule.now = Instant(30);
    schedule.request(0, A);
    assert_eq!(schedule.reported(), [floored]);
    schedule.now = Instant(40);
    schedule.unlock(0, A);
    assert_eq!(schedule.reported(), [Priority::of(100, TaskId(0))]);

    schedule.now = Instant(90);
    schedule.request(0, A);
    assert_eq!(schedule.reported(), []);
}

/// The floor of a job that had to wait counts from the grant at 35, not from the request at 30.
#[test]
fn a_deadline_floor_does_not_count_from_the_request() {
    let floor = Progress::Floor { deadline: Nanos(20), tie: 1 };
    let mut schedule = Schedule::new(&[mutex(floor)], &[100, 90]);
    schedule.now = Instant(30);
    schedule.request(1, A).request(0, A);
    schedule.now = Instant(35);
    schedule.unlock(1, A);
    assert_eq!(
        schedule.reported(),
        [Priority { major: 55, tie: 1, task: TaskId(0) }, Priority::of(90, TaskId(1))],
        "grant at 35, floor of 20"
    );
}

/// A boosted job outranks every base priority; among the boosted, of whatever lock, the earlier request comes first: T1
/// asks for A before T2 asks for B, and stays ahead though it is granted later.
#[test]
fn boosted_jobs_rank_above_all_by_order_of_request() {
    let mut schedule = Schedule::new(&[mutex(Progress::Boosting), mutex(Progress::Boosting)], &[9, 8, 7, 1]);
    schedule.request(0, A).request(1, A).request(2, B);
    let levels = |schedule: &Schedule| -> Vec<(u64, u32)> {
        (0..4).filter_map(|task| schedule.arbiter.priority(TaskId(task))).map(Priority::level).collect()
    };
    assert_eq!(levels(&schedule), [(0, 0), (8, 1), (0, 2), (1, 3)], "T1 is not boosted while it waits");
    schedule.unlock(0, A);
    assert_eq!(levels(&schedule), [(9, 0), (0, 1), (0, 2), (1, 3)]);
    schedule.unlock(1, A).unlock(2, B);
    assert_eq!(levels(&schedule), [(9, 0), (8, 1), (7, 2), (1, 3)]);
    schedule.request(3, A);
    assert_eq!(levels(&schedule)[3], (0, 0), "the order counts from 0 again when no task is or will be boosted");
}

/// T1 inherits from T2 through a mutex beside the ceiling of the other; each lasts as long as its own lock.
#[test]
fn ceilings_and_inheritance_combine() {
    let ceiling = Progress::Ceiling { level: Priority::of(2, TaskId(1)).level() };
    let mut schedule = Schedule::new(&[mutex(ceiling), mutex(Progress::Inheritance)], &[3, 2, 1]);
    schedule.request(0, A).request(0, B).request(2, B).unlock(0, B).unlock(0, A);
    schedule.assert_drawn(
        "
             0+A   0+B   2+B   0-B   0-A
        T0   A=1   AB=1  AB=2  A=1   .
        T1   .     .     .     .     .
        T2   .     .     b     B     B
        ",
    );
}

/// A waiter passes on what it was raised to: T1 holds A (boosted) and waits for B of T0.
#[test]
fn a_boost_is_inherited() {
    let mut schedule = Schedule::new(&[mutex(Progress::Boosting), mutex(Progress::Inheritance)], &[3, 2, 1]);
    schedule.request(0, B).request(1, A).request(1, B);
    let boosted = Priority { major: 0, tie: 0, task: TaskId(0) };
    assert_eq!(schedule.actions, [Action::Prioritize { priority: boosted }]);
}
