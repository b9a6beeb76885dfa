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
//! A thread that waits for a CPU cannot raise itself, so it is raised by whoever changes who holds, or how urgent that
//! is, which may be a thread of another process: each member has places for the numbers of its threads.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use laxity_membership::MEMBERS_MAX;
use laxity_model::{ReplicaId, TaskId};
use laxity_sys::scheduling::{self, Attributes};

use crate::arbitration::{Arbitration, Membership};
use crate::config::TOKEN;
use crate::inheritance;
use crate::layout::{FOLLOWED, FollowerWords};
use crate::shared::Shared;
use crate::state_lock::{StateError, StateGuard};

/// A thread of this process that is as urgent as those that hold tokens of its GPU, until this is dropped. Then it is
/// scheduled again as it was.
#[derive(Debug)]
pub struct Follower {
    membership: Arc<Membership>,
    slot: usize,
}

/// Why a thread cannot follow.
#[derive(Debug)]
pub enum FollowError {
    /// There is no such GPU.
    NoSuchGpu {
        /// Which was asked for.
        gpu: u16,
        /// How many there are.
        gpus: u16,
    },
    /// This process has no such thread.
    NoSuchThread {
        /// Its number.
        thread: u32,
    },
    /// As many threads of this process follow as can.
    Full {
        /// How many.
        threads: usize,
    },
    /// This process was forked from the one that attached.
    NotAttached,
    /// The state of the arbitration.
    State(StateError),
}

impl Arbitration {
    /// From now on the thread of this process that Linux calls `thread` works on behalf of those threads of this process
    /// that hold a token of `gpu`. How Linux schedules it now is what it gets back whenever there are none.
    ///
    /// # Errors
    /// [`FollowError`]. Where Linux does not let it be raised is no error: see [`Follower::refused`].
    pub fn follow(&self, gpu: u16, thread: u32) -> Result<Follower, FollowError> {
        let membership = self.membership();
        let Membership { shared, place, .. } = &**membership;
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
        let is_free = |&slot: &usize| shared.number(shared.layout.follower(*place, slot).thread) == 0;
        let slot = (0..threads).find(is_free).ok_or(FollowError::Full { threads })?;
        let words = shared.layout.follower(*place, slot);
        shared.segment.u32(words.gpu).store(gpu.into(), Ordering::Relaxed);
        shared.segment.u32(words.refused).store(0, Ordering::Relaxed);
        inheritance::store(shared, words.own, own);
        inheritance::store(shared, words.applied, own);
        // Last: who is killed before this has not begun.
        shared.segment.u32(words.thread).store(thread, Ordering::Relaxed);
        shared.segment.u32(FOLLOWED).store(1, Ordering::Relaxed);
        state.measure_followers(membership);
        state.raise_followers_of(*place);
        Ok(Follower { membership: membership.clone(), slot })
    }
}

impl Follower {
    /// Why Linux did not let it be scheduled as it had to be, when that was tried last.
    pub fn refused(&self) -> Option<io::Error> {
        let error = self.membership.shared.number(self.words().refused) as i32;
        (error != 0).then(|| io::Error::from_raw_os_error(error))
    }

    fn words(&self) -> FollowerWords {
        let Membership { shared, place, .. } = &*self.membership;
        shared.layout.follower(*place, self.slot)
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if !self.membership.is_ours() {
            return;
        }
        // If the memory is damaged nobody looks at it any more.
        let Ok(state) = self.membership.shared.lock_state() else { return };
        let (shared, words) = (&self.membership.shared, self.words());
        give(shared, std::process::id(), words, inheritance::load(shared, words.own));
        shared.segment.u32(words.thread).store(0, Ordering::Relaxed);
        state.measure_followers(&self.membership);
    }
}

