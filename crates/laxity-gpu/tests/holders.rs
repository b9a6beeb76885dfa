//! A process that watches holders hears of each change, however the token is taken, and sees what Linux says they have.
//! Threads get fixed priorities, so this user must be allowed `SCHED_FIFO`.

mod support;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, Scope};

use laxity_gpu::{Arbitration, Base, Config, HolderWatch, Inheritance};
use laxity_model::{GpuArbitration, GpuSync, Instant, Nanos};
use laxity_sys::{clock, scheduling};
use laxity_testing::skip;
use support::Place;

/// A change is heard of at once, so this is only for a test that fails.
const LONG: Nanos = Nanos::from_millis(20_000);

/// The GPU and the priority of each holder, as soon as they are these.
fn until_held(watch: &mut HolderWatch, wanted: &[(u16, Option<u8>)]) {
    let end = Instant(clock::now().0 + LONG.0);
    loop {
        let holders = watch.holders().expect("whole");
        let seen: Vec<_> = holders.iter().map(|holder| (holder.gpu, holder.priority)).collect();
        if seen == wanted {
            return;
        }
        watch.wait(end);
        assert!(clock::now() < end, "{seen:?}, and no word of what was to come: {wanted:?}");
    }
}

/// A thread of this priority that takes a token of a GPU and gives it back, told to before each.
fn holder<'scope>(
    scope: &'scope Scope<'scope, '_>,
    arbitration: &'scope Arbitration,
    priority: u8,
    gpu: u16,
) -> Sender<()> {
    let (tell, told): (Sender<()>, Receiver<()>) = channel();
    scope.spawn(move || {
        scheduling::set_fifo(priority).expect("it is permitted");
        let base = Base::Fixed(priority);
        let client = arbitration.register(&format!("holder {priority}"), base).expect("there is room");
        while told.recv().is_ok() {
            let token = client.token_of(gpu).expect("granted some day");
            let _ = told.recv();
            drop(token);
        }
    });
    tell
}

fn each_change_is_seen(tokens: u32) {
    let place = Place::new(&format!("holders_{tokens}"));
    let sync = GpuSync { tokens, ..GpuSync::DEFAULT };
    let config = Config { arbitration: GpuArbitration::GpuSync(sync), ..Config::new(4, 2) };
    let arbitration = place.create("g", &config).expect("the name is free");
    if arbitration.inheritance() != Inheritance::Real {
        return skip(arbitration.inheritance());
    }
    let arbitration = &arbitration;
    let mut watch = arbitration.watch_holders();
    let tell = |thread: &Sender<()>| thread.send(()).expect("it lives");
    thread::scope(|scope| {
        let (low, other, high) =
            (holder(scope, arbitration, 10, 1), holder(scope, arbitration, 20, 0), holder(scope, arbitration, 30, 1));
        until_held(&mut watch, &[]);
        tell(&low);
        until_held(&mut watch, &[(1, Some(10))]);
        tell(&other);
        until_held(&mut watch, &[(0, Some(20)), (1, Some(10))]);
        tell(&high);
        match tokens {
            1 => {
                // It waits for the one that GPU 1 has, and its holder inherits.
                until_held(&mut watch, &[(0, Some(20)), (1, Some(30))]);
                tell(&low);
                until_held(&mut watch, &[(0, Some(20)), (1, Some(30))]);
            }
            _ => {
                let end = Instant(clock::now().0 + LONG.0);
                while watch.holders().expect("whole").len() < 3 {
                    watch.wait(end);
                    assert!(clock::now() < end, "no word of the second holder of GPU 1");
                }
                tell(&low);
            }
        }
        tell(&other);
        until_held(&mut watch, &[(1, Some(30))]);
        tell(&high);
        until_held(&mut watch, &[]);
        // Senders end, and with them the threads.
    });
}

#[test]
fn each_change_of_the_only_token_of_a_gpu_is_seen() {
    each_change_is_seen(1);
}

#[test]
fn each_change_of_two_tokens_of_a_gpu_is_seen() {
    each_change_is_seen(2);
}

/// A wait that is not told lasts as long as it may: so one that ends early in the tests above was told.
#[test]
fn nothing_ends_a_wait_while_nothing_changes() {
    let place = Place::new("quiet");
    let arbitration = place.create("g", &Config::new(4, 2)).expect("the name is free");
    let mut watch = arbitration.watch_holders();
    assert_eq!(watch.holders().expect("whole"), []);
    let (before, until) = (clock::now(), Instant(clock::now().0 + Nanos::from_millis(30).0));
    watch.wait(until);
    assert!(clock::now() >= until, "it ended after {}", clock::now() - before);
}
