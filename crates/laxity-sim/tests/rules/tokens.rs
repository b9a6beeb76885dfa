//! GPUSync's tokens. The rows of engines show which job holds one: most bodies are a single operation.

use laxity_model::{EngineOrder, GpuArbitration, GpuSync, MigrationPath, Nanos, TokenHold};

use crate::system::{System, gpusync, managed};

/// Two CPUs, a GPU with one token, and two places in its queue.
fn two_places() -> System {
    System::new(2, 1, managed(gpusync(1, 2)))
}

/// Tokens 0 and 2 are of GPU 0, 1 and 3 of GPU 1.
#[test]
fn replica_i_is_a_token_of_gpu_i_modulo_g() {
    let system = System::new(4, 2, managed(gpusync(2, 1))).task(0, "K2").task(1, "I2").task(2, "I2").task(3, "K2");
    let drawn = "
e0 0 0 . . . .
c0 . . 2 2 . .
e1 . . . 3 3 .
c1 . 1 1 . . .
t0 - -
t1   - -
t2     - -
t3       - -";
    assert_eq!(system.draw("ect", 6), drawn);
}

/// T2 finds a request for each token and joins the first, T3 joins the second, shorter then.
#[test]
fn a_request_joins_the_shortest_queue_and_the_head_of_a_queue_is_granted() {
    let system = System::new(6, 1, managed(gpusync(2, 3))).task(0, "K4").task(1, "I2").task(2, "K1").task(2, "K1");
    let drawn = "
e0 0 0 0 0 3 2 . .
c0 . 1 1 . . . . .
t0 - - - -
t1   - -
t2     ? ? ? -
t3     ? ? -";
    assert_eq!(system.draw("ect", 8), drawn);
}

/// With room for four in the queue T1 is before T0; with room for one request they wait by priority.
#[test]
fn no_more_requests_than_max_in_fifos_are_in_all_queues() {
    let system = |most| {
        let sync = GpuSync { fifo_requests: Some(most), ..gpusync(1, 4) };
        System::new(4, 1, managed(sync)).task(2, "K2").task(1, "K2").task(0, "K4")
    };
    let in_queue = "
e0 2 2 2 2 1 1 0 0
t0     ? ? ? ? - -
t1   ? ? ? - -
t2 - - - -";
    assert_eq!(system(4).draw("et", 8), in_queue);
    let outside = "
e0 2 2 2 2 0 0 1 1
t0     ? ? - -
t1   ? ? ? ? ? - -
t2 - - - -";
    assert_eq!(system(1).draw("et", 8), outside);
}

/// T0 and T1 fill the queue and are the two highest; T3 and then T2 wait in the priority queue. No job inherits their
/// priority.
#[test]
fn a_request_below_the_m_highest_waits_in_the_priority_queue_whose_head_has_the_free_place() {
    let system = two_places().task(0, "K3").task(1, "K2").task(2, "K2").task(1, "K2");
    let drawn = "
e0 0 0 0 1 1 2 2 3 3
t0 - - -
t1   ? ? - -
t2     ? ? ? - -
t3   ? ? ? ? ? ? - -";
    assert_eq!(system.draw("et", 9), drawn);
    assert_eq!(system.priorities(9), []);
}

/// T0 finds the queue full, is among the two highest, and donates to T5, the lowest, whose priority T4 inherits: T4
/// runs and T2 does not. When T4 is done T5 has T0's priority.
#[test]
fn a_request_among_the_m_highest_donates_to_the_lowest_and_its_priority_reaches_the_holder() {
    let system = two_places().task(2, "K1 1").task(3, "4").task(3, "4").task(9, "1").task(0, "K2 3").task(1, "K2");
    let drawn = "
p0 . . . 1 1 1 1 . 0 3 . .
p1 . . 4 4 4 2 2 2 2 . . .
e0 4 4 . . . 5 5 0 . . . .
t0     ? ? ? ? ? - #
t1       # # # #
t2       . . # # # #
t3                   #
t4 - - # # #
t5   ? ? ? ? - -";
    assert_eq!(system.draw("pet", 12), drawn);
    assert_eq!(system.priorities(12), [(2, 4, 0), (2, 5, 0), (5, 4, 4), (7, 5, 5)]);
}

