//! Threads that work on behalf of those that hold tokens: the live klmirqd.
//!
//! ```text
//!               a token of GPU x is granted to a thread of the process, or that is raised
//! (as it is) ----------------------------------------------------------------------------> (as urgent as the holder)
//!     ^                                                                                               |
//!     +------------------ no thread of the process holds a token of GPU x any more -------------------+
//! ```
//!
//! The thread that handles the interrupts of a GPU, and those of the GPU's run-time library, run at the highest effective
//! priority of the token holders that they work for (GPUSync, *interrupt and callback threads*; paper 000, section III).
//! A thread that waits for a CPU cannot raise itself. So the thread that changes the holders or their priorities raises
//! it, and that may be a thread of another process: each member publishes the numbers of its followers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use laxity_membership::MEMBERS_MAX;
use laxity_model::TaskId;
use laxity_sys::scheduling::{self, Attributes};

use crate::arbitration::{Arbitration, Membership};
use crate::config::TOKEN;
use crate::inheritance::{self, Demand, NamedThread};
use crate::layout::{FOLLOWED, FollowerWords};
use crate::memory::Memory;
use crate::shared::Shared;
use crate::state_lock::{StateError, StateGuard};

/// A thread of this process that is as urgent as the holders of tokens of its GPU, until this is dropped. Then it is
/// scheduled again as it was.
#[derive(Debug)]
pub struct Follower {
    membership: Arc<Membership>,
    /// Among the followers of this process.
    index: usize,
}

/// Why a thread cannot follow.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// There is no such GPU.
    #[error("GPU {gpu}: the arbitration has {gpus}, counted from 0; ask for one of them")]
    NoSuchGpu {
        /// The GPU that was requested.
        gpu: u16,
        /// How many there are.
        gpus: u16,
    },
    /// This process has no such thread.
    #[error("thread {thread}: this process has none of that number; say one that lives")]
    NoSuchThread {
        /// Its number.
        thread: u32,
    },
    /// As many threads of this process follow as can.
    #[error("{threads} threads of this process follow holders, which is all it takes; leave some as they are")]
    Full {
        /// How many.
        threads: usize,
    },
    /// This process was forked from the one that attached.
    #[error("this process was forked from the one that attached to the arbitration; attach here")]
    NotAttached,
    /// The state of the arbitration.
    #[error("{0}")]
    State(#[source] StateError),
}

impl Arbitration {
    /// From now on the thread of this process with number `thread` works on behalf of the threads of this process that
    /// hold a token of `gpu`. How Linux schedules it now is what it gets back whenever there are none.
    ///
    /// # Errors
    /// [`FollowError`]. A refusal of Linux to raise it is no error: see [`Follower::refused`].
    pub fn follow(&self, gpu: u16, thread: u32) -> Result<Follower, FollowError> {
        let membership = self.membership();
        let Membership { shared, slot, .. } = &**membership;
        let gpus = shared.config.gpus;
        if gpu >= gpus {
            return Err(FollowError::NoSuchGpu { gpu, gpus });
        }
        if !membership.is_ours() {
            return Err(FollowError::NotAttached);
        }
        if !scheduling::is_thread_of(thread, std::process::id()) {
            return Err(FollowError::NoSuchThread { thread });
        }
        let own = Attributes::of(thread).map_err(|_| FollowError::NoSuchThread { thread })?;
        let state = shared.lock_state().map_err(FollowError::State)?;
        let threads = shared.layout.followers_max();
        let is_free = |&index: &usize| shared.number(shared.layout.follower(*slot, index).thread) == 0;
        let index = (0..threads).find(is_free).ok_or(FollowError::Full { threads })?;
        let words = shared.layout.follower(*slot, index);
        shared.segment.u32(words.gpu).store(gpu.into(), Ordering::Relaxed);
        shared.segment.u32(words.refused).store(0, Ordering::Relaxed);
        inheritance::store(shared, words.own, own);
        inheritance::store(shared, words.applied, own);
        // Last: a thread that is killed before this has changed nothing.
        shared.segment.u32(words.thread).store(thread, Ordering::Relaxed);
        shared.segment.u32(FOLLOWED).store(1, Ordering::Relaxed);
        state.update_threshold(membership);
        state.raise_followers_of(*slot);
        Ok(Follower { membership: membership.clone(), index })
    }
}

impl Follower {
    /// Why Linux did not let it be scheduled as it had to be, when that was tried last.
    pub fn refused(&self) -> Option<io::Error> {
        let error = self.membership.shared.number(self.words().refused) as i32;
        (error != 0).then(|| io::Error::from_raw_os_error(error))
    }

