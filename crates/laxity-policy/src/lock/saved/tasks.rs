//! What tasks hold and wait for, and the order of boosted requests.

use laxity_model::{LockId, ReplicaId, TaskId};

use super::{Codec, Damaged};
use crate::lock::holdings::{Held, Holdings, Wait};
use crate::lock::raised_levels::BoostOrder;

impl BoostOrder {
    pub(super) fn code(&mut self, codec: &mut Codec<'_>) -> Result<(), Damaged> {
        codec.u32(&mut self.unfinished)?;
        codec.u32(&mut self.next)
    }
}

impl Holdings {
    /// What `task` holds and waits for. There are `locks` locks, and `replicas` says how many replicas each has.
    pub(super) fn code(
        &mut self,
        task: TaskId,
        codec: &mut Codec<'_>,
        locks: usize,
        replicas: impl Fn(LockId) -> u16,
    ) -> Result<(), Damaged> {
        codec.list(&mut self.held[task.index()], locks, |codec, held: &mut Held| {
            codec.lock(&mut held.lock, locks)?;
            codec.replica(&mut held.replica, replicas(held.lock).into())?;
            level(&mut held.level, codec)
        })?;
        let wait = &mut self.waits[task.index()];
        let number =
            codec.below(wait.map_or(0, |wait| 1 + u64::from(wait.lock.0)), locks as u64 + 1, "a lock or none")?;
        if let Some(lock) = number.checked_sub(1) {
            let mut request = wait.unwrap_or(Wait { lock: LockId(lock as u16), only: None, order: 0 });
            codec.optional_gpu(&mut request.only)?;
            codec.u32(&mut request.order)?;
            *wait = Some(request);
        }
        Ok(())
    }

    /// The most numbers of all tasks together, if there are that many replicas of locks.
    pub(super) fn numbers_max(&self, replicas: usize) -> usize {
        4 * self.tasks() + 4 * replicas
    }
}

/// The level to which a lock raises its holder: its major, and one more than its tie; no level is two zeros.
fn level(level: &mut Option<(u64, u32)>, codec: &mut Codec<'_>) -> Result<(), Damaged> {
    let (mut major, tie) = level.map_or((0, 0), |(major, tie)| (major, 1 + u64::from(tie)));
    codec.number(&mut major)?;
    let tie = codec.below(tie, 1 << 33, "a tie")?;
    *level = tie.checked_sub(1).map(|tie| (major, tie as u32));
    Ok(())
}

impl Default for Held {
    fn default() -> Self {
        Held { lock: LockId(0), replica: ReplicaId(0), level: None }
    }
}
