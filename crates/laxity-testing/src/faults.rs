//! Scenarios that are repeated once for each system call and each error that Linux documents for it.

use std::fs;
use std::io;

use laxity_sys::fault::{self, Call};

use crate::until;

/// A call that failed in a scenario, and with which error.
#[derive(Clone, Copy, Debug)]
pub struct Failed {
    /// The call.
    pub call: Call,
    /// The error's number.
    pub error: i32,
}

/// Carries out `scenario` again and again: as it is, and then with each of its system calls failing in turn, with every
/// error that Linux documents for it. After each run `check` is called with a description of the failed call.
///
/// An error of the scenario must name what failed: with Linux's words for the error, or with one of the words that
/// `meanings` has for its number. No descriptor may be left.
///
/// Returns how many calls failed.
pub fn each_call_fails(
    name: &str,
    scenario: impl Fn() -> Result<(), String>,
    meanings: &[(i32, &str)],
    mut check: impl FnMut(Failed, &str),
) -> u32 {
    let (result, calls) = fault::record(&scenario);
    result.expect("nothing fails yet");
    let open = descriptors();
    let mut injected = 0;
    for call in calls {
        for &error in fault::errors_of(call.name) {
            let words = io::Error::from_raw_os_error(error).to_string();
            let what = format!("{name}: {call:?} fails: {words}");
            let (result, was_injected) = fault::fail(call, error, &scenario);
            injected += u32::from(was_injected);
            if let Err(text) = result {
                let means = |&(number, meaning): &(i32, &str)| number == error && text.contains(meaning);
                let tells = text.contains(&words) || meanings.iter().any(means);
                assert!(was_injected && tells, "{what}, and the error is: {text}");
            }
            // Threads that end close theirs a moment later.
            until(&format!("{what}: no descriptor is left"), || descriptors() == open);
            check(Failed { call, error }, &what);
        }
    }
    injected
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("readable").count()
}
