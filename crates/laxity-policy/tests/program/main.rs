//! Streams of programs under arbitration, against a model of a driver.

mod alone;
mod driver;

use driver::World;
use laxity_model::{Engine, Instant, Nanos};
use laxity_policy::program::{
    Action, EngineUse, Event, JobEvent, JobRule, OperationId, Order, Passage, Policy, Stream, TokenRule, Work,
};
use proptest::prelude::*;

const KERNEL: Work = Work::Kernel { key: 0 };
const COPY: Work = Work::CopyOut { bytes: 4096 };

fn single() -> Policy {
    Policy { batch: 1, ..Policy::default() }
}

fn work() -> impl Strategy<Value = Work> {
    prop_oneof![
        6 => (0..3_u64).prop_map(|key| Work::Kernel { key }),
        2 => (0..100_000_u64).prop_map(|bytes| Work::CopyIn { bytes }),
        2 => (0..100_000_u64).prop_map(|bytes| Work::CopyOut { bytes }),
        1 => Just(Work::Marker),
        1 => Just(Work::Barrier),
    ]
}

#[derive(Clone, Debug)]
enum Step {
    Issue { work: Work, is_ready: bool, is_free: bool },
    Complete { choice: usize, is_wanted: bool },
    Grant,
    Resolve(usize),
    Pass(u64),
    Renew,
    Alone(bool),
    Sync,
    JobBegins(Option<u64>),
    JobEnds,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (work(), prop::bool::weighted(0.8), any::<bool>())
            .prop_map(|(work, is_ready, is_free)| Step::Issue { work, is_ready, is_free }),
        4 => (any::<usize>(), any::<bool>()).prop_map(|(choice, is_wanted)| Step::Complete { choice, is_wanted }),
        4 => Just(Step::Grant),
        2 => any::<usize>().prop_map(Step::Resolve),
        2 => (1..300_000_u64).prop_map(Step::Pass),
        2 => Just(Step::Renew),
        1 => any::<bool>().prop_map(Step::Alone),
        1 => Just(Step::Sync),
        1 => any::<Option<u64>>().prop_map(Step::JobBegins),
        1 => Just(Step::JobEnds),
    ]
}

