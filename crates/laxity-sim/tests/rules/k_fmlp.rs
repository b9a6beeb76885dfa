//! The k-FMLP (paper 000, appendix A), alone and with a mutex, and what there is without it.

use laxity_model::{GpuArbitration, InterruptHandling, ResourceProtocol, ThreadPriority};

use crate::system::System;

const AWARE: GpuArbitration = GpuArbitration::KFmlp { length_aware: true };
const OBLIVIOUS: GpuArbitration = GpuArbitration::KFmlp { length_aware: false };

/// When T3 asks, GPU 0 is waited for by one request of length 5, GPU 1 by two of length 4 in all.
fn joins_of_four(arbitration: GpuArbitration) -> String {
    let system = System::new(4, 2, arbitration).task(0, "K5").task(1, "K2").task(2, "K2").task(2, "K1");
    system.draw("et", 7)
}

#[test]
fn r1_length_aware_a_request_joins_the_queue_of_least_waiting_time() {
    let drawn = "
e0 0 0 0 0 0 3 .
e1 . 1 1 2 2 . .
t0 - - - - -
t1   - -
t2     ? - -
t3     ? ? ? -";
    assert_eq!(joins_of_four(AWARE), drawn);
}

#[test]
fn r1_length_oblivious_a_request_joins_the_queue_of_fewest_requests() {
    let drawn = "
e0 0 0 0 0 0 . .
e1 . 1 1 3 2 2 .
t0 - - - - -
t1   - -
t2     ? ? - -
t3     ? -";
    assert_eq!(joins_of_four(OBLIVIOUS), drawn);
}

/// A length includes the bottom halves of the section: the queue of GPU 0 is of length 5, that of GPU 1 of length 3 + 3.
#[test]
fn r1_lengths_include_bottom_halves() {
    let system = System::new(4, 2, AWARE).task(0, "K5").task(0, "H3").task(1, "K1");
    let system = system.interrupts(InterruptHandling::PreemptRt(ThreadPriority::High), 3, 0);
    let drawn = "
e0 0 0 0 0 0 2 . .
e1 1 1 1 . . . . .
t0 - - - - -
t1 - - - - - -
t2   ? ? ? ? -
t3
t4       # # #";
    assert_eq!(system.draw("et", 8), drawn);
}

/// T2 holds the GPU and needs the CPU; T0 waits for the GPU; T1 has no use for it.
fn middle_job(arbitration: GpuArbitration) -> System {
    System::new(1, 1, arbitration).task(2, "K2 1").task(3, "3").task(0, "K1 4 K1")
}

#[test]
fn r2_waiters_are_suspended_and_the_holder_has_the_highest_priority_of_its_queue() {
    let drawn = "
p0 . 2 2 2 2 1 1 1 0 .
e0 2 . . . . 2 0 0 . .
t0     ? ? ? ? - - #
t1       . . # # #
t2 - # # # # -";
    let system = middle_job(OBLIVIOUS);
    assert_eq!(system.draw("pet", 10), drawn);
    assert_eq!(system.priorities(10), [(2, 2, 0), (6, 2, 2)]);
}

/// T0 waits for GPU 1, which T3 holds. T2, which holds GPU 0 and needs the CPU, does not get T0's priority; T3 does.
#[test]
fn r2_a_holder_inherits_from_its_own_queue_only() {
    let system = System::new(1, 2, OBLIVIOUS).task(1, "K1@1").task(1, "6").task(0, "( K1@0 2 )").task(0, "( K3@1 1 )");
    let drawn = "
p0 . 1 1 3 1 1 1 1 2 2
e0 2 . . . . . . . . .
e1 3 3 3 . 0 . . . . .
t0   ? ? ? -
t1   # # . # # # #
t2 - . . . . . . . # #
t3 - - - #";
    assert_eq!(system.draw("pet", 10), drawn);
    assert_eq!(system.priorities(10), [(1, 3, 0), (4, 3, 3)]);
}

/// Without inheritance T1 runs while T0 waits for T2: an inversion as long as T1 likes.
#[test]
fn a_semaphore_does_not_bound_inversions() {
    let drawn = "
p0 . 2 2 1 1 1 2 2 . . . 0
e0 2 . . . . . . . 2 0 0 .
t0     ? ? ? ? ? ? ? - - #
t1       # # #
t2 - # # . . . # # -";
    assert_eq!(middle_job(GpuArbitration::Semaphore).draw("pet", 12), drawn);
}

