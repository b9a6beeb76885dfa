//! Who holds the replicas of an *open* lock, one for which nobody waits, in words that are changed by one instruction.
//!
//! ```text
//!    63      62 .. 54          ...   17 .. 9    8 .. 0
//!  [frozen] [replica 6]              [replica 1] [replica 0]      0: free, else the task and one more
//!
//!            take: the smallest free replica that will do          release
//!  (open) <-----------------------------------------------> (open)
//!    |                                                         ^
//!    | freeze: nobody takes or releases any more               | thaw
//!    +--------------------> (frozen: the arbiter decides) -----+
//! ```
//!
//! One instruction decides whether a replica is taken and says by whom: a thread that is killed holds it or does not.

use std::sync::atomic::{AtomicU64, Ordering};

use laxity_model::TaskId;

const BITS: usize = 9;
const MASK: u64 = (1 << BITS) - 1;
const FROZEN: u64 = 1 << 63;

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
        // to follow holders at least one sees the other: `Client::note_token`.
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