impl StateGuard<'_> {
    /// The threads of the process at `place` that follow get what those demand for whom they work. To be called
    /// whenever that may have changed, and may be repeated.
    pub fn raise_followers_of(&self, place: usize) {
        let shared = self.shared();
        for words in shared.followers(place) {
            let own = inheritance::load(shared, words.own);
            let gpu = shared.number(words.gpu);
            let holders = self.token_holders(place).filter(|&(_, of)| u32::from(of) == gpu);
            let wanted = holders.fold(own, |wanted, (task, _)| inheritance::raised(wanted, self.demand(task)));
            if inheritance::applied(shared, words.applied) != Some(wanted) {
                give(shared, shared.pid(place), words, wanted);
            }
        }
    }

    /// As [`StateGuard::raise_followers_of`], for all processes of `tasks`.
    pub fn raise_followers_for(&self, tasks: &[TaskId]) {
        let shared = self.shared();
        if shared.number(FOLLOWED) == 0 {
            return;
        }
        let place = |&task: &TaskId| shared.number(shared.client(task).member) as usize;
        for (index, task) in tasks.iter().enumerate() {
            // A number from memory that others can write to. Few tasks: quadratic is less than a set.
            let is_new = place(task) < MEMBERS_MAX && !tasks[..index].iter().any(|other| place(other) == place(task));
            if is_new {
                self.raise_followers_of(place(task));
            }
        }
    }

    /// Threads of the process of `membership` follow since now, or no more.
    fn measure_followers(&self, membership: &Membership) {
        let shared = self.shared();
        let own = shared.followers(membership.place).map(|words| inheritance::load(shared, words.own));
        let least = own.map(inheritance::raise_threshold).min().unwrap_or(u8::MAX);
        membership.followers_threshold.store(least, Ordering::SeqCst);
        // Either who takes a token sees this, or it is among the holders that are looked at from here on.
        fence(Ordering::SeqCst);
    }

    /// As [`StateGuard::raise_followers_of`], for all processes.
    pub fn raise_all_followers(&self) {
        if self.shared().number(FOLLOWED) != 0 {
            (0..MEMBERS_MAX).for_each(|place| self.raise_followers_of(place));
        }
    }

    /// The threads of the process at `place` that hold tokens, each with the GPU.
    fn token_holders(&self, place: usize) -> impl Iterator<Item = (TaskId, u16)> {
        let shared = self.shared();
        let is_theirs = move |task: TaskId| shared.number(shared.client(task).member) as usize == place;
        let replicas = 0..shared.locks[usize::from(TOKEN.0)].replicas;
        let holders = replicas.filter_map(|replica| Some((self.holder(ReplicaId(replica))?, replica)));
        holders.filter(move |&(task, _)| is_theirs(task)).map(|(task, replica)| (task, replica % shared.config.gpus))
    }

    /// How `task` is to be scheduled, with what it inherits.
    pub fn demand(&self, task: TaskId) -> Attributes {
        let (shared, arbiter) = (self.shared(), &self.cache.arbiter);
        match arbiter.priority(task) {
            Some(priority) => inheritance::wanted(shared, priority, arbiter.base(task)),
            None => inheritance::own(shared, task),
        }
    }
}

impl Shared {
    /// The threads of the process at `place` that follow.
    fn followers(&self, place: usize) -> impl Iterator<Item = FollowerWords> {
        let slots = (0..self.layout.followers_max()).map(move |slot| self.layout.follower(place, slot));
        slots.filter(|words| self.number(words.thread) != 0)
    }
}

/// At the gate.
fn give(shared: &Shared, pid: u32, words: FollowerWords, wanted: Attributes) {
    inheritance::forget(shared, words.applied);
    let thread = shared.number(words.thread);
    // One that ended without being dropped may be another's by now.
    let given = if scheduling::is_thread_of(thread, pid) { wanted.give_to(thread) } else { Ok(()) };
    let error = given.err().and_then(|error| error.raw_os_error()).unwrap_or(0);
    shared.segment.u32(words.refused).store(error as u32, Ordering::Relaxed);
    inheritance::store(shared, words.applied, wanted);
}

impl fmt::Display for FollowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FollowError::NoSuchGpu { gpu, gpus } => {
                write!(f, "GPU {gpu}: the arbitration has {gpus}, counted from 0; request for one of them")
            }
            FollowError::NoSuchThread { thread } => {
                write!(f, "thread {thread}: this process has none of that number; say one that lives")
            }
            FollowError::Full { threads } => {
                write!(
                    f,
                    "{threads} threads of this process follow holders, which is all it takes; leave some as they are"
                )
            }
            FollowError::NotAttached => {
                write!(f, "this process was forked from the one that attached to the arbitration; attach here")
            }
            FollowError::State(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for FollowError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            FollowError::State(error) => Some(error),
            _ => None,
        }
    }
}