/// T1 donates to T6 and T2 to T5, until T0 comes and is one of the two highest: T0 has T2's donee, T2 waits in the
/// priority queue and is last.
#[test]
fn the_previous_donor_returns_to_the_priority_queue() {
    let system = two_places().task(5, "K1").task(3, "K1").task(4, "K1").task(20, "1").task(20, "1");
    let system = system.task(0, "K6").task(1, "K1");
    let drawn = "
e0 5 5 5 5 5 5 6 0 1 2
t0           ? ? -
t1       ? ? ? ? ? -
t2         ? ? ? ? ? -
t3
t4
t5 - - - - - -
t6   ? ? ? ? ? -";
    assert_eq!(system.draw("et", 10), drawn);
    assert_eq!(system.priorities(10), [(3, 5, 1), (3, 6, 1), (5, 5, 0), (6, 5, 5), (6, 6, 0), (7, 6, 6)]);
}

/// T1 donates to T4 and then T2 to T3, the holder. When T3 is done, T2 has its place, though T1 is higher.
#[test]
fn a_free_place_is_that_of_the_releasers_own_donor() {
    let system = two_places().task(20, "1").task(2, "K2").task(3, "K2").task(0, "K4").task(1, "K2");
    let drawn = "
e0 3 3 3 3 4 4 2 2 1 1
t0
t1     ? ? ? ? ? ? - -
t2       ? ? ? - -
t3 - - - -
t4   ? ? ? - -";
    assert_eq!(system.draw("et", 10), drawn);
}

/// T1 donates to T3, T2 waits in the priority queue. When T0, which has no donor, is done, T1 has its place.
#[test]
fn without_a_donor_of_its_own_the_place_is_that_of_the_highest_donor() {
    let system = two_places().task(0, "K4").task(3, "K1").task(2, "K1").task(1, "K1");
    let drawn = "
e0 0 0 0 0 3 1 2
t0 - - - -
t1       ? ? -
t2     ? ? ? ? -
t3   ? ? ? -";
    assert_eq!(system.draw("et", 7), drawn);
}

/// T1 needs the CPU after its section, which T0 wants, too, once it has had the GPU.
#[test]
fn an_unlock_ends_inheritance() {
    let hold = GpuSync { hold: TokenHold::Section, ..gpusync(1, 2) };
    let system = System::new(1, 1, managed(GpuSync { fifo_requests: Some(2), ..hold }));
    let system = system.task(1, "K1").task(1, "3").task(0, "K1 2 K1 2");
    let drawn = "
p0 . 2 2 1 1 1 2 2 . . . .
e0 2 . . 2 0 . . . . . . .
t0   ? ? ? -
t1   . . # # #
t2 - # # - . . # #";
    assert_eq!(system.draw("pet", 12), drawn);
    assert_eq!(system.priorities(12), [(1, 2, 0), (4, 2, 2)]);
}

/// T1 and T2 hold the two tokens; T3 and then T0 wait for the first, T4 for the second. At 7 no job waits for the
/// second any more: it goes to T0, the highest in the other queue, though T3 is before it.
#[test]
fn an_idle_token_steals_the_highest_waiter() {
    let system = System::new(6, 1, managed(gpusync(2, 3)));
    let system = system.task(4, "I2").task(0, "K9").task(1, "I5").task(2, "I2").task(3, "I2");
    let drawn = "
e0 1 1 1 1 1 1 1 1 1 . . .
c0 . 2 2 2 2 2 4 4 0 0 3 3
t0         ? ? ? ? - -
t1 - - - - - - - - -
t2   - - - - -
t3     ? ? ? ? ? ? ? ? - -
t4       ? ? ? - -";
    assert_eq!(system.draw("ect", 12), drawn);
}

