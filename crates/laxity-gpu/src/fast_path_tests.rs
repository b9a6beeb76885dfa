//! Which operations take the state lock, and which do not. A thread ends while it holds the state lock: the next one that
//! takes it is told so, once.

use std::sync::atomic::Ordering;
use std::thread;

use laxity_model::{Engine, GpuArbitration, GpuSync, Instant, ReplicaId};
use laxity_sys::scheduling::{self, current_thread};
use laxity_testing::{TestRegistry, skip};

use crate::config::TOKEN;
use crate::request::{Resource, TokenRequest};
use crate::shared::Shared;
use crate::{Arbitration, Base, Client, Config, Registry};

/// One GPU with one token.
fn arbitration(place: &TestRegistry<Registry>) -> Arbitration {
    place.create("g", &Config::new(2, 1)).expect("the name is free")
}

/// Whether a thread took the state lock while `act` ran.
fn takes_state_lock(shared: &Shared, act: impl FnOnce()) -> bool {
    thread::scope(|scope| {
        let death = scope.spawn(|| shared.lock_state().expect("whole").die());
        death.join().expect("no panic");
    });
    act();
    !shared.state_mutex().lock().expect("it is not ours").is_inherited
}

/// Asks for a token, and does not wait for it.
fn asks(client: &Client) -> Option<ReplicaId> {
    client.request_lock(TOKEN, TokenRequest::default(), Resource::Token { gpu: None }).expect("whole")
}

fn use_the_gpu(client: &Client) {
    let token = client.token().expect("no other thread wants it");
    drop(token.execute_engine().expect("no other thread wants it"));
}

#[test]
fn a_job_with_uncontended_locks_does_not_take_the_state_lock() {
    let place = TestRegistry::new("jobs");
    let arbitration = arbitration(&place);
    let mut client = arbitration.register("a", Base::Background).expect("there is room");
    let shared = arbitration.membership().shared.clone();
    let job = || {
        client.begin_job(Base::Deadline(Instant(1000))).expect("a deadline");
        use_the_gpu(&client);
    };
    assert!(!takes_state_lock(&shared, job));
    let base = arbitration.snapshot().expect("whole").client(client.id()).map(|client| client.base);
    assert_eq!(base, Some(Base::Deadline(Instant(1000))), "a snapshot shows it");
}

/// Threads that contend come back, so that a lock stays with the arbiter while one of them holds it, and no longer.
#[test]
fn a_holder_that_had_to_wait_releases_by_the_arbiter_once() {
    let place = TestRegistry::new("waited");
    let arbitration = arbitration(&place);
    let shared = arbitration.membership().shared.clone();
    let register = |name, base| arbitration.register(name, base).expect("there is room");
    let (a, b) = (register("a", Base::Background), register("b", Base::Fixed(1)));
    assert!(asks(&a).is_some());
    assert!(asks(&b).is_none());
    a.release(TOKEN, ReplicaId(0));
    assert!(b.granted().is_some());
    assert!(takes_state_lock(&shared, || b.release(TOKEN, ReplicaId(0))));
    assert!(!takes_state_lock(&shared, || use_the_gpu(&b)));
}

/// A lone waiter that is no more urgent than the holder needs no arbitration.
#[test]
fn two_equally_urgent_threads_take_turns_without_the_state_lock() {
    let place = TestRegistry::new("turns");
    let arbitration = arbitration(&place);
    let shared = arbitration.membership().shared.clone();
    let register = |name| arbitration.register(name, Base::Background).expect("there is room");
    let (a, b, c) = (register("a"), register("b"), register("c"));
    assert!(asks(&a).is_some());
    let turns = |first: &Client, second: &Client| {
        assert!(asks(second).is_none());
        first.release(TOKEN, ReplicaId(0));
        assert!(second.granted().is_some());
        assert!(second.granted().is_none(), "each grant is answered once");
        assert!(asks(first).is_none());
        second.release(TOKEN, ReplicaId(0));
        assert!(first.granted().is_some());
    };
    assert!(!takes_state_lock(&shared, || turns(&a, &b)));
    let waiting = || arbitration.snapshot().expect("whole").tokens.waiting.len();
    assert!(!takes_state_lock(&shared, || assert!(asks(&b).is_none())));
    assert_eq!(waiting(), 1, "a snapshot shows it");
    assert!(takes_state_lock(&shared, || assert!(asks(&c).is_none())), "the arbiter orders two waiters");
    assert_eq!(waiting(), 2);
    a.release(TOKEN, ReplicaId(0));
    assert!(b.granted().is_some(), "it came first");
    b.release(TOKEN, ReplicaId(0));
    assert!(c.granted().is_some());
    // A lone waiter waits without the arbiter again.
    assert!(takes_state_lock(&shared, || assert!(asks(&a).is_none())));
    assert!(!takes_state_lock(&shared, || c.release(TOKEN, ReplicaId(0))));
    assert!(a.granted().is_some());
    assert!(!takes_state_lock(&shared, || turns(&a, &c)));
}

