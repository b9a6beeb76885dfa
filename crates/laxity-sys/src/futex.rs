//! Waiting until a word of memory, which processes may share, is no longer what it was.

use std::io;
use std::sync::atomic::AtomicU32;

use laxity_model::Instant;
use rustix::io::Errno;
use rustix::thread::ClockId;
use rustix::thread::futex::{self, Flags, Wait, WaitFlags, WaitPtr, WaitvFlags};

use crate::clock::timespec;
use crate::fault;

/// The most words that [`wait_any`] takes: `FUTEX_WAITV_MAX`.
pub const WORDS_MAX: usize = 128;

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By a wake-up, because the word was already different, by a signal, or for no reason: look again.
    LookAgain,
    /// The deadline passed.
    TimedOut,
}

/// Suspends the thread while `word` is `expected`, until [`wake_one`] or `deadline` (of the clock of
/// [`now`](crate::clock::now); [`Instant::NEVER`] to wait for ever).
///
/// May end early, also by a signal: callers check what they wait for in a loop, and as the deadline is absolute no
/// number of signals prolongs the wait.
///
/// Inlined, and so are the callers that hand tokens over: on some machines every return to a function that was called
/// before the system call is slow, by hundreds of nanoseconds, as what was predicted of it is gone.
#[inline(always)]
pub fn wait(word: &AtomicU32, expected: u32, deadline: Instant) -> Ended {
    let all = std::num::NonZeroU32::MAX;
    match futex::wait_bitset(word, Flags::empty(), expected, timespec(deadline).as_ref(), all) {
        Err(Errno::TIMEDOUT) => Ended::TimedOut,
        Ok(()) | Err(Errno::AGAIN | Errno::INTR) => Ended::LookAgain,
        Err(error) => unreachable!("a futex wait on an aligned, mapped word failed: {error}"),
    }
}

/// Suspends the thread while every one of `words` has the value next to it; otherwise as [`wait`].
///
/// # Errors
/// If Linux does not offer this, being older than 5.16 or told by a filter of system calls to refuse. Takes at most
/// [`WORDS_MAX`] words.
pub fn wait_any(words: &[(&AtomicU32, u32)], deadline: Instant) -> io::Result<Ended> {
    assert!(words.len() <= WORDS_MAX, "the caller keeps within what Linux takes");
    let waits: Vec<Wait> = words
        .iter()
        .map(|&(word, expected)| {
            let mut wait = Wait::new();
            wait.val = expected.into();
            wait.uaddr = WaitPtr::new(word.as_ptr().cast());
            wait.flags = WaitFlags::SIZE_U32;
            wait
        })
        .collect();
    let wait = || futex::waitv(&waits, WaitvFlags::empty(), timespec(deadline).as_ref(), ClockId::Monotonic);
    match fault::point("futex_waitv").and_then(|()| wait()) {
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(Ended::LookAgain),
        Err(Errno::TIMEDOUT) => Ok(Ended::TimedOut),
        Err(error) => Err(error.into()),
    }
}

/// Wakes one thread that waits on `word`, if any.
#[inline(always)]
pub fn wake_one(word: &AtomicU32) {
    wake(word, 1);
}

/// Wakes all threads that wait on `word`.
#[inline(always)]
pub fn wake_all(word: &AtomicU32) {
    wake(word, i32::MAX as u32);
}

#[inline(always)]
fn wake(word: &AtomicU32, count: u32) {
    if let Err(error) = futex::wake(word, Flags::empty(), count) {
        unreachable!("a futex wake on an aligned, mapped word failed: {error}");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::thread;

    use laxity_model::Nanos;

    use super::*;
    use crate::clock::now;

    #[test]
    fn a_wait_ends_no_earlier_than_its_deadline() {
        let word = AtomicU32::new(7);
        let deadline = now().saturating_add(Nanos::from_millis(5));
        while wait(&word, 7, deadline) != Ended::TimedOut {}
        assert!(now() >= deadline);
    }

    #[test]
    fn a_wait_for_a_word_that_has_changed_does_not_suspend() {
        let word = AtomicU32::new(8);
        assert_eq!(wait(&word, 7, Instant::NEVER), Ended::LookAgain);
    }

    #[test]
    fn any_of_several_words_wakes() {
        let words = [AtomicU32::new(0), AtomicU32::new(0)];
        thread::scope(|scope| {
            scope.spawn(|| {
                words[1].store(1, Ordering::SeqCst);
                wake_one(&words[1]);
            });
            while words[1].load(Ordering::SeqCst) == 0 {
                let both = [(&words[0], 0), (&words[1], 0)];
                if wait_any(&both, Instant::NEVER).is_err() {
                    return laxity_testing::skip("no futex_waitv");
                }
            }
        });
    }
}
