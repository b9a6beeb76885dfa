//! When threads may go on: together at the start, and until the end.

use std::sync::atomic::{AtomicU32, Ordering};

use laxity_model::Instant;
use laxity_sys::futex;

/// Shared by the threads of a graph and who spawned it.
#[derive(Debug, Default)]
pub(crate) struct Control {
    /// One of those below; it never goes back.
    stage: AtomicU32,
}

/// Threads get ready.
const PREPARING: u32 = 0;
/// Frames are released.
const RUNNING: u32 = 1;
/// No more frames are released.
const ENDING: u32 = 2;

impl Control {
    /// All threads are ready.
    pub fn run(&self) {
        // If it was ended meanwhile, it stays so.
        let _ = self.stage.compare_exchange(PREPARING, RUNNING, Ordering::SeqCst, Ordering::SeqCst);
        futex::wake_all(&self.stage);
    }

    /// No more frames are released.
    pub fn end(&self) {
        self.stage.store(ENDING, Ordering::SeqCst);
        futex::wake_all(&self.stage);
    }

    /// Waits until all threads are ready.
    pub fn wait_for_start(&self) {
        while self.stage.load(Ordering::SeqCst) == PREPARING {
            futex::wait(&self.stage, PREPARING, Instant::NEVER);
        }
    }

    /// Sleeps until `release`. Answers whether there is to be a frame.
    pub fn sleep_until(&self, release: Instant) -> bool {
        while self.stage.load(Ordering::SeqCst) == RUNNING {
            if futex::wait(&self.stage, RUNNING, release) == futex::Ended::TimedOut {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ended_before_it_runs_never_runs() {
        let control = Control::default();
        control.end();
        control.run();
        control.wait_for_start();
        assert!(!control.sleep_until(Instant::ZERO));
    }

    #[test]
    fn a_release_that_is_over_is_no_wait() {
        let control = Control::default();
        control.run();
        assert!(control.sleep_until(Instant::ZERO));
    }
}
