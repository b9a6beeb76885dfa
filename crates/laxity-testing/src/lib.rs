//! What tests of live crates share: directories in shared memory that go with them, processes that they start and kill,
//! waiting without a bound that a busy machine could exceed, and chance that can be repeated.
//!
//! Only for tests: what is wrong is a panic.
#![forbid(unsafe_code)]

mod calm;
mod chance;
mod directory;
#[cfg(debug_assertions)]
mod faults;
#[cfg(debug_assertions)]
mod misbehaviour;
mod process;
#[cfg(debug_assertions)]
pub mod schedules;
#[cfg(debug_assertions)]
pub mod simulation;
mod skipped;

use std::thread;
use std::time::Duration;

use laxity_model::{Instant, Nanos};
use laxity_sys::clock::now;

pub use calm::{CalmMeter, Disturbance, Late, on_a_calm_machine};
pub use chance::Random;
pub use directory::{Alone, Directory, TestRegistry};
#[cfg(debug_assertions)]
pub use faults::{Failed, each_call_fails};
#[cfg(debug_assertions)]
pub use misbehaviour::{Misbehaviour, NOTES};
pub use process::{Process, role};
pub use skipped::skip;

/// Long enough for any machine: reached only by what hangs.
pub const HANG: Nanos = Nanos::from_secs(60);

/// When to give up.
pub fn soon() -> Instant {
    now().saturating_add(HANG)
}

/// Waits until `is_so`; panics, naming `what`, if that is not so before one has to give up.
pub fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = soon();
    while !is_so() {
        assert!(now() < deadline, "waited too long until {what}");
        thread::sleep(Duration::from_micros(200));
    }
}
