//! Every system call fails, with every error that Linux documents for it, at every occurrence in turn, while a process
//! creates or attaches to an arbitration, registers, waits for the token and leaves. After each: the process that holds
//! the token holds it alone, no lock is held, no descriptor or file is left, and an error says what failed.
//!
//! The other process is this test program, started again for the test `child`.
#![cfg(debug_assertions)]

mod support;

use std::fs;
use std::path::Path;
use std::thread;

use laxity_gpu::{Base, Config, Registry};
use laxity_model::Nanos;
use laxity_testing::{Process, each_call_fails, role, until};
use support::Place;

/// Not a test by itself: a process that holds the only token.
#[test]
fn child() {
    let Some((_, directory)) = role() else { return };
    let arbitration = Registry::at(directory).create("g", &config()).expect("the name is free");
    let client = arbitration.register("holder", Base::Background).expect("there is room");
    let _token = client.token().expect("it is free");
    loop {
        thread::park();
    }
}

fn config() -> Config {
    Config::new(3, 1)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Waits for the token of the other process, in vain.
fn attach(registry: &Registry) -> Result<(), String> {
    let arbitration = registry.create_or_attach("g", &config()).map_err(text)?;
    let client = arbitration.register("waiter", Base::Background).map_err(text)?;
    match client.token_for(Nanos::from_micros(100)).map(drop) {
        Err(laxity_gpu::LockError::TimedOut { .. }) => Ok(()),
        Err(error) => Err(text(error)),
        Ok(()) => panic!("two processes hold the only token"),
    }
}

/// An arbitration of its own.
fn create(registry: &Registry) -> Result<(), String> {
    let arbitration = registry.create("h", &config()).map_err(text)?;
    let client = arbitration.register("alone", Base::Background).map_err(text)?;
    client.token().map(drop).map_err(text)
}

/// What an error says instead of Linux's words for it.
const MEANINGS: &[(i32, &str)] = &[
    (libc::ENOENT, "does not exist"),
    (libc::EEXIST, "exists"),
    (libc::ENOSPC, "needs"),
    (libc::EFBIG, "needs"),
    (libc::EDQUOT, "needs"),
];

/// What the first member's slot says: 64 bytes after the header and the epoch.
fn first_slot(place: &Place) -> Vec<u8> {
    fs::read(AsRef::<Path>::as_ref(place).join("laxity-gpu.g")).expect("it is there")[128..192].to_vec()
}

fn holders(place: &Place) -> Vec<String> {
    let snapshot = place.look("g").expect("whole");
    let holders = snapshot.tokens.holders.iter().flatten();
    holders.filter_map(|&holder| Some(snapshot.client(holder)?.name.clone())).collect()
}

#[test]
fn a_system_call_that_fails_takes_no_token_from_its_holder() {
    let place = Place::new("faults");
    let _process = Process::start(&place, "hold");
    until("the other process has the token", || place.look("g").is_ok() && holders(&place) == ["holder"]);
    type Scenario = fn(&Registry) -> Result<(), String>;
    let mut injected = 0;
    for (name, scenario) in [("attach", attach as Scenario), ("create", create)] {
        let (slot, files) = (first_slot(&place), place.files());
        injected += each_call_fails(
            name,
            || scenario(&place),
            MEANINGS,
            |failed, what| {
                assert_eq!(first_slot(&place), slot, "{what}: another member was touched");
                assert_eq!(holders(&place), ["holder"], "{what}");
                // Takes the lock of the memory.
                drop(place.attach("g").unwrap_or_else(|error| panic!("{what}, and then: {error}")));
                if ["unlink", "flock"].contains(&failed.call.name) {
                    place.gc().expect("readable");
                }
                assert_eq!(place.files(), files, "{what}");
            },
        );
    }
    println!("{injected} calls failed");
    assert!(injected > 50, "{injected}");
}
