//! Inheritance: transitive, and gone the instant it is no longer given.

use laxity_model::EngineOrder;
use laxity_policy::lock::{Config, Progress};

use crate::schedule::{A, B, C, Schedule};

fn inheriting(replicas: u16) -> Config {
    Config::Queue { replicas, order: EngineOrder::Fifo, progress: Progress::Inheritance }
}

fn plain() -> Config {
    Config::Queue { replicas: 1, order: EngineOrder::Fifo, progress: Progress::None }
}

const K_FMLP: Config = Config::KFmlp { replicas: 2, length_aware: false };

/// T2 waits for T1 (B), which waits for T0 (A): T0 has the priority of T2, and what T1 gives up it loses, no more.
#[test]
fn inheritance_passes_through_nested_mutexes() {
    let mut schedule = Schedule::new(&[inheriting(1), inheriting(1)], &[3, 2, 1]);
    schedule.request(0, A).request(1, B).request(1, A).request(2, B);
    schedule.unlock(0, A).unlock(1, A).unlock(1, B);
    schedule.assert_drawn(
        "
             0+A   1+B   1+A   2+B   0-A   1-A   1-B
        T0   A     A     A=1   A=2   .     .     .
        T1   .     B     Ba    Ba=2  BA=2  B=2   .
        T2   .     .     .     b     b     b     B
        ",
    );
}

/// T3 -B-> T2 -A (k-FMLP), queue 0-> T0. T1, the holder of the other replica, inherits nothing.
#[test]
fn inheritance_passes_through_a_k_fmlp() {
    let mut schedule = Schedule::new(&[K_FMLP, inheriting(1)], &[9, 8, 7, 1]);
    schedule.request(0, A).request(1, A).request(2, B).request(2, A).request(3, B).unlock(0, A).unlock(2, B);
    schedule.assert_drawn(
        "
             0+A   1+A   2+B   2+A   3+B   0-A   2-B
        T0   A0    A0    A0    A0=2  A0=3  .     .
        T1   .     A1    A1    A1    A1    A1    A1
        T2   .     .     B     Ba    Ba=3  BA0=3 A0
        T3   .     .     .     .     b     b     B
        ",
    );
}

/// T0 holds two locks and inherits through both. Each unlock takes exactly what that lock gave.
#[test]
fn inheritance_is_dropped_at_the_unlock_of_the_lock_that_gave_it() {
    let mut schedule = Schedule::new(&[inheriting(1), inheriting(1)], &[3, 2, 1]);
    schedule.request(0, A).request(0, B).request(1, A).request(2, B).unlock(0, B).unlock(0, A);
    schedule.assert_drawn(
        "
             0+A   0+B   1+A   2+B   0-B   0-A
        T0   A     AB    AB=1  AB=2  A=1   .
        T1   .     .     a     a     a     A
        T2   .     .     .     b     B     B
        ",
    );
}

/// The same through a chain: T3 withdraws at the far end, and every task along the chain loses its priority at once.
#[test]
fn inheritance_is_dropped_along_the_chain_when_a_request_is_withdrawn() {
    let mut schedule = Schedule::new(&[inheriting(1), inheriting(1), inheriting(1)], &[4, 3, 2, 1]);
    schedule.request(0, A).request(1, B).request(1, A).request(2, C).request(2, B).request(3, C).withdraw(3, C);
    schedule.assert_drawn(
        "
             0+A   1+B   1+A   2+C   2+B   3+C   3?C
        T0   A     A     A=1   A=1   A=2   A=3   A=2
        T1   .     B     Ba    Ba    Ba=2  Ba=3  Ba=2
        T2   .     .     .     C     Cb    Cb=3  Cb
        T3   .     .     .     .     .     c     .
        ",
    );
}

/// A waiter of lower priority lends nothing: T0 stays as it is, and nothing is reported.
#[test]
fn a_lower_priority_is_not_inherited() {
    let mut schedule = Schedule::new(&[inheriting(1)], &[1, 2]);
    schedule.request(0, A).request(1, A);
    assert_eq!(schedule.actions, []);
    schedule.assert_drawn(
        "
             0+A   1+A
        T0   A     A
        T1   .     a
        ",
    );
}

/// A waiter of a semaphore waits for the first holder that unlocks, so all holders inherit; of waiters that accept GPU 1 only, the
/// holder of GPU 1.
#[test]
fn every_holder_that_can_end_a_wait_inherits() {
    let mut schedule = Schedule::new(&[inheriting(2)], &[9, 8, 5, 1]);
    schedule.request(0, A).request(1, A).request(2, A).request_only(3, A, 1);
    schedule.assert_drawn(
        "
             0+A   1+A   2+A   3+A1
        T0   A0    A0    A0=2  A0=2
        T1   .     A1    A1=2  A1=3
        T2   .     .     a     a
        T3   .     .     .     a
        ",
    );
}

/// Without a progress mechanism a holder keeps its own priority, and passes on none either.
#[test]
fn nothing_is_inherited_through_a_plain_mutex() {
    let mut schedule = Schedule::new(&[plain(), inheriting(1)], &[3, 2, 1]);
    schedule.request(0, A).request(1, B).request(1, A).request(2, B);
    schedule.assert_drawn(
        "
             0+A   1+B   1+A   2+B
        T0   A     A     A     A
        T1   .     B     Ba    Ba=2
        T2   .     .     .     b
        ",
    );
}