/// Also for engines, unless another thread waits for what the waiter holds.
#[test]
fn a_waiter_for_an_engine_takes_the_state_lock_if_it_may_inherit() {
    let place: TestRegistry<Registry> = TestRegistry::new("engines");
    let sync = GpuSync { tokens: 2, ..GpuSync::DEFAULT };
    let config = Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(2, 1) };
    let arbitration = place.create("g", &config).expect("the name is free");
    let shared = arbitration.membership().shared.clone();
    let engine = config.engine_lock(0, Engine::Execution);
    let of_engine = Resource::Engine { gpu: 0, engine: Engine::Execution };
    let asks_engine = |client: &Client| client.request_lock(engine, TokenRequest::default(), of_engine).expect("whole");
    let register = |name, base| arbitration.register(name, base).expect("there is room");
    let (a, b, c) = (register("a", Base::Fixed(1)), register("b", Base::Fixed(1)), register("c", Base::Fixed(2)));
    let tokens = [&a, &b].map(|client| client.token().expect("there are two"));
    assert!(asks_engine(&a).is_some());
    assert!(!takes_state_lock(&shared, || assert!(asks_engine(&b).is_none())));
    let hands_engine = |from: &Client, to: &Client| {
        from.release(engine, ReplicaId(0));
        assert!(to.granted().is_some());
    };
    let inherits = || {
        let snapshot = arbitration.snapshot().expect("whole");
        [&a, &b].map(|client| snapshot.client(client.id()).expect("it is registered").inherits_from)
    };
    assert_eq!(inherits(), [None; 2]);
    // C waits for a token of A or B, and B for A.
    assert!(asks(&c).is_none());
    assert_eq!(inherits(), [Some(c.id()); 2]);
    hands_engine(&a, &b);
    assert!(takes_state_lock(&shared, || assert!(asks_engine(&a).is_none())), "A is as urgent as C, and so is B");
    hands_engine(&b, &a);
    a.release(engine, ReplicaId(0));
    drop(tokens);
    assert!(c.granted().is_some());
    // Now C waits before another thread wants the engine.
    c.release(TOKEN, ReplicaId(0));
    let tokens = [&a, &b].map(|client| client.token().expect("there are two"));
    assert!(asks(&c).is_none());
    assert!(asks_engine(&a).is_some());
    assert!(takes_state_lock(&shared, || assert!(asks_engine(&b).is_none())), "B inherits from C");
    hands_engine(&a, &b);
    b.release(engine, ReplicaId(0));
    drop(tokens);
    assert!(c.granted().is_some());
    c.release(TOKEN, ReplicaId(0));
}

/// Every change reads and writes the state: threads that neither hold nor wait must not make it longer.
#[test]
fn saved_state_grows_only_with_contenders() {
    let place = TestRegistry::new("idle");
    let arbitration = arbitration(&place);
    let shared = arbitration.membership().shared.clone();
    let length = || {
        let copy = shared.layout.copy(shared.version().load(Ordering::Relaxed));
        shared.segment.u64(copy).load(Ordering::Relaxed)
    };
    let register = || arbitration.register("a", Base::Background).expect("there is room");
    let (first, urgent) = (register(), arbitration.register("b", Base::Fixed(1)).expect("there is room"));
    let of_few = length();
    let _others: Vec<Client> = (0..40).map(|_| register()).collect();
    assert_eq!(length(), of_few);
    assert!(asks(&first).is_some());
    assert!(asks(&urgent).is_none());
    assert!(length() > of_few);
    first.release(TOKEN, ReplicaId(0));
    assert!(urgent.granted().is_some());
    urgent.release(TOKEN, ReplicaId(0));
    assert_eq!(length(), of_few);
}

/// Under `SCHED_OTHER` a holder has nothing to lend.
#[test]
fn a_holder_that_changes_no_follower_does_not_take_the_state_lock() {
    let place = TestRegistry::new("followers_threshold");
    let arbitration = arbitration(&place);
    let shared = arbitration.membership().shared.clone();
    let mut client = arbitration.register("a", Base::Background).expect("there is room");
    let follower = arbitration.follow(0, current_thread()).expect("there is room");
    assert!(!takes_state_lock(&shared, || use_the_gpu(&client)));
    // More urgent than the follower, from this job on.
    if let Err(error) = scheduling::set_fifo(10) {
        return skip(format_args!("no SCHED_FIFO: {error}"));
    }
    let rebased = takes_state_lock(&shared, || client.rebase(Base::Fixed(10)).expect("it is permitted"));
    assert!(rebased, "others look at how it is scheduled");
    assert!(takes_state_lock(&shared, || use_the_gpu(&client)));
    // From now on as urgent as the follower.
    drop(follower);
    scheduling::set_fifo(10).expect("it was permitted");
    let _follower = arbitration.follow(0, current_thread()).expect("there is room");
    assert!(!takes_state_lock(&shared, || use_the_gpu(&client)));
}
