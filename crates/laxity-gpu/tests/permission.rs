//! Where Linux does not let a thread raise others, snapshots name the threads that were not raised, and the order of
//! grants is kept.

mod support;

use std::sync::mpsc::{Receiver, channel};
use std::thread;

use caps::{CapSet, Capability};
use laxity_gpu::{Arbitration, Base, Client, Config, Inheritance};
use laxity_sys::scheduling::{self, Attributes};
use laxity_testing::{skip, until};
use support::Place;

const PRIORITY: u8 = 30;
/// The error of Linux for a change that is not permitted (EPERM).
const NOT_PERMITTED: i32 = 1;

/// An arbitration, if threads may be raised here, and if that depends on nothing but a capability.
fn arbitration(place: &Place) -> Option<Arbitration> {
    let arbitration = place.create("g", &Config::new(2, 1)).expect("the name is free");
    if arbitration.inheritance() == Inheritance::OrderOnly || scheduling::fifo_limit() > 0 {
        let (inheritance, limit) = (arbitration.inheritance(), scheduling::fifo_limit());
        skip(format_args!("needs CAP_SYS_NICE and no limit of priorities: {inheritance}; limit {limit}"));
        return None;
    }
    Some(arbitration)
}

/// Registers the calling thread, which is urgent and may change no priority from now on.
fn powerless(arbitration: &Arbitration) -> Client {
    scheduling::set_fifo(PRIORITY).expect("it is permitted");
    let client = arbitration.register("powerless", Base::Fixed(PRIORITY)).expect("there is room");
    caps::drop(None, CapSet::Effective, Capability::CAP_SYS_NICE).expect("a thread may give a capability up");
    client
}

/// Takes the token without power over others, and lets go of it when told.
fn take(arbitration: &Arbitration, told: &Receiver<()>) {
    let client = powerless(arbitration);
    let _token = client.token().expect("granted some day");
    let _ = told.recv();
}

#[test]
fn a_holder_that_may_not_be_raised_is_named() {
    let place = Place::new("holder");
    let Some(arbitration) = arbitration(&place) else { return };
    let arbitration = &arbitration;
    let (keep_waiting, told) = channel();
    thread::scope(|scope| {
        let holder = arbitration.register("holder", Base::Background).expect("there is room");
        let token = holder.token().expect("it is free");
        let waiter = scope.spawn(move || take(arbitration, &told));
        let snapshot = || arbitration.snapshot().expect("whole");
        until("the waiter waits", || !snapshot().tokens.waiting.is_empty());
        let told_of = snapshot();
        let told_of_holder = told_of.client(holder.id()).expect("it is registered");
        assert_eq!(told_of_holder.effective, Base::Fixed(PRIORITY), "what it should have");
        assert_eq!(told_of_holder.refused, Some(NOT_PERMITTED));
        let text = told_of.to_string();
        assert!(text.contains("inherits 30 from powerless, which Linux refused: Operation not permitted"), "{text}");
        let has = Attributes::of(scheduling::current_thread()).expect("it lives");
        assert_eq!(has.fixed_priority(), None, "what it has");
        drop(token);
        until("the waiter is granted", || snapshot().tokens.waiting.is_empty());
        keep_waiting.send(()).expect("it waits for this");
        waiter.join().expect("no panic");
    });
}

#[test]
fn a_follower_that_may_not_be_raised_is_told() {
    let place = Place::new("follower");
    let Some(arbitration) = arbitration(&place) else { return };
    let arbitration = &arbitration;
    let (keep_waiting, told) = channel();
    thread::scope(|scope| {
        let follower = arbitration.follow(0, scheduling::current_thread()).expect("there is room");
        assert!(follower.refused().is_none(), "no thread holds");
        scope.spawn(move || take(arbitration, &told));
        until("it is refused", || follower.refused().and_then(|error| error.raw_os_error()) == Some(NOT_PERMITTED));
        let text = arbitration.snapshot().expect("whole").to_string();
        assert!(text.contains("no fixed priority, another was refused by Linux: Operation not permitted"), "{text}");
        keep_waiting.send(()).expect("it waits for this");
    });
}
