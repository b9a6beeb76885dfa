//! How a client gets a lock and releases it: on the fast path by one instruction, else by the arbiter.
//!
//! ```text
//!  request_lock ---> take ------------------------------------------------------> holds
//!                      | not free                                                   ^
//!                      +--> try_park ---> wait: handed over by the owner -----------+
//!                      |                                                            |
//!                      +--> request_by_arbiter ---> wait: granted by the arbiter ---+
//! ```

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use laxity_model::{Instant, LockId, Nanos, ReplicaId, TaskId};
use laxity_policy::lock::Event;
use laxity_sys::clock;
use laxity_sys::futex::Ended;

use crate::client::{Client, POLL_INTERVAL};
use crate::client_word::ClientWord;
use crate::config::TOKEN;
use crate::inheritance;
use crate::owner_word::{self, Parked};
use crate::request::{LockError, Resource, TokenRequest};
use crate::step;

impl Client {
    /// Waits for `lock`, as long as `keep_waiting` answers yes if there is one.
    #[inline(always)]
    pub(crate) fn acquire(
        &self,
        lock: LockId,
        request: TokenRequest,
        what: Resource,
        keep_waiting: Option<&dyn Fn() -> bool>,
    ) -> Result<ReplicaId, LockError> {
        match self.request_lock(lock, request, what)? {
            Some(replica) => Ok(replica),
            None => self.wait(lock, request.deadline, what, keep_waiting),
        }
    }

    /// Requests `lock`; `None`: it waits from now on. Takes a free uncontended lock by one instruction.
    #[inline(always)]
    pub(crate) fn request_lock(
        &self,
        lock: LockId,
        request: TokenRequest,
        what: Resource,
    ) -> Result<Option<ReplicaId>, LockError> {
        if lock == TOKEN {
            self.shared().publish_request(self.task, request.length, request.gpu);
        }
        if lock == TOKEN && self.budget.is_exhausted() {
            return self.request_by_arbiter(lock, request, what);
        }
        match self.take(lock, request.gpu) {
            None => self.request_held(lock, request, what),
            taken => Ok(taken),
        }
    }

    /// As [`Client::request_lock`], for a lock that was not free just now. A function of its own, so that a thread that finds
    /// the lock free saves no registers for it.
    #[inline(never)]
    fn request_held(
        &self,
        lock: LockId,
        request: TokenRequest,
        what: Resource,
    ) -> Result<Option<ReplicaId>, LockError> {
        loop {
            match self.try_park(lock, request) {
                Parked::Free => {}
                Parked::Behind(owner) if self.must_arbitrate(owner) => {
                    self.arbitrate(lock)?;
                    return Ok(self.granted());
                }
                Parked::Behind(_) => return Ok(None),
                Parked::Refused => return self.request_by_arbiter(lock, request, what),
            }
            if let taken @ Some(_) = self.take(lock, request.gpu) {
                return Ok(taken);
            }
        }
    }

    /// Takes `lock` by one instruction, or not at all: of a GPU's tokens, one of GPU `only`.
    #[inline]
    pub(crate) fn take_if_free(&self, lock: LockId, only: Option<u16>) -> Option<ReplicaId> {
        if lock == TOKEN {
            if self.budget.is_exhausted() {
                return None;
            }
            self.shared().publish_request(self.task, Nanos::ZERO, only);
        }
        self.take(lock, only)
    }

    /// Takes `lock` without the arbiter, if it is free.
    #[inline(always)]
    fn take(&self, lock: LockId, only: Option<u16>) -> Option<ReplicaId> {
        let replica = self.shared().take(self.task, lock, only)?;
        self.record_hold(lock);
        self.update_followers(lock);
        Some(replica)
    }

