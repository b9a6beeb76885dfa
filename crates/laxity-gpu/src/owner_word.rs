//! The owners of an *open* lock, in words that one instruction changes.
//!
//! ```text
//!    63      62 .. 54          ...   17 .. 9    8 .. 0
//!  [frozen] [replica 6]              [replica 1] [replica 0]      0: free, else the task and one more
//!  [frozen]                          [waiter]    [owner]          of a lock with a waiter slot
//!
//!            take: the smallest free replica that will do          release
//!  (open) <-----------------------------------------------> (open)
//!    |                                                         ^
//!    | freeze: no thread takes or releases any more            | thaw
//!    +--------------------> (frozen: the arbiter decides) -----+
//! ```
//!
//! Most open locks have no waiters. A lock with a single replica has a *waiter slot*: one thread parks there, and the
//! owner hands the replica over to it. A lone waiter is the next owner under every discipline. The waiter checks that the
//! owner need not inherit from it (`Client::must_arbitrate`).
//!
//! ```text
//!  (free) <--- release --- (owned by A) <--- hand over: A's replica is B's --- (owned by A, B waits)
//!     '------- take ----------^    '------------------ park: B waits ------------^
//! ```
//!
//! The instruction that takes a replica also names its owner: a thread that is killed holds the replica or does not.

use std::sync::atomic::{AtomicU64, Ordering};

use laxity_model::TaskId;

use crate::step;

const BITS: usize = 9;
const MASK: u64 = (1 << BITS) - 1;
const FROZEN: u64 = 1 << 63;

/// The position of the waiter in the word of a lock with a waiter slot, which has one replica.
const WAITER_SLOT: usize = 1;

/// How many replicas have their owners in one word.
pub(crate) const REPLICAS: usize = 7;
/// How many tasks can be told apart.
pub(crate) const OWNERS_MAX: u64 = MASK;

/// The value of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owners(u64);

impl Owners {
    /// All replicas are free.
    pub const NONE: Owners = Owners(0);

    pub fn of(word: &AtomicU64) -> Self {
        Owners(word.load(Ordering::Acquire))
    }

    pub fn is_frozen(self) -> bool {
        self.0 & FROZEN != 0
    }

    pub fn owner(self, position: usize) -> Option<TaskId> {
        let owner = self.0 >> (BITS * position) & MASK;
        owner.checked_sub(1).map(|task| TaskId(task as u32))
    }

    /// The task in the waiter slot.
    pub fn waiter(self) -> Option<TaskId> {
        self.owner(WAITER_SLOT)
    }

    /// With `task` in the waiter slot.
    #[must_use]
    pub fn with_waiter(self, task: TaskId) -> Self {
        self.with(WAITER_SLOT, Some(task))
    }

    #[must_use]
    pub fn with(self, position: usize, owner: Option<TaskId>) -> Self {
        let cleared = self.0 & !(MASK << (BITS * position));
        Owners(cleared | owner.map_or(0, |task| u64::from(task.0) + 1) << (BITS * position))
    }

    /// Replaces the owners of a frozen word.
    pub fn store_frozen(self, word: &AtomicU64) {
        step::point();
        word.store(self.0 | FROZEN, Ordering::Release);
    }
}

/// `task` takes the first free replica of `positions`; `None` if none is free, or the word is frozen.
#[inline]
pub(crate) fn take(word: &AtomicU64, task: TaskId, positions: impl Iterator<Item = usize> + Clone) -> Option<usize> {
    let mut owners = Owners(word.load(Ordering::Relaxed));
    loop {
        if owners.is_frozen() {
            return None;
        }
        let free = positions.clone().find(|&position| owners.owner(position).is_none())?;
        let taken = owners.with(free, Some(task));
        // SeqCst. A thread that sees the owner also sees the request that the owner published before. And an owner and a
        // thread that begins to follow holders: at least one of the two sees the other (`Client::update_followers`).
        step::point();
        match word.compare_exchange_weak(owners.0, taken.0, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => return Some(free),
            Err(other) => owners = Owners(other),
        }
    }
}

/// The owner of the replica at `position` releases it; `false` if the word is frozen.
#[inline]
pub(crate) fn release(word: &AtomicU64, position: usize) -> bool {
    let mut owners = Owners(word.load(Ordering::Relaxed));
    loop {
        if owners.is_frozen() {
            return false;
        }
        let released = owners.with(position, None);
        step::point();
        match word.compare_exchange_weak(owners.0, released.0, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(other) => owners = Owners(other),
        }
    }
}

/// The result of an attempt to park.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parked {
    /// The task waits until this owner hands over.
    Behind(TaskId),
    /// It does not wait: the replica is free.
    Free,
    /// It does not wait: another task is in the slot, or the word is frozen.
    Refused,
}

