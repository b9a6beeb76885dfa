//! The lock as regulators see it: whether it is held at all, and the least budget.

use laxity_model::TaskId;

use super::{Hold, Holder, NotHeld};

/// The bandwidth lock. Any number of threads may hold it: it orders nothing, but every holder has the ceiling priority, and
/// the least budget of all holders is in force.
#[derive(Clone, Debug)]
pub struct BandwidthLock {
    holders: Vec<Holder>,
    budget: Option<u64>,
}

/// What an event changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The thread holds the lock from now on (`true`), and has the ceiling priority, or no longer.
    pub ceiling: Option<bool>,
    /// The budget in force is another from now on; `Some(None)`: there is no holder any more.
    pub budget: Option<Option<u64>>,
}

impl BandwidthLock {
    /// A lock that none of `threads` threads holds.
    pub fn new(threads: usize) -> BandwidthLock {
        BandwidthLock { holders: vec![Holder::default(); threads], budget: None }
    }

    /// Something happens to the hold of `thread`.
    ///
    /// # Errors
    /// A hold that ends was never taken; nothing changes.
    pub fn handle(&mut self, thread: TaskId, hold: Hold) -> Result<Change, NotHeld> {
        let holder = &mut self.holders[thread.index()];
        let held = holder.budget();
        holder.handle(hold)?;
        let holds = holder.budget();
        if held == holds {
            return Ok(Change::default());
        }
        let before = self.budget;
        self.budget = self.holders.iter().filter_map(Holder::budget).min();
        Ok(Change {
            ceiling: (held.is_some() != holds.is_some()).then_some(holds.is_some()),
            budget: (before != self.budget).then_some(self.budget),
        })
    }

    /// Whether `thread` holds it.
    pub fn is_held_by(&self, thread: TaskId) -> bool {
        self.holders[thread.index()].budget().is_some()
    }

    /// The budget in force, in bytes a second; `None`: there is no holder.
    pub fn budget(&self) -> Option<u64> {
        self.budget
    }
}
