//! An arbitration is memory with members: what becomes of members and threads that ended.
//!
//! Each client holds a mutex, its *liveness lock*. Linux marks the mutex when that very thread will not carry out another
//! instruction, so the thread that takes it over may take back what the ended thread held.

use std::io;
use std::sync::atomic::Ordering;

use laxity_membership::{Dead, Home, Kind, Reaped};
use laxity_model::{LockId, Nanos, TaskId};
use laxity_policy::lock::Event;
use laxity_sys::mutex::Attempt;
use laxity_sys::scheduling;
use laxity_sys::segment::{Format, Segment};

use crate::client_word::ClientWord;
use crate::inheritance;
use crate::layout::{FORMAT, HOME};
use crate::registry::{ArbitrationError, RegistryError, describe};
use crate::shared::Shared;
use crate::state_lock::{StateError, StateGuard};
use crate::step;

/// How often a process looks for threads that ended unnoticed: by the bare system call, in a process that lives. Linux wakes no
/// thread then. Waiters could look themselves; but a timer for each wait makes hand-overs longer (decision 133).
const LOOK: Nanos = Nanos::from_millis(100);

impl Kind for Shared {
    const PREFIX: &'static str = "laxity-gpu.";
    const FORMAT: Format = FORMAT;
    const REAPS_WITH_MUTEXES: bool = true;
    const LOOKS: Option<Nanos> = Some(LOOK);
    const HOME: Option<Home> = Some(HOME);
    type Cause = ArbitrationError;
    type Tools = ();

    fn open(segment: Segment, name: &str) -> Result<Shared, RegistryError> {
        describe(segment, name)
    }

    fn segment(&self) -> &Segment {
        &self.segment
    }

    fn join(&self, slot: usize) -> Result<(), RegistryError> {
        // Followers of the process that had the slot before.
        for index in 0..self.layout.followers_max() {
            self.segment.u32(self.layout.follower(slot, index).thread).store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    fn reap(&self) -> Result<Reaped, ArbitrationError> {
        Shared::reap(self).map_err(ArbitrationError::State)
    }

    fn look(&self) {
        if step::may_look() && self.tasks().any(|task| self.has_ended(task)) {
            // Damaged memory is told to its users.
            let _ = self.retire_ended(|_| false);
        }
    }
}

impl Shared {
    /// The number of the process that took a member slot last.
    pub fn pid(&self, slot: usize) -> u32 {
        self.members().pid(slot)
    }

    /// Retires the clients of processes that died: what they hold goes to the next tasks, by the arbiter's rules.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn reap(&self) -> Result<Reaped, StateError> {
        // All at once: every guardian is woken before anything else.
        let dead: Vec<Dead<'_>> = self.members().dead().collect();
        if dead.is_empty() {
            return Ok(Reaped::Done);
        }
        let ending = self.retire_ended(|slot| dead.iter().any(|dead| dead.id.slot == slot))?;
        // Under the state lock: a registration looks at the member's word there, so none can come in between.
        let state = self.lock_state()?;
        for dead in dead.iter().filter(|dead| !ending.contains(&dead.id.slot)) {
            if !self.has_clients(&state, dead.id.slot) {
                dead.forget();
            }
        }
        Ok(if self.members().dead().next().is_none() { Reaped::Done } else { Reaped::Pending })
    }

    /// Retires the clients whose threads have ended, and notifies the others, which the ended ones may have been about to
    /// wake. Answers with the member slots that are dead and have threads that have not ended.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn retire_ended(&self, is_dead: impl Fn(usize) -> bool) -> Result<Vec<usize>, StateError> {
        let (mut ending, mut alive) = (Vec::new(), Vec::new());
        // One at a time, so that other threads get the state lock in between.
        for task in self.tasks() {
            let mut state = self.lock_state()?;
            if !state.cache.is_registered(task) {
                continue;
            }
            if state.retire_if_ended(task)? {
                state.publish();
                continue;
            }
            let member = self.member_slot(task);
            if !is_dead(member) {
                alive.push(task);
            } else if self.is_thread(task) {
                inheritance::raise_ending_thread(self, task);
                ending.push(member);
                alive.push(task);
            } else {
                self.remake_liveness(task).map_err(StateError::System)?;
                state.retire(task);
                state.publish();
            }
        }
        alive.into_iter().for_each(|task| self.notify(task));
        Ok(ending)
    }

