//! Changing the state: one thread of all processes at a time.
//!
//! ```text
//!  enter ---> freeze the lock's words, adopt those they name ---> event ---> reopen locks that need no arbiter
//!                                                                            |
//!  leave <--- wake <--- deliver grants, give priorities <--- thaw <--- publish
//! ```
//!
//! Which of the two says who holds a lock, its words or the arbiter, is part of the state, so publishing decides it.
//! The words of a lock that the arbiter decides mean nothing: they may be written before. Those of an open lock that
//! are frozen still count: who is killed before it publishes has frozen them and changed nothing.
//!
//! What follows a publication is done again by whoever enters after a holder of the gate was killed.

use std::io;
use std::sync::atomic::{Ordering, fence};
use std::sync::{MutexGuard, PoisonError};

use laxity_model::{Instant, LockId, ReplicaId, TaskId};
use laxity_policy::lock::{Action, Damaged, Event};
use laxity_sys::clock;
use laxity_sys::mutex::{self, Attempt};
use smallvec::SmallVec;

use crate::arbiter_cache::ArbiterCache;
use crate::config::TOKEN;
use crate::inheritance;
use crate::owner_word::{self, Owners, REPLICAS};
use crate::shared::{Shared, Word};

/// Why the state cannot be changed, or read.
#[derive(Debug)]
pub enum StateError {
    /// What is in shared memory is no state: something else wrote there.
    Damaged(Damaged),
    /// Linux refuses.
    System(io::Error),
}

/// How often the gate is tried before a thread suspends: inside are microseconds, and less than a wake-up takes.
const TRIES: u32 = 200;

/// A thread at the gate. What it does not publish did not happen.
#[derive(Debug)]
pub(crate) struct StateGuard<'a> {
    shared: &'a Shared,
    pub cache: MutexGuard<'a, ArbiterCache>,
    now: Instant,
    /// The version that counts.
    version: u64,
    /// Threads to be woken: most often one, which is not worth an allocation.
    woken: SmallVec<[TaskId; 4]>,
    gate: mutex::Guard<'a>,
}

impl Shared {
    /// Waits until nobody else is inside.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn lock_state(&self) -> Result<StateGuard<'_>, StateError> {
        let gate = self.spin_then_lock().map_err(StateError::System)?;
        // Only what is predicted follows from the time, which it takes time to ask for.
        let now = if self.config.predicts() { clock::now() } else { Instant::ZERO };
        // Only the one at the gate is here, and what another left when it panicked is loaded anew.
        let cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.version().load(Ordering::Acquire);
        let mut state = StateGuard { shared: self, cache, now, version, woken: SmallVec::new(), gate };
        state.cache.touched.clear();
        if state.gate.is_inherited || state.cache.version != Some(version) {
            state.cache.load(self, version).map_err(StateError::Damaged)?;
        }
        if state.gate.is_inherited {
            state.repair();
        }
        Ok(state)
    }

    fn spin_then_lock(&self) -> io::Result<mutex::Guard<'_>> {
        for _ in 0..TRIES {
            match self.state_mutex().try_lock()? {
                Attempt::Taken(gate) => return Ok(gate),
                Attempt::Busy => std::hint::spin_loop(),
            }
        }
        self.state_mutex().lock()
    }
}

