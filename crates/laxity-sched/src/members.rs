//! A system is memory with members: what becomes of members and threads that ended.
//!
//! As with arbitrations of GPUs: the thread of a task holds the task's liveness lock, which Linux marks when that very
//! thread will not carry out another instruction.

use std::io;
use std::sync::atomic::Ordering;

use laxity_membership::{Dead, Home, Kind, MEMBERS_MAX, Reaped};
use laxity_model::TaskId;
use laxity_policy::cpu::{Event, Standing};
use laxity_sys::mutex::Attempt;
use laxity_sys::process;
use laxity_sys::robust::Holder;
use laxity_sys::scheduling::{self, Attributes};
use laxity_sys::segment::{Format, Segment};

use crate::config::Carry;
use crate::layout::{FORMAT, HOME};
use crate::registry::{RegistryError, SystemError, describe};
use crate::shared::Shared;
use crate::state_lock::{ClusterGuard, StateError};
use crate::step;

impl Kind for Shared {
    const PREFIX: &'static str = "laxity-sched.";
    const FORMAT: Format = FORMAT;
    const REAPS_WITH_MUTEXES: bool = true;
    const HOME: Option<Home> = Some(HOME);
    type Cause = SystemError;
    type Tools = ();

    fn open(segment: Segment, name: &str) -> Result<Shared, RegistryError> {
        describe(segment, name)
    }

    fn segment(&self) -> &Segment {
        &self.segment
    }

    fn join(&self, _slot: usize) -> Result<(), RegistryError> {
        Ok(())
    }

    fn reap(&self) -> Result<Reaped, SystemError> {
        Shared::reap(self).map_err(SystemError::State)
    }
}

impl Shared {
    /// The number of the process that took a member slot last.
    pub fn pid(&self, slot: usize) -> u32 {
        self.members().pid(slot)
    }