fn policy() -> impl Strategy<Value = Policy> {
    let engines =
        prop_oneof![Just(EngineUse::One), (1..=2_u8).prop_map(|copy_engines| EngineUse::Separate { copy_engines })];
    let jobs = prop_oneof![
        Just(JobRule::EverySync),
        (1..1_000_000_u64).prop_map(|period| JobRule::Period(Nanos(period))),
        Just(JobRule::Announced)
    ];
    let token = prop_oneof![Just(TokenRule::Hold), Just(TokenRule::Job)];
    let limit = prop_oneof![Just(Nanos::from_secs(100)), Just(Nanos::from_micros(400))];
    (engines, token, jobs, 1..5_u16, 0..400_000_u64, 0..2_000_000_u64, limit).prop_map(
        |(engines, token, jobs, batch, length, alone, hold_limit)| Policy {
            engines,
            token,
            jobs,
            batch,
            batch_length: Nanos(length),
            alone_length: Nanos(alone),
            hold_limit,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// The model checks after each step: an operation runs only while its engine is held; while one is held something
    /// can run, so that no hold waits for what the program does later; no more operations share a hold than the policy
    /// allows; and whatever can run next is requested. In the end all that was issued has run, and nothing is held.
    #[test]
    fn every_operation_runs_under_its_engine_and_nothing_is_held_for_one_that_cannot_run(
        policy in policy(),
        is_in_order in any::<bool>(),
        steps in prop::collection::vec(step(), 0..60),
        choices in prop::collection::vec(any::<usize>(), 1..50),
    ) {
        let mut world = World::new(policy, if is_in_order { Order::InOrder } else { Order::OutOfOrder });
        for step in steps {
            world.now += Nanos(50);
            match step {
                Step::Issue { work, is_ready, is_free } => {
                    world.issue(work, is_ready, is_free);
                }
                Step::Complete { choice, is_wanted } => {
                    world.complete_one(choice, is_wanted);
                }
                Step::Grant => {
                    world.grant();
                }
                Step::Resolve(choice) => {
                    world.resolve(choice);
                }
                Step::Pass(nanos) => world.pass(Nanos(nanos)),
                Step::Renew => world.renew(),
                Step::Alone(is_alone) => world.set_alone(is_alone),
                Step::Sync => world.tell(Event::Synchronized),
                Step::JobBegins(due) => world.tell(Event::JobBegins(due.map(Instant))),
                Step::JobEnds => world.tell(Event::JobEnds),
            }
        }
        let mut choices = choices.into_iter().cycle();
        world.drain(|| choices.next().expect("endless"));
        world.tell(Event::JobEnds);
        prop_assert!(!world.has_token, "no job, no token");
        let numbers: Vec<(bool, u32)> = world.jobs.iter().map(|event| match *event {
            JobEvent::Began { number, .. } => (true, number),
            JobEvent::Ended { number, .. } => (false, number),
        }).collect();
        for kind in [true, false] {
            let of_kind: Vec<u32> = numbers.iter().filter(|(began, _)| *began == kind).map(|&(_, number)| number).collect();
            prop_assert_eq!(&of_kind, &(0..of_kind.len() as u32).collect::<Vec<_>>(), "jobs begin and end in order");
        }
        prop_assert_eq!(numbers.iter().filter(|(began, _)| *began).count() * 2, numbers.len(), "each job ends");
    }
}

#[test]
fn an_operation_of_an_idle_stream_takes_a_free_engine_and_gives_it_back_when_it_is_complete() {
    let mut world = World::new(single(), Order::InOrder);
    let (kernel, passage) = world.issue(KERNEL, true, true);
    assert_eq!((passage, world.holds), (Passage::Taken, Some(Engine::Execution)));
    world.complete(0);
    assert_eq!((world.holds, world.has_token, &world.retired[..]), (None, false, &[kernel][..]));
}

/// ```text
///   issued   kernel (waits for a user event), copy
///   EE              requested when the event is complete, not before
/// ```
#[test]
fn nothing_is_requested_for_an_operation_that_waits_for_the_program() {
    let mut world = World::new(single(), Order::InOrder);
    world.issue(KERNEL, false, true);
    world.issue(COPY, true, true);
    assert_eq!(world.requested, None, "the copy is behind the kernel");
    world.resolve(0);
    assert_eq!(world.requested, Some((Engine::Execution, true)));
    world.grant();
    world.complete(0);
    assert_eq!(world.requested, Some((Engine::Copy(1), true)), "now the copy is next");
}

#[test]
fn an_out_of_order_stream_runs_what_is_ready_but_nothing_behind_a_barrier() {
    let mut world = World::new(single(), Order::OutOfOrder);
    world.issue(KERNEL, false, true);
    world.issue(COPY, true, false);
    assert_eq!(world.requested, Some((Engine::Copy(1), true)), "the copy overtakes the kernel");
    world.grant();
    world.issue(Work::Barrier, true, true);
    world.issue(COPY, true, true);
    world.complete(0);
    assert_eq!(world.requested, None, "the barrier waits for the kernel");
    world.resolve(0);
    assert_eq!(world.requested, Some((Engine::Execution, true)));
    world.drain(|| 0);
}

/// Kernels of 10 us; a batch may take 35 us.
#[test]
fn kernels_of_known_length_share_a_hold_as_long_as_the_policy_says() {
    let policy = Policy { batch: 9, batch_length: Nanos::from_micros(35), ..Policy::default() };
    let mut world = World::new(policy, Order::InOrder);
    world.issue(KERNEL, true, true);
    let (_, second) = world.issue(KERNEL, true, true);
    assert_eq!(second, Passage::Gated, "how long a kernel takes is not known yet");
    world.now += Nanos::from_micros(10);
    world.complete(0);
    world.grant();
    let passages: Vec<Passage> = (0..3).map(|_| world.issue(KERNEL, true, true).1).collect();
    assert_eq!(
        passages,
        [Passage::Admitted, Passage::Admitted, Passage::Gated],
        "three kernels take 30 us, four 40 us"
    );
    let (_, unknown) = world.issue(Work::Kernel { key: 5 }, true, true);
    assert_eq!(unknown, Passage::Gated);
    for _ in 0..3 {
        world.now += Nanos::from_micros(10);
        world.complete(0);
    }
    world.drain(|| 0);
    assert_eq!(world.grants.len(), 4, "alone; three; the fourth; the unknown one");
}

/// Kernels of 10 us; a batch may take 35 us. A program that waits for three at once learns no more than that they took 30 us.
#[test]
fn operations_that_are_seen_complete_at_once_took_equal_parts_of_the_time() {
    let policy = Policy { batch: 9, batch_length: Nanos::from_micros(35), ..Policy::default() };
    let mut world = World::new(policy, Order::InOrder);
    world.issue(KERNEL, true, true);
    world.now += Nanos::from_micros(10);
    world.complete(0);
    for _ in 0..20 {
        let passages: Vec<Passage> = (0..4).map(|_| world.issue(KERNEL, true, true).1).collect();
        assert_eq!(passages, [Passage::Taken, Passage::Admitted, Passage::Admitted, Passage::Gated], "four take 40 us");
        world.now += Nanos::from_micros(30);
        world.complete_together(3);
        world.grant();
        world.now += Nanos::from_micros(10);
        world.complete(0);
    }
    world.drain(|| 0);
}

/// Kernels of 10 us; a batch may take 35 us. Another client that comes waits for what is under way then.
#[test]
fn a_busy_stream_keeps_its_engine_while_no_other_client_wants_it_and_has_no_more_under_way() {
    let policy =
        Policy { batch: 9, batch_length: Nanos::from_micros(35), hold_limit: Nanos::from_micros(100), ..single() };
    let mut world = World::new(policy, Order::InOrder);
    world.issue(KERNEL, true, true);
    world.now += Nanos::from_micros(10);
    world.complete(0);
    world.issue(KERNEL, true, true);
    for _ in 0..50 {
        world.renew();
        assert_eq!(world.issue(KERNEL, true, true).1, Passage::Admitted, "two take 20 us");
        world.renew();
        assert_eq!(world.issue(KERNEL, true, true).1, Passage::Admitted, "three take 30 us");
        for _ in 0..2 {
            world.pass(Nanos::from_micros(10));
            world.complete(0);
        }
    }
    assert_eq!((world.grants.len(), world.late.len()), (2, 0), "held for 1 ms, which is ten times the limit");
    world.renew();
    let passages: Vec<Passage> = (0..3).map(|_| world.issue(KERNEL, true, true).1).collect();
    assert_eq!(passages, [Passage::Admitted, Passage::Admitted, Passage::Gated], "four are never under way");
    world.renew();
    assert_eq!(world.issue(KERNEL, true, true).1, Passage::Gated, "nothing overtakes what has a gate");
    // One that never ends has no progress, so the limit is that of the last completion.
    world.pass(Nanos::from_micros(99));
    world.renew();
    assert_eq!(world.late.len(), 0);
    world.pass(Nanos::from_micros(2));
    assert_eq!(world.late.len(), 3);
    world.drain(|| 0);
}

/// A kernel that takes longer than operations of one hold may together.
#[test]
fn a_hold_goes_on_with_the_next_operation_of_the_job_while_no_other_client_wants_the_engine() {
    let mut world = World::new(single(), Order::InOrder);
    world.issue(KERNEL, true, true);
    for work in [KERNEL, KERNEL, COPY, KERNEL] {
        assert_eq!(world.issue(work, true, true).1, Passage::Gated);
    }
    world.now += Nanos::from_millis(9);
    world.complete_one(0, false);
    assert_eq!((world.holds, world.requested), (Some(Engine::Execution), None), "nothing was unlocked");
    assert!(world.stream.is_open(OperationId(1)) && !world.stream.is_open(OperationId(2)), "one at a time");
    world.complete_one(0, true);
    assert_eq!((world.holds, world.requested), (None, Some((Engine::Execution, true))), "another client is first");
    world.grant();
    world.complete_one(0, false);
    assert_eq!(world.requested, Some((Engine::Copy(1), true)), "a copy uses another engine");
    world.grant();
    world.tell(Event::JobEnds);
    world.issue(KERNEL, true, true);
    world.complete_one(0, false);
    world.grant();
    world.complete_one(0, false);
    assert_eq!((world.holds, world.requested), (None, Some((Engine::Execution, true))), "its priority may be another");
    world.drain(|| 0);
}

/// Kernels of 10 us; two share a hold, and no other client wants the engine.
#[test]
fn an_operation_that_waits_for_room_in_its_hold_is_open_when_another_one_is_complete() {
    let policy = Policy { batch: 2, hold_limit: Nanos::from_micros(25), ..Policy::default() };
    let mut world = World::new(policy, Order::InOrder);
    world.issue(KERNEL, true, true);
    let (second, passage) = world.issue(KERNEL, true, true);
    assert_eq!(passage, Passage::Gated, "how long a kernel takes is not known yet");
    world.pass(Nanos::from_micros(10));
    world.complete_one(0, false);
    assert!(world.stream.is_open(second));
    assert_eq!(world.issue(KERNEL, true, true).1, Passage::Admitted, "the first one counts no more");
    for _ in 0..9 {
        let (next, passage) = world.issue(KERNEL, true, true);
        assert_eq!(passage, Passage::Gated, "two are under way");
        world.pass(Nanos::from_micros(10));
        world.complete_one(0, false);
        assert!(world.stream.is_open(next));
    }
    assert_eq!((world.grants.len(), world.late.len()), (1, 0));
    let (unknown, _) = world.issue(Work::Kernel { key: 5 }, true, true);
    world.complete_one(0, false);
    assert!(!world.stream.is_open(unknown), "it shares no hold");
    world.complete_one(0, false);
    assert!(world.stream.is_open(unknown));
    world.drain(|| 0);
}

#[test]
fn a_job_begins_when_its_program_wants_its_first_operation_though_that_waits_for_its_engine() {
    let mut stream = Stream::new(single(), Order::InOrder);
    let (since, passage, mut actions) = (Instant(3), Passage::Taken, Vec::new());
    let issued = Event::Issued { operation: OperationId(0), work: KERNEL, is_ready: true, passage, since };
    stream.handle(Instant(9), issued, &mut actions);
    let begins = Action::Job(JobEvent::Began { number: 0, release: Instant(3), deadline: None });
    assert_eq!((&actions[..], stream.next_timeout()), (&[begins][..], Some(Instant(9) + single().hold_limit)));
}

#[test]
fn a_stream_that_was_refused_its_engine_requests_it_for_the_next_operation() {
    let mut stream = Stream::new(single(), Order::InOrder);
    let (now, mut actions) = (Instant(1), Vec::new());
    for operation in [0, 1].map(OperationId) {
        let issued = Event::Issued { operation, work: KERNEL, is_ready: true, passage: Passage::Gated, since: now };
        stream.handle(now, issued, &mut actions);
    }
    stream.handle(now, Event::Refused, &mut actions);
    actions.clear();
    stream.complete(now, &[OperationId(0)], false, false, &mut actions);
    assert!(matches!(actions[..], [Action::Retire(_), Action::Acquire { .. }]), "{actions:?}");
}

#[test]
fn a_late_operation_is_reported_once_and_keeps_no_engine() {
    let policy = Policy { hold_limit: Nanos::from_millis(5), ..single() };
    let mut world = World::new(policy, Order::InOrder);
    let (slow, _) = world.issue(KERNEL, true, true);
    world.issue(KERNEL, true, true);
    world.pass(Nanos::from_millis(4));
    assert_eq!(world.holds, Some(Engine::Execution));
    world.pass(Nanos::from_millis(1));
    assert_eq!((world.holds, world.has_token, &world.late[..]), (None, false, &[slow][..]));
    assert_eq!(world.requested, None, "the next one cannot run before it");
    world.pass(Nanos::from_millis(50));
    assert_eq!(world.late.len(), 1);
    world.drain(|| 0);
}

#[test]
fn an_operation_that_is_forced_through_its_gate_uses_no_engine_and_holds_up_what_is_behind_it() {
    let mut world = World::new(single(), Order::InOrder);
    world.issue(Work::Marker, false, true);
    let (forced, passage) = world.issue(KERNEL, true, true);
    assert_eq!((passage, world.requested), (Passage::Gated, None), "it is behind the marker");
    world.tell(Event::Forced(forced));
    world.tell(Event::Forced(forced));
    assert_eq!((&world.forced[..], world.holds, world.requested), (&[forced][..], None, None));
    world.issue(KERNEL, true, true);
    world.resolve(0);
    world.complete(0);
    assert_eq!(world.requested, None, "the next one cannot run before the forced one");
    world.complete(0);
    assert_eq!(world.requested, Some((Engine::Execution, true)));
    world.grant();
    world.tell(Event::Forced(world.stream.last().expect("it runs")));
    assert_eq!(world.forced.len(), 1, "one that may run is not forced");
    world.drain(|| 0);
}

#[test]
fn a_job_keeps_its_token_between_operations_but_not_while_it_waits() {
    let policy = Policy { token: TokenRule::Job, ..single() };
    let mut world = World::new(policy, Order::InOrder);
    world.issue(KERNEL, true, true);
    world.complete(0);
    assert!(world.has_token, "the job may go on");
    world.issue(COPY, false, true);
    assert!(!world.has_token, "its next operation waits for something else");
    world.resolve(0);
    world.grant();
    world.complete(0);
    assert!(world.has_token);
    world.tell(Event::Waits);
    assert!(!world.has_token, "the program waits, for another stream perhaps");
    world.issue(KERNEL, true, true);
    world.tell(Event::Waits);
    world.complete(0);
    assert!(!world.has_token, "it waits already");
    world.issue(KERNEL, true, true);
    world.complete(0);
    world.tell(Event::Synchronized);
    assert!(!world.has_token, "the job is over");
}

#[test]
fn a_program_that_exits_opens_no_gate() {
    let mut world = World::new(single(), Order::InOrder);
    world.issue(KERNEL, true, true);
    world.issue(KERNEL, true, true);
    world.exit();
    world.complete(0);
    assert_eq!((world.holds, world.requested, world.has_token), (None, None, false));
    let mut world = World::new(single(), Order::InOrder);
    world.issue(KERNEL, true, false);
    assert!(world.requested.is_some());
    world.exit();
    assert!(world.grant(), "it was requested before");
    assert_eq!((world.holds, world.has_token), (None, false), "what is granted meanwhile is released at once");
}

#[test]
fn an_operation_that_the_driver_refused_is_forgotten_and_its_engine_released() {
    let mut world = World::new(single(), Order::InOrder);
    world.issue(KERNEL, true, true);
    world.refuse();
    assert_eq!((world.holds, world.stream.pending().count()), (None, 0));
}
