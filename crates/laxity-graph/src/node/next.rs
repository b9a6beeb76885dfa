//! The next job of a node before it begins: for schedulers that release it themselves, and have to know when it is due.

use laxity_model::Instant;

use super::{Job, Node, deadline_of};
use crate::releases::Releases;
use crate::step;
use crate::wait_error::WaitError;

impl Node {
    /// Whether the next job has its tokens and room for what it produces, so that a wait would begin it at once, or at its
    /// release if it must not be early.
    ///
    /// # Errors
    /// As of a wait, but no time-out.
    pub fn has_next(&mut self) -> Result<bool, WaitError> {
        if self.index < self.ready {
            return Ok(true);
        }
        match self.await_ready(Instant::ZERO) {
            Ok(()) => Ok(true),
            Err(WaitError::TimedOut { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Waits until [`Node::has_next`], for ever if need be, in one sleep unless something happens to a node that it waits for.
    ///
    /// # Errors
    /// As of [`Node::wait`].
    pub fn await_next(&mut self) -> Result<(), WaitError> {
        if self.index < self.ready { Ok(()) } else { self.await_ready(Instant::NEVER) }
    }

    /// The release and the deadline that the next job will have, whose tokens are there; nothing if the graph has no recorder.
    /// It may lie in the future where jobs are released early.
    pub fn next_release(&self) -> Option<(Instant, Instant)> {
        let (shared, releases) = (self.shared(), self.releases.as_ref()?);
        let release = releases.arrival(shared, self.index, step::now()).at;
        Some((release, deadline_of(shared, self.node, release)))
    }

    /// Job `index` is complete; hooks that say so hear of each node that is woken.
    #[inline(never)]
    pub(super) fn publish(&mut self, index: u64) {
        let shared = &self.membership.shared;
        let hooks = self.hooks.as_deref_mut().filter(|hooks| hooks.tells_of_releases());
        let (Some(hooks), Some(_)) = (hooks, &self.releases) else { return shared.complete(self.node, index) };
        shared.complete_telling(self.node, index, |waiter| {
            let next = shared.completed(waiter);
            let release = Releases::before(shared, waiter, next).arrival(shared, next, step::now()).at;
            hooks.wakes(waiter, release, deadline_of(shared, waiter, release));
        });
        hooks.have_woken();
    }
}

impl Job<'_> {
    /// The memory of its graph stays where it is, for as long as this process lasts: something that Rust does not know of may
    /// still look at it.
    pub fn keep_memory(&self) {
        std::mem::forget(std::sync::Arc::clone(&self.node.membership.shared));
    }
}