impl<'a> StateGuard<'a> {
    pub fn shared(&self) -> &'a Shared {
        self.shared
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
        // All before anyone is adopted: owners of several words are those of one moment, or later ones.
        shared.owner_words(lock).for_each(|word| {
            owner_word::freeze(word);
        });
        // Who waits for another lock, holding this one, sees that it is frozen, or is seen to wait.
        fence(Ordering::SeqCst);
        self.cache.adopt(shared, self.now, lock);
        for replica in (0..shared.locks[usize::from(lock.0)].replicas).map(ReplicaId) {
            let holder = self.cache.arbiter.holder(lock, replica);
            holder.into_iter().for_each(|task| self.arbitrate_wait(task));
        }
        // Who was handed it by its word and has not looked at that yet is told by its own.
        if shared.locks[usize::from(lock.0)].has_waiter_slot
            && let Some(owner) = self.cache.arbiter.holder(lock, ReplicaId(0))
        {
            self.notify_owner(owner, lock);
        }
    }

    /// `task`, which holds `lock`, may not know that yet.
    fn notify_owner(&mut self, task: TaskId, lock: LockId) {
        let word = self.shared.word(task);
        // The word comes first: what it wants was noted before.
        let seen = word.load(Ordering::Acquire);
        if Word::of(seen) != Word::Waiting || self.shared.wanted(task) != Some(lock) {
            return;
        }
        // It may find out at this very moment: it is told once.
        let granted = Word::Granted(ReplicaId(0)).instead_of(seen);
        if word.compare_exchange(seen, granted, Ordering::Release, Ordering::Relaxed).is_ok() {
            self.woken.push(task);
        }
    }

    /// From now on the arbiter decides about the lock in whose seat `task` waits, if it does.
    pub fn arbitrate_wait(&mut self, task: TaskId) {
        let shared = self.shared;
        let is_waiting = Word::of(shared.word(task).load(Ordering::Acquire)) == Word::Waiting;
        let wanted = shared.wanted(task).filter(|lock| is_waiting && shared.locks[usize::from(lock.0)].has_waiter_slot);
        let Some(lock) = wanted else { return };
        let owners = Owners::of(shared.slot_word(lock));
        if owners.waiter() == Some(task) || owners.owner(0) == Some(task) {
            self.arbitrate(lock);
        }
    }

    /// The arbiter takes note of `event`. It knows of a task from the first that this asks for to the last that it gives
    /// up: for so long a job is pending.
    pub fn handle(&mut self, event: Event) {
        let task = event.task();
        self.cache.tell(self.shared, self.now, event);
        let arbiter = &self.cache.arbiter;
        let is_idle = arbiter.waits_for(task).is_none() && arbiter.holds(task).next().is_none();
        if is_idle && arbiter.base(task).is_some() {
            self.cache.tell(self.shared, self.now, Event::Complete { task });
        }
        self.cache.touched.push(task);
    }

    /// What `task` was granted of `lock`, if anything.
    pub fn granted(&self, task: TaskId, lock: LockId) -> Option<ReplicaId> {
        self.cache.arbiter.holds(task).find(|&(held, _)| held == lock).map(|(_, replica)| replica)
    }

    /// Publishes what happened, does what follows, and leaves.
    #[inline(always)]
    pub fn publish(mut self) {
        self.commit();
        self.carry_out_all();
        let StateGuard { shared, cache, woken, gate, .. } = self;
        drop(cache);
        drop(gate);
        woken.into_iter().for_each(|task| shared.wake(task));
    }

    /// The first half of [`StateGuard::publish`], up to the store that decides. Answers with the locks that were reopened.
    pub fn commit(&mut self) -> &[LockId] {
        // Quadratic, and the policy has tests of its own: not in release.
        if cfg!(debug_assertions) {
            self.cache.arbiter.assert_invariants();
        }
        self.reopen();
        self.cache.publish(self.shared, self.version);
        &self.cache.reopened
    }

    /// The second half, which is done again if whoever does it is killed.
    fn carry_out_all(&mut self) {
        for &lock in &self.cache.reopened {
            self.shared.owner_words(lock).for_each(owner_word::thaw);
        }
        self.carry_out();
    }

    /// As if the thread was killed here, if it ends without doing anything more.
    #[cfg(test)]
    pub fn die(self) {
        let StateGuard { cache, gate, .. } = self;
        drop(cache);
        gate.keep();
    }

    /// Moves those who hold, or wait in the seat of, locks that need no arbiter to the locks' words, which stay frozen.
    fn reopen(&mut self) {
        self.cache.reopened.clear();
        for lock in self.shared.lock_ids() {
            if !self.may_reopen(lock) {
                continue;
            }
            let waiter = self.only_waiter(lock);
            let replicas = || (0..self.shared.locks[usize::from(lock.0)].replicas).map(ReplicaId);
            for (index, word) in self.shared.owner_words(lock).enumerate() {
                let here = replicas().skip(index * REPLICAS).take(REPLICAS).enumerate();
                let holder = |replica| self.cache.arbiter.holder(lock, replica);
                let owners = here.fold(Owners::NOBODY, |owners, (place, replica)| owners.with(place, holder(replica)));
                waiter.map_or(owners, |waiter| owners.with_waiter(waiter)).store_frozen(word);
            }
            waiter.into_iter().for_each(|task| self.handle(Event::Withdraw { task, lock }));
            for replica in replicas() {
                if let Some(task) = self.cache.arbiter.holder(lock, replica) {
                    self.handle(Event::Unlock { task, lock });
                }
            }
            assert!(!self.is_granted(lock), "nobody waits in the arbiter any more");
            self.cache.open[usize::from(lock.0)] = true;
            self.cache.reopened.push(lock);
        }
    }

    fn may_reopen(&self, lock: LockId) -> bool {
        let may_open = self.shared.locks[usize::from(lock.0)].may_open;
        // The words do not say who overran.
        let arbiter = &self.cache.arbiter;
        may_open
            && !self.cache.is_open(lock)
            && (arbiter.waiting(lock) == 0 || self.only_waiter(lock).is_some())
            && !arbiter.overran(lock)
            && !self.is_granted(lock)
    }

    /// Who waits for `lock` and may do so in its seat: it makes nobody more urgent, and nobody who waits in the arbiter
    /// makes it so.
    fn only_waiter(&self, lock: LockId) -> Option<TaskId> {
        let arbiter = &self.cache.arbiter;
        if !self.shared.locks[usize::from(lock.0)].has_waiter_slot || arbiter.waiting(lock) != 1 {
            return None;
        }
        let mut waiter = None;
        arbiter.standings(lock, |task, _| waiter = Some(task));
        let (holder, waiter) = (arbiter.holder(lock, ReplicaId(0))?, waiter?);
        let may_sit = arbiter.holds(waiter).next().is_none() && !inheritance::would_raise(self.shared, waiter, holder);
        may_sit.then_some(waiter)
    }

    /// Whether `lock` is granted just now, to somebody who waited for it or found it with the arbiter. Others who want it
    /// are likely to come while it is held, for whom the arbiter would have to adopt the holder again: it stays with the
    /// arbiter until somebody lets go of it for nobody.
    fn is_granted(&self, lock: LockId) -> bool {
        self.cache
            .actions
            .iter()
            .any(|action| matches!(action, Action::Grant { lock: granted, .. } if *granted == lock))
    }

    /// What the arbiter wants done.
    fn carry_out(&mut self) {
        let mut actions = std::mem::take(&mut self.cache.actions);
        for action in actions.drain(..) {
            self.cache.touched.push(action.task());
            match action {
                Action::Grant { task, replica, .. } => self.deliver(task, replica),
                Action::Prioritize { priority } => self.schedule(priority.task),
            }
        }
        self.cache.actions = actions;
        self.raise_followers_for(&self.cache.touched);
    }

    /// Has Linux schedule `task` as it is to be now.
    fn schedule(&self, task: TaskId) {
        inheritance::apply(self.shared, task, self.demand(task));
    }

    fn deliver(&mut self, task: TaskId, replica: ReplicaId) {
        Word::Granted(replica).store(self.shared.word(task));
        self.woken.push(task);
    }

    /// Does what follows from the state again, as whoever published it may have been killed before it was done.
    fn repair(&mut self) {
        for lock in self.shared.lock_ids() {
            if self.cache.is_open(lock) {
                self.shared.owner_words(lock).for_each(owner_word::thaw);
            }
        }
        for task in self.shared.tasks() {
            if !self.cache.is_registered(task) {
                continue;
            }
            self.schedule(task);
            let is_waiting = Word::of(self.shared.word(task).load(Ordering::Acquire)) == Word::Waiting;
            if is_waiting && self.cache.arbiter.waits_for(task).is_none() {
                // Nobody reopens a lock while it grants it: the arbiter knows.
                let granted = self.shared.wanted(task).and_then(|lock| self.granted(task, lock));
                granted.into_iter().for_each(|replica| self.deliver(task, replica));
                // It may be that it was handed a lock while that was frozen.
                self.shared.notify(task);
            }
        }
        self.raise_all_followers();
        // Who was to be woken by the dead. To wake one for nothing does no harm.
        for task in std::mem::take(&mut self.woken) {
            self.shared.wake(task);
        }
    }

    /// Who holds a token.
    pub fn holder(&self, replica: ReplicaId) -> Option<TaskId> {
        if !self.cache.is_open(TOKEN) {
            return self.cache.arbiter.holder(TOKEN, replica);
        }
        // Words come from memory that others can write to.
        self.shared.owner(TOKEN, replica).filter(|task| task.index() < usize::from(self.shared.config.clients))
    }

    /// What `task` holds of `lock` according to its words, if it is open.
    pub fn owned(&self, task: TaskId, lock: LockId) -> Option<ReplicaId> {
        let is_open = self.cache.open.get(usize::from(lock.0)).is_some_and(|&open| open);
        let replicas = is_open.then(|| self.shared.locks[usize::from(lock.0)].replicas)?;
        (0..replicas).map(ReplicaId).find(|&replica| self.shared.owner(lock, replica) == Some(task))
    }
}

impl std::fmt::Display for StateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StateError::Damaged(error) => write!(f, "the arbitration's memory: {error}; end its users and remove it"),
            StateError::System(error) => write!(f, "cannot enter the arbitration: {error}"),
        }
    }
}

impl std::error::Error for StateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StateError::Damaged(error) => Some(error),
            StateError::System(error) => Some(error),
        }
    }
}
