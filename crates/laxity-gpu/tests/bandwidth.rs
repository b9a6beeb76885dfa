//! The bandwidth lock in shared memory: which budget counts, and what becomes of it when holders nest, use several
//! streams, are suspended, end or are killed (paper 004, section IV).

mod support;

use std::thread;

use laxity_gpu::{Arbitration, Base, Config, LockError, Registry};
use laxity_model::{Instant, Nanos};
use laxity_sys::clock::now;
use laxity_testing::{HANG, Process, Random, role, soon, until};
use support::Place;

const MB: u64 = 1_000_000;

/// Not a test by itself: what the processes do that tests start.
#[test]
fn child() {
    let Some((role, place)) = role() else { return };
    let arbitration = Registry::at(&place).attach("g").expect("it was created");
    let client = arbitration.register(&role, Base::Background).expect("there is room");
    match role.as_str() {
        "hold" => {
            let _outer = client.lock_bandwidth(64 * MB).expect("it excludes no thread");
            let _inner = client.lock_bandwidth(16 * MB).expect("it nests");
            client.launch_bandwidth(7, 32 * MB).expect("it is registered");
            loop {
                thread::park();
            }
        }
        // Killed at any instruction of locking, nesting and unlocking.
        "turn" => loop {
            let _outer = client.lock_bandwidth(64 * MB).expect("it excludes no thread");
            client.launch_bandwidth(1, 32 * MB).expect("it is registered");
            drop(client.lock_bandwidth(16 * MB).expect("it nests"));
            client.synchronize_bandwidth(Some(1)).expect("it is registered");
        },
        _ => panic!("no such role: {role}"),
    }
}

fn create(place: &Place) -> Arbitration {
    place.create("g", &Config::new(2, 1)).expect("the name is free")
}

#[test]
fn the_least_budget_of_all_holders_counts_while_any_holds() {
    let place = Place::new("least");
    let arbitration = create(&place);
    assert_eq!(arbitration.bandwidth_budget(), None);
    let ours = arbitration.register("us", Base::Background).expect("there is room");
    let section = ours.lock_bandwidth(100 * MB).expect("it excludes no thread");
    thread::scope(|scope| {
        scope.spawn(|| {
            let theirs = arbitration.register("them", Base::Background).expect("there is room");
            theirs.begin_bandwidth(40 * MB).expect("it excludes no thread");
            assert_eq!(arbitration.bandwidth_budget(), Some(40 * MB));
            let snapshot = arbitration.snapshot().expect("whole");
            let mut budgets: Vec<_> = snapshot.clients.iter().map(|client| client.bandwidth).collect();
            budgets.sort();
            assert_eq!(budgets, [Some(40 * MB), Some(100 * MB)]);
            theirs.end_bandwidth().expect("it is in a section");
            assert_eq!(arbitration.bandwidth_budget(), Some(100 * MB));
            assert!(matches!(theirs.end_bandwidth(), Err(LockError::NoSection)));
        });
    });
    drop(section);
    assert_eq!(arbitration.bandwidth_budget(), None);
}

/// Algorithm 1 leaves the inner unlock to release what the outer section still needs.
#[test]
fn an_inner_section_ends_without_ending_the_outer_one() {
    let place = Place::new("nest");
    let arbitration = create(&place);
    let client = arbitration.register("us", Base::Background).expect("there is room");
    let outer = client.lock_bandwidth(100 * MB).expect("it excludes no thread");
    let inner = client.lock_bandwidth(30 * MB).expect("it nests");
    assert_eq!(arbitration.bandwidth_budget(), Some(30 * MB));
    drop(inner);
    assert_eq!((arbitration.bandwidth_budget(), client.bandwidth_budget()), (Some(100 * MB), Some(100 * MB)));
    drop(outer);
    assert_eq!((arbitration.bandwidth_budget(), client.bandwidth_budget()), (None, None));
}

/// Paper 004, section IV-B.
#[test]
fn synchronizing_with_one_stream_leaves_the_lock_to_the_other() {
    let place = Place::new("streams");
    let arbitration = create(&place);
    let client = arbitration.register("us", Base::Background).expect("there is room");
    client.launch_bandwidth(1, 50 * MB).expect("it is registered");
    client.launch_bandwidth(2, 60 * MB).expect("it is registered");
    client.synchronize_bandwidth(Some(1)).expect("it is registered");
    assert_eq!(arbitration.bandwidth_budget(), Some(60 * MB));
    client.synchronize_bandwidth(None).expect("it is registered");
    assert_eq!(arbitration.bandwidth_budget(), None);
}

#[test]
fn what_an_ended_thread_held_is_free() {
    let place = Place::new("ended");
    let arbitration = create(&place);
    thread::scope(|scope| {
        scope.spawn(|| {
            let client = arbitration.register("them", Base::Background).expect("there is room");
            client.begin_bandwidth(MB).expect("it excludes no thread");
            std::mem::forget(client);
        });
    });
    until("the lock is free", || arbitration.bandwidth_budget().is_none());
}

