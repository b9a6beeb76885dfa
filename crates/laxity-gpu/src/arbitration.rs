//! An arbitration that this process is attached to.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use laxity_membership::Kind;
use laxity_model::{Instant, TaskId};
use laxity_sys::mutex::{Attempt, Guard};
use laxity_sys::robust::Holder;
use laxity_sys::scheduling::{self, Attributes};
use serde::Serialize;

use crate::client::Client;
use crate::client_word::ClientWord;
use crate::config::Config;
use crate::inheritance;
use crate::layout::NAME_MAX;
use crate::shared::Shared;
use crate::snapshot::Snapshot;
use crate::state_lock::{StateError, StateGuard};
use crate::step;

/// An arbitration that this process is attached to, until the last copy of this and the last of its clients are
/// dropped. The last process to leave takes the name and the memory with it.
///
/// Threads share it. A child made by `fork` does not take part: it attaches by itself, or executes another program.
#[derive(Clone, Debug)]
pub struct Arbitration {
    membership: Arc<Membership>,
}

#[derive(Debug)]
pub(crate) struct Membership {
    pub shared: Arc<Shared>,
    /// The member slot of this process.
    pub slot: usize,
    member: laxity_membership::Membership<Shared>,
    /// The least [`inheritance::raise_threshold`] of this process's followers: a holder that lends no more leaves all of
    /// them as they are. Changes under the state lock.
    pub followers_threshold: AtomicU8,
}

/// How urgent a client is among those that wait. It decides which client is granted a token or an engine, and which one
/// inherits. How Linux schedules the thread is not set by this: an heir is scheduled as the thread that lends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "BaseFields")]
pub enum Base {
    /// A fixed priority as that of `SCHED_FIFO`: 1 to 99, the larger the more urgent.
    Fixed(u8),
    /// The deadline of its job, the earlier the more urgent. Less urgent than any fixed priority.
    Deadline(Instant),
    /// Less urgent than any other.
    Background,
}

/// A priority as programs see it; both are `None` in the background.
#[derive(Serialize)]
struct BaseFields {
    fixed: Option<u8>,
    #[serde(rename = "deadline_ns")]
    deadline: Option<Instant>,
}

impl From<Base> for BaseFields {
    fn from(base: Base) -> BaseFields {
        let (fixed, deadline) = match base {
            Base::Fixed(priority) => (Some(priority), None),
            Base::Deadline(deadline) => (None, Some(deadline)),
            Base::Background => (None, None),
        };
        BaseFields { fixed, deadline }
    }
}

/// Whether holders really run at the priority they inherit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inheritance {
    /// Linux lets this process raise threads.
    Real,
    /// It does not, so that a holder may be preempted by threads that are less urgent than its waiters. Grants are still
    /// in the right order.
    OrderOnly,
}

/// Why a thread cannot be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// The name cannot be one.
    #[error("client name {name:?} has {} bytes; use 1 to {NAME_MAX}", name.len())]
    Name {
        /// The name.
        name: String,
    },
    /// The priority cannot be one.
    #[error("fixed priority {priority} is outside 1 to 99; choose one within")]
    Priority {
        /// The priority.
        priority: u8,
    },
    /// As many threads as can be are registered.
    #[error("{clients} threads are registered, which is all the configuration allows; raise `clients`")]
    Full {
        /// How many.
        clients: u16,
    },
    /// This process was forked from the one that attached, or is being killed.
    #[error("this process was forked from the one that attached to the arbitration; attach here")]
    NotAttached,
    /// The state of the arbitration.
    #[error("{0}")]
    State(#[source] StateError),
}

impl Base {
    /// The smaller the more urgent; at least 1.
    pub(crate) fn level(self) -> u64 {
        match self {
            Base::Fixed(priority) => 100 - u64::from(priority.min(99)),
            Base::Deadline(deadline) => deadline.0.clamp(100, u64::MAX - 1),
            Base::Background => u64::MAX,
        }
    }

    /// The base priority of a [`Base::level`].
    pub(crate) fn of_level(level: u64) -> Self {
        match level {
            u64::MAX => Base::Background,
            100.. => Base::Deadline(Instant(level)),
            _ => Base::Fixed((100 - level) as u8),
        }
    }

    pub(crate) fn check(self) -> Result<(), RegisterError> {
        match self {
            Base::Fixed(priority) if !(1..=99).contains(&priority) => Err(RegisterError::Priority { priority }),
            _ => Ok(()),
        }
    }
}

impl Arbitration {
    pub(crate) fn new((member, ()): (laxity_membership::Membership<Shared>, ())) -> Self {
        let (shared, slot) = (member.memory().clone(), member.id().slot);
        let membership = Membership { shared, slot, member, followers_threshold: AtomicU8::new(u8::MAX) };
        Arbitration { membership: Arc::new(membership) }
    }

    pub(crate) fn membership(&self) -> &Arc<Membership> {
        &self.membership
    }

    /// What is arbitrated, and by which rules.
    pub fn config(&self) -> &Config {
        &self.membership.shared.config
    }