    /// Ends the tasks of processes that died. Their CPUs go to the next tasks, by the policy.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn reap(&self) -> Result<Reaped, StateError> {
        // All at once: every guardian is woken before anything else.
        let dead: Vec<Dead<'_>> = self.members().dead().collect();
        if dead.is_empty() {
            return Ok(Reaped::Done);
        }
        let slots: Vec<usize> = dead.iter().map(|dead| dead.id.slot).collect();
        let mut remaining = Vec::new();
        for cluster in self.clusters() {
            remaining.extend(self.retire_ended(cluster, |slot| slots.contains(&slot))?);
        }
        dead.iter().filter(|dead| !remaining.contains(&dead.id.slot)).for_each(Dead::forget);
        Ok(if self.members().dead().next().is_none() { Reaped::Done } else { Reaped::Pending })
    }

    /// Ends the tasks of `cluster` whose threads have ended. Answers with the member slots that are dead and have threads
    /// that have not.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn retire_ended(&self, cluster: usize, is_dead: impl Fn(usize) -> bool) -> Result<Vec<usize>, StateError> {
        let mut remaining = Vec::new();
        // One at a time, so that other threads get the state lock in between.
        for task in self.tasks() {
            let slot = || self.number(self.task(task).member) as usize;
            let is_ours = self.number(self.task(task).cluster) as usize == cluster;
            let has_ended = is_ours && self.has_ended(task);
            // A thread that calls `exec` gets the number of its process first, so that Linux does not recognize its locks.
            let is_replaced = || is_ours && !self.has_ended(task) && is_dead(slot()) && !self.is_thread(task);
            let was_replaced = is_replaced();
            if has_ended || was_replaced {
                // While the number is still its own. A thread that ends from here on is found the next time.
                self.unlock_all_if(task, || self.has_ended(task) || is_replaced())?;
            }
            step::point();
            let mut state = self.lock(cluster)?;
            if !state.cache.is_member(task) {
                continue;
            }
            let slot = slot();
            // Asked again, as another thread may have got the number meanwhile: that takes the state lock.
            if was_replaced && is_replaced() {
                self.remake_liveness(task).map_err(StateError::System)?;
                self.restore_successor(task);
                state.retire(task);
            } else if !has_ended || !state.retire_if_ended(task)? {
                if is_dead(slot) {
                    remaining.push(slot);
                }
                continue;
            }
            state.publish(None);
        }
        Ok(remaining)
    }

    /// Whether the thread of `task` has ended without leaving. One load, and no lock.
    pub fn has_ended(&self, task: TaskId) -> bool {
        self.liveness(task).is_abandoned()
    }

    /// Whether the thread that became `task` exists.
    fn is_thread(&self, task: TaskId) -> bool {
        let words = self.task(task);
        scheduling::is_thread_of(self.number(words.thread), self.number(words.pid))
    }

    /// The caller holds the state lock.
    #[expect(unsafe_code, reason = "a mutex is made where another one was")]
    fn remake_liveness(&self, task: TaskId) -> io::Result<()> {
        // SAFETY: these bytes are kept for this mutex. No thread uses the old one: its holder is gone, others take it under
        // the state lock only, and `has_ended` reads one word of it atomically.
        unsafe { self.segment.remake_mutex(self.task(task).liveness) }
    }

    /// Linux schedules `thread` (0: the calling one) as it did before it became `task`.
    pub fn restore(&self, task: TaskId, thread: u32) {
        if self.config.carry == Carry::Nothing {
            return;
        }
        let (own, cpus) = self.own(task);
        // An ordinary user cannot take back that what the thread starts is scheduled as usual.
        let _ = own.give_to(thread).or_else(|_| own.not_inherited().give_to(thread));
        let thread = if thread == 0 { scheduling::current_thread() } else { thread };
        let _ = cpus.give_to(thread);
    }

    /// A process that executed another program has one thread, the number of which is the process's. If it is scheduled as
    /// a task is, no task left it so on purpose. Before the task is retired: if this thread is killed in between, another
    /// one finds the task and does both.
    fn restore_successor(&self, task: TaskId) {
        if self.program(task).is_some() {
            return self.restore_program(task);
        }
        let words = self.task(task);
        let (slot, pid) = (self.number(words.member) as usize, self.number(words.pid));
        if slot >= MEMBERS_MAX || self.members().holder(slot) != Holder::Died {
            // A thread of a process that goes on: its first thread may be a task.
            return;
        }
        if self.pid(slot) == pid && self.is_placed(pid) {
            self.restore(task, pid);
        }
    }

    /// The program of `task`, if it lives, is scheduled as before, and goes on if it was stopped: the process that kept it
    /// leaves, or was killed and the program does not end with it. As above, one that is not scheduled as a task is left
    /// alone: its number may be another process's.
    pub fn restore_program(&self, task: TaskId) {
        if let Some(program) = self.program(task).filter(|&program| self.is_placed(program)) {
            self.restore(task, program);
            // An error means that it ended.
            let _ = process::go_on(program);
        }
    }

    /// Whether the first thread of the process `pid`, one of this user, is scheduled as a task is.
    fn is_placed(&self, pid: u32) -> bool {
        let is_peer = self.peers.has_thread(pid, pid).is_ok_and(|is_thread| is_thread);
        is_peer && Attributes::of(pid).is_ok_and(|attributes| self.attributes_of_classes.contains(&attributes))
    }
}

impl ClusterGuard<'_> {
    /// Ends `task`: its thread leaves, or has ended.
    pub fn retire(&mut self, task: TaskId) {
        let standing = self.cache.policy.standing(task).0;
        let cpu = self.cpu_of(task);
        if standing == Standing::Suspended {
            self.handle(task, Event::Resumed { cpu, task });
        }
        if standing != Standing::Inactive {
            self.handle(task, Event::Completed { cpu, task });
        }
        self.free(task);
        self.shared().sections(task).store(0, Ordering::SeqCst);
    }

    /// Retires `task` if its thread has ended. Answers whether it did.
    ///
    /// # Errors
    /// [`StateError`].
    pub fn retire_if_ended(&mut self, task: TaskId) -> Result<bool, StateError> {
        match self.shared().liveness(task).try_lock().map_err(StateError::System)? {
            Attempt::Busy => Ok(false),
            // The guard goes before the state lock: the other threads never find the lock held except by its own thread.
            Attempt::Taken(_liveness) => {
                self.shared().restore_successor(task);
                self.retire(task);
                Ok(true)
            }
        }
    }
}
