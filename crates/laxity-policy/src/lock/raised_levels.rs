//! From grant to unlock: the levels to which ceilings, floors and boosts raise a holder.

use laxity_model::Instant;

use crate::cpu::Priority;

use super::discipline::Progress;

impl Progress {
    /// The level a job has at least from the grant at `now` until it unlocks; `order` is that of its request among
    /// the boosted. Inheritance raises no holder before another job waits.
    pub(super) fn level_from_grant(self, now: Instant, order: u32) -> Option<(u64, u32)> {
        match self {
            Progress::None | Progress::Inheritance => None,
            Progress::Ceiling { level } => Some(level),
            Progress::Floor { deadline, tie } => Some((now.saturating_add(deadline).as_nanos(), tie)),
            Progress::Boosting => Some((Priority::HIGHEST.0, order)),
        }
    }
}

/// The order of requests for boosting locks, all locks together.
///
/// Counts from 0 whenever no such request is unfinished, so that 32 bits last.
#[derive(Debug, Default)]
pub(super) struct BoostOrder {
    pub(super) unfinished: u32,
    pub(super) next: u32,
}

impl BoostOrder {
    /// The order of a request made now.
    pub(super) fn request(&mut self) -> u32 {
        let order = self.next;
        self.unfinished += 1;
        self.next = self.next.saturating_add(1);
        order
    }

    /// A request is unlocked or withdrawn.
    pub(super) fn finish(&mut self) {
        assert!(self.unfinished > 0, "a request was made before it is finished");
        self.unfinished -= 1;
        if self.unfinished == 0 {
            self.next = 0;
        }
    }
}
