//! Changing the state: one thread of all processes at a time.
//!
//! ```text
//!  enter ---> freeze the lock's words, adopt their owners ---> event ---> reopen locks for which nobody waits
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
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

use laxity_model::{Instant, LockId, ReplicaId, TaskId};
use laxity_policy::lock::{Action, Damaged, Event};
use laxity_sys::clock;
use laxity_sys::mutex::{self, Attempt};
use smallvec::SmallVec;

use crate::config::TOKEN;
use crate::desk::Desk;
use crate::inheritance;
use crate::owners::{self, Owners, REPLICAS};
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
pub(crate) struct Inside<'a> {
    shared: &'a Shared,
    pub desk: MutexGuard<'a, Desk>,
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
    pub fn enter(&self) -> Result<Inside<'_>, StateError> {
        let gate = self.pass().map_err(StateError::System)?;
        // Only what is predicted follows from the time, which it takes time to ask for.
        let now = if self.config.predicts() { clock::now() } else { Instant::ZERO };
        // Only the one at the gate is here, and what another left when it panicked is loaded anew.
        let desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        let version = self.version().load(Ordering::Acquire);
        let mut inside = Inside { shared: self, desk, now, version, woken: SmallVec::new(), gate };
        inside.desk.touched.clear();
        if inside.gate.is_inherited || inside.desk.version != Some(version) {
            inside.desk.load(self, version).map_err(StateError::Damaged)?;
        }
        if inside.gate.is_inherited {
            inside.repair();
        }
        Ok(inside)
    }

    fn pass(&self) -> io::Result<mutex::Guard<'_>> {
        for _ in 0..TRIES {
            match self.gate().try_lock()? {
                Attempt::Taken(gate) => return Ok(gate),
                Attempt::Busy => std::hint::spin_loop(),
            }
        }
        self.gate().lock()
    }
}