    /// Retires the threads that hold `lock` and have ended while their processes go on.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn reap_ended_holders(&self, lock: LockId) -> Result<(), StateError> {
        let mut state = self.lock_state()?;
        if state.retire_ended_holders(lock)? {
            state.publish();
        }
        Ok(())
    }

    /// Whether the thread of `task` has ended without leaving. It takes one load, and no lock.
    pub fn has_ended(&self, task: TaskId) -> bool {
        self.is_task(task) && self.liveness(task).is_abandoned()
    }

    /// Whether the thread that registered as `task` exists.
    fn is_thread(&self, task: TaskId) -> bool {
        let words = self.client(task);
        scheduling::is_thread_of(self.number(words.thread), self.number(words.pid))
    }

    /// Makes a new liveness lock for `task`, whose thread is gone while Linux did not mark the old one: a thread that calls
    /// `exec` gets the number of its process first, so that Linux does not recognize its locks. The caller holds the state
    /// lock.
    #[expect(unsafe_code, reason = "a mutex is made where another one was")]
    fn remake_liveness(&self, task: TaskId) -> io::Result<()> {
        // SAFETY: these bytes are kept for this mutex. No thread uses the old one: its holder is gone, others take it under
        // the state lock only, and `has_ended` reads one word of it atomically.
        unsafe { self.segment.remake_mutex(self.client(task).liveness) }
    }

    /// The member slot of the process of `task`.
    pub fn member_slot(&self, task: TaskId) -> usize {
        self.number(self.client(task).member) as usize
    }

    /// Whether a thread of the member in `slot` is registered.
    fn has_clients(&self, state: &StateGuard<'_>, slot: usize) -> bool {
        self.tasks().any(|task| state.cache.is_registered(task) && self.member_slot(task) == slot)
    }
}

impl StateGuard<'_> {
    /// Takes back all that `task` holds and requests, and forgets it: its thread leaves, or has ended.
    pub fn retire(&mut self, task: TaskId) {
        let shared = self.shared();
        shared.release_bandwidth(task);
        self.arbitrate_wait(task);
        for lock in shared.lock_ids() {
            if self.owned(task, lock).is_some() {
                self.arbitrate(lock);
            }
        }
        if let Some(lock) = self.cache.arbiter.waits_for(task) {
            self.handle(Event::Withdraw { task, lock });
        }
        let held: Vec<_> = self.cache.arbiter.holds(task).map(|(lock, _)| lock).collect();
        for lock in held.into_iter().rev() {
            self.handle(Event::Unlock { task, lock });
        }
        self.cache.set_registered(task, false);
        ClientWord::Idle.store(shared.word(task));
    }

    /// Retires `task`, which is registered, if its thread has ended. Answers whether it did.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn retire_if_ended(&mut self, task: TaskId) -> Result<bool, StateError> {
        match self.shared().liveness(task).try_lock().map_err(StateError::System)? {
            Attempt::Busy => Ok(false),
            // The guard goes before the state lock: the other threads never find the lock held except by its own thread.
            Attempt::Taken(_liveness) => {
                self.retire(task);
                Ok(true)
            }
        }
    }

    /// Retires the holders of `lock` whose threads have ended. Answers whether there were any.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn retire_ended_holders(&mut self, lock: LockId) -> Result<bool, StateError> {
        let shared = self.shared();
        let mut any = false;
        for replica in shared.replicas(lock) {
            let by_word = || shared.owner(lock, replica);
            let holder = if self.cache.is_open(lock) { by_word() } else { self.cache.arbiter.holder(lock, replica) };
            let ended = holder.filter(|&task| shared.has_ended(task) && self.cache.is_registered(task));
            if let Some(task) = ended {
                any |= self.retire_if_ended(task)?;
            }
        }
        Ok(any)
    }

    /// Retires all registered tasks whose threads have ended. Answers whether there were any.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn retire_all_ended(&mut self) -> Result<bool, StateError> {
        let shared = self.shared();
        let mut any = false;
        for task in shared.tasks().filter(|&task| shared.has_ended(task)) {
            any |= self.cache.is_registered(task) && self.retire_if_ended(task)?;
        }
        Ok(any)
    }
}