    /// Bytes of shared memory that it takes.
    pub fn memory(&self) -> usize {
        self.membership.shared.segment.len()
    }

    /// Whether this process can raise threads. [`Arbitration::snapshot`] names those that were not raised.
    pub fn inheritance(&self) -> Inheritance {
        if self.membership.member.may_raise() { Inheritance::Real } else { Inheritance::OrderOnly }
    }

    /// Whether a watcher looks ([`Registry::watch`](crate::Registry::watch)). It costs a load.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.membership.shared.is_watched()
    }

    /// How many clients there are. It costs a load for each that there can be, and no lock; the answer may be old.
    pub fn clients(&self) -> usize {
        self.membership.shared.living()
    }

    /// The holders and waiters of all locks, now. Looking changes nothing and delays no thread.
    ///
    /// # Errors
    /// [`StateError`] if the memory is damaged.
    pub fn snapshot(&self) -> Result<Snapshot, StateError> {
        Snapshot::of(&self.membership.shared)
    }

    /// Registers this thread as `name`, of 1 to [`NAME_MAX`] bytes, which appears in snapshots. How Linux schedules the
    /// thread is read now, and is what it gets back whenever it no longer inherits.
    ///
    /// The registration ends with the client, or with the thread if the client is forgotten.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn register(&self, name: &str, base: Base) -> Result<Client, RegisterError> {
        if !(1..=NAME_MAX).contains(&name.len()) {
            return Err(RegisterError::Name { name: name.to_owned() });
        }
        base.check()?;
        let Membership { shared, slot, .. } = &*self.membership;
        if !self.membership.is_ours() {
            return Err(RegisterError::NotAttached);
        }
        let mut state = shared.lock_state().map_err(RegisterError::State)?;
        // Once the word of a dead process is cleared, under the state lock, no process would look for this client.
        if shared.members().holder(*slot) != Holder::Alive {
            return Err(RegisterError::NotAttached);
        }
        let Some((task, liveness)) = state.free_task().map_err(RegisterError::State)? else {
            return Err(RegisterError::Full { clients: shared.config.clients });
        };
        let words = shared.client(task);
        let thread = scheduling::current_thread();
        let own = Attributes::of(thread).map_err(|error| RegisterError::State(StateError::System(error)))?;
        let numbers = [
            (words.word, ClientWord::Idle.instead_of(0)),
            (words.member, *slot as u32),
            (words.thread, thread),
            (words.pid, std::process::id()),
            (words.refused, 0),
            (words.name_length, name.len() as u32),
        ];
        for (offset, value) in numbers {
            shared.segment.u32(offset).store(value, Ordering::Relaxed);
        }
        shared.segment.store_bytes(words.name, name.as_bytes());
        shared.forget_activity(task);
        inheritance::store(shared, words.own, own);
        inheritance::store(shared, words.applied, own);
        shared.publish_base(task, base.level());
        // This number is reused; forget its history.
        let registration = 1 + shared.registrations(task).fetch_add(1, Ordering::Relaxed);
        state.cache.arbiter.forget(task);
        state.cache.set_registered(task, true);
        state.publish();
        step::point();
        liveness.keep();
        Ok(Client::new(self.membership.clone(), task, registration, thread, own))
    }
}

impl<'a> StateGuard<'a> {
    /// A number that no thread has, and its liveness lock. If there is none, those of ended threads are freed first.
    fn free_task(&mut self) -> Result<Option<(TaskId, Guard<'a>)>, StateError> {
        for is_last in [false, true] {
            for task in self.shared().tasks().filter(|&task| !self.cache.is_registered(task)).collect::<Vec<_>>() {
                if let Attempt::Taken(guard) = self.shared().liveness(task).try_lock().map_err(StateError::System)? {
                    return Ok(Some((task, guard)));
                }
            }
            if is_last || !self.retire_all_ended()? {
                break;
            }
        }
        Ok(None)
    }
}

impl Membership {
    /// Schedules the followers of this process as the holders demand: one of them took or released a token without the
    /// arbiter.
    #[cold]
    pub fn raise_followers(&self) {
        // An error means that the memory is damaged, so that no thread uses it any more.
        if let Ok(state) = self.shared.lock_state() {
            state.raise_followers_of(self.slot);
        }
    }

    /// Whether this is the process that attached, not one forked from it.
    #[inline]
    pub fn is_ours(&self) -> bool {
        self.member.is_ours()
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Base::Fixed(priority) => write!(f, "{priority}"),
            Base::Deadline(deadline) => write!(f, "due {deadline}"),
            Base::Background => write!(f, "background"),
        }
    }
}

impl fmt::Display for Inheritance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Inheritance::Real => write!(f, "holders run at the priority they inherit"),
            Inheritance::OrderOnly => write!(
                f,
                "grants are in order of priority, but holders cannot be raised: allow SCHED_FIFO (CAP_SYS_NICE, or \
                 ulimit -r 99)"
            ),
        }
    }
}
