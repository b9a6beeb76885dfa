//! Changing the state: one thread of all processes at a time, under the state lock.
//!
//! ```text
//!  lock_state ---> freeze the lock's words, adopt their owners ---> event ---> reopen locks that need no arbiter
//!                                                                              |
//!  unlock <--- wake <--- deliver grants, apply priorities <--- thaw <------ publish
//! ```
//!
//! A lock's owners are in its words or in the arbiter. Which of the two is part of the state, so publishing decides it.
//! The words of a lock in the arbiter mean nothing, and may be written before the publication. The words of an open lock
//! that are frozen still count: a thread that is killed before it publishes has frozen them and changed nothing.
//!
//! The steps after a publication may be repeated ([`delivery`](crate::delivery)): the next thread does it again if the
//! state lock's last holder was killed.

use std::io;
use std::sync::atomic::{Ordering, fence};
use std::sync::{MutexGuard, PoisonError};

use laxity_model::{Instant, LockId, ReplicaId, TaskId};
use laxity_policy::lock::{Damaged, Event};
use laxity_sys::clock;
use laxity_sys::mutex::{self, Attempt};
use smallvec::SmallVec;

use crate::arbiter_cache::ArbiterCache;
use crate::client_word::ClientWord;
use crate::config::TOKEN;
use crate::owner_word::{self, Owners};
use crate::shared::Shared;
use crate::step;

/// Why the state cannot be changed, or read.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The shared memory holds no state: something else wrote there.
    #[error("the arbitration's memory: {0}; end its users and remove it")]
    Damaged(#[source] Damaged),
    /// Linux refuses.
    #[error("cannot enter the arbitration: {0}")]
    System(#[source] io::Error),
}

/// How often a thread tries the state lock before it suspends: the lock is held for microseconds, less than a wake-up
/// takes.
const TRIES: u32 = 200;

/// The state lock, held. Unpublished changes did not happen.
#[derive(Debug)]
pub(crate) struct StateGuard<'a> {
    shared: &'a Shared,
    pub cache: MutexGuard<'a, ArbiterCache>,
    now: Instant,
    /// The version that counts.
    version: u64,
    /// Threads to be woken: most often one, which is not worth an allocation.
    pub woken: SmallVec<[TaskId; 4]>,
    mutex: mutex::Guard<'a>,
}

impl Shared {
    /// Waits for the state lock.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn lock_state(&self) -> Result<StateGuard<'_>, StateError> {
        step::point();
        let mutex = self.spin_then_lock().map_err(StateError::System)?;
        step::point();
        // Reading the clock takes time, and only prediction needs it.
        let now = if self.config.predicts() { clock::now() } else { Instant::ZERO };
        // Only the holder of the state lock uses the cache. After a panic the state is loaded anew.
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.version().load(Ordering::Acquire);
        let mut state = StateGuard { shared: self, cache, now, version, woken: SmallVec::new(), mutex };
        state.cache.touched.clear();
        state.cache.reopened.clear();
        if state.mutex.is_inherited || state.cache.version != Some(version) {
            state.cache.load(self, version).map_err(StateError::Damaged)?;
        }
        if state.mutex.is_inherited {
            state.repair();
        }
        Ok(state)
    }

    fn spin_then_lock(&self) -> io::Result<mutex::Guard<'_>> {
        for _ in 0..TRIES {
            match self.state_mutex().try_lock()? {
                Attempt::Taken(mutex) => return Ok(mutex),
                Attempt::Busy => std::hint::spin_loop(),
            }
        }
        while step::is_simulated() {
            step::point();
            if let Attempt::Taken(mutex) = self.state_mutex().try_lock()? {
                return Ok(mutex);
            }
        }
        self.state_mutex().lock()
    }
}