    fn words(&self) -> FollowerWords {
        let Membership { shared, slot, .. } = &*self.membership;
        shared.layout.follower(*slot, self.index)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if !self.membership.is_ours() {
            return;
        }
        // An error means that the memory is damaged, so that no thread uses it any more.
        let Ok(state) = self.membership.shared.lock_state() else { return };
        let Membership { shared, slot, .. } = &*self.membership;
        let words = self.words();
        apply(shared, *slot, words, Demand { attributes: inheritance::load(shared, words.own), lender: None });
        shared.segment.u32(words.thread).store(0, Ordering::Relaxed);
        state.update_threshold(&self.membership);
    }
}

impl StateGuard<'_> {
    /// Gives each follower of the member in `slot` the highest priority among the holders that it serves. To be called
    /// whenever that may have changed, and may be repeated.
    pub fn raise_followers_of(&self, slot: usize) {
        let shared = self.shared();
        for words in shared.followers(slot) {
            let gpu = shared.number(words.gpu);
            let own = Demand { attributes: inheritance::load(shared, words.own), lender: None };
            let holders = self.token_holders(slot).filter(|&(_, of)| u32::from(of) == gpu);
            let demand = holders.fold(own, |demand, (holder, _)| {
                let Demand { attributes, lender } = self.demand(holder);
                let raised = inheritance::raised(demand.attributes, attributes);
                let lender = if raised == demand.attributes { demand.lender } else { lender.or(Some(holder)) };
                Demand { attributes: raised, lender }
            });
            if inheritance::applied(shared, words.applied) != Some(demand.attributes) {
                apply(shared, slot, words, demand);
            }
        }
    }

    /// As [`StateGuard::raise_followers_of`], for the processes of `tasks`.
    pub fn raise_followers_for(&self, tasks: &[TaskId]) {
        let shared = self.shared();
        if shared.number(FOLLOWED) == 0 {
            return;
        }
        for (index, &task) in tasks.iter().enumerate() {
            let slot = shared.member_slot(task);
            // Few tasks: quadratic takes less time than a set.
            let is_new = slot < MEMBERS_MAX && !tasks[..index].iter().any(|&other| shared.member_slot(other) == slot);
            if is_new {
                self.raise_followers_of(slot);
            }
        }
    }

    /// As [`StateGuard::raise_followers_of`], for all processes.
    pub fn raise_all_followers(&self) {
        if self.shared().number(FOLLOWED) != 0 {
            (0..MEMBERS_MAX).for_each(|slot| self.raise_followers_of(slot));
        }
    }

    /// The followers of the process of `membership` have changed.
    fn update_threshold(&self, membership: &Membership) {
        let shared = self.shared();
        let own = shared.followers(membership.slot).map(|words| inheritance::load(shared, words.own));
        let least = own.map(inheritance::raise_threshold).min().unwrap_or(u8::MAX);
        membership.followers_threshold.store(least, Ordering::SeqCst);
        // A thread that takes a token sees the threshold, or is among the holders that are looked at from here on.
        fence(Ordering::SeqCst);
    }

    /// The threads of the member in `slot` that hold tokens, each with the GPU.
    fn token_holders(&self, slot: usize) -> impl Iterator<Item = (TaskId, u16)> {
        let shared = self.shared();
        let holders = shared.replicas(TOKEN).filter_map(|replica| Some((self.token_holder(replica)?, replica)));
        let theirs = holders.filter(move |&(task, _)| shared.member_slot(task) == slot);
        theirs.map(|(task, replica)| (task, replica.0 % shared.config.gpus))
    }

    /// How the thread of `task` is to be scheduled, with what it inherits.
    pub fn demand(&self, task: TaskId) -> Demand {
        let (shared, arbiter) = (self.shared(), &self.cache.arbiter);
        match arbiter.priority(task) {
            Some(priority) => inheritance::demand(shared, priority, arbiter.base(task)),
            None => Demand { attributes: inheritance::own(shared, task), lender: None },
        }
    }
}

impl Memory {
    /// The followers of the member in `slot`.
    fn followers(&self, slot: usize) -> impl Iterator<Item = FollowerWords> {
        let all = (0..self.layout.followers_max()).map(move |index| self.layout.follower(slot, index));
        all.filter(|words| self.number(words.thread) != 0)
    }
}

/// Has Linux schedule a follower. The caller holds the state lock.
fn apply(shared: &Shared, slot: usize, words: FollowerWords, demand: Demand) {
    inheritance::forget(shared, words.applied);
    let named = NamedThread { thread: shared.number(words.thread), pid: shared.pid(slot), slot };
    let given = inheritance::schedule(shared, named, demand);
    let error = given.err().and_then(|error| error.raw_os_error()).unwrap_or(0);
    shared.segment.u32(words.refused).store(error as u32, Ordering::Relaxed);
    inheritance::store(shared, words.applied, demand.attributes);
}
