//! Critical sections, and priorities that a job gives itself.

use std::sync::Arc;

use laxity_model::{LockId, ReplicaId};
use laxity_sys::scheduling;

use super::{Cut, JobError, Jobs};
use crate::log::JobStep;
use crate::plan::Raised;

impl Jobs {
    pub(super) fn lock(&mut self, lock: LockId) -> Result<(), Cut> {
        self.note(JobStep::Request(lock));
        let ceiling = self.plan.raised.as_ref().and_then(|raised| raised.ceilings[lock.index()]);
        let resources = Arc::clone(&self.resources);
        let guard = &resources[lock.index()];
        if !guard.try_lock() {
            let refused = |error| JobError::Resource { lock, error };
            if self.scheduled.is_some() {
                // Linux lends the holder the priority of this thread, which is above all that run.
                self.suspended(|_| guard.lock())?.map_err(refused)?;
            } else {
                self.note(JobStep::Wait(lock));
                guard.lock().map_err(refused)?;
            }
        }
        self.held.push(lock);
        self.note(JobStep::Grant(lock, ReplicaId(0)));
        self.raise(ceiling)
    }

    pub(super) fn unlock(&mut self, lock: LockId) -> Result<(), Cut> {
        self.held.retain(|&held| held != lock);
        // Before it is true: no other task is granted the lock earlier.
        self.note(JobStep::Unlock(lock, ReplicaId(0)));
        self.resources[lock.index()].unlock().map_err(|error| JobError::Resource { lock, error })?;
        self.lower()
    }

    /// Unlocks all, so that tasks that wait get on to where they are stopped.
    pub(super) fn give_up_resources(&mut self) {
        while let Some(&lock) = self.held.last() {
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
