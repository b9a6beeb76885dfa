//! The regulator of one CPU (paper 004, algorithm 2).
//!
//! ```text
//!   idle --Lock--> waits for a period --period--> open --budget used up--> overflowed --latency--> throttled
//!    ^                                            ^  |                         |                       |
//!    '--------- period, and no lock is held ------'--+---- period: a new budget, if a lock is held ----'
//! ```
//!
//! Traffic is counted exactly, in bytes a second times nanoseconds (1e-9 B): a budget is used up in the first nanosecond in
//! which as much or more was caused. While no lock is held the regulator asks for no time at all.

use laxity_model::{Instant, LockHeed, MemoryRegulator, Nanos};

/// The parameters of a CPU's regulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The period of budgets.
    pub period: Nanos,
    /// When periods begin: so long after its multiples.
    pub offset: Nanos,
    /// From the moment at which a budget is used up to the one at which the CPU stands still.
    pub latency: Nanos,
    /// When the lock is heeded.
    pub heed: LockHeed,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The budget of the bandwidth lock is this from now on, in bytes a second; `None`: the lock is not held.
    Lock {
        /// The budget.
        budget: Option<u64>,
    },
    /// Best-effort tasks on the CPU cause this traffic from now on, in bytes a second.
    Traffic {
        /// The traffic.
        rate: u64,
    },
    /// The time is that of [`Regulator::next_timeout`].
    Timeout,
}

/// What the driver must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Note that a period has begun, or goes on, with this budget, in bytes a second; `None`: it is not regulated.
    Regulate {
        /// The budget.
        budget: Option<u64>,
    },
    /// The regulator interrupts the CPU, which takes time.
    Interrupt,
    /// No best-effort task executes on the CPU from now on.
    Throttle,
    /// They may again.
    Unthrottle {
        /// How long they stood still.
        lost: Nanos,
    },
}

/// The regulator of one CPU.
#[derive(Clone, Debug)]
pub struct Regulator {
    rules: Rules,
    /// The budget of the lock, in bytes a second.
    wanted: Option<u64>,
    /// The budget in force in this period, in bytes a second; `None`: it is not regulated.
    budget: Option<u64>,
    /// When the present period ends, if that matters to anything: a lock is held, or a budget in force.
    period_end: Option<Instant>,
    /// The end of the last period in which traffic was counted: what was used in it stays used.
    counted_until: Instant,
    /// What was caused in this period, in 1e-9 B, up to `since`.
    used: u128,
    since: Instant,
    /// What is caused now, in bytes a second.
    rate: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Best-effort tasks may execute.
    Open,
    /// The budget is used up; they stand still from then on.
    Overflowed(Instant),
    /// They have stood still since then.
    Throttled(Instant),
}

impl Rules {
    /// Those of CPU `cpu` of `cpus`.
    pub fn of(regulator: &MemoryRegulator, cpu: usize, cpus: usize) -> Rules {
        let MemoryRegulator { period, latency, heed, .. } = *regulator;
        Rules { period, offset: regulator.offset(cpu, cpus), latency, heed }
    }

    /// The end of the period that `now` is in: the first beginning of one after it.
    fn end_of_period(&self, now: Instant) -> Instant {
        let (now, period, offset) = (now.as_nanos(), self.period.0, self.offset.0);
        match now.checked_sub(offset) {
            None => Instant(offset),
            Some(since_first) => Instant(offset.saturating_add((since_first / period + 1).saturating_mul(period))),
        }
    }
}

impl Regulator {
    /// A regulator of a CPU that causes no traffic, at time 0.
    ///
    /// Panics if the period is zero.
    pub fn new(rules: Rules) -> Regulator {
        assert!(!rules.period.is_zero(), "periods without length never end");
        Regulator {
            rules,
            wanted: None,
            budget: None,
            period_end: None,
            counted_until: Instant::ZERO,
            used: 0,
            since: Instant::ZERO,
            rate: 0,
            state: State::Open,
        }
    }

