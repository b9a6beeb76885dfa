//! The rules of the k-FMLP (paper 000, appendix A). The smaller the base priority's number, the higher.

use laxity_model::{EngineOrder, Instant};
use laxity_policy::lock::{Config, Progress};

use crate::schedule::{A, B, Schedule};

fn aware(replicas: u16) -> Config {
    Config::KFmlp { replicas, length_aware: true }
}

fn oblivious(replicas: u16) -> Config {
    Config::KFmlp { replicas, length_aware: false }
}

fn mutex() -> Config {
    Config::Queue { replicas: 1, order: EngineOrder::Fifo, progress: Progress::Inheritance }
}

/// R1, l-aware. Lengths 9, 4, 4, 1: queue 0 has T0 for 9; T2 and T3 find less in queue 1, first 4, then 8. The
/// lenders of a holder show which tasks joined its queue (R2).
///
/// ```text
///   queue 0:  T0(9)
///   queue 1:  T1(4) T2(4) T3(1)
/// ```
#[test]
fn r1_joins_the_queue_of_least_wait() {
    let mut schedule = Schedule::new(&[aware(2)], &[9, 8, 2, 1]);
    schedule.request_for(0, A, 9).request_for(1, A, 4).request_for(2, A, 4).request_for(3, A, 1);
    schedule.unlock(1, A).unlock(2, A);
    schedule.assert_drawn(
        "
             0+A   1+A   2+A   3+A   1-A   2-A
        T0   A0    A0    A0    A0    A0    A0
        T1   .     A1    A1=2  A1=3  .     .
        T2   .     .     a     a     A1=3  .
        T3   .     .     .     a     a     A1
        ",
    );
}

/// The holder counts in full however long it has held: at time 8 queue 0 has 1 to go of 9, queue 1 all 8.
#[test]
fn r1_counts_the_length_of_the_holder_in_full() {
    let mut schedule = Schedule::new(&[aware(2)], &[9, 8, 1]);
    schedule.request_for(0, A, 9);
    schedule.now = Instant(8);
    schedule.request_for(1, A, 8).request_for(2, A, 1);
    schedule.assert_drawn(
        "
             0+A   1+A   2+A
        T0   A0    A0    A0
        T1   .     A1    A1=2
        T2   .     .     a
        ",
    );
}

/// R1, l-oblivious, with the lengths of the l-aware schedule: T2 finds one request in each queue and takes the first,
/// T3 then joins the second.
///
/// ```text
///   queue 0:  T0(9) T2(4)
///   queue 1:  T1(4) T3(1)
/// ```
#[test]
fn r1_without_lengths_joins_the_queue_of_fewest_requests() {
    let mut schedule = Schedule::new(&[oblivious(2)], &[9, 8, 2, 1]);
    schedule.request_for(0, A, 9).request_for(1, A, 4).request_for(2, A, 4).request_for(3, A, 1);
    schedule.unlock(1, A).unlock(0, A);
    schedule.assert_drawn(
        "
             0+A   1+A   2+A   3+A   1-A   0-A
        T0   A0    A0    A0=2  A0=2  A0=2  .
        T1   .     A1    A1    A1=3  .     .
        T2   .     .     a     a     a     A0
        T3   .     .     .     a     A1    A1
        ",
    );
}

/// A critical section may have length 0: its holder's queue is then no longer than the empty one beside it.
#[test]
fn r1_prefers_a_free_replica_among_equal_waits() {
    let mut schedule = Schedule::new(&[aware(2)], &[1, 2]);
    schedule.request_for(0, A, 0).request_for(1, A, 5);
    schedule.assert_drawn(
        "
             0+A   1+A
        T0   A0    A0
        T1   .     A1
        ",
    );
}

/// T2 names the GPU of T1, though queue 0 is shorter; T3 names the free one, though it is not the first.
#[test]
fn r1_leaves_no_choice_to_a_job_that_names_a_gpu() {
    let mut schedule = Schedule::new(&[oblivious(3)], &[1, 2, 3, 4]);
    schedule.request(0, A).request(1, A).unlock(0, A).request_only(2, A, 1).request_only(3, A, 2).unlock(1, A);
    schedule.assert_drawn(
        "
             0+A   1+A   0-A   2+A1  3+A2  1-A
        T0   A0    A0    .     .     .     .
        T1   .     A1    A1    A1    A1    .
        T2   .     .     .     a     a     A1
        T3   .     .     .     .     A2    A2
        ",
    );
}

