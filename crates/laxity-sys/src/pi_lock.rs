//! A lock whose holder inherits the priorities of its waiters: `FUTEX_LOCK_PI`.
//!
//! Linux writes the waiter of the highest priority into the word when the lock is unlocked, and wakes that thread. Until it has run,
//! Linux would give the lock to any thread of a higher priority that asks: even to the one that just unlocked it. So a
//! thread that finds the lock offered to another one waits until that one has taken it.
//!
//! ```text
//!  unlock ---> word: next holder, taken: none ---> next holder runs ---> taken: next holder
//!                    |                                                     |
//!                    '-- requests wait for it at the gate, and lend it ----'
//!                        their priorities
//! ```

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::thread::futex::{Flags, WAITERS, lock_pi, unlock_pi};
use rustix::thread::gettid;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The number of a thread in a word that Linux may have marked.
const THREAD: u32 = 0x3fff_ffff;
const NO_THREAD: u32 = 0;

/// How long a thread waits at the gate before it looks again: the thread that it waits for may have been gone before.
const LOOK_AGAIN_NS: i64 = 1_000_000;

/// A lock of the threads of this process.
///
/// The word holds the thread number of the holder, 0 if there is none. Linux grants it to the waiter of the highest
/// priority, in the order of requests among those of one priority and among those scheduled by `SCHED_OTHER`, and it is handed
/// over when it is unlocked: no thread that requests it later gets it in between. Which thread may use what it guards is up
/// to the caller.
#[derive(Debug, Default)]
pub struct PiLock {
    word: AtomicU32,
    /// The thread of the word, once it knows that it holds the lock.
    taken: AtomicU32,
    /// A lock that a request takes in the name of the thread to which this one is offered, and waits for: its word is the number
    /// of that thread. Linux has that thread inherit, and it unlocks the gate when it has taken the lock.
    gate: AtomicU32,
}

