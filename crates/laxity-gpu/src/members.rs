//! An arbitration is memory with members: what is done about those that died.
//!
//! What the dead left is told by their threads: each client holds a mutex, its *life*, which Linux marks when that very
//! thread will not carry out another instruction.

use std::sync::atomic::Ordering;

use laxity_membership::{Dead, Kind, Reaped};
use laxity_model::TaskId;
use laxity_policy::lock::Event;
use laxity_sys::mutex::{self, Attempt};
use laxity_sys::process::pid_namespace;
use laxity_sys::segment::{Format, Segment};

use crate::inheritance;
use crate::layout::{BOOT, FORMAT, MUTEX_LAYOUT, NAMESPACE};
use crate::registry::{ArbitrationError, RegistryError, describe};
use crate::shared::{Shared, Word};
use crate::state_lock::{StateError, StateGuard};

impl Kind for Shared {
    const PREFIX: &'static str = "laxity-gpu.";
    const FORMAT: Format = FORMAT;
    const REAPS_WITH_MUTEXES: bool = true;
    type Cause = ArbitrationError;
    type Tools = ();

    fn open(segment: Segment, name: &str) -> Result<Shared, RegistryError> {
        describe(segment, name)
    }

    /// Neither a thread's number nor a mutex means the same in another PID namespace, with another C library, or after
    /// another boot.
    fn admit(&self, name: &str) -> Result<(), RegistryError> {
        let word = |offset| self.segment.u64(offset).load(Ordering::Relaxed);
        let elsewhere = |what| Err(RegistryError::Other(ArbitrationError::Elsewhere { name: name.to_owned(), what }));
        if word(BOOT) != self.segment.boot() {
            // A container may show its processes a boot of their own.
            let is_left_over = !self.members().any_lives(None);
            let not_found = Err(RegistryError::NotFound { name: name.to_owned() });
            return if is_left_over { not_found } else { elsewhere("boot") };
        }
        match (word(MUTEX_LAYOUT) == mutex::LAYOUT, word(NAMESPACE) == pid_namespace()?) {
            (false, _) => elsewhere("C library"),
            (true, false) => elsewhere("PID namespace"),
            (true, true) => Ok(()),
        }
    }

    fn segment(&self) -> &Segment {
        &self.segment
    }

    fn join(&self, place: usize) -> Result<(), RegistryError> {
        // Threads of the one who had it before.
        for slot in 0..self.layout.followers_max() {
            self.segment.u32(self.layout.follower(place, slot).thread).store(0, Ordering::Relaxed);
        }
        Ok(())
    }

    fn reap(&self) -> Result<Reaped, ArbitrationError> {
        Shared::reap(self).map_err(ArbitrationError::State)
    }
}

impl Shared {
    /// The number of the process that took a slot last.
    pub fn pid(&self, slot: usize) -> u32 {
        self.members().pid(slot)
    }

    /// Retires the clients of processes that died: what they hold goes to the next, by the arbiter's rules.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn reap(&self) -> Result<Reaped, StateError> {
        // All at once: every guardian is told before anything else.
        let dead: Vec<Dead<'_>> = self.members().dead().collect();
        if dead.is_empty() {
            return Ok(Reaped::Done);
        }
        let (mut ending, mut waiters) = (Vec::new(), Vec::new());
        // One at a time, so that the gate is free in between.
        for task in self.tasks() {
            let mut state = self.lock_state()?;
            if !state.cache.is_registered(task) {
                continue;
            }
            match self.liveness(task).try_lock().map_err(StateError::System)? {
                Attempt::Taken(life) => {
                    state.retire(task);
                    // Before the gate, so that nobody ever finds a life taken but by its own thread.
                    drop(life);
                    state.publish();
                }
                Attempt::Busy => {
                    let member = self.segment.u32(self.client(task).member).load(Ordering::Relaxed) as usize;
                    if dead.iter().any(|dead| dead.id.slot == member) {
                        inheritance::raise_ending_thread(self, task);
                        ending.push(member);
                    }
                    waiters.push(task);
                }
            }
        }
        // Those whom the dead were about to wake.
        waiters.into_iter().for_each(|task| self.notify(task));
        // At the gate, where nobody registers any more: whoever does looks at this word.
        let state = self.lock_state()?;
        for dead in dead.iter().filter(|dead| !ending.contains(&dead.id.slot)) {
            if !self.has_clients(&state, dead.id.slot) {
                dead.forget();
            }
        }
        Ok(if self.members().dead().next().is_none() { Reaped::Done } else { Reaped::Pending })
    }

    /// Whether a thread of the process at `place` is registered.
    fn has_clients(&self, state: &StateGuard<'_>, place: usize) -> bool {
        let is_theirs = |&task: &TaskId| {
            let member = self.segment.u32(self.client(task).member).load(Ordering::Relaxed);
            state.cache.is_registered(task) && member as usize == place
        };
        self.tasks().any(|task| is_theirs(&task))
    }
}

impl StateGuard<'_> {
    /// Takes back all that `task` holds and asks for, and forgets it: a thread that leaves, or has ended.
    pub fn retire(&mut self, task: TaskId) {
        let shared = self.shared();
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
        Word::Idle.store(shared.word(task));
    }
}
