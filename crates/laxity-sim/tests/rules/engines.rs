//! GPUSync's engine locks, and operations on engines.

use laxity_model::{EngineOrder, GpuArbitration, GpuSync};

use crate::system::{System, bytes, gpusync, managed};

/// T2 has the execution engine; T1 asks for it at 1, T0 at 2.
fn ordered(engine_order: EngineOrder) -> String {
    let sync = GpuSync { engine_order, ..gpusync(3, 1) };
    System::new(3, 1, managed(sync)).task(2, "K2").task(1, "K2").task(0, "K3").draw("et", 7)
}

#[test]
fn fifo_engine_locks_are_granted_in_the_order_of_requests() {
    let drawn = "
e0 2 2 2 1 1 0 0
t0     ? ? ? - -
t1   ? ? - -
t2 - - -";
    assert_eq!(ordered(EngineOrder::Fifo), drawn);
}

#[test]
fn priority_engine_locks_are_granted_by_priority() {
    let drawn = "
e0 2 2 2 0 0 1 1
t0     ? - -
t1   ? ? ? ? - -
t2 - - -";
    assert_eq!(ordered(EngineOrder::Priority), drawn);
}

/// T0 copies in, T1 out, T2 in.
fn three_copies() -> System {
    System::new(3, 1, managed(gpusync(3, 1))).task(0, "I3").task(1, "O2").task(2, "I1")
}

#[test]
fn both_directions_share_the_only_copy_engine() {
    let drawn = "
c0 0 0 0 1 1 2
t0 - - -
t1   ? ? - -
t2     ? ? ? -";
    assert_eq!(three_copies().draw("cdt", 6), drawn);
}

#[test]
fn each_direction_has_one_of_two_copy_engines() {
    let drawn = "
c0 0 0 0 2 . .
d0 . 1 1 . . .
t0 - - -
t1   - -
t2     ? -";
    assert_eq!(three_copies().two_copy_engines().draw("cdt", 6), drawn);
}

/// T0 asks at 2, while T1 copies.
fn long_copy(chunk: Option<u64>) -> String {
    let sync = GpuSync { chunk, ..gpusync(2, 1) };
    System::new(2, 1, managed(sync)).task(2, "I2").task(1, "I6").draw("ct", 9)
}

#[test]
fn a_copy_in_chunks_is_preempted_where_one_ends() {
    let drawn = "
c0 . 1 1 0 0 1 1 1 1
t0     ? - -
t1   - - ? ? - - - -";
    assert_eq!(long_copy(Some(bytes(2))), drawn);
    let whole = "
c0 . 1 1 1 1 1 1 0 0
t0     ? ? ? ? ? - -
t1   - - - - - -";
    assert_eq!(long_copy(None), whole);
}

/// T2 needs the CPU to give up the engine when its GPU kernel is over; T1 has it, until then.
#[test]
fn the_holder_of_an_engine_inherits() {
    let sync = GpuSync { fifo_requests: Some(2), ..gpusync(2, 1) };
    let system = System::new(1, 1, managed(sync)).task(2, "K2").task(1, "4").task(0, "K3 1");
    let drawn = "
p0 . 1 1 1 1 2 . .
e0 2 2 2 0 0 . . .
t0     ? - -
t1   # # # #
t2 - - - . . #";
    assert_eq!(system.draw("pet", 8), drawn);
    assert_eq!(system.priorities(8), [(2, 2, 0), (3, 2, 2)]);
}

/// T0 waits for its GPU kernel.
fn waits(arbitration: GpuArbitration) -> String {
    System::new(1, 1, arbitration).task(0, "1 K3 1").task(0, "3").draw("pet", 8)
}

/// Lock, issue, wait suspended, unlock: T1 has the CPU in the meantime.
#[test]
fn a_job_waits_suspended_for_its_operation() {
    let drawn = "
p0 0 1 1 1 0 . . .
e0 . 0 0 0 . . . .
t0 # - - - #
t1 . # # #";
    assert_eq!(waits(managed(gpusync(1, 1))), drawn);
    assert_eq!(waits(GpuArbitration::Driver), drawn, "as it may without GPUSync");
}

#[test]
fn the_driver_may_have_jobs_spin() {
    let drawn = "
p0 0 @ @ @ 0 1 1 1
e0 . 0 0 0 . . . .
t0 # @ @ @ #
t1 . . . . . # # #";
    assert_eq!(waits(GpuArbitration::DriverSpinning), drawn);
}

/// Operations that a job would not wait for run one after the other, as in one stream: its CPU step comes last.
#[test]
fn operations_of_a_job_are_one_stream() {
    let system = |arbitration| System::new(1, 1, arbitration).task(0, "A2 I1 1").draw("pect", 6);
    let drawn = "
p0 . . . 0 . .
e0 0 0 . . . .
c0 . . 0 . . .
t0 - - - #";
    assert_eq!(system(managed(gpusync(1, 1))), drawn);
    assert_eq!(system(GpuArbitration::Driver), drawn);
}