impl PiLock {
    /// Takes the lock if it is free, without a call of Linux but for the number of this thread.
    pub fn try_lock(&self) -> bool {
        let own = this_thread();
        let is_taken = self.word.compare_exchange(NO_THREAD, own, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        if is_taken {
            self.take(own);
        }
        is_taken
    }

    /// Waits for the lock, suspended.
    ///
    /// # Errors
    /// If this thread holds it, or waits in a circle with others (`EDEADLK`), and if the holder ended without unlocking
    /// (`ESRCH`).
    pub fn lock(&self) -> io::Result<()> {
        let own = this_thread();
        loop {
            while let Some(thread) = self.offered().filter(|&thread| thread != own) {
                self.wait_at_gate(own, thread)?;
            }
            match lock_pi(&self.word, Flags::PRIVATE, None) {
                Ok(()) => break,
                // The holder is about to end, or a signal came.
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.take(own);
        Ok(())
    }

    /// Unlocks it; it goes to a waiter, if there is any.
    ///
    /// # Errors
    /// If this thread does not hold it.
    pub fn unlock(&self) -> io::Result<()> {
        let own = this_thread();
        if self.taken.compare_exchange(own, NO_THREAD, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            return Err(Errno::PERM.into());
        }
        if self.word.compare_exchange(own, NO_THREAD, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            unlock_pi(&self.word, Flags::PRIVATE)?;
        }
        // Until the word said another thread, the lock seemed to be offered to this one.
        self.open_gate(own);
        Ok(())
    }

    /// The thread to which the lock is given, and that does not know it yet.
    fn offered(&self) -> Option<u32> {
        let thread = self.word.load(Ordering::SeqCst) & THREAD;
        (thread != NO_THREAD && self.taken.load(Ordering::SeqCst) != thread).then_some(thread)
    }

    /// This thread knows that it holds the lock.
    fn take(&self, own: u32) {
        self.taken.store(own, Ordering::SeqCst);
        self.open_gate(own);
    }

    /// Waits until `thread` has taken the lock, or perhaps less long; `thread` inherits the priority of this one.
    ///
    /// This thread writes the gate before it looks whether the lock is still offered; the other says that it has taken
    /// the lock before it looks at the gate. So at least one of them sees the other.
    fn wait_at_gate(&self, own: u32, thread: u32) -> io::Result<()> {
        let gate = self.gate.load(Ordering::SeqCst);
        // One without a mark concerns no thread that waits in Linux, and may be left over.
        if gate & THREAD != thread && gate & WAITERS == 0 {
            _ = self.gate.compare_exchange(gate, thread, Ordering::SeqCst, Ordering::Relaxed);
        }
        if self.offered() != Some(thread) {
            _ = self.gate.compare_exchange(thread, NO_THREAD, Ordering::SeqCst, Ordering::Relaxed);
            return Ok(());
        }
        match lock_pi(&self.gate, Flags::PRIVATE, Some(&soon())) {
            Ok(()) => self.open_gate(own),
            Err(Errno::AGAIN | Errno::INTR | Errno::TIMEDOUT) => {}
            Err(Errno::SRCH) => {
                // It was left over from a thread that has ended: no other one can wait for that in Linux.
                let gate = self.gate.load(Ordering::SeqCst);
                _ = self.gate.compare_exchange(gate, NO_THREAD, Ordering::SeqCst, Ordering::Relaxed);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// The gate is no longer this thread's, if it was.
    fn open_gate(&self, own: u32) {
        let gate = self.gate.load(Ordering::SeqCst);
        if gate & THREAD != own
            || self.gate.compare_exchange(own, NO_THREAD, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        {
            return;
        }
        // In vain if another thread has written the gate anew meanwhile.
        _ = unlock_pi(&self.gate, Flags::PRIVATE);
    }
}

/// When a wait at the gate ends at the latest, on the clock that `FUTEX_LOCK_PI` goes by.
fn soon() -> Timespec {
    let now = clock_gettime(ClockId::Realtime);
    let nanos = now.tv_nsec + LOOK_AGAIN_NS;
    Timespec { tv_sec: now.tv_sec + nanos / 1_000_000_000, tv_nsec: nanos % 1_000_000_000 }
}

fn this_thread() -> u32 {
    gettid().as_raw_nonzero().get().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use std::thread;

    use super::*;
    use crate::scheduling;

    /// On one CPU: a thread of a higher priority unlocks what one of a lower priority waits for, and asks for it again at once.
    #[test]
    fn a_waiter_has_it_before_a_thread_of_a_higher_priority_that_asks_for_it_again() {
        let cpu = scheduling::usable_cpus().expect("this thread has some")[0];
        let (lock, order) = (&PiLock::default(), &AtomicU32::new(0));
        let place = in_order(order);
        let at = |priority| scheduling::pin(cpu).and_then(|()| scheduling::set_fifo(priority));
        let (high, low) = thread::scope(|scope| {
            let high = scope.spawn(move || {
                at(2)?;
                assert!(lock.try_lock());
                let low = scope.spawn(move || {
                    at(1)?;
                    lock.lock()?;
                    let place = place();
                    lock.unlock().map(|()| place)
                });
                while lock.word.load(Ordering::SeqCst) & WAITERS == 0 && !low.is_finished() {
                    thread::sleep(std::time::Duration::from_micros(200));
                }
                lock.unlock()?;
                if !lock.try_lock() {
                    lock.lock()?;
                }
                let high = place();
                lock.unlock()?;
                io::Result::Ok((high, low.join().expect("no panic")?))
            });
            match high.join().expect("no panic") {
                Ok(places) => places,
                Err(error) => {
                    laxity_testing::skip(format_args!("no SCHED_FIFO: {error}"));
                    (1, 0)
                }
            }
        });
        assert!(low < high, "the waiter was number {low}, and the thread that asked again number {high}");
        assert_eq!(lock.gate.load(Ordering::SeqCst), NO_THREAD);
    }

    /// Answers how many asked before.
    fn in_order(order: &AtomicU32) -> impl Fn() -> u32 + Copy + Send {
        move || order.fetch_add(1, Ordering::SeqCst)
    }

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