/// T3 is done with GPU 1 at 3; T1 follows, the next in its queue, though T0 waits as well. At 5 no job is left in that
/// queue: of T2 and T0, which wait for GPU 0 in this order, T0 has the higher priority and is stolen; at 7 T2.
#[test]
fn r3_the_next_in_the_queue_follows_and_an_empty_queue_steals_the_highest_priority() {
    let system = System::new(5, 2, OBLIVIOUS).task(4, "K2").task(3, "K2").task(2, "K2").task(1, "K2").task(0, "K9");
    let drawn = "
e0 4 4 4 4 4 4 4 4 4 . .
e1 . 3 3 1 1 0 0 2 2 . .
t0         ? - -
t1       - -
t2     ? ? ? ? ? - -
t3   - -
t4 - - - - - - - - -";
    assert_eq!(system.draw("et", 11), drawn);
}

/// T0 waits for the GPU of T2, T2 for the mutex of T3: T3 has T0's priority, and T1 waits.
#[test]
fn priorities_are_inherited_through_a_gpu_and_a_mutex() {
    let system = System::new(1, 1, OBLIVIOUS)
        .resource(ResourceProtocol::PriorityInheritance)
        .task(2, "K1 1")
        .task(3, "3")
        .task(1, "( a{ 1 } K1 )")
        .task(0, "a{ 4 }");
    let drawn = "
p0 3 3 3 3 2 1 1 0 1 .
e0 . . . . . 2 0 . . .
t0     ? ? ? ? - #
t1       . . # # . #
t2   ? ? ? # -
t3 # # # #";
    assert_eq!(system.draw("pet", 10), drawn);
    assert_eq!(system.priorities(10), [(1, 3, 2), (2, 2, 0), (2, 3, 0), (4, 3, 3), (6, 2, 2)]);
}

/// T4 is the interrupt thread: it has its owner's priority, inherited or not. T0 asks at 4 for the GPU of T3, whose
/// bottom half waits behind T1 and T2.
#[test]
fn klmirqd_a_thread_has_what_its_owner_inherits_at_once() {
    let system = System::new(2, 1, OBLIVIOUS).task(4, "K1 1").task(0, "9").task(1, "8").task(0, "H2");
    let system = system.interrupts(InterruptHandling::Klmirqd { threads: None }, 2, 0);
    let drawn = "
p0 1 1 1 1 1 1 1 1 1 . . .
p1 . 2 2 2 4 4 2 0 2 2 2 2
e0 3 3 . . . . 0 . . . . .
t0         ? ? - #
t1 # # # # # # # # #
t2   # # # . . # . # # # #
t3 - - - - - -
t4     . . # #";
    assert_eq!(system.draw("pet", 12), drawn);
    assert_eq!(system.priorities(12), [(2, 4, 3), (4, 3, 0), (4, 4, 0), (6, 3, 3)]);
}

/// T5 is the thread of GPU 0. T0 waits for GPU 0 from 3 to 4, when T1 is done with GPU 1 and T0 is stolen: T4 and its
/// thread have T0's priority no longer.
#[test]
fn klmirqd_a_thread_loses_what_its_owner_inherited_at_that_very_instant() {
    let system = System::new(2, 2, OBLIVIOUS).task(3, "K2").task(0, "K4@1").task(1, "6").task(1, "6").task(0, "H2@0");
    let system = system.interrupts(InterruptHandling::Klmirqd { threads: None }, 3, 0);
    let drawn = "
p0 . 2 2 2 3 3 3 3 . . . .
p1 . 3 3 5 2 2 2 5 5 . . .
e0 4 4 . . . . . . . . . .
e1 1 1 1 1 0 0 . . . . . .
t0       ? - -
t1 - - - -
t2   # # # # # #
t3   # # . # # # #
t4 - - - - - - - - -
t5     . # . . . # #
t6";
    assert_eq!(system.draw("pet", 12), drawn);
    assert_eq!(system.priorities(12), [(2, 5, 4), (3, 4, 0), (3, 5, 0), (4, 4, 4), (4, 5, 4)]);
}
