//! Linux's fair class. One CPU has a latency of 6 ms, so that two threads have slices of 3 ms and three of 2 ms, a wake-up
//! granularity of 1 ms and a credit for sleepers of 3 ms; two CPUs have twice that. Ticks are 1 ms apart.

use laxity_model::{GpuArbitration, InterruptHandling, ResourceProtocol, ThreadPriority};

use crate::system::System;

fn system(cpus: usize) -> System {
    System::new(cpus, 1, GpuArbitration::Driver)
}

#[test]
fn a_slice_ends_at_the_first_tick_after_it_and_the_thread_least_ahead_is_next() {
    let drawn = "
p0 0 0 0 1 1 1 2 2 2 0 1 2
t0 # # # . . . . . . #
t1 . . . # # # . . . . #
t2 . . . . . . # # # . . #";
    assert_eq!(system(1).task(0, "4").task(0, "4").task(0, "4").fair().draw("pt", 12), drawn);
}

#[test]
fn a_woken_thread_preempts_if_it_is_behind_by_more_than_a_granularity() {
    let preempted = "
p0 0 0 1 1 0 0
t0 # # . . # #
t1     # #";
    assert_eq!(system(1).task(0, "4").task(2, "2").fair().draw("pt", 6), preempted);
    let not_yet = "
p0 0 0 0 0 1 1 0
t0 # # # # . . #
t1   . . . # #";
    assert_eq!(system(1).task(0, "5").task(1, "2").fair().draw("pt", 7), not_yet);
}

#[test]
fn a_sleeper_is_owed_half_a_latency_and_no_more() {
    let drawn = "
p0 0 0 0 0 0 0 1 1 1 1 0 0 0 0 1 1
t0 # # # # # # . . . . # # # # . .
t1             # # # # . . . . # #";
    assert_eq!(system(1).task(0, "30").task(6, "8").fair().draw("pt", 16), drawn);
}

#[test]
fn a_woken_thread_takes_an_idle_cpu_and_goes_on_where_it_was_before() {
    // T2 begins on CPU 0, as all tasks of even number, but that is busy.
    let drawn = "
p0 0 0 0 0 0 0 0 0
p1 . 2 . . 2 2 . .";
    assert_eq!(system(2).task(0, "8").task(90, "1").task(1, "1 K2 2").fair().draw("p", 8), drawn);
}

#[test]
fn without_an_idle_cpu_it_waits_where_it_was_and_the_first_idle_cpu_takes_it() {
    let drawn = "
p0 0 0 0 0 0 0
p1 1 1 1 2 2 .
t0 # # # # # #
t1 # # #
t2   . . # #";
    assert_eq!(system(2).task(0, "6").task(0, "3").task(1, "2").fair().draw("pt", 6), drawn);
}

#[test]
fn an_interrupt_thread_of_linux_has_real_time_priority() {
    let with_thread = system(1).task(0, "H2 1").task(0, "5");
    let high = InterruptHandling::PreemptRt(ThreadPriority::High);
    let drawn = "
p0 1 1 2 2 0 1 1 1";
    assert_eq!(with_thread.interrupts(high, 2, 0).fair().draw("p", 8), drawn);
}

#[test]
fn a_holder_of_a_lock_inherits_nothing_and_the_first_waiter_is_next() {
    // T2 has it, T1 asks at 1 and T0 at 2.
    let system = system(3).resource(ResourceProtocol::PriorityInheritance);
    let system = system.task(2, "a{ 1 }").task(1, "a{ 1 }").task(0, "a{ 4 }").fair();
    let drawn = "
t0     ? ? ? #
t1   ? ? ? #
t2 # # # #";
    assert_eq!(system.draw("t", 6), drawn);
    assert_eq!(system.priorities(6), []);
}
