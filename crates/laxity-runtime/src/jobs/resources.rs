//! Critical sections, and priorities that a job gives itself.

use std::sync::Arc;

use laxity_model::{LockId, Nanos, ReplicaId};
use laxity_sched::LockRequest;
use laxity_sys::scheduling;

use super::{Cut, JobError, Jobs};
use crate::log::JobStep;
use crate::plan::Raised;

impl Jobs {
    pub(super) fn lock(&mut self, lock: LockId, length: Nanos) -> Result<(), Cut> {
        let replica = if self.has_arbiter() {
            self.lock_arbitrated(LockRequest { length, ..LockRequest::of(lock) })?
        } else {
            self.lock_by_linux(lock)?
        };
        self.held.push((lock, replica));
        Ok(())
    }

    fn lock_by_linux(&mut self, lock: LockId) -> Result<ReplicaId, Cut> {
        self.note(JobStep::Request(lock));
        let ceiling = self.plan.raised.as_ref().and_then(|raised| raised.ceilings[lock.index()]);
        if !self.lock_in_kernel(lock)? {
            let shared = Arc::clone(&self.shared);
            let guard = &shared.resources[lock.index()];
            if !guard.try_lock() {
                self.note(JobStep::Wait(lock));
                guard.lock().map_err(|error| JobError::Resource { lock, error })?;
            }
        }
        self.note(JobStep::Grant(lock, ReplicaId(0)));
        self.raise(ceiling)?;
        Ok(ReplicaId(0))
    }

    /// Unlocks by step `at`.
    pub(super) fn unlock_at(&mut self, at: usize, lock: LockId) -> Result<(), Cut> {
        if !self.has_arbiter() {
            return self.unlock(lock);
        }
        self.forget(lock).map_or(Ok(()), |replica| self.unlock_arbitrated_at(at, lock, replica))
    }

    fn unlock(&mut self, lock: LockId) -> Result<(), Cut> {
        let Some(replica) = self.forget(lock) else { return Ok(()) };
        if self.has_arbiter() {
            return self.unlock_arbitrated(lock, replica);
        }
        // Before it is true: no other task is granted the lock earlier.
        self.note(JobStep::Unlock(lock, replica));
        if !self.unlock_in_kernel(lock) {
            self.shared.resources[lock.index()].unlock().map_err(|error| JobError::Resource { lock, error })?;
        }
        self.lower()
    }

    /// It is not held any more; the replica that was.
    fn forget(&mut self, lock: LockId) -> Option<ReplicaId> {
        let at = self.held.iter().rposition(|&(held, _)| held == lock)?;
        Some(self.held.remove(at).1)
    }

    /// Unlocks all, so that tasks that wait get on to where they are stopped.
    pub(super) fn give_up_resources(&mut self) {
        while let Some(&(lock, _)) = self.held.last() {
            // This thread holds it; and if Linux disagrees, all are stopped anyway.
            let _ = self.unlock(lock);
        }
    }

    /// Has `priority`, if any, and at least the present one, until [`Jobs::lower`].
    pub(super) fn raise(&mut self, priority: Option<u8>) -> Result<(), Cut> {
        let Some(now) = self.priority() else { return Ok(()) };
        let raised = priority.map_or(now, |priority| priority.max(now));
        self.priorities.push(raised);
        change(now, raised)
    }

    pub(super) fn lower(&mut self) -> Result<(), Cut> {
        let Some(now) = self.priority() else { return Ok(()) };
        self.priorities.pop();
        change(now, self.priority().unwrap_or(now))
    }

    /// The priority that it gave itself, where there are any.
    fn priority(&self) -> Option<u8> {
        let base = self.plan.raised.as_ref().map(|&Raised { base, .. }| base)?;
        Some(self.priorities.last().copied().unwrap_or(base))
    }
}

fn change(from: u8, to: u8) -> Result<(), Cut> {
    if from == to {
        return Ok(());
    }
    Ok(scheduling::set_fifo(to).map_err(|error| JobError::Priority { from, to, error })?)
}
