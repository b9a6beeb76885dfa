//! A task's requests for the system's locks.

use std::sync::atomic::Ordering;

use laxity_model::{LockId, Nanos, ReplicaId};
use laxity_policy::lock::{self, Event};
use laxity_sys::clock;
use laxity_sys::futex::Ended;

use crate::decision::Watch;
use crate::locks::{LocksGuard, WAITING, granted};
use crate::state_lock::StateError;
use crate::step::{self, Sleep};
use crate::task::{LOOK_AGAIN, Phase, Task, TaskError};

/// A request for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRequest {
    /// The lock, a position in [`Config::locks`](crate::Config::locks).
    pub lock: LockId,
    /// Bound on how long it will be held; zero: not known.
    pub length: Nanos,
    /// The only GPU of its pool that will do, by its position there.
    pub only: Option<u16>,
}

impl LockRequest {
    /// For any replica of `lock`, for a time that is not known.
    pub fn of(lock: LockId) -> LockRequest {
        LockRequest { lock, length: Nanos::ZERO, only: None }
    }
}

/// How seldom a waiter looks for holders that ended unnoticed.
const PATIENCE_MAX: Nanos = Nanos::from_millis(640);

impl Task {
    /// Waits for the lock, suspended. Its holder inherits what its protocol says, through any number of locks. `watch`
    /// hears of the decisions before the thread may have to wait.
    ///
    /// # Errors
    /// [`TaskError`]; there must be a job that is not suspended and does not hold the lock.
    pub fn lock(&self, request: LockRequest, watch: &mut impl Watch) -> Result<ReplicaId, TaskError> {
        self.charged(|| self.lock_now(request, watch))
    }

    fn lock_now(&self, request: LockRequest, watch: &mut impl Watch) -> Result<ReplicaId, TaskError> {
        self.expect(Phase::Pending, "a lock", "a job that is not suspended", "wait for one first")?;
        let (shared, task, lock) = (self.shared(), self.id(), request.lock);
        let LockRequest { length, only, .. } = request;
        let word = shared.request(task);
        self.change_locks(watch, |locks| {
            if lock.index() >= shared.config.locks.len() {
                return Err(self.out_of_order("a lock", "one of the system's", "create the system with it"));
            }
            let gpus = match shared.config.locks[lock.index()] {
                lock::Config::Tokens { gpus, .. } => gpus,
                ref other => other.replicas(),
            };
            if only.is_some_and(|gpu| gpu >= gpus) {
                return Err(self.out_of_order("a lock", "a GPU that the lock has", "number GPUs from 0, or name none"));
            }
            if locks.cache.arbiter.holds(task).any(|(held, _)| held == lock) {
                return Err(self.out_of_order("a lock", "one that its job does not hold", "unlock it first"));
            }
            word.store(WAITING, Ordering::SeqCst);
            locks.handle(Event::Request { task, lock, length, only });
            if locks.cache.arbiter.waits_for(task).is_some() {
                self.end_sections();
            }
            Ok(())
        })?;
        let mut patience = LOOK_AGAIN;
        let replica = loop {
            if let Some(replica) = granted(word.load(Ordering::SeqCst)) {
                break replica;
            }
            let until = clock::now().saturating_add(patience);
            if step::sleep(task, Sleep::Request, word, WAITING, until) == Ended::TimedOut {
                self.look_for_ended_holders(lock)?;
                // A look takes the state lock and reads all that wait: a hundred waiters that look every 10 ms keep a CPU
                // busy, so that more wait. Ends of threads and processes are noticed otherwise, as a rule.
                patience = Nanos((2 * patience.0).min(PATIENCE_MAX.0));
            }
        };
        word.store(0, Ordering::SeqCst);
        self.held.set(self.held.get() + 1);
        self.settle();
        Ok(replica)
    }

    /// Unlocks `lock`. The next holder goes on by the same decision.
    ///
    /// # Errors
    /// [`TaskError`]; its job must hold the lock and not be suspended.
    pub fn unlock(&self, lock: LockId, watch: &mut impl Watch) -> Result<(), TaskError> {
        self.expect(Phase::Pending, "an unlock", "a job that is not suspended", "wait for one first")?;
        self.charged(|| self.change_locks(watch, |locks| self.give_up(lock, locks)).map(drop))
    }

    /// Unlocks `lock`, the only one that the job holds, and completes the job by the same decision: the job is not preempted
    /// in between by the next holder.
    ///
    /// # Errors
    /// [`TaskError`]; its job must hold the lock and no other, and not be suspended.
    pub fn unlock_and_complete(&self, lock: LockId, watch: &mut impl Watch) -> Result<(), TaskError> {
        self.charged(|| self.unlock_and_complete_now(lock, watch))
    }

    fn unlock_and_complete_now(&self, lock: LockId, watch: &mut impl Watch) -> Result<(), TaskError> {
        self.expect(Phase::Pending, "an unlock", "a job that is not suspended", "wait for one first")?;
        if self.held.get() > 1 {
            return Err(self.out_of_order("completion", "no other lock to be held", "unlock the others first"));
        }
        self.end_sections();
        let at = self.change_locks(watch, |locks| {
            self.give_up(lock, locks)?;
            locks.complete(self.id());
            Ok(())
        })?;
        self.phase.set(Phase::Idle);
        self.shared().end_job(self.id(), at);
        Ok(())
    }

    fn give_up(&self, lock: LockId, locks: &mut LocksGuard<'_>) -> Result<(), TaskError> {
        let task = self.id();
        if locks.cache.arbiter.holds(task).all(|(held, _)| held != lock) {
            return Err(self.out_of_order("an unlock", "a lock that its job holds", "lock it first"));
        }
        locks.handle(Event::Unlock { task, lock });
        self.held.set(self.held.get().saturating_sub(1));
        Ok(())
    }

    /// The holder of `lock` may have ended by itself, or a thread that was to tell us may have been killed.
    fn look_for_ended_holders(&self, lock: LockId) -> Result<(), StateError> {
        let shared = self.shared();
        let locks = shared.lock_locks()?;
        let replicas = (0..shared.config.locks[lock.index()].replicas()).map(ReplicaId);
        let holders = replicas.filter_map(|replica| locks.cache.arbiter.holder(lock, replica));
        let ended: Vec<_> = holders.filter(|&task| shared.has_ended(task)).collect();
        drop(locks);
        ended.into_iter().try_for_each(|task| shared.unlock_all_if(task, || shared.has_ended(task)))
    }
}
