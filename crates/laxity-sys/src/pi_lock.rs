//! A lock whose holder inherits the priorities of its waiters: `FUTEX_LOCK_PI`.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex::{Flags, lock_pi, unlock_pi};
use rustix::thread::gettid;

/// A lock of the threads of this process.
///
/// The word holds the thread number of the holder, 0 if there is none. Linux grants it to the waiter of the highest
/// priority, in the order of requests among those of one priority and among those scheduled by `SCHED_OTHER`, and hands
/// it over when it is unlocked: no other thread gets it in between. Which thread may use what it guards is up to the caller.
#[derive(Debug, Default)]
pub struct PiLock {
    word: AtomicU32,
}

impl PiLock {
    /// Takes the lock if it is free, without a call of Linux but for the number of this thread.
    pub fn try_lock(&self) -> bool {
        self.word.compare_exchange(0, this_thread(), Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Waits for the lock, suspended.
    ///
    /// # Errors
    /// If this thread holds it, or waits in a circle with others (`EDEADLK`), and if the holder ended without unlocking
    /// (`ESRCH`).
    pub fn lock(&self) -> io::Result<()> {
        loop {
            match lock_pi(&self.word, Flags::PRIVATE, None) {
                Ok(()) => return Ok(()),
                // The holder is about to end, or a signal came.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Unlocks it; it goes to a waiter, if there is any.
    ///
    /// # Errors
    /// If this thread does not hold it.
    pub fn unlock(&self) -> io::Result<()> {
        if self.word.compare_exchange(this_thread(), 0, Ordering::Release, Ordering::Relaxed).is_ok() {
            return Ok(());
        }
        Ok(unlock_pi(&self.word, Flags::PRIVATE)?)
    }
}

fn this_thread() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use std::thread;

    use super::*;

    #[test]
    fn one_thread_holds_it_at_a_time() {
        let (lock, inside, count) = (PiLock::default(), AtomicBool::new(false), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        if !lock.try_lock() {
                            lock.lock().expect("no circle");
                        }
                        assert!(!inside.swap(true, Ordering::Relaxed), "two hold it");
                        thread::yield_now();
                        inside.store(false, Ordering::Relaxed);
                        count.fetch_add(1, Ordering::Relaxed);
                        lock.unlock().expect("held");
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 2_000);
    }

    #[test]
    fn a_holder_cannot_wait_for_it_and_another_thread_cannot_unlock_it() {
        let lock = PiLock::default();
        assert!(lock.unlock().is_err());
        assert!(lock.try_lock());
        assert_eq!(lock.lock().expect_err("a circle of one").kind(), io::ErrorKind::Deadlock);
        lock.unlock().expect("held");
    }
}
