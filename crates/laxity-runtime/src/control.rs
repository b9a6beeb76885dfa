//! How a worker is told to stop, or to look again, whatever it is doing.

use std::sync::atomic::{AtomicU32, Ordering};

use laxity_model::{Instant, Nanos};
use laxity_sys::{clock, futex};

/// Shared by a worker and who looks after it.
#[derive(Debug, Default)]
pub struct Control {
    /// Changes when there is news; workers sleep on it.
    news: AtomicU32,
    /// Not 0 when the worker is to end in the middle of its job.
    stopped: AtomicU32,
}

impl Control {
    /// Ends the worker at once.
    pub fn stop(&self) {
        self.stopped.store(1, Ordering::Relaxed);
        self.ring();
    }

    /// Whether it is to end at once.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) != 0
    }

    /// Makes the worker look whether it may still sleep.
    pub fn ring(&self) {
        self.news.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(&self.news);
    }

    /// Sleeps for `span`. Answers whether that was over before it was stopped.
    pub fn suspend_for(&self, span: Nanos) -> bool {
        self.suspend_until(clock::now().saturating_add(span), || true)
    }

    /// Sleeps until `instant` as long as `may_sleep`, which is asked again when it rings. Answers whether it came.
    pub fn suspend_until(&self, instant: Instant, may_sleep: impl Fn() -> bool) -> bool {
        loop {
            // Read before looking: whoever rings in between ends the wait.
            let seen = self.news.load(Ordering::SeqCst);
            if self.is_stopped() || !may_sleep() {
                return false;
            }
            if futex::wait(&self.news, seen, instant) == futex::Ended::TimedOut {
                return true;
            }
        }
    }
}
