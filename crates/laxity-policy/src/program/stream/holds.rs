//! What a stream holds: which operations share it, and when it ends.

use laxity_model::{Engine, Instant, Nanos};

use super::{Held, Hold, Operation, State, Stream};
use crate::program::event::{Action, Order};
use crate::program::policy::{Policy, TokenRule};
use crate::program::work::Work;

/// The most operations of one hold of a stream that is alone, unless the policy says more: each that is issued looks at all.
const ALONE: u16 = 64;

impl Stream {
    /// No other client wants what is held: operations that are complete count no more among those that share the hold, as if
    /// the engine had been unlocked when the last one was, and taken again. So a busy stream keeps its engine until
    /// another client comes, and that client waits for what is under way then: no longer than without this.
    pub fn renew(&mut self) {
        let Hold::Held(mut held) = self.hold else { return };
        held.since = held.since.max(held.progress);
        (held.operations, held.length) = (0, Some(Nanos::ZERO));
        for operation in &self.pending {
            match (operation.state, self.order) {
                (State::Held, _) => held.share(operation.length),
                // None behind it may run, and there may be thousands.
                (State::Gated { .. }, Order::InOrder) => break,
                _ => {}
            }
        }
        self.hold = Hold::Held(held);
    }

    /// Whether the hold can take one more operation, `work`, on `engine`.
    pub(super) fn fits(&self, held: &Held, engine: Engine, work: Work) -> bool {
        let length = work.key().and_then(|key| self.lengths.predict(key));
        let total = held.length.zip(length).and_then(|(so_far, length)| so_far.checked_add(length));
        let (operations, length) = self.room();
        held.engine == engine && held.operations < operations && total.is_some_and(|total| total <= length)
    }

    /// How many operations may share a hold, and how long they may take together.
    fn room(&self) -> (u16, Nanos) {
        let Policy { batch, batch_length, alone_length, hold_limit, .. } = self.policy;
        // What is predicted may take longer, and shall not be late at once.
        let alone_length = alone_length.min(Nanos(hold_limit.0 / 2));
        // Operations out of order run at once, so that together they take no longer than the longest.
        if self.is_alone && alone_length > batch_length && self.order == Order::InOrder {
            (batch.max(ALONE), alone_length)
        } else {
            (batch, batch_length)
        }
    }

    /// An operation of `job` is complete, and no other client wants what is held: renews the hold. If none of its operations is
    /// under way any more, the next one of the job has it, however long that takes.
    pub(super) fn keep_hold(&mut self, job: u32, actions: &mut Vec<Action>) {
        let (Hold::Held(held), Some(at)) = (self.hold, self.candidate()) else { return };
        if !held.is_locked {
            return;
        }
        self.renew();
        let is_idle = !self.pending.iter().any(|operation| operation.state == State::Held);
        let next = self.pending[at];
        if is_idle && next.job == job && self.policy.engines.engine(next.work) == Some(held.engine) {
            self.open(at, actions);
        }
    }

    /// What was acquired is held, or an operation that it was held for is over: opens what shares the hold, or ends it.
    pub(super) fn go_on(&mut self, now: Instant, actions: &mut Vec<Action>) {
        let Hold::Held(held) = self.hold else { return };
        self.extend(actions);
        if !self.pending.iter().any(|operation| operation.state == State::Held) {
            self.end_hold(now, held, actions);
        }
    }

    /// The engine is held from now on, for no operation yet.
    pub(super) fn take(&mut self, now: Instant, engine: Engine, is_locked: bool) {
        let length = Some(Nanos::ZERO);
        let (since, progress, has_progress) = (now, now, false);
        self.hold = Hold::Held(Held { engine, since, progress, has_progress, operations: 0, length, is_locked });
        if is_locked {
            self.token = Some(now);
        }
    }

    /// The operation shares the hold.
    pub(super) fn count(&mut self, at: usize) {
        let operation = &mut self.pending[at];
        operation.length = operation.work.key().and_then(|key| self.lengths.predict(key));
        let Hold::Held(held) = &mut self.hold else { panic!("the engine is held") };
        held.share(operation.length);
    }

    pub(super) fn open(&mut self, at: usize, actions: &mut Vec<Action>) {
        self.pending[at].state = State::Held;
        self.count(at);
        actions.push(Action::Open(self.pending[at].id));
    }

    /// Opens the operations that share the hold with those that run.
    fn extend(&mut self, actions: &mut Vec<Action>) {
        while let (Some(at), Hold::Held(held)) = (self.candidate(), self.hold) {
            let work = self.pending[at].work;
            if !self.policy.engines.engine(work).is_some_and(|engine| self.fits(&held, engine, work)) {
                return;
            }
            self.open(at, actions);
        }
    }

    pub(super) fn end_hold(&mut self, now: Instant, held: Held, actions: &mut Vec<Action>) {
        self.hold = Hold::Nothing;
        if held.is_locked {
            actions.push(Action::Unlock(held.engine));
        }
        self.token = self.token.map(|_| now);
        if self.policy.token == TokenRule::Hold || !self.may_keep_token() {
            self.release_token(actions);
        }
    }

    /// Whether the job goes on and no operation waits for a dependency. Nor may the program wait: perhaps for another
    /// stream of its own, which waits for the token.
    fn may_keep_token(&self) -> bool {
        let waits = |operation: &Operation| operation.state == State::Gated { is_ready: false };
        !self.rests && !self.is_exiting && self.jobs.has_open() && !self.pending.iter().any(waits)
    }

    pub(super) fn release_token(&mut self, actions: &mut Vec<Action>) {
        if self.token.take().is_some() {
            actions.push(Action::ReleaseToken);
        }
    }

    /// A stream without a hold needs no token while the program waits or its job is over.
    pub(super) fn release_idle_token(&mut self, actions: &mut Vec<Action>) {
        if matches!(self.hold, Hold::Nothing) {
            self.release_token(actions);
        }
    }
}

impl Held {
    /// One operation more shares it, of that length if it is known.
    fn share(&mut self, length: Option<Nanos>) {
        self.operations += 1;
        self.length = self.length.zip(length).and_then(|(so_far, length)| so_far.checked_add(length));
    }
}