/// rho = 1 and no limits: what the k-FMLP does, stealing included.
#[test]
fn with_one_token_and_queues_without_end_it_is_the_k_fmlp() {
    let draw = |arbitration| {
        let system = System::new(4, 2, arbitration).task(3, "K2").task(2, "K2").task(1, "K2").task(1, "K3");
        system.task(0, "K6").draw("et", 10)
    };
    let drawn = "
e0 4 4 4 4 4 4 3 3 3 .
e1 . 2 2 1 1 0 0 . . .
t0       ? ? - -
t1     ? - -
t2   - -
t3   ? ? ? ? ? - - -
t4 - - - - - -";
    let tokens = GpuSync { fifo_requests: Some(u32::MAX), ..gpusync(1, u32::MAX) };
    assert_eq!(draw(managed(tokens)), drawn);
    assert_eq!(draw(GpuArbitration::KFmlp { length_aware: false }), drawn);
}

/// (rho, f) = (1, 2): T1 waits for the token. (2, 1): the copy of T1 overlaps the GPU kernel of T0.
#[test]
fn more_tokens_let_engines_work_side_by_side() {
    let system = |tokens, length| {
        System::new(2, 1, managed(gpusync(tokens, length))).task(0, "K3 1").task(0, "I2 K1").draw("ect", 8)
    };
    let one = "
e0 0 0 0 . . . 1 .
c0 . . . . 1 1 . .
t0 - - - #
t1 ? ? ? ? - - -";
    assert_eq!(system(1, 2), one);
    let two = "
e0 0 0 0 1 . . . .
c0 1 1 . . . . . .
t0 - - - #
t1 - - ? -";
    assert_eq!(system(2, 1), two);
}

/// A job says that it is over, not that it is done with the GPU: T1 holds its token until then. (With sections it
/// does not.)
#[test]
fn a_token_is_held_from_the_first_operation_to_the_end_of_the_job() {
    let draw = |hold| {
        let sync = GpuSync { hold, ..gpusync(1, 2) };
        System::new(2, 1, managed(sync)).task(1, "K2").task(0, "1 K2 3").draw("et", 9)
    };
    let job = "
e0 . 1 1 . . . 0 0 .
t0   ? ? ? ? ? - -
t1 # - - # # #";
    assert_eq!(draw(TokenHold::Job), job);
    let section = "
e0 . 1 1 0 0 . . . .
t0   ? ? - -
t1 # - - # # #";
    assert_eq!(draw(TokenHold::Section), section);
}

/// Two GPUs with one token each, held during a section; a copy of a task's state takes 2.
fn moving(migration_path: MigrationPath) -> System {
    let migration = Some(Nanos::from_millis(2));
    let sync = GpuSync { hold: TokenHold::Section, migration, migration_path, ..gpusync(1, 2) };
    System::new(3, 2, managed(sync))
}

/// T0 has its state on GPU 0 when it asks again at 3; moving it would take 2. T1 holds GPU 0 until `2 + hold`.
fn second_section(hold: &str) -> String {
    moving(MigrationPath::Peer).task(0, "( K2 ) 1 ( K2 )").task(2, hold).draw("ect", 8)
}

/// There it would be done at 5 + 2, elsewhere at 3 + 2 + 2: a tie, which goes to its own GPU.
#[test]
fn a_request_joins_the_queue_in_which_it_is_done_first() {
    let drawn = "
e0 0 0 1 1 1 0 0 .
c0 . . . . . . . .
e1 . . . . . . . .
c1 . . . . . . . .
t0 - - # ? ? - -
t1     - - -";
    assert_eq!(second_section("K3@0"), drawn);
}

