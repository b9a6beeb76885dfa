//! How a node waits, and how its peers wake it. Many wakers, one waiter, one word; no lock.
//!
//! ```text
//!                look: not yet             look again: not yet
//! (RUNNING) ----------------> (PARKED) -------------------------> suspended
//!     ^                          |                                    |
//!     +--------------------------+------------------------------------+
//!          look again: ready         wake_if: ready, so the waker sets RUNNING and wakes; or a signal, a time-out
//! ```
//!
//! A node that polls a descriptor sets ARMED instead of PARKED, and does not wait here: the waker makes it readable.
//!
//! No wake-up is lost: the waiter sets PARKED and then looks, a waker publishes and then looks for PARKED, each with a
//! sequentially consistent fence between. Whichever fence comes second sees what was stored before the first.
//! Of several wakers that together make the waiter ready the last one, in the order of their fences, sees that it is.
//!
//! Wakers that publish by a store that is sequentially consistent itself ([`publish`]) need no fence of their own, if what
//! they load then is loaded likewise: of the one order of all such operations and fences the same follows. Let the
//! waiter's look miss the store: then its fence precedes the store in that order, which precedes the waker's load, which
//! therefore sees PARKED. Two wakers see each other's stores as they would with fences. (C++20,
//! [atomics.order] 4.)

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use laxity_model::Instant;
use laxity_sys::futex::Ended;

use crate::step;

const RUNNING: u32 = 0;
const PARKED: u32 = 1;
const ARMED: u32 = 2;

/// A word that can be waited on. A trait so that the protocol can be checked exhaustively with other words.
pub(crate) trait Word {
    /// Sequentially consistent.
    fn load(&self) -> u32;
    fn store(&self, value: u32);
    /// Sets it to `new` if it is `current`, and answers whether it was.
    fn exchange(&self, current: u32, new: u32) -> bool;
    /// Suspends while it is `value`; may end early for no reason.
    fn wait(&self, value: u32, deadline: Instant) -> Ended;
    fn wake(&self);
    /// Sequentially consistent.
    fn fence();
}

/// Waits until `look` finds something. At the deadline it looks a last time, and answers what that found.
pub(crate) fn wait_until<T>(word: &impl Word, deadline: Instant, look: impl FnMut() -> Option<T>) -> Option<T> {
    fn wait<W: Word, T>(word: &W, deadline: Instant, mut look: impl FnMut() -> Option<T>) -> Option<T> {
        loop {
            if let Some(found) = look() {
                return Some(found);
            }
            word.store(PARKED);
            W::fence();
            if let Some(found) = look() {
                word.store(RUNNING);
                return Some(found);
            }
            let ended = word.wait(PARKED, deadline);
            word.store(RUNNING);
            if ended == Ended::TimedOut {
                return look();
            }
        }
    }
    wait(word, deadline, look)
}

/// Publishes by storing `value`, before [`wake_if`] with a condition whose loads are sequentially consistent. An exchange
/// on x86, which costs less than a store and a fence.
#[inline]
pub(crate) fn publish(word: &AtomicU64, value: u64) {
    step::point();
    word.store(value, Ordering::SeqCst);
}

/// To be called by a waker between publishing in another way and [`wake_if`], or [`rouse`].
pub(crate) fn published<W: Word>() {
    W::fence();
}

/// Wakes the waiter if it is parked and `is_ready` says that it need not be. Answers whether it polls, and is to be told
/// by its descriptor.
#[inline]
#[must_use]
pub(crate) fn wake_if(word: &impl Word, is_ready: impl FnOnce() -> bool) -> bool {
    let state = word.load();
    state != RUNNING && wake(word, state, is_ready)
}

/// Apart from what mostly happens, which is next to nothing.
#[inline(never)]
fn wake(word: &impl Word, state: u32, is_ready: impl FnOnce() -> bool) -> bool {
    if !is_ready() || !word.exchange(state, RUNNING) {
        return false;
    }
    if state == PARKED {
        word.wake();
    }
    state == ARMED
}

/// Asks to be told when `look` may find something; answers with what it finds now. To wait instead, or to
/// arm again, needs no undoing.
pub(crate) fn arm<W: Word, T>(word: &W, look: impl FnOnce() -> Option<T>) -> Option<T> {
    word.store(ARMED);
    W::fence();
    let found = look();
    if found.is_some() {
        word.store(RUNNING);
    }
    found
}

/// Whether it waits, and no waker has begun to wake it. To be asked after [`published`].
pub(crate) fn is_parked(word: &impl Word) -> bool {
    word.load() == PARKED
}

/// Makes the waiter look again, whatever the word says: an earlier waker may have died between its two steps.
pub(crate) fn rouse(word: &impl Word) {
    word.store(RUNNING);
    word.wake();
}

/// The word of a node in shared memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parked<'a> {
    pub word: &'a AtomicU32,
    pub node: usize,
}

impl Word for Parked<'_> {
    #[inline]
    fn load(&self) -> u32 {
        step::point();
        self.word.load(Ordering::SeqCst)
    }

    fn store(&self, value: u32) {
        step::point();
        self.word.store(value, Ordering::Relaxed);
    }

    fn exchange(&self, current: u32, new: u32) -> bool {
        step::point();
        self.word.compare_exchange(current, new, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    fn wait(&self, value: u32, deadline: Instant) -> Ended {
        step::sleep(self.node, self.word, value, deadline)
    }

    fn wake(&self) {
        step::wake(self.node, self.word);
    }

    #[inline]
    fn fence() {
        fence(Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests;
