//! The word on which a client waits.

use std::sync::atomic::{AtomicU32, Ordering};

use laxity_model::ReplicaId;

use crate::step;

/// The state of a client, in the lower bits of its word. The bits above count: each wait and each notification adds one,
/// so that no two waits see the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientWord {
    Idle,
    Waiting,
    Granted(ReplicaId),
}

/// One more in the counting bits.
pub(crate) const COUNT: u32 = 1 << 17;

impl ClientWord {
    pub fn of(value: u32) -> Self {
        match value % COUNT {
            0 => ClientWord::Idle,
            1 => ClientWord::Waiting,
            granted => ClientWord::Granted(ReplicaId((granted - 2) as u16)),
        }
    }

    /// The value of this state with the count of `before`.
    pub fn instead_of(self, before: u32) -> u32 {
        let state = match self {
            ClientWord::Idle => 0,
            ClientWord::Waiting => 1,
            ClientWord::Granted(replica) => 2 + u32::from(replica.0),
        };
        before - before % COUNT + state
    }

    /// Replaces the state in `word`. A notification that another thread counts meanwhile may be lost, which does no harm:
    /// the value changes anyway.
    pub fn store(self, word: &AtomicU32) {
        step::point();
        word.store(self.instead_of(word.load(Ordering::Relaxed)), Ordering::Release);
    }
}