/// The original loses the lock while its holder is not the thread that runs.
#[test]
fn a_suspended_holder_holds_on_and_a_killed_one_does_not() {
    let place = Place::new("suspended");
    let arbitration = create(&place);
    let mut process = Process::start(&place, "hold");
    until("it holds", || arbitration.bandwidth_budget() == Some(16 * MB));
    let pid = process.id() as libc::pid_t;
    // SAFETY: signals to a child that was not waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGSTOP) }, 0);
    thread::sleep(std::time::Duration::from_millis(20));
    assert_eq!(arbitration.bandwidth_budget(), Some(16 * MB));
    process.kill();
    until("the lock is free", || arbitration.bandwidth_budget().is_none());
    assert!(arbitration.snapshot().expect("whole").clients.is_empty(), "the dead is forgotten");
}

/// A regulator sleeps without a period of its own while the lock is free.
#[test]
fn the_first_taker_wakes_a_sleeping_regulator() {
    let place = Place::new("wake");
    let arbitration = create(&place);
    thread::scope(|scope| {
        let regulator = scope.spawn(|| {
            while arbitration.bandwidth_budget().is_none() {
                assert!(now() < soon());
                arbitration.wait_for_bandwidth_lock(Instant::NEVER);
            }
            now()
        });
        thread::sleep(std::time::Duration::from_millis(20));
        let client = arbitration.register("us", Base::Background).expect("there is room");
        let began = now();
        let _section = client.lock_bandwidth(MB).expect("it excludes no thread");
        let woken = regulator.join().expect("no panic");
        assert!(woken.saturating_since(began) < HANG);
    });
}

#[test]
fn crossing_a_limit_is_told_once_with_its_thread_and_time() {
    let place = Place::new("limit");
    let arbitration = create(&place);
    let traffic = arbitration.traffic(1).expect("CPU 1 is one of those that are counted");
    traffic.count(500);
    let seen = traffic.exceeded();
    assert_eq!(traffic.allow(1_000), 500);
    traffic.count(999);
    assert_eq!((traffic.exceeded(), traffic.wait_exceeded(seen, now())), (seen, None));
    let before = now();
    traffic.count(1);
    traffic.count(1_000);
    assert_eq!(traffic.exceeded(), seen + 1, "only the call that crossed it");
    let exceeded = traffic.wait_exceeded(seen, Instant::NEVER).expect("it was exceeded before");
    assert_eq!(exceeded.thread, Some(laxity_sys::scheduling::current_thread()));
    assert!(exceeded.at >= before && exceeded.at <= now());
    assert_eq!(traffic.counted(), 2_500);
    traffic.lift();
    traffic.count(1_000_000);
    assert_eq!(traffic.exceeded(), seen + 1, "there is no limit");
}

/// A program may count between what the regulator reads and the limit that it sets.
#[test]
fn a_limit_below_what_was_counted_is_exceeded_at_once() {
    let place = Place::new("below");
    let arbitration = create(&place);
    let traffic = arbitration.traffic(0).expect("CPU 0 is one of those that are counted");
    // An earlier limit was crossed by this thread, which has nothing to do with the later one.
    traffic.allow(1);
    traffic.count(1);
    let began = now();
    traffic.allow(0);
    let until = now().saturating_add(Nanos::from_millis(1));
    let exceeded = traffic.wait_exceeded(traffic.exceeded(), until).expect("it is above");
    assert_eq!(exceeded.thread, None);
    assert!(exceeded.at >= began);
}

#[test]
fn a_cpu_has_one_regulator_until_that_ends() {
    let place = Place::new("claim");
    let arbitration = create(&place);
    let traffic = arbitration.traffic(1).expect("CPU 1 is one of those that are counted");
    assert_eq!(traffic.regulation(), None);
    let (claimed, may_end) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            traffic.claim().expect("it is free");
            claimed.wait();
            may_end.wait();
        });
        claimed.wait();
        assert_eq!(traffic.claim(), Err(std::process::id()));
        assert!(traffic.regulation().is_some());
        may_end.wait();
    });
    // It ended without giving the CPU back.
    until("its thread is gone", || traffic.claim().is_ok());
    traffic.unclaim();
    assert_eq!(traffic.regulation(), None);
}

/// 1,000 kills at any instruction: `make test-kill`.
#[test]
#[ignore = "minutes"]
fn a_thousand_kills_leave_the_lock_free() {
    kills(1_000);
}

#[test]
fn some_kills_leave_the_lock_free() {
    kills(12);
}

fn kills(count: u32) {
    let place = Place::new(&format!("kills-{count}"));
    let arbitration = create(&place);
    let mut random = Random::new();
    for _ in 0..count {
        let mut process = Process::start(&place, "turn");
        until("it takes the lock", || arbitration.bandwidth_budget().is_some());
        thread::sleep(std::time::Duration::from_micros(random.below(400)));
        process.kill();
        until("the lock is free", || arbitration.bandwidth_budget().is_none());
    }
    until("the dead are forgotten", || arbitration.snapshot().expect("whole").clients.is_empty());
}