impl<'a> StateGuard<'a> {
    pub fn shared(&self) -> &'a Shared {
        self.shared
    }

    pub fn now(&self) -> Instant {
        self.now
    }

    /// The version that counts.
    #[cfg(test)]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// From now on the arbiter decides about `lock`.
    pub fn arbitrate(&mut self, lock: LockId) {
        if !self.cache.is_open(lock) {
            return;
        }
        let shared = self.shared;
        // All words before any owner is adopted: the owners of several words are those of one moment, or later ones.
        shared.owner_words(lock).for_each(|word| {
            owner_word::freeze(word);
        });
        // A holder of this lock that parks at another one sees that this one is frozen, or is seen to wait below.
        fence(Ordering::SeqCst);
        self.cache.adopt(shared, self.now, lock);
        for replica in shared.replicas(lock) {
            let holder = self.cache.arbiter.holder(lock, replica);
            holder.into_iter().for_each(|task| self.arbitrate_wait(task));
        }
        // The owner may have been handed the replica by the lock's word, and not have read that yet: then it learns it
        // from its own word.
        if shared.lock(lock).has_waiter_slot
            && let Some(owner) = self.cache.arbiter.holder(lock, ReplicaId(0))
        {
            self.notify_owner(owner, lock);
        }
    }

    /// `task`, which holds `lock`, may not know that yet.
    fn notify_owner(&mut self, task: TaskId, lock: LockId) {
        let word = self.shared.word(task);
        // The word before the wanted lock, which was stored before the word.
        let seen = word.load(Ordering::Acquire);
        if ClientWord::of(seen) != ClientWord::Waiting || self.shared.wanted(task) != Some(lock) {
            return;
        }
        // The task may find out by itself at this very moment: one of the two exchanges succeeds.
        let granted = ClientWord::Granted(ReplicaId(0)).instead_of(seen);
        if word.compare_exchange(seen, granted, Ordering::Release, Ordering::Relaxed).is_ok() {
            self.woken.push(task);
        }
    }

    /// From now on the arbiter decides about the lock in whose waiter slot `task` waits, if it does.
    pub fn arbitrate_wait(&mut self, task: TaskId) {
        let shared = self.shared;
        let is_waiting = shared.is_waiting(task);
        let wanted = shared.wanted(task).filter(|&lock| is_waiting && shared.lock(lock).has_waiter_slot);
        let Some(lock) = wanted else { return };
        let owners = Owners::of(shared.slot_word(lock));
        if owners.waiter() == Some(task) || owners.owner(0) == Some(task) {
            self.arbitrate(lock);
        }
    }

    /// The arbiter handles `event`. It knows a task from its first request here to the last lock that it gives up.
    pub fn handle(&mut self, event: Event) {
        self.cache.handle(self.shared, self.now, event);
        self.cache.complete_if_idle(self.shared, self.now, event.task());
    }

    /// The replica of `lock` that the arbiter granted `task`, if any.
    pub fn granted(&self, task: TaskId, lock: LockId) -> Option<ReplicaId> {
        self.cache.arbiter.holds(task).find(|&(held, _)| held == lock).map(|(_, replica)| replica)
    }

    /// The replica of `lock` that `task` owns by the lock's words, if the lock is open.
    pub fn owned(&self, task: TaskId, lock: LockId) -> Option<ReplicaId> {
        let is_open = self.cache.open.get(usize::from(lock.0)).is_some_and(|&open| open);
        let replicas = is_open.then(|| self.shared.replicas(lock))?;
        { replicas }.find(|&replica| self.shared.owner(lock, replica) == Some(task))
    }

    /// The task that holds this token, by its word or by the arbiter.
    pub fn token_holder(&self, replica: ReplicaId) -> Option<TaskId> {
        if !self.cache.is_open(TOKEN) {
            return self.cache.arbiter.holder(TOKEN, replica);
        }
        self.shared.owner(TOKEN, replica).filter(|&task| self.shared.is_task(task))
    }

    /// Publishes what happened, does what follows, and unlocks the state.
    #[inline(always)]
    pub fn publish(mut self) {
        self.commit();
        self.deliver_all();
        let StateGuard { shared, cache, woken, mutex, .. } = self;
        drop(cache);
        drop(mutex);
        for task in woken {
            step::point();
            shared.wake(task);
        }
    }

    /// The first half of [`StateGuard::publish`], up to the store that decides. Answers with the locks that it reopened.
    pub fn commit(&mut self) -> &[LockId] {
        // Quadratic, and the policy has tests of its own: not in release.
        if cfg!(debug_assertions) {
            self.cache.arbiter.assert_invariants();
        }
        self.reopen();
        step::point();
        self.cache.publish(self.shared, self.version);
        step::point();
        &self.cache.reopened
    }

    /// As if the thread was killed here, if it ends without doing anything more.
    #[cfg(test)]
    pub fn die(self) {
        let StateGuard { cache, mutex, .. } = self;
        drop(cache);
        mutex.keep();
    }
}
