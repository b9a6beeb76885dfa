//! Who holds the replicas of an *open* lock in words that are changed by one instruction.
//!
//! ```text
//!    63      62 .. 54          ...   17 .. 9    8 .. 0
//!  [frozen] [replica 6]              [replica 1] [replica 0]      0: free, else the task and one more
//!  [frozen]                          [waiter]    [owner]          of a lock with a seat
//!
//!            take: the smallest free replica that will do          release
//!  (open) <-----------------------------------------------> (open)
//!    |                                                         ^
//!    | freeze: nobody takes or releases any more               | thaw
//!    +--------------------> (frozen: the arbiter decides) -----+
//! ```
//!
//! For most locks nobody waits while they are open. One with a single replica has a *seat* for one who waits, to whom
//! the owner hands it over. Who is next is no question then; that the owner need not be more urgent meanwhile is for
//! who sits down to see to (`Client::must_arbitrate`).
//!
//! ```text
//!  (free) <--- release --- (owned by A) <--- hand over: A's replica is B's --- (owned by A, B waits)
//!     '------- take ----------^    '------------------ sit down: B waits --------^
//! ```
//!
//! One instruction decides whether a replica is taken and says by whom: a thread that is killed holds it or does not.

use std::sync::atomic::{AtomicU64, Ordering};

use laxity_model::TaskId;

const BITS: usize = 9;
const MASK: u64 = (1 << BITS) - 1;
const FROZEN: u64 = 1 << 63;

/// Where the word of a lock with a seat, which has one replica, says who sits there.
const WAITER_SLOT: usize = 1;

/// Replicas whose holders one word says.
pub(crate) const REPLICAS: usize = 7;
/// How many tasks can be told apart.
pub(crate) const OWNERS_MAX: u64 = MASK;

/// What a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owners(u64);

impl Owners {
    pub fn of(word: &AtomicU64) -> Self {
        Owners(word.load(Ordering::Acquire))
    }

    pub const NOBODY: Owners = Owners(0);

    pub fn is_frozen(self) -> bool {
        self.0 & FROZEN != 0
    }

    pub fn owner(self, replica: usize) -> Option<TaskId> {
        let owner = self.0 >> (BITS * replica) & MASK;
        owner.checked_sub(1).map(|task| TaskId(task as u32))
    }

    /// Who waits in the seat.
    pub fn waiter(self) -> Option<TaskId> {
        self.owner(WAITER_SLOT)
    }

    /// With `task` in the seat.
    #[must_use]
    pub fn with_waiter(self, task: TaskId) -> Self {
        self.with(WAITER_SLOT, Some(task))
    }

    #[must_use]
    pub fn with(self, replica: usize, owner: Option<TaskId>) -> Self {
        let cleared = self.0 & !(MASK << (BITS * replica));
        Owners(cleared | owner.map_or(0, |task| u64::from(task.0) + 1) << (BITS * replica))
    }

    /// Replaces the owners of a frozen word.
    pub fn store_frozen(self, word: &AtomicU64) {
        word.store(self.0 | FROZEN, Ordering::Release);
    }
}

/// `task` takes the first of `replicas` that is free; `None` if none is, or the word is frozen.
#[inline]
pub(crate) fn take(word: &AtomicU64, task: TaskId, replicas: impl Iterator<Item = usize> + Clone) -> Option<usize> {
    let mut owners = Owners(word.load(Ordering::Relaxed));
    loop {
        if owners.is_frozen() {
            return None;
        }
        let free = replicas.clone().find(|&replica| owners.owner(replica).is_none())?;
        let taken = owners.with(free, Some(task));
        // Who finds the owner's name also finds what it said of its request before, and of the owner and who begins
        // to follow holders at least one sees the other: `Client::update_followers`.
        match word.compare_exchange_weak(owners.0, taken.0, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => return Some(free),
            Err(other) => owners = Owners(other),
        }
    }
}