    /// Waits for `lock` in its waiter slot, if no other thread waits and no inheritance is needed.
    #[inline]
    fn try_park(&self, lock: LockId, request: TokenRequest) -> Parked {
        let shared = self.shared();
        // A thread that watches its budget may come between any two steps, and must see whether it waits.
        let has_budget = Arc::strong_count(&self.budget) > REFERENCES;
        let has_slot = shared.lock(lock).has_waiter_slot;
        if !has_slot || request.deadline == Instant::ZERO || has_budget || self.may_inherit() {
            return Parked::Refused;
        }
        shared.begin_wait(self.task, lock);
        let parked = owner_word::try_park(shared.slot_word(lock), self.task);
        if !matches!(parked, Parked::Behind(_)) {
            ClientWord::Idle.store(shared.word(self.task));
        }
        parked
    }

    /// Whether the arbiter must decide about the lock at which this thread parked just now: `owner` inherits from this
    /// thread, or may have to, or has ended.
    fn must_arbitrate(&self, owner: TaskId) -> bool {
        // A thread that freezes a lock held by this one then looks whether this one waits: one of the two sees the other.
        step::point();
        fence(Ordering::SeqCst);
        self.may_inherit()
            || inheritance::would_raise(self.shared(), self.task, owner)
            || self.shared().has_ended(owner)
    }

    /// Whether this thread may come to inherit before it releases what it holds: the arbiter may have waiters for that.
    fn may_inherit(&self) -> bool {
        let shared = self.shared();
        (self.has_token.get() && shared.is_frozen(TOKEN))
            || self.engines.borrow().iter().any(|&engine| shared.is_frozen(engine))
    }

    /// Has the arbiter decide about `lock`, for which this thread waits.
    #[cold]
    fn arbitrate(&self, lock: LockId) -> Result<(), LockError> {
        let mut state = self.shared().lock_state().map_err(LockError::State)?;
        state.arbitrate(lock);
        state.retire_ended_holders(lock).map_err(LockError::State)?;
        state.publish();
        Ok(())
    }

    #[cold]
    fn request_by_arbiter(
        &self,
        lock: LockId,
        request: TokenRequest,
        what: Resource,
    ) -> Result<Option<ReplicaId>, LockError> {
        let (shared, task) = (self.shared(), self.task);
        let mut state = shared.lock_state().map_err(LockError::State)?;
        // Without budget it requests nothing: it waits until it is replenished.
        let is_barred = lock == TOKEN && self.budget.is_exhausted();
        state.arbitrate(lock);
        state.retire_ended_holders(lock).map_err(LockError::State)?;
        shared.begin_wait(task, lock);
        if !is_barred {
            state.handle(Event::Request { task, lock, length: request.length, only: request.gpu });
        }
        let is_late = state.granted(task, lock).is_none() && request.deadline == Instant::ZERO;
        if is_late && !is_barred {
            state.handle(Event::Withdraw { task, lock });
        }
        state.publish();
        if is_late {
            ClientWord::Idle.store(shared.word(task));
            return Err(LockError::TimedOut { what });
        }
        Ok(self.granted())
    }

    /// The replica that it waited for and was granted. Each grant is answered once.
    pub(crate) fn granted(&self) -> Option<ReplicaId> {
        self.look().ok()
    }

    /// As [`Client::granted`]; without a grant, the value of its word.
    #[inline]
    fn look(&self) -> Result<ReplicaId, u32> {
        let (shared, task) = (self.shared(), self.task);
        let word = shared.word(task);
        let mut seen = word.load(Ordering::Acquire);
        loop {
            let Some(lock) = shared.wanted(task) else { return Err(seen) };
            match ClientWord::of(seen) {
                ClientWord::Granted(replica) => {
                    ClientWord::Idle.store(word);
                    self.record_hold(lock);
                    return Ok(replica);
                }
                ClientWord::Waiting if shared.was_handed(task, lock) => {}
                ClientWord::Waiting | ClientWord::Idle => return Err(seen),
            }
            step::point();
            // A thread that arbitrates the lock may notify this one at the same moment: one exchange succeeds.
            match word.compare_exchange(seen, ClientWord::Idle.instead_of(seen), Ordering::Relaxed, Ordering::Acquire) {
                Ok(_) => {
                    self.record_hold(lock);
                    self.update_followers(lock);
                    return Ok(ReplicaId(0));
                }
                Err(other) => seen = other,
            }
        }
    }

