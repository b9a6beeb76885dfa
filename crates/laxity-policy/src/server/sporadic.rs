//! The sporadic server. Sources: Sprunt, Sha & Lehoczky, Real-Time Systems 1(1), 1989; its defects in POSIX and their
//! corrections: Stanovich, Baker, Wang & Gonzalez Harbour, RTAS 2010.

use laxity_model::{Instant, Nanos};

use super::{Action, Server, State};

/// A sporadic server of budget Q and period P.
///
/// The budget is in chunks, each with the time from which it may be used. A chunk is activated when the server has
/// work and the chunk's time has come; what is used of it comes back P after its activation, as a chunk of its own
/// (POSIX lets chunks of different activations melt into one, and so come back too early or too large). A chunk never
/// comes back before its use ended: so a server that was starved is not owed what it missed. To others the server
/// is no worse than sporadic tasks whose costs add up to Q, of period P and with the deadline of the activation plus P.
///
/// At most so many chunks are pending; one more joins the latest of them, at its own, later time.
///
/// Scheduled in whatever way, it runs no more than `min(t, Q * (1 + ceil(t / P)))` in any window of length t: a unit of
/// budget used late, and then used once more each time it comes back.
///
/// An overrun postpones the next chunks by its length.
#[derive(Clone, Debug)]
pub struct SporadicServer {
    full: Nanos,
    period: Nanos,
    state: State,
    /// By time. The first is the one in use if its time has come; the amounts add up to Q. Never empty.
    chunks: Vec<Chunk>,
    /// Used of the first chunk since its activation, and not yet to come back.
    used: Nanos,
    /// Most chunks whose time is to come.
    pending_max: usize,
}

/// A part of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Chunk {
    /// When it may be used, and once it is in use, when it was activated.
    at: Instant,
    amount: Nanos,
}

impl SporadicServer {
    /// A server of which at most `replenishments` are pending. `0 < budget <= period`, `replenishments > 0`.
    pub fn new(budget: Nanos, period: Nanos, replenishments: usize) -> Self {
        assert!(!budget.is_zero(), "a server without budget never runs");
        assert!(budget <= period, "a server cannot run more than always");
        assert!(replenishments > 0, "what is used must come back");
        let mut chunks = Vec::with_capacity(chunks_max(replenishments) + 1);
        chunks.push(Chunk { at: Instant::ZERO, amount: budget });
        SporadicServer {
            full: budget,
            period,
            state: State::Idle,
            chunks,
            used: Nanos::ZERO,
            pending_max: replenishments,
        }
    }

    /// Charges what ran since the last event; whether the first chunk is exhausted, so that the next one is now first.
    fn charge(&mut self, now: Instant) -> bool {
        let State::Runs { since } = self.state else { return false };
        self.used += now.saturating_since(since);
        self.state = State::Runs { since: now };
        let amount = self.chunks[0].amount;
        if self.used < amount {
            return false;
        }
        let overrun = self.used - amount;
        self.used = amount;
        self.give_back(now);
        if !overrun.is_zero() {
            let at = self.chunks[0].at.max(now).saturating_add(overrun);
            for chunk in &mut self.chunks {
                chunk.at = chunk.at.max(at);
            }
        }
        true
    }

    /// The used part of the first chunk comes back P after the activation, and not before its use ended.
    fn give_back(&mut self, now: Instant) {
        let amount = std::mem::take(&mut self.used);
        if amount.is_zero() {
            return;
        }
        let at = self.chunks[0].at.saturating_add(self.period).max(now);
        self.chunks[0].amount -= amount;
        if self.chunks[0].amount.is_zero() {
            self.chunks.remove(0);
        }
        // After an overrun a chunk may have been postponed beyond this one.
        let position = self.chunks.partition_point(|chunk| chunk.at <= at);
        self.chunks.insert(position, Chunk { at, amount });
        let pending = self.chunks.iter().filter(|chunk| chunk.at > now).count();
        if pending > self.pending_max {
            let last = self.chunks.pop().expect("some are pending");
            let before = self.chunks.last_mut().expect("two or more are pending");
            *before = Chunk { at: last.at, amount: before.amount + last.amount };
        }
    }

    /// Says what holds from now on for a server that has work and whose first chunk is new to it.
    fn announce(&mut self, now: Instant, actions: &mut Vec<Action>) {
        let Chunk { at, amount } = self.chunks[0];
        if now < at {
            self.state = State::Throttled;
            actions.push(Action::Throttled { until: at });
            return;
        }
        if !matches!(self.state, State::Runs { .. }) {
            self.state = State::Ready;
        }
        let deadline = at.saturating_add(self.period);
        actions.push(Action::Replenished { budget: amount, deadline });
        actions.push(Action::Ready { deadline });
    }
}

/// Waking leaves one chunk and those pending; while there is work, an exhausted chunk makes place for what comes back;
/// and becoming idle splits the one in use.
fn chunks_max(pending_max: usize) -> usize {
    pending_max + 2
}

impl Server for SporadicServer {
    /// Budget that came back while the server was idle is one chunk, activated now.
    fn wake(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if self.state != State::Idle {
            return;
        }
        let available = self.chunks.partition_point(|chunk| chunk.at <= now);
        if available > 0 {
            let amount = self.chunks.drain(..available).map(|chunk| chunk.amount).sum();
            self.chunks.insert(0, Chunk { at: now, amount });
        }
        self.announce(now, actions);
    }

    fn run(&mut self, now: Instant) {
        if self.state == State::Ready {
            self.state = State::Runs { since: now };
        }
    }

    /// Preempted, not idle: the chunk stays activated.
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
        self.give_back(now);
        self.state = State::Idle;
    }

    fn next_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Idle | State::Ready => None,
            State::Runs { since } => Some(since.saturating_add(self.chunks[0].amount - self.used)),
            State::Throttled => Some(self.chunks[0].at),
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
        assert_eq!(self.chunks.iter().map(|chunk| chunk.amount).sum::<Nanos>(), self.full, "budget lost or made");
        assert!(self.chunks.is_sorted_by_key(|chunk| chunk.at), "chunks come back in order");
        assert!(self.chunks.len() <= chunks_max(self.pending_max), "chunks pile up");
        assert!(self.chunks.iter().all(|chunk| !chunk.amount.is_zero()), "an empty chunk");
        assert!(self.used < self.chunks[0].amount, "an exhausted chunk is given back at once");
    }
}
