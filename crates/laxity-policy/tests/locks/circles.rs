//! Deadlocks: found, and harmless to the computation of priorities.

use laxity_model::{EngineOrder, TaskId};
use laxity_policy::lock::{Config, Progress};

use crate::schedule::{A, B, C, Schedule};

fn inheriting(replicas: u16) -> Config {
    Config::Queue { replicas, order: EngineOrder::Fifo, progress: Progress::Inheritance }
}

/// T1 and T2 wait for each other and T0 waits for T1: the circle is the two, and all in it have its highest priority.
#[test]
fn a_circle_of_mutexes_is_a_deadlock() {
    let mut schedule = Schedule::new(&[inheriting(1), inheriting(1)], &[3, 2, 1]);
    schedule.request(1, A).request(2, B).request(0, A).request(1, B);
    assert_eq!(schedule.arbiter.deadlock(), None);
    schedule.request(2, A);
    schedule.assert_drawn(
        "
             1+A   2+B   0+A   1+B   2+A
        T0   .     .     a     a     a
        T1   A     A     A     Ab    Ab=2
        T2   .     B     B     B     Ba
        ",
    );
    assert_eq!(schedule.arbiter.deadlock(), Some(vec![TaskId(1), TaskId(2)]));
    schedule.withdraw(2, A);
    assert_eq!(schedule.arbiter.deadlock(), None);
}

/// T0 and T1 wait for each other, but T2 also holds a replica of A and waits for nothing: when it unlocks, T1 goes on.
#[test]
fn a_circle_through_a_semaphore_with_another_holder_is_none() {
    let mut schedule = Schedule::new(&[inheriting(2), inheriting(1), inheriting(1)], &[3, 2, 1]);
    schedule.request(0, A).request(2, A).request(1, B).request(1, A).request(0, B);
    assert_eq!(schedule.arbiter.deadlock(), None);
    schedule.assert_drawn(
        "
             0+A   2+A   1+B   1+A   0+B
        T0   A0    A0    A0    A0=1  A0b=1
        T1   .     .     B     Ba    Ba
        T2   .     A1    A1    A1    A1
        ",
    );

    // Once T2 too waits for one of them there is no way out.
    schedule.request(2, B);
    assert_eq!(schedule.arbiter.deadlock(), Some(vec![TaskId(0), TaskId(1)]));
}

/// As before, but T1 named the GPU that T0 holds: that T2 unlocks another does not help it.
#[test]
fn a_job_that_named_a_gpu_is_stuck_with_its_holder() {
    let mut schedule = Schedule::new(&[inheriting(2), inheriting(1), inheriting(1)], &[3, 2, 1]);
    schedule.request(0, A).request(2, A).request(1, B).request_only(1, A, 0).request(0, B);
    assert_eq!(schedule.arbiter.deadlock(), Some(vec![TaskId(0), TaskId(1)]));
    schedule.request(2, C);
    assert_eq!(schedule.arbiter.deadlock(), Some(vec![TaskId(0), TaskId(1)]), "T2 is no part of it");
}