impl<'a> Inside<'a> {
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
        if !self.desk.is_open(lock) {
            return;
        }
        self.desk.version = None;
        self.desk.open[usize::from(lock.0)] = false;
        let shared = self.shared;
        // All before anyone is adopted: owners of several words are those of one moment, or later ones.
        shared.owner_words(lock).for_each(|word| {
            owners::freeze(word);
        });
        for replica in 0..shared.locks[usize::from(lock.0)].replicas {
            let owner = shared.owner(lock, ReplicaId(replica));
            // Words come from memory that others can write to.
            let Some(task) = owner.filter(|&task| self.desk.is_registered(task)) else { continue };
            if self.desk.arbiter.holds(task).any(|(held, _)| held == lock) {
                continue;
            }
            let (length, only) = shared.said(task, lock);
            self.handle(Event::Adopt { task, lock, replica: ReplicaId(replica), length, only });
        }
    }

    /// The arbiter takes note of `event`. It knows of a task from the first that this asks for to the last that it gives
    /// up: for so long a job is pending.
    pub fn handle(&mut self, event: Event) {
        let task = event.task();
        if let Event::Request { .. } | Event::Adopt { .. } = event {
            self.begin(task);
        }
        self.tell(event);
        let arbiter = &self.desk.arbiter;
        let is_idle = arbiter.waits_for(task).is_none() && arbiter.holds(task).next().is_none();
        if is_idle && arbiter.base(task).is_some() {
            self.tell(Event::Complete { task });
        }
        self.desk.touched.push(task);
    }

    /// The arbiter is about to be told of a request of `task`: before it goes the base priority that `task` says it has,
    /// which stays the same from its first request to its last unlock.
    fn begin(&mut self, task: TaskId) {
        let priority = self.shared.base_said(task);
        match self.desk.arbiter.base(task) {
            None => self.tell(Event::Pending { priority }),
            Some(base) if base != priority => self.tell(Event::Rebase { priority }),
            Some(_) => {}
        }
    }

    fn tell(&mut self, event: Event) {
        let Desk { version, arbiter, actions, .. } = &mut *self.desk;
        *version = None;
        arbiter.handle(self.now, event, actions);
    }

    /// What `task` was granted of `lock`, if anything.
    pub fn granted(&self, task: TaskId, lock: LockId) -> Option<ReplicaId> {
        self.desk.arbiter.holds(task).find(|&(held, _)| held == lock).map(|(_, replica)| replica)
    }

    /// Publishes what happened, does what follows, and leaves.
    #[inline(always)]
    pub fn publish(mut self) {
        self.make_it_count();
        self.follow_up();
        let Inside { shared, desk, woken, gate, .. } = self;
        drop(desk);
        drop(gate);
        woken.into_iter().for_each(|task| shared.wake(task));
    }

    /// The first half of [`Inside::publish`], up to the store that decides. Answers with the locks that were reopened.
    pub fn make_it_count(&mut self) -> &[LockId] {
        // Quadratic, and the policy has tests of its own: not in release.
        if cfg!(debug_assertions) {
            self.desk.arbiter.assert_invariants();
        }
        self.reopen();
        self.desk.publish(self.shared, self.version);
        &self.desk.reopened
    }

    /// The second half, which is done again if whoever does it is killed.
    fn follow_up(&mut self) {
        for &lock in &self.desk.reopened {
            self.shared.owner_words(lock).for_each(owners::thaw);
        }
        self.carry_out();
    }

    /// As if the thread was killed here, if it ends without doing anything more.
    #[cfg(test)]
    pub fn die(self) {
        let Inside { desk, gate, .. } = self;
        drop(desk);
        gate.keep();
    }

    /// Moves the holders of locks for which nobody waits from the arbiter to the locks' words, which stay frozen.
    fn reopen(&mut self) {
        self.desk.reopened.clear();
        for lock in self.shared.lock_ids() {
            if !self.may_reopen(lock) {
                continue;
            }
            let replicas = || (0..self.shared.locks[usize::from(lock.0)].replicas).map(ReplicaId);
            for (index, word) in self.shared.owner_words(lock).enumerate() {
                let here = replicas().skip(index * REPLICAS).take(REPLICAS).enumerate();
                let holder = |replica| self.desk.arbiter.holder(lock, replica);
                here.fold(Owners::NOBODY, |owners, (place, replica)| owners.with(place, holder(replica)))
                    .store_frozen(word);
            }
            let before = self.desk.actions.len();
            for replica in replicas() {
                if let Some(task) = self.desk.arbiter.holder(lock, replica) {
                    self.handle(Event::Unlock { task, lock });
                }
            }
            assert_eq!(self.desk.actions.len(), before, "nobody gains by a lock for which nobody waits");
            self.desk.open[usize::from(lock.0)] = true;
            self.desk.reopened.push(lock);
        }
    }

    fn may_reopen(&self, lock: LockId) -> bool {
        let may_open = self.shared.locks[usize::from(lock.0)].may_open;
        // The words do not say who overran.
        let arbiter = &self.desk.arbiter;
        may_open
            && !self.desk.is_open(lock)
            && arbiter.waiting(lock) == 0
            && !arbiter.overran(lock)
            && !self.is_granted(lock)
    }

    /// Whether `lock` is granted just now, to somebody who waited for it or found it with the arbiter. Others who want it
    /// are likely to come while it is held, for whom the arbiter would have to adopt the holder again: it stays with the
    /// arbiter until somebody lets go of it for nobody.
    fn is_granted(&self, lock: LockId) -> bool {
        self.desk.actions.iter().any(|action| matches!(action, Action::Grant { lock: granted, .. } if *granted == lock))
    }

    /// What the arbiter wants done.
    fn carry_out(&mut self) {
        let mut actions = std::mem::take(&mut self.desk.actions);
        for action in actions.drain(..) {
            self.desk.touched.push(action.task());
            match action {
                Action::Grant { task, replica, .. } => self.deliver(task, replica),
                Action::Prioritize { priority } => self.schedule(priority.task),
            }
        }
        self.desk.actions = actions;
        self.raise_followers_for(&self.desk.touched);
    }

    /// Has Linux schedule `task` as it is to be now.
    fn schedule(&self, task: TaskId) {
        inheritance::apply(self.shared, task, self.demand(task));
    }

    fn deliver(&mut self, task: TaskId, replica: ReplicaId) {
        self.shared.word(task).store(Word::Granted(replica).value(), Ordering::Release);
        self.woken.push(task);
    }

    /// Does what follows from the state again, as whoever published it may have been killed before it was done.
    fn repair(&mut self) {
        for lock in self.shared.lock_ids() {
            if self.desk.is_open(lock) {
                self.shared.owner_words(lock).for_each(owners::thaw);
            }
        }
        for task in self.shared.tasks() {
            if !self.desk.is_registered(task) {
                continue;
            }
            self.schedule(task);
            let is_waiting = Word::of(self.shared.word(task).load(Ordering::Relaxed)) == Word::Waiting;
            if is_waiting && self.desk.arbiter.waits_for(task).is_none() {
                let wanted = self.shared.segment.u32(self.shared.client(task).wanted).load(Ordering::Relaxed);
                // Nobody reopens a lock while it grants it: the arbiter knows.
                let granted = self.granted(task, LockId(wanted as u16));
                granted.into_iter().for_each(|replica| self.deliver(task, replica));
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
        if !self.desk.is_open(TOKEN) {
            return self.desk.arbiter.holder(TOKEN, replica);
        }
        // Words come from memory that others can write to.
        self.shared.owner(TOKEN, replica).filter(|task| task.index() < usize::from(self.shared.config.clients))
    }

    /// What `task` holds of `lock` according to its words, if it is open.
    pub fn owned(&self, task: TaskId, lock: LockId) -> Option<ReplicaId> {
        let is_open = self.desk.open.get(usize::from(lock.0)).is_some_and(|&open| open);
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
