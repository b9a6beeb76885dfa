//! How a worker is told to stop, whatever it is doing.

use std::sync::atomic::{AtomicU32, Ordering};

use laxity_model::{Instant, Nanos};
use laxity_sys::{clock, futex};

/// Shared by a worker and who looks after it.
#[derive(Debug, Default)]
pub struct Control {
    /// Not 0 when the worker is to end in the middle of its job; it sleeps on it.
    stopped: AtomicU32,
}

impl Control {
    /// Ends the worker at once.
    pub fn stop(&self) {
        self.stopped.store(1, Ordering::SeqCst);
        futex::wake_all(&self.stopped);
    }

    /// Whether it is to end at once.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) != 0
    }

    /// Sleeps for `span`. Answers whether that was over before it was stopped.
    pub fn suspend_for(&self, span: Nanos) -> bool {
        self.suspend_until(clock::now().saturating_add(span))
    }

    /// Sleeps until `instant`. Answers whether that came before it was stopped.
    pub fn suspend_until(&self, instant: Instant) -> bool {
        while !self.is_stopped() {
            if futex::wait(&self.stopped, 0, instant) == futex::Ended::TimedOut {
                return true;
            }
        }
        false
    }
}
