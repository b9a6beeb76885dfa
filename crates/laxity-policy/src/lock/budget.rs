//! Budget enforcement of a job that locks (GPUSync's rules).
//!
//! A job without budget must neither keep its place in a queue nor its token for longer than it takes to let go:
//!
//! ```text
//!                 exhausted, holds nothing / Withdraw
//!        +--------------------------------------------> Barred ----+
//!        |   <---------------------------------------------------- |  replenished / Request
//!        |                                                  ^      |  request (kept for then)
//!     Served                                                |      |
//!        |                                                  +------+
//!        |   exhausted, holds / Admit             unlocked all
//!        +------------------------> Overrun ------------------+
//!                                     | no call masks the     |
//!                                     | signal / Synchronize  +--> Barred, or Served if replenished meanwhile
//!                                     v                       |
//!                                  Unwinding -----------------+
//!                                     synchronized / Unlock, the last first
//! ```
//!
//! The signal is masked inside GPU calls and lock calls: from [`Event::CallEntered`] to [`Event::CallLeft`], and while
//! the job waits for a lock. A job that holds and waits keeps waiting: others wait for what it holds, and withdrawn it
//! would keep that until it is replenished.
//!
//! When it happened does not matter, so there is no `now`. Whether a job that overruns may go on to use the CPU until
//! it has unlocked is for the scheduler to say.

use laxity_model::LockId;

/// What happened to the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It asks for a lock. It waits for no other.
    Request {
        /// Which.
        lock: LockId,
    },
    /// The lock that was last requested in its name is granted.
    Granted,
    /// It unlocked one that it holds.
    Unlocked {
        /// Which.
        lock: LockId,
    },
    /// It entered a GPU call or lock call; calls may nest.
    CallEntered,
    /// It left the last call that it entered.
    CallLeft,
    /// Its budget is exhausted.
    Exhausted,
    /// It has budget again.
    Replenished,
    /// What it launched on GPUs is complete: the answer to [`Action::Synchronize`].
    Synchronized,
}

/// What is to be done in its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Request the lock.
    Request {
        /// Which.
        lock: LockId,
    },
    /// Withdraw the request for the lock; it is made again at replenishment.
    Withdraw {
        /// Which.
        lock: LockId,
    },
    /// Admit the next waiter of a lock that it holds as if it had unlocked:
    /// [`Event::Overrun`](super::Event::Overrun) of the arbiter.
    Admit {
        /// Which.
        lock: LockId,
    },
    /// Deliver the signal: wait until all that it launched is complete.
    Synchronize,
    /// Unlock it; no [`Event::Unlocked`] is to follow.
    Unlock {
        /// Which.
        lock: LockId,
    },
}

/// Budget enforcement of one job.
#[derive(Clone, Debug)]
pub struct Enforcement {
    state: State,
    /// In the order of the grants.
    held: Vec<LockId>,
    /// Calls entered and not left.
    calls: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has budget, and may wait for a lock.
    Served { waits: Option<LockId> },
    /// It has none and holds nothing; what it wants is requested at replenishment.
    Barred { wants: Option<LockId> },
    /// It had none while it held something. The signal is masked.
    Overrun { waits: Option<LockId>, replenished: bool },
    /// The signal is delivered.
    Unwinding { replenished: bool },
}

impl Default for Enforcement {
    fn default() -> Self {
        Self::new()
    }
}

impl Enforcement {
    /// It has budget, holds nothing and wants nothing.
    pub const fn new() -> Self {
        Enforcement { state: State::Served { waits: None }, held: Vec::new(), calls: 0 }
    }

    /// Takes note of `event` and appends what is to be done, in order. An event that repeats what is known (exhausted
    /// though exhausted, replenished though replenished) changes nothing.
    pub fn handle(&mut self, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Request { lock } => self.request(lock, actions),
            Event::Granted => self.granted(),
            Event::Unlocked { lock } => self.unlocked(lock, actions),
            Event::CallEntered => self.calls += 1,
            Event::CallLeft => self.calls = self.calls.checked_sub(1).expect("a call is left once"),
            Event::Exhausted => self.exhausted(actions),
            Event::Replenished => self.replenished(actions),
            Event::Synchronized => self.synchronized(actions),
        }
        self.deliver(actions);
    }

    /// Whether it has no budget and holds nothing: it is not to use the CPU.
    pub const fn is_barred(&self) -> bool {
        matches!(self.state, State::Barred { .. })
    }

    /// Whether it overran while it held something and still does.
    pub const fn overruns(&self) -> bool {
        matches!(self.state, State::Overrun { .. } | State::Unwinding { .. })
    }

    fn request(&mut self, lock: LockId, actions: &mut Vec<Action>) {
        match &mut self.state {
            State::Barred { wants } => {
                assert_eq!(*wants, None, "a job wants one lock at a time");
                *wants = Some(lock);
            }
            // Inside a masked call an overrun may need another lock to get to its end.
            State::Served { waits } | State::Overrun { waits, .. } => {
                assert_eq!(*waits, None, "a job waits for one lock at a time");
                *waits = Some(lock);
                actions.push(Action::Request { lock });
            }
            State::Unwinding { .. } => panic!("a job that unwinds asks for nothing"),
        }
    }

    fn granted(&mut self) {
        let (State::Served { waits } | State::Overrun { waits, .. }) = &mut self.state else {
            panic!("a lock is granted to a job that has no request");
        };
        self.held.push(waits.take().expect("a lock is granted to a job that waits for it"));
    }

    fn unlocked(&mut self, lock: LockId, actions: &mut Vec<Action>) {
        let position = self.held.iter().rposition(|&held| held == lock).expect("a job unlocks what it holds");
        self.held.remove(position);
        let State::Overrun { waits, replenished } = self.state else { return };
        if !self.held.is_empty() {
            return;
        }
        self.state = State::Served { waits };
        if !replenished {
            self.exhausted(actions);
        }
    }

    fn exhausted(&mut self, actions: &mut Vec<Action>) {
        match &mut self.state {
            State::Served { waits } if self.held.is_empty() => {
                actions.extend(waits.map(|lock| Action::Withdraw { lock }));
                self.state = State::Barred { wants: *waits };
            }
            State::Served { waits } => {
                actions.extend(self.held.iter().map(|&lock| Action::Admit { lock }));
                self.state = State::Overrun { waits: *waits, replenished: false };
            }
            State::Overrun { replenished, .. } | State::Unwinding { replenished } => *replenished = false,
            State::Barred { .. } => {}
        }
    }

    fn replenished(&mut self, actions: &mut Vec<Action>) {
        match &mut self.state {
            State::Barred { wants } => {
                actions.extend(wants.map(|lock| Action::Request { lock }));
                self.state = State::Served { waits: *wants };
            }
            State::Overrun { replenished, .. } | State::Unwinding { replenished } => *replenished = true,
            State::Served { .. } => {}
        }
    }

    fn synchronized(&mut self, actions: &mut Vec<Action>) {
        let State::Unwinding { replenished } = self.state else { panic!("only a job that unwinds synchronizes") };
        actions.extend(self.held.drain(..).rev().map(|lock| Action::Unlock { lock }));
        self.state = if replenished { State::Served { waits: None } } else { State::Barred { wants: None } };
    }

    /// Delivers the signal as soon as nothing masks it.
    fn deliver(&mut self, actions: &mut Vec<Action>) {
        let State::Overrun { waits: None, replenished } = self.state else { return };
        if self.calls == 0 {
            actions.push(Action::Synchronize);
            self.state = State::Unwinding { replenished };
        }
    }
}
