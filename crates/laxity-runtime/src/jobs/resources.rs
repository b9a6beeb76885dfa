//! Critical sections, and priorities that a job gives itself.

use std::io;
use std::sync::Arc;

use laxity_model::{LockId, ReplicaId};
use laxity_sys::scheduling;

use super::{Cut, Jobs};
use crate::log::Deed;
use crate::plan::Raised;

impl Jobs {
    pub(super) fn lock(&mut self, lock: LockId) -> Result<(), Cut> {
        self.note(Deed::Request(lock));
        let ceiling = self.plan.raised.as_ref().and_then(|raised| raised.ceilings[lock.index()]);
        let resources = Arc::clone(&self.resources);
        let guard = &resources[lock.index()];
        if !guard.try_lock() {
            self.note(Deed::Wait(lock));
            guard.lock().map_err(|error| no_lock(lock, &error))?;
        }
        self.held.push(lock);
        self.note(Deed::Grant(lock, ReplicaId(0)));
        self.raise(ceiling)
    }

    pub(super) fn unlock(&mut self, lock: LockId) -> Result<(), Cut> {
        self.held.retain(|&held| held != lock);
        // Before it is true: nobody is granted earlier.
        self.note(Deed::Unlock(lock, ReplicaId(0)));
        self.resources[lock.index()].unlock().map_err(|error| no_lock(lock, &error))?;
        self.lower()
    }

    /// So that others get on to where they are stopped.
    pub(super) fn give_up_resources(&mut self) {
        while let Some(&lock) = self.held.last() {
            // It holds it; and if Linux disagrees, all are stopped anyway.
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

fn no_lock(lock: LockId, error: &io::Error) -> Cut {
    let circle = match error.kind() {
        io::ErrorKind::Deadlock => ": tasks wait for one another; lock resources in the same order everywhere",
        _ => "",
    };
    Cut::Failed(format!("resource {} cannot be locked or unlocked: {error}{circle}", lock.0))
}

fn change(from: u8, to: u8) -> Result<(), Cut> {
    if from == to {
        return Ok(());
    }
    let refused = |error| Cut::Failed(format!("cannot go from SCHED_FIFO priority {from} to {to}: {error}"));
    scheduling::set_fifo(to).map_err(refused)
}
