//! The holders of tokens, for a process that gives their priorities to threads of the kernel: those that handle a real GPU's
//! interrupts.
//!
//! ```text
//!  holder, or a thread that changes its priority         process that watches (`laxity gpu irq --follow`)
//!  takes or releases a token  --- "it changed", if that one sleeps --->  reads the holders, asks Linux what they have
//! ```
//!
//! A thread of the kernel belongs to no member, so no member may schedule it by numbers that the shared memory has
//! ([`followers`](crate::followers)): one process alone does, which found the threads itself. The priority of a
//! holder is the one that Linux says its thread has, not one that the memory says. Decision 124 has the reasons.

use laxity_model::{Instant, TaskId};
use laxity_policy::lock::Arbiter;
use laxity_sys::scheduling::Attributes;

use crate::arbiter_cache::ArbiterCache;
use crate::arbitration::Arbitration;
use crate::config::TOKEN;
use crate::inheritance;
use crate::shared::Shared;
use crate::state_lock::StateError;

/// Sees which threads hold the tokens of an arbitration, whenever that changes.
#[derive(Debug)]
pub struct HolderWatch {
    arbitration: Arbitration,
    cache: ArbiterCache,
    seen: u32,
}

/// A thread that holds a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenHolder {
    /// The GPU that the token belongs to.
    pub gpu: u16,
    /// Its process.
    pub pid: u32,
    /// Its number.
    pub thread: u32,
    /// The fixed priority that Linux says it has, with what it inherits: 1 to 99. A thread under `SCHED_DEADLINE` counts as
    /// one of 97. `None`: it has none.
    pub priority: Option<u8>,
}

impl Arbitration {
    /// For [`HolderWatch::holders`], in turns with [`HolderWatch::wait`].
    pub fn watch_holders(&self) -> HolderWatch {
        let shared = &self.membership().shared;
        let arbiter = Arbiter::new(shared.config.clients.into(), &shared.config.locks());
        let cache = ArbiterCache::new(arbiter, shared.locks.len(), shared.config.clients);
        HolderWatch { arbitration: self.clone(), cache, seen: 0 }
    }
}

impl HolderWatch {
    /// The threads that hold tokens now, by GPU. Whatever changes from here on ends the next [`HolderWatch::wait`].
    ///
    /// # Errors
    /// [`StateError`] if the memory is damaged.
    pub fn holders(&mut self) -> Result<Vec<TokenHolder>, StateError> {
        let shared = &self.arbitration.membership().shared;
        self.seen = shared.expect_change(&shared.layout.holder_watch);
        let held = |cache: &mut ArbiterCache| {
            if cache.is_open(TOKEN) {
                cache.adopt(shared, Instant::ZERO, TOKEN);
            }
            let holders = shared.replicas(TOKEN).map(|replica| (replica, cache.arbiter.holder(TOKEN, replica)));
            holders.filter_map(|(replica, task)| Some((replica.0 % shared.config.gpus, task?))).collect::<Vec<_>>()
        };
        let mut held = self.cache.peek(shared, held).map_err(StateError::Damaged)?;
        held.sort_unstable();
        Ok(held.into_iter().map(|(gpu, task)| TokenHolder::read(shared, gpu, task)).collect())
    }

    /// Suspends this thread until a holder or its priority may have changed, or `until`. A change that a program makes to its
    /// own thread's priority by itself ends no wait.
    pub fn wait(&self, until: Instant) {
        let shared = &self.arbitration.membership().shared;
        shared.sleep(&shared.layout.holder_watch, self.seen, until);
    }
}

impl TokenHolder {
    fn read(shared: &Shared, gpu: u16, task: TaskId) -> TokenHolder {
        let words = shared.client(task);
        let [pid, thread] = [words.pid, words.thread].map(|offset| shared.number(offset));
        // Another process may have written these numbers: a thread of no member counts for nothing.
        let is_peers = shared.peers.has_thread(pid, thread).is_ok_and(|is| is);
        let attributes = is_peers.then(|| Attributes::of(thread).ok()).flatten();
        TokenHolder { gpu, pid, thread, priority: attributes.and_then(inheritance::lent_priority) }
    }
}