    #[inline(always)]
    fn wait(
        &self,
        lock: LockId,
        deadline: Instant,
        what: Resource,
        keep_waiting: Option<&dyn Fn() -> bool>,
    ) -> Result<ReplicaId, LockError> {
        let word = self.shared().word(self.task);
        loop {
            let seen = match self.look() {
                Ok(replica) => return Ok(replica),
                Err(seen) => seen,
            };
            let until = match keep_waiting {
                None => deadline,
                Some(_) => deadline.min(clock::now().saturating_add(POLL_INTERVAL)),
            };
            let timed_out = step::sleep(self.task, word, seen, until) == Ended::TimedOut;
            if timed_out {
                // The holder may have ended meanwhile, and then this thread may be granted the lock.
                self.shared().reap_ended_holders(lock).map_err(LockError::State)?;
            }
            let is_late = timed_out && until == deadline;
            if is_late || keep_waiting.is_some_and(|keep_waiting| !keep_waiting()) {
                return self.give_up(lock)?.ok_or(LockError::TimedOut { what });
            }
        }
    }

    /// Waits no longer, unless the lock was granted meanwhile.
    pub(crate) fn give_up(&self, lock: LockId) -> Result<Option<ReplicaId>, LockError> {
        let (shared, task) = (self.shared(), self.task);
        let mut state = shared.lock_state().map_err(LockError::State)?;
        state.arbitrate_wait(task);
        if let Some(replica) = self.granted() {
            state.publish();
            return Ok(Some(replica));
        }
        ClientWord::Idle.store(shared.word(task));
        // A request was withdrawn before if the budget is exhausted.
        if state.cache.arbiter.waits_for(task) == Some(lock) {
            state.handle(Event::Withdraw { task, lock });
        }
        state.publish();
        Ok(None)
    }

    /// Releases `lock`. If the memory is damaged there is no next holder.
    #[inline(always)]
    pub(crate) fn release(&self, lock: LockId, replica: ReplicaId) {
        if !self.is_registered() {
            return;
        }
        if lock == TOKEN {
            self.has_token.set(false);
        } else {
            self.engines.borrow_mut().retain(|&held| held != lock);
        }
        if self.shared().release(lock, replica) {
            self.update_followers(lock);
        } else {
            self.release_by_arbiter(lock);
        }
    }

    /// This thread holds `lock` from now on.
    #[inline]
    fn record_hold(&self, lock: LockId) {
        if lock == TOKEN {
            self.has_token.set(true);
        } else {
            self.engines.borrow_mut().push(lock);
        }
    }

    /// This thread took or released `lock` without the arbiter: if it is the lock of the tokens, the followers of its
    /// process change, unless this thread lends too little, and a process that watches holders is told. It inherits nothing,
    /// as it holds nothing else.
    #[inline]
    fn update_followers(&self, lock: LockId) {
        if lock != TOKEN {
            return;
        }
        if self.lends.get() > self.membership.followers_threshold.load(Ordering::SeqCst) {
            self.membership.raise_followers();
        }
        self.shared().wake_if_asleep(&self.shared().layout.holder_watch);
    }

    #[inline(always)]
    fn release_by_arbiter(&self, lock: LockId) {
        let Ok(mut state) = self.shared().lock_state() else { return };
        state.arbitrate(lock);
        state.handle(Event::Unlock { task: self.task, lock });
        state.publish();
    }
}

/// References to the budget of a client that no thread watches: the client's and its registration's.
const REFERENCES: usize = 2;
