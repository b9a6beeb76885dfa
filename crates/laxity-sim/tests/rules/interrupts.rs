//! Interrupts: GPUSync's threads, and the other handlings of paper 000.

use laxity_model::{GpuArbitration, GpuSync, InterruptHandling, ThreadPriority};

use crate::system::{System, gpusync, managed};

const KLMIRQD: InterruptHandling = InterruptHandling::Klmirqd { threads: None };

/// T2's GPU kernel ends at 3, when T1 has the only CPU. T0 comes at `arrival` and copies for 7 ms.
fn copying_from(arrival: u64) -> System {
    let sync = GpuSync { fifo_requests: Some(2), ..gpusync(2, 2) };
    System::new(1, 1, managed(sync)).task(arrival, "I7 1").task(1, "5").task(0, "H3 1").interrupts(KLMIRQD, 2, 0)
}

/// T3 is the thread. T0 holds a token of that GPU: T3 goes before T1 though it works for T2.
#[test]
fn the_thread_of_a_gpu_has_the_highest_priority_of_its_token_holders() {
    let drawn = "
p0 . 1 1 3 3 1 1 0 1 2 . .
e0 2 2 2 . . . . . . . . .
c0 0 0 0 0 0 0 0 . . . . .
t0 - - - - - - - #
t1   # # . . # # . #
t2 - - - - - . . . . #
t3       # #";
    assert_eq!(copying_from(0).draw("pect", 12), drawn);
}

/// T0 holds no token yet.
#[test]
fn without_a_higher_holder_the_thread_has_its_owners_priority() {
    let drawn = "
p0 . 1 1 1 1 1 3 3 2 .
e0 2 2 2 . . . . . . .
c0 . . . . . . . . . .
t0
t1   # # # # #
t2 - - - - - - - - #
t3       . . . # #";
    assert_eq!(copying_from(20).draw("pect", 10), drawn);
}

/// T1, the thread, is woken on cpu1, which is idle, and takes over cpu0 from its owner T0.
#[test]
fn a_thread_never_runs_beside_its_owner() {
    let system = System::new(2, 1, GpuArbitration::Driver).task(0, "A2 4").interrupts(KLMIRQD, 2, 1);
    let drawn = "
p0 0 0 1 1 0 0 . .
p1 . . . . . . . .
e0 0 0 . . . . . .
t0 # # . . # #
t1     # #";
    assert_eq!(system.draw("pet", 8), drawn);
}

/// T2's GPU kernel ends at 3. T4 is the thread of the bottom half, T6 that of T2's process, which T2 waits for; T0 holds a
/// token of that GPU, so both go before T1.
#[test]
fn a_callback_thread_has_the_highest_priority_of_the_token_holders_as_well() {
    let sync = GpuSync { fifo_requests: Some(2), ..gpusync(2, 2) };
    let system = System::new(1, 1, managed(sync)).task(0, "I8 1").task(1, "5").task(0, "H3 1");
    let drawn = "
p0 . 1 1 3 5 5 1 1 0 1 2 .
e0 2 2 2 . . . . . . . . .
c0 0 0 0 0 0 0 0 0 . . . .
t0 - - - - - - - - #
t1   # # . . . # # . #
t2 - - - - - - . . . . #
t3       #
t4
t5         # #";
    assert_eq!(system.interrupts(KLMIRQD, 1, 0).callback(2).draw("pect", 12), drawn);
}

/// T2 is the callback thread of T0, which goes on while its kernel is executed: the thread is ready on cpu1, which is
/// idle, and takes over cpu0.
#[test]
fn a_callback_thread_never_runs_beside_its_owner() {
    let system = System::new(2, 1, GpuArbitration::Driver).task(0, "A2 5").interrupts(KLMIRQD, 1, 1).callback(2);
    let drawn = "
p0 0 0 1 2 2 0 0 0 .
p1 . . . . . . . . .
e0 0 0 . . . . . . .
t0 # # . . . # # #
t1     #
t2       # #";
    assert_eq!(system.draw("pet", 9), drawn);
}

/// Under standard Linux it is a thread as any other, without real-time priority: T0 waits for it until T1 is done.
#[test]
fn without_klmirqd_a_callback_thread_is_below_all_jobs() {
    let system = System::new(1, 1, GpuArbitration::Driver).task(0, "H2 1").task(1, "5");
    let drawn = "
p0 . 1 _ 1 1 1 1 2 2 0 .
e0 0 0 . . . . . . . . .
t0 - - - - - - - - - #
t1   # . # # # #
t2       . . . . # #";
    assert_eq!(system.interrupts(InterruptHandling::Linux, 1, 0).callback(2).draw("pet", 11), drawn);
}

/// The nodes of a graph are one process.
#[test]
fn a_graph_has_one_callback_thread() {
    let system = System::new(2, 1, GpuArbitration::Driver).graph(&["K1", "1", "K1"]).task(0, "K1");
    assert_eq!(system.callback(1).callback_threads(), ["callback/T0", "callback/graph"]);
}

/// T1's GPU kernel ends at 2, when T0 has the CPU; T2 wants it as well.
fn threaded(priority: ThreadPriority) -> String {
    let system = System::new(1, 1, GpuArbitration::Driver).task(1, "3").task(0, "H2 1").task(1, "3");
    system.interrupts(InterruptHandling::PreemptRt(priority), 2, 0).draw("pet", 10)
}

/// T3 is the thread.
#[test]
fn preempt_rt_threads_are_above_all_jobs_or_below() {
    let high = "
p0 . 0 3 3 0 0 1 2 2 2
e0 1 1 . . . . . . . .
t0   # . . # #
t1 - - - - . . #
t2   . . . . . . # # #
t3     # #";
    assert_eq!(threaded(ThreadPriority::High), high);
    let low = "
p0 . 0 0 0 2 2 2 3 3 1
e0 1 1 . . . . . . . .
t0   # # #
t1 - - - - - - - - - #
t2   . . . # # #
t3     . . . . . # #";
    assert_eq!(threaded(ThreadPriority::Low), low);
}

/// Twelve GPU kernels end at 2, when T0 has the CPU. Ten bottom halves run at once, two in the daemon, after T0 and the
/// jobs that the ten resume.
#[test]
fn standard_linux_leaves_the_eleventh_tasklet_to_the_daemon() {
    let system =
        (0..12).fold(System::new(1, 12, GpuArbitration::Driver).task(1, "3"), |system, _| system.task(0, "H2"));
    let system = system.task(0, "3").interrupts(InterruptHandling::Linux, 1, 0);
    let drawn = "
p0 d 0 _ _ _ _ _ _ _ _ _ _ 0 0 d d _ _ . .";
    assert_eq!(system.draw("p", 20), drawn);
}
