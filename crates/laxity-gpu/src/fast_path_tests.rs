//! Who passes the gate, and who need not. A thread ends at the gate: the next one to pass finds that, once.

use std::sync::atomic::Ordering;
use std::thread;

use laxity_model::{Engine, GpuArbitration, GpuSync, Instant, ReplicaId};
use laxity_sys::scheduling::{self, current_thread};
use laxity_testing::{TestRegistry, skip};

use crate::client::{Resource, TokenRequest};
use crate::config::TOKEN;
use crate::shared::Shared;
use crate::{Arbitration, Base, Client, Config, Registry};

/// One GPU with one token.
fn arbitration(place: &TestRegistry<Registry>) -> Arbitration {
    place.create("g", &Config::new(2, 1)).expect("the name is free")
}

/// Says whether anyone passed the gate while `act` did what it does.
fn passes(shared: &Shared, act: impl FnOnce()) -> bool {
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
    let token = client.token().expect("nobody else wants it");
    drop(token.execute_engine().expect("nobody else wants it"));
}

#[test]
fn a_job_for_whose_locks_nobody_waits_does_not_pass_the_gate() {
    let place = TestRegistry::new("jobs");
    let arbitration = arbitration(&place);
    let mut client = arbitration.register("a", Base::Background).expect("there is room");
    let shared = arbitration.membership().shared.clone();
    let job = || {
        client.begin_job(Base::Deadline(Instant(1000))).expect("a deadline");
        use_the_gpu(&client);
    };
    assert!(!passes(&shared, job));
    let base = arbitration.snapshot().expect("whole").client(client.id()).map(|client| client.base);
    assert_eq!(base, Some(Base::Deadline(Instant(1000))), "who watches knows");
}

/// Those who contend come back, so that a lock stays with the arbiter while one of them holds it, and no longer.
#[test]
fn who_was_granted_what_it_waited_for_lets_go_by_the_arbiter_once() {
    let place = TestRegistry::new("waited");
    let arbitration = arbitration(&place);
    let shared = arbitration.membership().shared.clone();
    let register = |name, base| arbitration.register(name, base).expect("there is room");
    let (a, b) = (register("a", Base::Background), register("b", Base::Fixed(1)));
    assert!(asks(&a).is_some());
    assert!(asks(&b).is_none());
    a.release(TOKEN, ReplicaId(0));
    assert!(b.granted().is_some());
    assert!(passes(&shared, || b.release(TOKEN, ReplicaId(0))));
    assert!(!passes(&shared, || use_the_gpu(&b)));
}

/// Whom nobody else waits with, for a holder that is as urgent: who is next, and who is how urgent, is no question.
#[test]
fn two_that_are_as_urgent_take_turns_without_the_gate() {
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
        assert!(second.granted().is_none(), "it is told once");
        assert!(asks(first).is_none());
        second.release(TOKEN, ReplicaId(0));
        assert!(first.granted().is_some());
    };
    assert!(!passes(&shared, || turns(&a, &b)));
    let waiting = || arbitration.snapshot().expect("whole").tokens.waiting.len();
    assert!(!passes(&shared, || assert!(asks(&b).is_none())));
    assert_eq!(waiting(), 1, "who watches sees it");
    assert!(passes(&shared, || assert!(asks(&c).is_none())), "who comes first, of two?");
    assert_eq!(waiting(), 2);
    a.release(TOKEN, ReplicaId(0));
    assert!(b.granted().is_some(), "it came first");
    b.release(TOKEN, ReplicaId(0));
    assert!(c.granted().is_some());
    // Who waits with nobody else waits without the arbiter again.
    assert!(passes(&shared, || assert!(asks(&a).is_none())));
    assert!(!passes(&shared, || c.release(TOKEN, ReplicaId(0))));
    assert!(a.granted().is_some());
    assert!(!passes(&shared, || turns(&a, &c)));
}

/// Also for engines, unless somebody else waits for what the one that waits holds.
#[test]
fn who_waits_for_an_engine_passes_the_gate_if_it_may_inherit() {
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
    assert!(!passes(&shared, || assert!(asks_engine(&b).is_none())));
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
    assert!(passes(&shared, || assert!(asks_engine(&a).is_none())), "A is as urgent as C, and so is B");
    hands_engine(&b, &a);
    a.release(engine, ReplicaId(0));
    drop(tokens);
    assert!(c.granted().is_some());
    // Now C waits before anyone wants the engine.
    c.release(TOKEN, ReplicaId(0));
    let tokens = [&a, &b].map(|client| client.token().expect("there are two"));
    assert!(asks(&c).is_none());
    assert!(asks_engine(&a).is_some());
    assert!(passes(&shared, || assert!(asks_engine(&b).is_none())), "B inherits from C");
    hands_engine(&a, &b);
    b.release(engine, ReplicaId(0));
    drop(tokens);
    assert!(c.granted().is_some());
    c.release(TOKEN, ReplicaId(0));
}

/// Whoever passes the gate reads and writes the state: it is to be no longer for those who neither hold nor wait.
#[test]
fn a_state_is_as_long_as_those_are_many_who_contend() {
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
fn a_holder_who_changes_no_follower_does_not_pass_the_gate() {
    let place = TestRegistry::new("followers_threshold");
    let arbitration = arbitration(&place);
    let shared = arbitration.membership().shared.clone();
    let mut client = arbitration.register("a", Base::Background).expect("there is room");
    let follower = arbitration.follow(0, current_thread()).expect("there is room");
    assert!(!passes(&shared, || use_the_gpu(&client)));
    // More urgent than who follows, from this job on.
    if let Err(error) = scheduling::set_fifo(10) {
        return skip(format_args!("no SCHED_FIFO: {error}"));
    }
    let rebased = passes(&shared, || client.rebase(Base::Fixed(10)).expect("it is permitted"));
    assert!(rebased, "others look at how it is scheduled");
    assert!(passes(&shared, || use_the_gpu(&client)));
    // As urgent as the one that follows since now.
    drop(follower);
    scheduling::set_fifo(10).expect("it was permitted");
    let _follower = arbitration.follow(0, current_thread()).expect("there is room");
    assert!(!passes(&shared, || use_the_gpu(&client)));
}