    /// Takes note of `event`, and appends to `actions` what follows.
    pub fn handle(&mut self, now: Instant, event: Event, actions: &mut Vec<Action>) {
        self.count(now);
        match event {
            Event::Traffic { rate } => self.rate = rate,
            Event::Lock { budget } => self.lock(now, budget, actions),
            Event::Timeout => {
                if self.period_end == Some(now) {
                    self.begin_period(now, actions);
                }
            }
        }
        self.stop_if_due(now, actions);
    }

    /// When [`Event::Timeout`] is due.
    pub fn next_timeout(&self) -> Option<Instant> {
        let stop = match self.state {
            State::Open => self.overflow(),
            State::Overflowed(at) => Some(at),
            State::Throttled(_) => None,
        };
        self.period_end.into_iter().chain(stop).min()
    }

    /// Whether best-effort tasks stand still.
    pub fn is_throttled(&self) -> bool {
        matches!(self.state, State::Throttled(_))
    }

    /// What was caused in this period up to the last event, in 1e-9 B; of a period that is not regulated, nothing.
    pub fn used(&self) -> u128 {
        self.used
    }

    /// The budget in force, in bytes a second.
    pub fn budget(&self) -> Option<u64> {
        self.budget
    }

    /// When the budget will be used up at the present rate, if it ever is.
    fn overflow(&self) -> Option<Instant> {
        let left = self.allowance()?.saturating_sub(self.used);
        if left == 0 {
            return Some(self.since);
        }
        let nanos = left.div_ceil(u128::from(self.rate).max(1));
        (self.rate > 0).then(|| self.since.saturating_add(Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))))
    }

    /// The budget of a period in 1e-9 B: two factors below 2^64.
    fn allowance(&self) -> Option<u128> {
        self.budget.map(|budget| u128::from(budget) * u128::from(self.rules.period.0))
    }

    fn count(&mut self, now: Instant) {
        if self.budget.is_some() {
            self.used += u128::from(self.rate) * u128::from((now - self.since).0);
        }
        self.since = now;
    }

    fn lock(&mut self, now: Instant, budget: Option<u64>, actions: &mut Vec<Action>) {
        self.wanted = budget;
        match self.rules.heed {
            LockHeed::Period if budget.is_some() && self.period_end.is_none() => {
                self.period_end = Some(self.rules.end_of_period(now));
            }
            LockHeed::Period => {}
            LockHeed::AtOnce => self.heed_at_once(now, actions),
        }
    }

    /// The present period goes on with another budget, and with what it has used.
    fn heed_at_once(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if self.wanted == self.budget {
            return;
        }
        let end = self.rules.end_of_period(now);
        if self.wanted.is_some() && self.counted_until != end {
            self.used = 0;
            self.counted_until = end;
        }
        self.budget = self.wanted;
        self.period_end = self.wanted.map(|_| end);
        actions.push(Action::Regulate { budget: self.budget });
        if self.allowance().is_none_or(|allowed| self.used < allowed) {
            self.open(now, actions);
        }
    }

    fn begin_period(&mut self, now: Instant, actions: &mut Vec<Action>) {
        let was_regulated = self.budget.is_some();
        self.open(now, actions);
        self.used = 0;
        self.budget = self.wanted;
        self.period_end = self.wanted.map(|_| now.saturating_add(self.rules.period));
        self.counted_until = self.period_end.unwrap_or(now);
        if was_regulated || self.budget.is_some() {
            actions.extend([Action::Interrupt, Action::Regulate { budget: self.budget }]);
        }
    }

    fn open(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if let State::Throttled(since) = std::mem::replace(&mut self.state, State::Open) {
            actions.push(Action::Unthrottle { lost: now - since });
        }
    }

    /// The budget may be used up, or the latency over.
    fn stop_if_due(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if self.state == State::Open && self.allowance().is_some_and(|allowed| self.used >= allowed) {
            self.state = State::Overflowed(now.saturating_add(self.rules.latency));
            actions.push(Action::Interrupt);
        }
        if self.state == State::Overflowed(now) {
            self.state = State::Throttled(now);
            actions.push(Action::Throttle);
        }
    }
}