/// The owner of `replica` lets go; `false` if the word is frozen.
#[inline]
pub(crate) fn release(word: &AtomicU64, replica: usize) -> bool {
    let mut owners = Owners(word.load(Ordering::Relaxed));
    loop {
        if owners.is_frozen() {
            return false;
        }
        let released = owners.with(replica, None);
        match word.compare_exchange_weak(owners.0, released.0, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return true,
            Err(other) => owners = Owners(other),
        }
    }
}

/// What came of sitting down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parked {
    /// It waits until this one hands over.
    Behind(TaskId),
    /// Nobody owns the replica any more.
    Free,
    /// Another sits there, or the word is frozen.
    Refused,
}

/// `task` waits in the seat, if that is free and the replica is not.
pub(crate) fn try_park(word: &AtomicU64, task: TaskId) -> Parked {
    let mut owners = Owners(word.load(Ordering::Relaxed));
    loop {
        if owners.is_frozen() || owners.waiter().is_some() {
            return Parked::Refused;
        }
        let Some(owner) = owners.owner(0) else { return Parked::Free };
        let seated = owners.with_waiter(task);
        // Who finds the waiter's name also finds what it said of its request, and it what the owner said before.
        match word.compare_exchange_weak(owners.0, seated.0, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return Parked::Behind(owner),
            Err(other) => owners = Owners(other),
        }
    }
}

/// What came of handing over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handed {
    /// This one, which waited, owns the replica now.
    To(TaskId),
    /// Nobody waited: it is free.
    Freed,
    /// The word is frozen.
    Frozen,
}

/// The owner lets go of the replica of a lock with a seat.
#[inline]
pub(crate) fn hand_over(word: &AtomicU64) -> Handed {
    let mut owners = Owners(word.load(Ordering::Relaxed));
    loop {
        if owners.is_frozen() {
            return Handed::Frozen;
        }
        let next = owners.waiter();
        let handed = Owners::NOBODY.with(0, next);
        // As in `take`, which this is for the one that waits.
        match word.compare_exchange_weak(owners.0, handed.0, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => return next.map_or(Handed::Freed, Handed::To),
            Err(other) => owners = Owners(other),
        }
    }
}

/// From now on nobody takes or releases; who holds then.
pub(crate) fn freeze(word: &AtomicU64) -> Owners {
    Owners(word.fetch_or(FROZEN, Ordering::AcqRel))
}

/// From now on anybody takes and releases.
pub(crate) fn thaw(word: &AtomicU64) {
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
    fn a_replica_is_handed_to_who_sits_there() {
        let word = AtomicU64::new(0);
        let owner = || Owners::of(&word).owner(0);
        assert_eq!(try_park(&word, TaskId(1)), Parked::Free);
        assert_eq!(take(&word, TaskId(0), 0..1), Some(0));
        assert_eq!(try_park(&word, TaskId(510)), Parked::Behind(TaskId(0)));
        assert_eq!(try_park(&word, TaskId(2)), Parked::Refused);
        assert_eq!((owner(), Owners::of(&word).waiter()), (Some(TaskId(0)), Some(TaskId(510))));
        assert_eq!(take(&word, TaskId(3), 0..1), None);
        assert_eq!(hand_over(&word), Handed::To(TaskId(510)));
        assert_eq!((owner(), Owners::of(&word).waiter()), (Some(TaskId(510)), None));
        assert_eq!(hand_over(&word), Handed::Freed);
        assert_eq!(owner(), None);
        freeze(&word);
        assert_eq!((try_park(&word, TaskId(1)), hand_over(&word)), (Parked::Refused, Handed::Frozen));
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
        Owners::NOBODY.with(6, Some(TaskId(8))).store_frozen(&word);
        assert!(Owners::of(&word).is_frozen());
        thaw(&word);
        assert_eq!(Owners::of(&word), Owners::NOBODY.with(6, Some(TaskId(8))));
    }
}
