//! The constant bandwidth server. Source: Abeni & Buttazzo, RTSS 1998.

use laxity_model::{Instant, Nanos};

use super::{Action, Server, State};

/// A constant bandwidth server of budget Q and period P.
///
/// Work that arrives at an idle server is served with the budget c and deadline d that are left, unless those would
/// exceed the bandwidth: if `c >= (d - r) * Q / P`, they become Q and `r + P`. When c is exhausted, it becomes Q and
/// d becomes `d + P`: at once (soft), or at d (hard). A hard server that exhausts its budget only after d gets the next
/// one then, with a deadline P later: otherwise a server starved for long would be owed all the budgets it missed.
///
/// Bounds, with U = Q / P. The used parts of budgets that are given within a window of length t and due in it add up
/// to no more than U * t (the theorem of the paper; a soft server's budget that comes late, because the one before was
/// used up after its deadline, counts as given P before its own deadline). A hard server, scheduled in whatever way,
/// runs no more than `min(t, 2Q + (t - 2Q) * U)` in any window of length t: one budget late, at once the next, and U
/// from then on.
///
/// Overruns are charged to the next budgets.
#[derive(Clone, Debug)]
pub struct Cbs {
    full: Nanos,
    period: Nanos,
    is_hard: bool,
    state: State,
    /// c as of the last event; above 0.
    budget: Nanos,
    /// d.
    deadline: Instant,
    /// When `budget` may be used.
    from: Instant,
    /// Whether the driver knows `budget` and `deadline`.
    is_announced: bool,
}

impl Cbs {
    /// A server that postpones its deadline. `0 < budget <= period`.
    pub fn soft(budget: Nanos, period: Nanos) -> Self {
        Cbs::new(budget, period, false)
    }

    /// A server that is throttled. `0 < budget <= period`.
    pub fn hard(budget: Nanos, period: Nanos) -> Self {
        Cbs::new(budget, period, true)
    }

    fn new(budget: Nanos, period: Nanos, is_hard: bool) -> Self {
        assert!(!budget.is_zero(), "a server without budget never runs");
        assert!(budget <= period, "a server cannot run more than always");
        Cbs {
            full: budget,
            period,
            is_hard,
            state: State::Idle,
            budget,
            deadline: Instant::ZERO,
            from: Instant::ZERO,
            is_announced: false,
        }
    }

    /// `c >= (d - r) * Q / P`, multiplied out: products of two 64-bit numbers fit in 128.
    fn exceeds_bandwidth(&self, now: Instant) -> bool {
        let left = self.deadline.saturating_since(now);
        u128::from(self.budget.0) * u128::from(self.period.0) >= u128::from(left.0) * u128::from(self.full.0)
    }

    /// Charges what ran since the last event; whether the budget is exhausted, so that the next one is now held.
    fn charge(&mut self, now: Instant) -> bool {
        let State::Runs { since } = self.state else { return false };
        let used = now.saturating_since(since);
        self.state = State::Runs { since: now };
        if used < self.budget {
            self.budget -= used;
            return false;
        }
        // An overrun swallows whole budgets, with their periods, and a part of the one after.
        let overrun = used - self.budget;
        let swallowed = Nanos((overrun.0 / self.full.0).saturating_mul(self.period.0));
        self.budget = self.full - Nanos(overrun.0 % self.full.0);
        if self.is_hard {
            self.from = self.deadline.max(now).saturating_add(swallowed);
            self.deadline = self.from.saturating_add(self.period);
        } else {
            self.deadline = self.deadline.saturating_add(swallowed).saturating_add(self.period);
        }
        self.is_announced = false;
        true
    }

    /// Says what holds from now on for a server that has work. One that runs goes on unless it must wait.
    fn announce(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if now < self.from {
            self.state = State::Throttled;
            actions.push(Action::Throttled { until: self.from });
            return;
        }
        if !matches!(self.state, State::Runs { .. }) {
            self.state = State::Ready;
        }
        if !std::mem::replace(&mut self.is_announced, true) {
            actions.push(Action::Replenished { budget: self.budget, deadline: self.deadline });
        }
        actions.push(Action::Ready { deadline: self.deadline });
    }
}

impl Server for Cbs {
    fn wake(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if self.state != State::Idle {
            return;
        }
        // Never of a budget that may not be used yet: it is at most Q, and its deadline is more than P away.
        if self.exceeds_bandwidth(now) {
            self.budget = self.full;
            self.deadline = now.saturating_add(self.period);
            self.is_announced = false;
        }
        self.announce(now, actions);
    }

    fn run(&mut self, now: Instant) {
        if self.state == State::Ready {
            self.state = State::Runs { since: now };
        }
    }

    fn stop(&mut self, now: Instant, actions: &mut Vec<Action>) {
        let State::Runs { .. } = self.state else { return };
        let is_exhausted = self.charge(now);
        self.state = State::Ready;
        if is_exhausted {
            self.announce(now, actions);
        }
    }

    fn idle(&mut self, now: Instant) {
        self.charge(now);
        self.state = State::Idle;
    }

    fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Idle | State::Ready => None,
            State::Runs { since } => Some(since.saturating_add(self.budget)),
            State::Throttled => Some(self.from),
        }
    }

    fn timeout(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if self.next_timeout().is_none_or(|at| now < at) {
            return;
        }
        self.charge(now);
        self.announce(now, actions);
    }

    fn assert_invariants(&self) {
        assert!(!self.budget.is_zero(), "an exhausted budget is replaced at once");
        assert!(self.budget <= self.full, "no budget is above Q");
        assert!(
            self.state == State::Throttled || self.is_announced || self.state == State::Idle,
            "work without budget"
        );
    }
}