/// `task` waits in the waiter slot, if the slot is free and the replica is not.
pub(crate) fn try_park(word: &AtomicU64, task: TaskId) -> Parked {
    let mut owners = Owners(word.load(Ordering::Relaxed));
    loop {
        if owners.is_frozen() || owners.waiter().is_some() {
            return Parked::Refused;
        }
        let Some(owner) = owners.owner(0) else { return Parked::Free };
        let parked = owners.with_waiter(task);
        // A thread that sees the waiter also sees its published request; the waiter sees the owner's.
        step::point();
        match word.compare_exchange_weak(owners.0, parked.0, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return Parked::Behind(owner),
            Err(other) => owners = Owners(other),
        }
    }
}

/// The result of handing over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandOver {
    /// This task, which waited, owns the replica now.
    To(TaskId),
    /// No task waited: the replica is free.
    Freed,
    /// Nothing changed: the word is frozen.
    Frozen,
}

/// The owner releases the replica of a lock with a waiter slot.
#[inline]
pub(crate) fn hand_over(word: &AtomicU64) -> HandOver {
    let mut owners = Owners(word.load(Ordering::Relaxed));
    loop {
        if owners.is_frozen() {
            return HandOver::Frozen;
        }
        let next = owners.waiter();
        let handed = Owners::NONE.with(0, next);
        // SeqCst as in `take`, on behalf of the waiter.
        step::point();
        match word.compare_exchange_weak(owners.0, handed.0, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => return next.map_or(HandOver::Freed, HandOver::To),
            Err(other) => owners = Owners(other),
        }
    }
}

/// Stops all takes and releases; the owners at that instant.
pub(crate) fn freeze(word: &AtomicU64) -> Owners {
    step::point();
    Owners(word.fetch_or(FROZEN, Ordering::AcqRel))
}

/// Allows takes and releases again.
pub(crate) fn thaw(word: &AtomicU64) {
    step::point();
    word.fetch_and(!FROZEN, Ordering::AcqRel);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_free_replica_that_will_do_is_taken() {
        let word = AtomicU64::new(0);
        assert_eq!(take(&word, TaskId(510), 0..3), Some(0));
        assert_eq!(take(&word, TaskId(0), (0..7).step_by(2)), Some(2));
        assert_eq!(take(&word, TaskId(5), 0..3), Some(1));
        assert_eq!(take(&word, TaskId(6), 0..3), None, "all are held");
        assert_eq!(take(&word, TaskId(6), 6..7), Some(6));
        let owners: Vec<_> = (0..REPLICAS).map(|replica| Owners::of(&word).owner(replica).map(|task| task.0)).collect();
        assert_eq!(owners, [Some(510), Some(5), Some(0), None, None, None, Some(6)]);
        assert!(release(&word, 1));
        assert_eq!(take(&word, TaskId(9), 0..7), Some(1));
    }

    #[test]
    fn a_replica_is_handed_over_to_the_parked_waiter() {
        let word = AtomicU64::new(0);
        let owner = || Owners::of(&word).owner(0);
        assert_eq!(try_park(&word, TaskId(1)), Parked::Free);
        assert_eq!(take(&word, TaskId(0), 0..1), Some(0));
        assert_eq!(try_park(&word, TaskId(510)), Parked::Behind(TaskId(0)));
        assert_eq!(try_park(&word, TaskId(2)), Parked::Refused);
        assert_eq!((owner(), Owners::of(&word).waiter()), (Some(TaskId(0)), Some(TaskId(510))));
        assert_eq!(take(&word, TaskId(3), 0..1), None);
        assert_eq!(hand_over(&word), HandOver::To(TaskId(510)));
        assert_eq!((owner(), Owners::of(&word).waiter()), (Some(TaskId(510)), None));
        assert_eq!(hand_over(&word), HandOver::Freed);
        assert_eq!(owner(), None);
        freeze(&word);
        assert_eq!((try_park(&word, TaskId(1)), hand_over(&word)), (Parked::Refused, HandOver::Frozen));
    }

    #[test]
    fn a_frozen_word_keeps_its_owners() {
        let word = AtomicU64::new(0);
        assert_eq!(take(&word, TaskId(3), 0..1), Some(0));
        let owners = freeze(&word);
        assert_eq!((owners.owner(0), owners.is_frozen()), (Some(TaskId(3)), false), "as they were before");
        assert!(!release(&word, 0));
        assert_eq!(take(&word, TaskId(4), 1..7), None);
        assert!(freeze(&word).is_frozen());
        Owners::NONE.with(6, Some(TaskId(8))).store_frozen(&word);
        assert!(Owners::of(&word).is_frozen());
        thaw(&word);
        assert_eq!(Owners::of(&word), Owners::NONE.with(6, Some(TaskId(8))));
    }
}
