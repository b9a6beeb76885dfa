//! Mutexes and semaphores: the order of grants.

use laxity_model::EngineOrder;
use laxity_policy::lock::{Config, Progress};

use crate::schedule::{A, B, Schedule};

fn lock(replicas: u16, order: EngineOrder) -> Config {
    Config::Queue { replicas, order, progress: Progress::None }
}

#[test]
fn fifo_grants_in_the_order_of_request() {
    let mut schedule = Schedule::new(&[lock(1, EngineOrder::Fifo)], &[4, 3, 1, 2]);
    schedule.request(0, A).request(1, A).request(2, A).request(3, A).unlock(0, A).unlock(1, A).unlock(2, A);
    schedule.assert_drawn(
        "
             0+A   1+A   2+A   3+A   0-A   1-A   2-A
        T0   A     A     A     A     .     .     .
        T1   .     a     a     a     A     .     .
        T2   .     .     a     a     a     A     .
        T3   .     .     .     a     a     a     A
        ",
    );
}

#[test]
fn priority_order_grants_to_the_highest_priority() {
    let mut schedule = Schedule::new(&[lock(1, EngineOrder::Priority)], &[4, 3, 1, 2]);
    schedule.request(0, A).request(1, A).request(2, A).request(3, A).unlock(0, A).unlock(2, A).unlock(3, A);
    schedule.assert_drawn(
        "
             0+A   1+A   2+A   3+A   0-A   2-A   3-A
        T0   A     A     A     A     .     .     .
        T1   .     a     a     a     a     a     A
        T2   .     .     a     a     A     .     .
        T3   .     .     .     a     a     A     .
        ",
    );
}

/// T1 asks first and is the lowest, but while it waits T3 comes to wait for B, which it holds: the order follows.
#[test]
fn priority_order_follows_priorities_that_change_while_jobs_wait() {
    let inheriting = Config::Queue { replicas: 1, order: EngineOrder::Priority, progress: Progress::Inheritance };
    let mut schedule = Schedule::new(&[lock(1, EngineOrder::Priority), inheriting], &[9, 8, 5, 1]);
    schedule.request(0, A).request(1, B).request(1, A).request(2, A).request(3, B).unlock(0, A);
    schedule.assert_drawn(
        "
             0+A   1+B   1+A   2+A   3+B   0-A
        T0   A     A     A     A     A     .
        T1   .     B     Ba    Ba    Ba=3  BA=3
        T2   .     .     .     a     a     a
        T3   .     .     .     .     b     b
        ",
    );
}

/// Three hold it at once; a replica that is given up goes on, one that no task waits for is free for the next request.
#[test]
fn a_semaphore_has_as_many_holders_as_replicas() {
    let mut schedule = Schedule::new(&[lock(2, EngineOrder::Fifo)], &[1, 2, 3, 4]);
    schedule.request(0, A).request(1, A).request(2, A).unlock(1, A).unlock(0, A).request(3, A);
    schedule.assert_drawn(
        "
             0+A   1+A   2+A   1-A   0-A   3+A
        T0   A0    A0    A0    A0    .     .
        T1   .     A1    A1    .     .     .
        T2   .     .     a     A1    A1    A1
        T3   .     .     .     .     .     A0
        ",
    );
}

/// T2 is first but wants GPU 0; it is passed over when GPU 1 is given up, and does not lose its place.
#[test]
fn a_job_that_names_a_gpu_is_passed_over_for_others() {
    let mut schedule = Schedule::new(&[lock(2, EngineOrder::Fifo)], &[1, 2, 3, 4, 5]);
    schedule.request(0, A).request(1, A).request_only(2, A, 0).request(3, A).request(4, A).unlock(1, A).unlock(0, A);
    schedule.assert_drawn(
        "
             0+A   1+A   2+A0  3+A   4+A   1-A   0-A
        T0   A0    A0    A0    A0    A0    A0    .
        T1   .     A1    A1    A1    A1    .     .
        T2   .     .     a     a     a     a     A0
        T3   .     .     .     a     a     A1    A1
        T4   .     .     .     .     a     a     a
        ",
    );
}

/// Jobs of one deadline and tie can only be told apart by task: both T1 and T2 inherit from T3, through a semaphore.
#[test]
fn among_equal_priorities_the_task_listed_first_is_first() {
    let shared = Config::Queue { replicas: 2, order: EngineOrder::Fifo, progress: Progress::Inheritance };
    let mut schedule = Schedule::new(&[lock(1, EngineOrder::Priority), shared], &[9, 8, 7, 1]);
    schedule.request(2, B).request(1, B).request(0, A).request(2, A).request(1, A).request(3, B).unlock(0, A);
    schedule.assert_drawn(
        "
             2+B   1+B   0+A   2+A   1+A   3+B   0-A
        T0   .     .     A     A     A     A     .
        T1   .     B1    B1    B1    B1a   B1a=3 B1A=3
        T2   B0    B0    B0    B0a   B0a   B0a=3 B0a=3
        T3   .     .     .     .     .     b     b
        ",
    );
}
