//! A word on which processes sleep until a thread changes something that they look at, and which costs that thread a load while
//! none sleeps.

use std::sync::atomic::Ordering;

use laxity_model::Instant;
use laxity_sys::futex;

use crate::layout::SleeperWords;
use crate::memory::Memory;

impl Memory {
    /// Something changed: a process that sleeps looks again.
    #[inline]
    pub fn wake_if_asleep(&self, words: &SleeperWords) {
        // Sequentially consistent with `expect_change`: this thread sees the sleeper, or the sleeper what it changed.
        if self.segment.u32(words.sleepers).load(Ordering::SeqCst) != 0 {
            self.wake_sleepers(words);
        }
    }

    /// Has all that sleep look again.
    #[cold]
    pub fn wake_sleepers(&self, words: &SleeperWords) {
        // A sleeper that is killed leaves the flag: one needless system call, and it is gone.
        self.segment.u32(words.sleepers).store(0, Ordering::SeqCst);
        let event = self.segment.u32(words.event);
        event.fetch_add(1, Ordering::SeqCst);
        futex::wake_all(event);
    }

    /// From now on a thread that changes something wakes. Answers what [`Memory::sleep`] compares with.
    pub fn expect_change(&self, words: &SleeperWords) -> u32 {
        let seen = self.segment.u32(words.event).load(Ordering::SeqCst);
        self.segment.u32(words.sleepers).store(1, Ordering::SeqCst);
        seen
    }

    /// Suspends this thread, unless something changed since `seen` was answered; until then at most.
    pub fn sleep(&self, words: &SleeperWords, seen: u32, until: Instant) {
        futex::wait(self.segment.u32(words.event), seen, until);
    }
}
