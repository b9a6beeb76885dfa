//! Who passes the gate, and who need not. A thread ends at the gate: the next one to pass finds that, once.

use std::sync::atomic::Ordering;
use std::thread;

use laxity_model::{Instant, ReplicaId};
use laxity_sys::scheduling::{self, current_thread};
use laxity_testing::Place;

use crate::client::{Ask, What};
use crate::config::TOKEN;
use crate::shared::Shared;
use crate::{Arbitration, Base, Client, Config, Registry};

/// One GPU with one token.
fn arbitration(place: &Place<Registry>) -> Arbitration {
    place.create("g", &Config::new(2, 1)).expect("the name is free")
}

/// Says whether anyone passed the gate while `act` did what it does.
fn passes(shared: &Shared, act: impl FnOnce()) -> bool {
    thread::scope(|scope| {
        let death = scope.spawn(|| shared.enter().expect("whole").die());
        death.join().expect("no panic");
    });
    act();
    !shared.gate().lock().expect("it is not ours").is_inherited
}

fn use_the_gpu(client: &Client) {
    let token = client.token().expect("nobody else wants it");
    drop(token.execute_engine().expect("nobody else wants it"));
}

#[test]
fn a_job_for_whose_locks_nobody_waits_does_not_pass_the_gate() {
    let place = Place::new("jobs");
    let arbitration = arbitration(&place);
    let mut client = arbitration.register("a", Base::Background).expect("there is room");
    let shared = arbitration.membership().shared.clone();
    let job = || {
        client.rebase(Base::Deadline(Instant(1000))).expect("how Linux schedules it stays the same");
        use_the_gpu(&client);
    };
    assert!(!passes(&shared, job));
    let base = arbitration.snapshot().expect("whole").client(client.id()).map(|client| client.base);
    assert_eq!(base, Some(Base::Deadline(Instant(1000))), "who watches knows");
}

/// Those who contend come back, so that a lock stays with the arbiter while one of them holds it, and no longer.
#[test]
fn who_was_granted_what_it_waited_for_lets_go_by_the_arbiter_once() {
    let place = Place::new("waited");
    let arbitration = arbitration(&place);
    let shared = arbitration.membership().shared.clone();
    let register = |name| arbitration.register(name, Base::Background).expect("there is room");
    let (a, b) = (register("a"), register("b"));
    let any = What::Token { gpu: None };
    assert!(a.ask(TOKEN, Ask::default(), any).expect("whole").is_some());
    assert!(b.ask(TOKEN, Ask::default(), any).expect("whole").is_none());
    a.release(TOKEN, ReplicaId(0));
    assert!(b.granted().is_some());
    assert!(passes(&shared, || b.release(TOKEN, ReplicaId(0))));
    assert!(!passes(&shared, || use_the_gpu(&b)));
}

/// Whoever passes the gate reads and writes the state: it is to be no longer for those who neither hold nor wait.
#[test]
fn a_state_is_as_long_as_those_are_many_who_contend() {
    let place = Place::new("idle");
    let arbitration = arbitration(&place);
    let shared = arbitration.membership().shared.clone();
    let length = || {
        let copy = shared.layout.copy(shared.version().load(Ordering::Relaxed));
        shared.segment.u64(copy).load(Ordering::Relaxed)
    };
    let register = || arbitration.register("a", Base::Background).expect("there is room");
    let first = register();
    let of_one = length();
    let others: Vec<Client> = (0..40).map(|_| register()).collect();
    assert_eq!(length(), of_one);
    let any = What::Token { gpu: None };
    assert!(first.ask(TOKEN, Ask::default(), any).expect("whole").is_some());
    assert!(others[0].ask(TOKEN, Ask::default(), any).expect("whole").is_none());
    assert!(length() > of_one);
    first.release(TOKEN, ReplicaId(0));
    assert!(others[0].granted().is_some());
    others[0].release(TOKEN, ReplicaId(0));
    assert_eq!(length(), of_one);
}

/// Under `SCHED_OTHER` a holder has nothing to lend.
#[test]
fn a_holder_who_changes_no_follower_does_not_pass_the_gate() {
    let place = Place::new("unmoved");
    let arbitration = arbitration(&place);
    let shared = arbitration.membership().shared.clone();
    let mut client = arbitration.register("a", Base::Background).expect("there is room");
    let follower = arbitration.follow(0, current_thread()).expect("there is room");
    assert!(!passes(&shared, || use_the_gpu(&client)));
    // More urgent than who follows, from this job on.
    if let Err(error) = scheduling::set_fifo(10) {
        eprintln!("skipped: no SCHED_FIFO: {error}");
        return;
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