/// R2. Both queues have two waiters; T0 inherits from T4, the highest of its queue (T2, T4), and T1 from T3. T5, lower
/// than its holder, gives nothing.
#[test]
fn r2_the_holder_inherits_from_the_blocked_jobs_of_its_own_queue() {
    let mut schedule = Schedule::new(&[oblivious(2)], &[8, 7, 5, 4, 3, 9]);
    schedule.request(0, A).request(1, A).request(2, A).request(3, A).request(4, A).request(5, A);
    schedule.assert_drawn(
        "
             0+A   1+A   2+A   3+A   4+A   5+A
        T0   A0    A0    A0=2  A0=2  A0=4  A0=4
        T1   .     A1    A1    A1=3  A1=3  A1=3
        T2   .     .     a     a     a     a
        T3   .     .     .     a     a     a
        T4   .     .     .     .     a     a
        T5   .     .     .     .     .     a
        ",
    );
}

/// R3, first half. The queue is FIFO: T1 is granted first though T2 is the higher, and inherits from it.
#[test]
fn r3_the_next_of_the_queue_follows() {
    let mut schedule = Schedule::new(&[aware(1)], &[3, 2, 1]);
    schedule.request(0, A).request(1, A).request(2, A).unlock(0, A).unlock(1, A);
    schedule.assert_drawn(
        "
             0+A   1+A   2+A   0-A   1-A
        T0   A     A=1   A=2   .     .
        T1   .     a     a     A=2   .
        T2   .     .     a     a     A
        ",
    );
}

/// R3, second half. T1 leaves an empty queue; of those blocked in queue 0 (T2, T3, T4), T3 has the highest priority and
/// is stolen from the middle. T0 loses what it inherited from T3 and keeps what it inherits from T4.
#[test]
fn r3_steals_the_highest_priority_blocked_job_when_the_queue_is_empty() {
    let mut schedule = Schedule::new(&[aware(2)], &[9, 8, 7, 1, 6]);
    schedule.request_for(0, A, 1).request_for(1, A, 100);
    schedule.request_for(2, A, 1).request_for(3, A, 1).request_for(4, A, 1);
    schedule.unlock(1, A).unlock(0, A);
    schedule.assert_drawn(
        "
             0+A   1+A   2+A   3+A   4+A   1-A   0-A
        T0   A0    A0    A0=2  A0=3  A0=3  A0=4  .
        T1   .     A1    A1    A1    A1    .     .
        T2   .     .     a     a     a     a     A0=4
        T3   .     .     .     a     a     A1    A1
        T4   .     .     .     .     a     a     a
        ",
    );
}

/// Stealing goes by effective priority: T2 is low but holds B, for which T4 waits. Base priorities would choose T3.
#[test]
fn r3_steals_by_effective_priority() {
    let mut schedule = Schedule::new(&[aware(2), mutex()], &[9, 8, 7, 5, 1]);
    schedule.request_for(0, A, 1).request_for(1, A, 100);
    schedule.request(2, B).request(2, A).request(3, A).request(4, B).unlock(1, A);
    schedule.assert_drawn(
        "
             0+A   1+A   2+B   2+A   3+A   4+B   1-A
        T0   A0    A0    A0    A0=2  A0=3  A0=4  A0=3
        T1   .     A1    A1    A1    A1    A1    .
        T2   .     .     B     Ba    Ba    Ba=4  BA1=4
        T3   .     .     .     .     a     a     a
        T4   .     .     .     .     .     b     b
        ",
    );
}

/// T2 has the highest priority but named GPU 0: replica 1 goes to T3, and the next time it stays free.
#[test]
fn r3_does_not_steal_a_job_that_named_its_gpu() {
    let mut schedule = Schedule::new(&[oblivious(2)], &[9, 8, 1, 5]);
    schedule.request(0, A).request(1, A).request_only(2, A, 0).request_only(3, A, 1).unlock(1, A).unlock(3, A);
    schedule.assert_drawn(
        "
             0+A   1+A   2+A0  3+A1  1-A   3-A
        T0   A0    A0    A0=2  A0=2  A0=2  A0=2
        T1   .     A1    A1    A1=3  .     .
        T2   .     .     a     a     a     a
        T3   .     .     .     a     A1    .
        ",
    );
}

/// A job that withdraws gives nothing any more, and those behind it move up.
#[test]
fn a_withdrawn_request_leaves_its_queue() {
    let mut schedule = Schedule::new(&[aware(1)], &[3, 1, 2]);
    schedule.request(0, A).request(1, A).request(2, A).withdraw(1, A).unlock(0, A);
    schedule.assert_drawn(
        "
             0+A   1+A   2+A   1?A   0-A
        T0   A     A=1   A=1   A=2   .
        T1   .     a     a     .     .
        T2   .     .     a     a     A
        ",
    );
}
