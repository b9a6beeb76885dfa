//! What threads of any priorities share: a [`PiLock`] with what it guards, and an event to wait for without it.
//!
//! The standard library's mutex knows no priorities: a thread of high priority waits for a holder that one of middle priority keeps
//! from its CPU, for as long as that runs. If that one spins until the first is done, for ever.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, Ordering};

use laxity_model::Instant;

use crate::futex;
use crate::pi_lock::PiLock;

/// A mutex of the threads of this process, whose holder inherits the priorities of its waiters.
#[derive(Default)]
pub struct PiMutex<T> {
    lock: PiLock,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard alone, of which there is one at a time, as its thread has the lock.
unsafe impl<T: Send> Sync for PiMutex<T> {}

/// Unlocks when dropped, on the thread that locked it.
pub struct PiGuard<'a, T> {
    mutex: &'a PiMutex<T>,
    /// Linux knows the holder by its thread.
    not_send: PhantomData<*mut ()>,
}

impl<T> PiMutex<T> {
    /// A mutex that guards `value`.
    pub fn new(value: T) -> Self {
        PiMutex { lock: PiLock::default(), value: UnsafeCell::new(value) }
    }

    /// Waits for it, suspended. A holder that panicked has unlocked it: callers leave no change half done.
    ///
    /// # Panics
    /// If this thread holds it already.
    pub fn lock(&self) -> PiGuard<'_, T> {
        if !self.lock.try_lock() {
            self.lock.lock().unwrap_or_else(|error| panic!("a lock of this process cannot be had: {error}"));
        }
        PiGuard { mutex: self, not_send: PhantomData }
    }
}

impl<T: fmt::Debug> fmt::Debug for PiMutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Another thread may have the value.
        f.debug_struct("PiMutex").field("lock", &self.lock).finish_non_exhaustive()
    }
}

impl<T> Deref for PiGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: this thread has the lock as long as the guard lives.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for PiGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed for as long as the reference.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for PiGuard<'_, T> {
    fn drop(&mut self) {
        self.mutex.lock.unlock().expect("the thread of a guard has its lock");
    }
}

/// Something that happens again and again, for which threads wait without a lock.
#[derive(Debug, Default)]
pub struct Happening {
    count: AtomicU32,
}

impl Happening {
    /// Waits until `is_over`, which is asked again each time that it [happens](Happening::happen).
    pub fn wait_until(&self, mut is_over: impl FnMut() -> bool) {
        loop {
            let before = self.count.load(Ordering::Acquire);
            if is_over() {
                return;
            }
            futex::wait(&self.count, before, Instant::NEVER);
        }
    }

    /// It happened: those that wait look again.
    pub fn happen(&self) {
        self.count.fetch_add(1, Ordering::Release);
        futex::wake_all(&self.count);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    #[test]
    fn one_thread_has_the_value_at_a_time() {
        let sum = PiMutex::new(0u64);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        let mut sum = sum.lock();
                        let before = *sum;
                        thread::yield_now();
                        *sum = before + 1;
                    }
                });
            }
        });
        assert_eq!(*sum.lock(), 4_000);
    }

    #[test]
    fn a_holder_that_panicked_has_unlocked_it() {
        let mutex = Arc::new(PiMutex::new(1));
        let theirs = mutex.clone();
        let ended = thread::spawn(move || {
            let _guard = theirs.lock();
            panic!("as a test");
        });
        ended.join().expect_err("it panicked");
        assert_eq!(*mutex.lock(), 1);
    }

    #[test]
    fn no_event_is_missed() {
        let (event, turn) = (Happening::default(), AtomicU32::new(0));
        thread::scope(|scope| {
            for own in 0..2 {
                let (event, turn) = (&event, &turn);
                scope.spawn(move || {
                    for _ in 0..2_000 {
                        event.wait_until(|| turn.load(Ordering::Acquire) % 2 == own);
                        turn.fetch_add(1, Ordering::AcqRel);
                        event.happen();
                    }
                });
            }
        });
        assert_eq!(turn.into_inner(), 4_000);
    }

    #[test]
    fn nothing_is_waited_for_that_is_over() {
        let is_over = AtomicBool::new(true);
        Happening::default().wait_until(|| is_over.load(Ordering::Relaxed));
    }
}
