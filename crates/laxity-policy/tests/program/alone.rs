//! What a stream has under way while there is no other client.

use laxity_model::{Engine, Nanos};
use laxity_policy::program::{OperationId, Order, Passage, Policy, Work};

use super::KERNEL;
use super::driver::World;

/// Kernels of 1 ms; a stream that is alone may have 5 ms of them under way.
#[test]
fn a_stream_that_is_alone_has_more_under_way_until_another_client_comes() {
    let policy =
        Policy { alone_length: Nanos::from_millis(5), hold_limit: Nanos::from_millis(20), ..Policy::default() };
    let kernels = |world: &mut World, count: usize| -> Vec<bool> {
        (0..count).map(|_| world.issue(KERNEL, true, true).1 == Passage::Gated).collect()
    };
    let run_all = |world: &mut World| {
        while world.stream.last().is_some() {
            world.grant();
            world.pass(Nanos::from_millis(1));
            world.complete(0);
        }
    };
    let mut world = World::new(policy, Order::InOrder);
    world.issue(KERNEL, true, true);
    world.pass(Nanos::from_millis(1));
    world.complete(0);
    assert_eq!(kernels(&mut world, 2), [false, true], "a batch takes 200 us");
    run_all(&mut world);
    world.set_alone(true);
    assert_eq!(kernels(&mut world, 6), [false, false, false, false, false, true]);
    // What waits for room has it when one is complete.
    world.pass(Nanos::from_millis(1));
    world.complete_one(0, false);
    assert!(world.stream.is_open(OperationId(8)));
    assert_eq!(kernels(&mut world, 1), [true]);
    // Another client is registered: what is under way is complete first, and nothing joins it.
    world.set_alone(false);
    world.pass(Nanos::from_millis(1));
    world.complete_one(0, false);
    assert!(!world.stream.is_open(OperationId(9)));
    for _ in 0..4 {
        world.pass(Nanos::from_millis(1));
        world.complete(0);
    }
    assert_eq!((world.holds, world.requested), (None, Some((Engine::Execution, true))), "the other one is first");
    run_all(&mut world);
    // It wants the engine, which is seen before it is seen to be registered.
    world.set_alone(true);
    assert_eq!(kernels(&mut world, 6), [false, false, false, false, false, true]);
    world.pass(Nanos::from_millis(1));
    world.complete_one(0, true);
    assert!(!world.stream.is_open(OperationId(15)), "nothing more is opened");
    world.drain(|| 0);
    assert_eq!(world.late.len(), 0);
}

/// Kernels of 1 ms, of which a stream that is alone may have an hour under way, or none more than in company.
#[test]
fn what_a_stream_that_is_alone_has_under_way_is_not_late_at_once_nor_endless() {
    let most = |policy: Policy, order: Order| {
        let mut world = World::new(policy, order);
        world.set_alone(true);
        world.issue(KERNEL, true, true);
        world.pass(Nanos::from_millis(1));
        world.complete_one(0, false);
        (0..100).take_while(|_| world.issue(KERNEL, true, true).1 != Passage::Gated).count()
    };
    let policy =
        Policy { alone_length: Nanos::from_secs(3_600), hold_limit: Nanos::from_millis(20), ..Policy::default() };
    assert_eq!(most(policy, Order::InOrder), 10, "half of the limit");
    assert_eq!(most(Policy { hold_limit: Nanos::from_secs(7_200), ..policy }, Order::InOrder), 64);
    assert_eq!(most(Policy { hold_limit: Nanos::from_secs(7_200), ..policy }, Order::OutOfOrder), 1);
    assert_eq!(most(Policy { alone_length: Nanos::ZERO, ..policy }, Order::InOrder), 1);
}

/// Kernels of 10 us and of 1 ms, of which a stream that is alone may have 3 ms under way, are seen complete together.
#[test]
fn long_and_short_operations_that_are_seen_complete_at_once_keep_what_is_predicted_of_each() {
    let policy = Policy { alone_length: Nanos::from_millis(3), ..Policy::default() };
    let mut world = World::new(policy, Order::InOrder);
    let [short, long] = [0, 1].map(|key| Work::Kernel { key });
    world.set_alone(true);
    for (work, took) in [(short, Nanos::from_micros(10)), (long, Nanos::from_millis(1))] {
        world.issue(work, true, true);
        world.now += took;
        world.complete_one(0, false);
    }
    let mut most = |first: Work, took: Nanos, is_late_news: bool| {
        world.is_late_news = is_late_news;
        for work in [first, short, long, short] {
            assert_ne!(world.issue(work, true, true).1, Passage::Gated);
        }
        world.now += took;
        world.complete_together(4);
        assert_eq!(world.holds, None);
        world.set_alone(true);
        let more = (0..9).take_while(|_| world.issue(long, true, true).1 != Passage::Gated).count();
        world.is_late_news = false;
        while world.stream.last().is_some() {
            world.grant();
            world.now += Nanos::from_millis(1);
            world.complete(0);
        }
        world.set_alone(true);
        more
    };
    for _ in 0..20 {
        assert_eq!(most(short, Nanos::from_micros(1_030), false), 3, "4 take 4 ms");
    }
    assert_eq!(most(short, Nanos::from_millis(900), true), 3, "the program did other things for most of that time");
    assert_eq!(most(short, Nanos::from_micros(2_060), false), 1, "each took twice as long, also the long one");
}
