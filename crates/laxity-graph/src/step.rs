//! The points at which a simulation of whole graphs interleaves threads and kills them. Nothing without tests.

use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::Duration;

use laxity_model::{Instant, Nanos};
use laxity_sys::clock;
use laxity_sys::futex::{self, Ended};
#[cfg(test)]
use laxity_testing::simulation;

/// Another thread may come here, and this one may be killed.
#[inline(always)]
pub(crate) fn point() {
    #[cfg(test)]
    simulation::point();
}

/// The time.
#[inline(always)]
pub(crate) fn now() -> Instant {
    #[cfg(test)]
    if let Some(now) = simulation::now() {
        return now;
    }
    clock::now()
}

/// Sleeps on the word of `node` while it is `seen`, until a wake-up or `until`.
#[inline(always)]
pub(crate) fn sleep(node: usize, word: &AtomicU32, seen: u32, until: Instant) -> Ended {
    #[cfg(test)]
    if let Some(ended) = simulation::sleep(node as u64, word, seen, until) {
        return ended;
    }
    let _ = node;
    futex::wait(word, seen, until)
}

/// Wakes the threads that sleep on the word of `node`.
#[inline(always)]
pub(crate) fn wake(node: usize, word: &AtomicU32) {
    #[cfg(test)]
    if simulation::is_simulated() {
        simulation::point();
        return simulation::wake(node as u64, usize::MAX);
    }
    let _ = node;
    // All: a thread of a killed process may still be queued, and would swallow a single wake-up.
    futex::wake_all(word);
}

/// Sleeps for `span`.
pub(crate) fn pause(span: Nanos) {
    #[cfg(test)]
    if let Some(now) = simulation::now() {
        simulation::rest(u64::MAX, now.saturating_add(span));
        return;
    }
    thread::sleep(Duration::from_nanos(span.0));
}
