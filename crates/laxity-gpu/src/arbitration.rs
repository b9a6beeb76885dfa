//! An arbitration that this process is attached to.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use laxity_membership::Kind;
use laxity_model::Instant;
use laxity_sys::mutex::Attempt;
use laxity_sys::robust::Holder;
use laxity_sys::scheduling::{self, Attributes};

use crate::client::Client;
use crate::config::Config;
use crate::inheritance;
use crate::layout::NAME_MAX;
use crate::shared::{Shared, Word};
use crate::snapshot::Snapshot;
use crate::state_lock::StateError;

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
    pub place: usize,
    member: laxity_membership::Membership<Shared>,
    /// The least of what those of its threads withstand that follow holders ([`inheritance::raise_threshold`]): who lends no
    /// more leaves all of them as they are. Changes at the gate.
    pub followers_threshold: AtomicU8,
}

/// How urgent a client is among those that wait: it decides who gets a token or an engine, and who inherits from whom.
/// What Linux is told of an heir is how the thread that it inherits from is scheduled, which is not set by this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// A fixed priority as that of `SCHED_FIFO`: 1 to 99, the larger the more urgent.
    Fixed(u8),
    /// The deadline of its job, the earlier the more urgent. Less urgent than any fixed priority.
    Deadline(Instant),
    /// Less urgent than any other.
    Background,
}

/// Whether holders really run at the priority they inherit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inheritance {
    /// Linux lets this process raise threads.
    Real,
    /// It does not, so that a holder may be preempted by threads that are less urgent than those who wait for it. They
    /// are still granted in the right order.
    OrderOnly,
}

/// Why a thread cannot be registered.
#[derive(Debug)]
pub enum RegisterError {
    /// The name cannot be one.
    Name {
        /// The name.
        name: String,
    },
    /// The priority cannot be one.
    Priority {
        /// The priority.
        priority: u8,
    },
    /// As many threads as can be are registered.
    Full {
        /// How many.
        clients: u16,
    },
    /// This process was forked from the one that attached, or is being killed.
    NotAttached,
    /// The state of the arbitration.
    State(StateError),
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

    /// What [`Base::level`] made a number of.
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
        let (shared, place) = (member.memory().clone(), member.id().slot);
        let membership = Membership { shared, place, member, followers_threshold: AtomicU8::new(u8::MAX) };
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

    /// Whether threads that this process has to raise are raised. Which were not, [`Arbitration::snapshot`] says.
    pub fn inheritance(&self) -> Inheritance {
        if self.membership.member.may_raise() { Inheritance::Real } else { Inheritance::OrderOnly }
    }

    /// Who holds and waits for what, now. Looking changes nothing and delays nobody.
    ///
    /// # Errors
    /// [`StateError`] if the memory is damaged.
    pub fn snapshot(&self) -> Result<Snapshot, StateError> {
        Snapshot::of(&self.membership.shared)
    }

    /// Registers this thread as `name`, of 1 to [`NAME_MAX`] bytes, which is for those who watch. How Linux schedules
    /// it is read now, and is what it gets back whenever it no longer inherits.
    ///
    /// # Errors
    /// [`RegisterError`].
    pub fn register(&self, name: &str, base: Base) -> Result<Client, RegisterError> {
        if !(1..=NAME_MAX).contains(&name.len()) {
            return Err(RegisterError::Name { name: name.to_owned() });
        }
        base.check()?;
        let Membership { shared, place, .. } = &*self.membership;
        if !self.membership.is_ours() {
            return Err(RegisterError::NotAttached);
        }
        let mut state = shared.lock_state().map_err(RegisterError::State)?;
        // Once the word of a dead process is cleared, at the gate, nobody would look for this client.
        if shared.members().holder(*place) != Holder::Alive {
            return Err(RegisterError::NotAttached);
        }
        let system = |error| RegisterError::State(StateError::System(error));
        for task in shared.tasks().filter(|&task| !state.cache.is_registered(task)).collect::<Vec<_>>() {
            let Attempt::Taken(life) = shared.liveness(task).try_lock().map_err(system)? else { continue };
            let words = shared.client(task);
            let thread = scheduling::current_thread();
            let own = Attributes::of(thread).map_err(system)?;
            let numbers = [
                (words.word, Word::Idle.instead_of(0)),
                (words.member, *place as u32),
                (words.thread, thread),
                (words.pid, std::process::id()),
                (words.refused, 0),
                (words.name_length, name.len() as u32),
            ];
            for (offset, value) in numbers {
                shared.segment.u32(offset).store(value, Ordering::Relaxed);
            }
            shared.segment.store_bytes(words.name, name.as_bytes());
            inheritance::store(shared, words.own, own);
            inheritance::store(shared, words.applied, own);
            shared.publish_base(task, base.level());
            // Whoever had the number before was somebody else.
            state.cache.arbiter.forget(task);
            state.cache.set_registered(task, true);
            state.publish();
            life.keep();
            return Ok(Client::new(self.membership.clone(), task, thread, own));
        }
        Err(RegisterError::Full { clients: shared.config.clients })
    }
}

impl Membership {
    /// The threads that follow holders of this process get what those demand, as one of them took or let go of a token
    /// without the arbiter.
    #[cold]
    pub fn raise_followers(&self) {
        // If the memory is damaged nobody looks at it any more.
        if let Ok(state) = self.shared.lock_state() {
            state.raise_followers_of(self.place);
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

impl fmt::Display for RegisterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegisterError::Name { name } => {
                write!(f, "client name {name:?} has {} bytes; use 1 to {NAME_MAX}", name.len())
            }
            RegisterError::Priority { priority } => {
                write!(f, "fixed priority {priority} is outside 1 to 99; choose one within")
            }
            RegisterError::Full { clients } => {
                write!(f, "{clients} threads are registered, which is all the configuration allows; raise `clients`")
            }
            RegisterError::NotAttached => {
                write!(f, "this process was forked from the one that attached to the arbitration; attach here")
            }
            RegisterError::State(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for RegisterError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RegisterError::State(error) => Some(error),
            _ => None,
        }
    }
}