/// There it would be done at 6 + 2: it moves, which costs a copy, for which both GPUs have their copy engine busy.
#[test]
fn a_job_that_moves_to_another_gpu_copies_its_state_from_peer_to_peer() {
    let drawn = "
e0 0 0 1 1 1 1 . .
c0 . . . 0 0 . . .
e1 . . . . . 0 0 .
c1 . . . 0 0 . . .
t0 - - # - - - -
t1     - - - -";
    assert_eq!(second_section("K4@0"), drawn);
}

/// Of two copy engines it takes the one that copies from the GPU here, and the one that copies to it there.
#[test]
fn a_peer_copy_takes_the_engines_of_its_direction() {
    let system = moving(MigrationPath::Peer).two_copy_engines().task(0, "( K2@1 ) 1 ( K1@0 )");
    let drawn = "
e0 . . . . . 0 .
c0 . . . 0 0 . .
d0 . . . . . . .
e1 0 0 . . . . .
c1 . . . . . . .
d1 . . . 0 0 . .
t0 - - # - - -";
    assert_eq!(system.draw("ecdt", 7), drawn);
}

/// T1 copies to GPU 0 when T0 wants to copy its state from there.
#[test]
fn a_peer_copy_waits_for_both_engines() {
    let system = moving(MigrationPath::Peer).task(0, "( K2 ) 1 ( K2 )").task(2, "I4@0");
    let drawn = "
e0 0 0 . . . . . . . . .
c0 . . 1 1 1 1 0 0 . . .
e1 . . . . . . . . 0 0 .
c1 . . . . . . 0 0 . . .
t0 - - # ? ? ? - - - -
t1     - - - -";
    assert_eq!(system.draw("ect", 11), drawn);
}

/// T0 and T1 change places, with engine locks by priority, and T2 copies to GPU 1. At 3 T1 locks the engine of GPU 0 and
/// waits for the other; so T0, at 4, waits for that of GPU 0. If it first locked that of GPU 1, which it leaves, it would
/// get it before T1, and they would wait for each other for ever.
#[test]
fn peer_copies_lock_engines_in_the_order_of_gpus() {
    let sync = GpuSync {
        hold: TokenHold::Section,
        migration: Some(Nanos::from_millis(2)),
        engine_order: EngineOrder::Priority,
        ..gpusync(2, 2)
    };
    let system = System::new(3, 2, managed(sync)).task(0, "( K2@1 ) 2 ( K1@0 )").task(0, "( K2@0 ) 1 ( K1@1 )");
    let drawn = "
e0 1 1 . . . . . . . 0 .
c0 . . . . . 1 1 0 0 . .
e1 0 0 . . . . . 1 . . .
c1 . . 2 2 2 1 1 0 0 . .
t0 - - # # ? ? ? - - -
t1 - - # ? ? - - -
t2     - - -";
    assert_eq!(system.task(2, "I3@1").draw("ect", 11), drawn);
}

/// T0 copies its state to the host before it releases a token, in case it moves, and from there when it has. T1, which
/// never moves, does not.
#[test]
fn on_the_path_over_the_host_state_is_copied_before_each_release_of_a_token() {
    let system = moving(MigrationPath::Host).task(0, "( K2 ) 1 ( K2 )").task(2, "K7@0");
    let drawn = "
e0 0 0 . . 1 1 1 1 1 1 1 .
c0 . . 0 0 . . . . . . . .
e1 . . . . . . . 0 0 . . .
c1 . . . . . 0 0 . . 0 0 .
t0 - - - - # - - - - - -
t1     ? ? - - - - - - -";
    assert_eq!(system.draw("ect", 12), drawn);
}

/// Two jobs that do the same, on the GPU whose token each holds.
#[test]
fn operations_go_to_the_engines_of_the_gpu_whose_token_the_job_holds() {
    let system = System::new(4, 2, managed(gpusync(1, 2))).task(0, "I1 K2 O1").task(0, "I1 K2 O1");
    let drawn = "
e0 . 0 0 . .
c0 0 . . 0 .
e1 . 1 1 . .
c1 1 . . 1 .
t0 - - - -
t1 - - - -";
    assert_eq!(system.draw("ect", 5), drawn);
}
