//! One stream of a program: which operation is next, and what is held for it.

mod holds;

use std::collections::VecDeque;

use laxity_model::{Engine, Instant, Nanos};

use super::event::{Action, Admission, Event, OperationId, Order, Passage};
use super::jobs::{JobEvent, Jobs};
use super::lengths::Lengths;
use super::policy::Policy;
use super::work::Work;

/// One stream: a state machine. See the [module](super).
///
/// ```text
///             Issued, Ready, Completed: an operation can run           Granted, Refused
///   Nothing -------------------------------------------> Acquiring --------------------> Held
///      ^ |                                                   |                            |
///      | '---------------- Issued{Taken} --------------------|--------------------------> |
///      |                                                     | Granted, and all cancelled |
///      '-----------------------------------------------------+-------------- Unlock ------'
///                                                                all complete; or the limit passed
/// ```
#[derive(Clone, Debug)]
pub struct Stream {
    policy: Policy,
    order: Order,
    /// Those that are not retired, in the order of issue.
    pending: VecDeque<Operation>,
    hold: Hold,
    /// Since when it has a token, or last ended a hold with it.
    token: Option<Instant>,
    jobs: Jobs,
    job_events: Vec<JobEvent>,
    lengths: Lengths,
    /// While several operations are seen complete at once.
    share: Option<Share>,
    /// Operations may have been complete long before that was seen.
    is_late_news: bool,
    /// No other client wants what is held, as far as is known.
    is_unwanted: bool,
    /// There is no other client, as far as is known.
    is_alone: bool,
    /// The program waits, and has issued nothing to this stream since.
    rests: bool,
    is_exiting: bool,
}

#[derive(Clone, Copy, Debug)]
struct Operation {
    id: OperationId,
    work: Work,
    job: u32,
    state: State,
    /// Predicted when it began to share a hold.
    length: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Behind its gate. `is_ready`: all that it waits for outside of the stream's order is complete.
    Gated { is_ready: bool },
    /// It may run, and the engine is held for it.
    Held,
    /// It may run, and no engine is held for it: it uses none, or was late.
    Loose { is_ready: bool },
}

/// How long each of several operations took that are seen complete at once.
#[derive(Clone, Copy, Debug)]
enum Share {
    /// Each the same: it is not known how long one of them takes.
    Equal(Nanos),
    /// As long as predicted, times what all took by what was predicted for all.
    Predicted { took: Nanos, predicted: Nanos },
}

#[derive(Clone, Copy, Debug)]
enum Hold {
    Nothing,
    Acquiring(Engine),
    Held(Held),
}

#[derive(Clone, Copy, Debug)]
struct Held {
    engine: Engine,
    since: Instant,
    /// When the last of its operations was complete.
    progress: Instant,
    /// Whether one was.
    has_progress: bool,
    /// Operations that shared it since it began, or was renewed.
    operations: u16,
    /// Predicted for all of them; `None`: one of them was never seen before.
    length: Option<Nanos>,
    /// Not where the arbitration refused.
    is_locked: bool,
}

impl Stream {
    /// A stream to which nothing was issued.
    pub fn new(policy: Policy, order: Order) -> Self {
        assert!(policy.batch >= 1, "a hold is for one operation at least");
        Stream {
            policy,
            order,
            pending: VecDeque::new(),
            hold: Hold::Nothing,
            token: None,
            jobs: Jobs::new(policy.jobs),
            job_events: Vec::new(),
            lengths: Lengths::default(),
            share: None,
            is_late_news: false,
            is_unwanted: false,
            is_alone: false,
            rests: false,
            is_exiting: false,
        }
    }

    /// How the operation that the program is about to issue gets to the driver.
    pub fn admission(&self, work: Work, is_ready: bool) -> Admission {
        let Some(engine) = self.policy.engines.engine(work) else { return Admission::Through };
        if !is_ready || self.is_exiting {
            return Admission::Gate;
        }
        match self.hold {
            Hold::Nothing if self.is_next() => Admission::TakeIfFree(engine),
            Hold::Held(held) if self.is_behind_held() && self.fits(&held, engine, work) => Admission::Join,
            _ => Admission::Gate,
        }
    }

    /// Whether the operation is retired, or was never issued.
    pub fn is_retired(&self, id: OperationId) -> bool {
        self.find(id).is_none()
    }

    /// Whether the operation may run: it waits for no grant any more.
    pub fn is_open(&self, id: OperationId) -> bool {
        self.find(id).is_none_or(|at| !matches!(self.pending[at].state, State::Gated { .. }))
    }

    /// Whether none of the operations up to this one waits for a grant.
    pub fn are_open_until(&self, id: OperationId) -> bool {
        let mut until = self.pending.iter().take_while(|operation| operation.id <= id);
        until.all(|operation| !matches!(operation.state, State::Gated { .. }))
    }

    /// The operations that are not retired, in the order of issue.
    pub fn pending(&self) -> impl Iterator<Item = OperationId> + '_ {
        self.pending.iter().map(|operation| operation.id)
    }

    /// The operation that was issued last and is not retired.
    pub fn last(&self) -> Option<OperationId> {
        self.pending.back().map(|operation| operation.id)
    }

    /// The job that the operation belongs to, until it is retired.
    pub fn job(&self, id: OperationId) -> Option<u32> {
        self.find(id).map(|at| self.pending[at].job)
    }

    /// Whether an operation waits for something outside of the stream's order.
    pub fn waits_for_program(&self) -> bool {
        let waits = |state| matches!(state, State::Gated { is_ready: false } | State::Loose { is_ready: false });
        self.pending.iter().any(|operation| waits(operation.state))
    }

    /// Whether an engine or a token is held or requested.
    pub fn holds_or_requests(&self) -> bool {
        !matches!(self.hold, Hold::Nothing) || self.token.is_some()
    }

    /// Whether it keeps a token between holds.
    pub fn keeps_token(&self) -> bool {
        matches!(self.hold, Hold::Nothing) && self.token.is_some()
    }

    /// The engine that does `work`.
    pub fn engine(&self, work: Work) -> Option<Engine> {
        self.policy.engines.engine(work)
    }

    /// Whether an engine is held.
    pub fn holds(&self) -> bool {
        matches!(self.hold, Hold::Held(_))
    }

    /// Whether there is no other client, from now on: see [`Policy::alone_length`].
    pub fn set_alone(&mut self, is_alone: bool) {
        self.is_alone = is_alone;
    }

    /// The program was stopped for that long: so much longer may what is held be held.
    pub fn excuse(&mut self, stopped: Nanos) {
        if let Hold::Held(held) = &mut self.hold {
            held.since = held.since.saturating_add(stopped);
        }
        self.token = self.token.map(|since| since.saturating_add(stopped));
    }

    /// When [`Stream::timeout`] wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        let since = match self.hold {
            Hold::Held(held) => held.since,
            Hold::Nothing => self.token?,
            Hold::Acquiring(_) => return None,
        };
        Some(since.saturating_add(self.policy.hold_limit))
    }

    /// Something happens. Actions are appended in the order in which to carry them out.
    pub fn handle(&mut self, now: Instant, event: Event, actions: &mut Vec<Action>) {
        match event {
            Event::Issued { operation, work, is_ready, passage, since } => {
                let job = self.jobs.issue(since, &mut self.job_events);
                self.issue(now, operation, work, is_ready, passage, job);
            }
            Event::Ready(id) => self.make_ready(id),
            Event::Cancelled(id) | Event::Completed(id) => self.retire(now, id, event, actions),
            Event::Forced(id) => self.force(id, actions),
            Event::Granted => self.granted(now, true, actions),
            Event::Refused => self.granted(now, false, actions),
            Event::Waits => self.rests = true,
            Event::Synchronized => self.jobs.synchronize(&mut self.job_events),
            Event::JobBegins(deadline) => self.jobs.begin(deadline, &mut self.job_events),
            Event::JobEnds => self.jobs.end(&mut self.job_events),
            Event::Exits => self.is_exiting = true,
        }
        if matches!(event, Event::Waits | Event::Synchronized | Event::JobEnds | Event::Exits) {
            self.release_idle_token(actions);
        }
        self.advance(actions);
    }

    /// Operations are complete. Where no other client wants what is held, the hold goes on with the job's next operation on the
    /// same engine, as if the engine had been unlocked and taken again.
    ///
    /// Several are seen complete at once, as by a thread that waited for all of them. How long each took is not known: each counts
    /// for a part of the time as long as its part of the prediction, so that predictions for all of them together stay right.
    ///
    /// `is_late_news`: they may have been complete long before. Then they make no prediction longer.
    pub fn complete(
        &mut self,
        now: Instant,
        ids: &[OperationId],
        is_wanted: bool,
        is_late_news: bool,
        actions: &mut Vec<Action>,
    ) {
        self.is_late_news = is_late_news;
        self.share = match (self.hold, ids) {
            (Hold::Held(held), [_, _, ..]) => self.share(ids, now.saturating_since(held.progress)),
            _ => None,
        };
        self.is_unwanted = !is_wanted;
        self.is_alone &= !is_wanted;
        for &id in ids {
            self.handle(now, Event::Completed(id), actions);
        }
        (self.share, self.is_unwanted, self.is_late_news) = (None, false, false);
    }

    /// How to divide the time that those of the operations `took` for which the engine is held, if there are several.
    fn share(&self, ids: &[OperationId], took: Nanos) -> Option<Share> {
        let (mut count, mut predicted) = (0, Some(Nanos::ZERO));
        for operation in ids.iter().filter_map(|&id| Some(&self.pending[self.find(id)?])) {
            if operation.state == State::Held {
                count += 1;
                predicted = predicted.zip(operation.length).and_then(|(sum, length)| sum.checked_add(length));
            }
        }
        let predicted = predicted.filter(|predicted| predicted.0 > 0);
        let equal = Share::Equal(Nanos(took.0 / count.max(1)));
        (count > 1).then(|| predicted.map_or(equal, |predicted| Share::Predicted { took, predicted }))
    }

    /// What is due by `now` happens.
    pub fn timeout(&mut self, now: Instant, actions: &mut Vec<Action>) {
        if self.next_timeout().is_none_or(|due| now < due) {
            return;
        }
        if let Hold::Held(held) = self.hold {
            for operation in self.pending.iter_mut().filter(|operation| operation.state == State::Held) {
                operation.state = State::Loose { is_ready: true };
                actions.push(Action::Late(operation.id));
            }
            self.end_hold(now, held, actions);
        }
        self.release_idle_token(actions);
        self.advance(actions);
    }

    fn find(&self, id: OperationId) -> Option<usize> {
        self.pending.binary_search_by_key(&id, |operation| operation.id).ok()
    }

    /// Whether an operation issued now would be the next to run.
    fn is_next(&self) -> bool {
        match self.order {
            Order::InOrder => self.pending.is_empty(),
            Order::OutOfOrder => {
                self.candidate().is_none() && !self.pending.iter().any(|operation| operation.work == Work::Barrier)
            }
        }
    }

    /// Whether an operation issued now would run when those that the engine is held for are complete, at the latest.
    fn is_behind_held(&self) -> bool {
        match self.order {
            Order::InOrder => {
                let runs = |state| matches!(state, State::Held | State::Loose { is_ready: true });
                // One that was late may never be complete.
                self.pending.iter().all(|operation| runs(operation.state))
                    && !self.pending.iter().any(Operation::was_late)
            }
            Order::OutOfOrder => self.is_next(),
        }
    }

    fn issue(&mut self, now: Instant, id: OperationId, work: Work, is_ready: bool, passage: Passage, job: u32) {
        assert!(self.last().is_none_or(|last| last < id), "operations have ascending numbers");
        let admission = self.admission(work, is_ready);
        let state = match (passage, admission) {
            (Passage::Admitted, Admission::Through) => State::Loose { is_ready },
            (Passage::Admitted, Admission::Join) => State::Held,
            (Passage::Taken, Admission::TakeIfFree(engine)) => {
                self.take(now, engine, true);
                State::Held
            }
            (Passage::Gated, admission) if admission != Admission::Through => State::Gated { is_ready },
            (passage, admission) => panic!("{passage:?} is not what {admission:?} allows"),
        };
        self.rests = false;
        self.pending.push_back(Operation { id, work, job, state, length: None });
        if state == State::Held {
            self.count(self.pending.len() - 1);
        }
    }

    fn make_ready(&mut self, id: OperationId) {
        let Some(at) = self.find(id) else { return };
        match &mut self.pending[at].state {
            State::Gated { is_ready } | State::Loose { is_ready } => *is_ready = true,
            State::Held => {}
        }
    }

    fn force(&mut self, id: OperationId, actions: &mut Vec<Action>) {
        let Some(at) = self.find(id) else { return };
        if matches!(self.pending[at].state, State::Gated { .. }) {
            self.pending[at].state = State::Loose { is_ready: true };
            actions.push(Action::Forced(id));
        }
    }

    fn retire(&mut self, now: Instant, id: OperationId, event: Event, actions: &mut Vec<Action>) {
        let Some(at) = self.find(id) else { return };
        let operation = self.pending.remove(at).expect("it was found");
        if let (Hold::Held(held), State::Held, Event::Completed(_)) = (&mut self.hold, operation.state, event) {
            let began = std::mem::replace(&mut held.progress, now);
            let is_first = !std::mem::replace(&mut held.has_progress, true);
            if let Some(key) = operation.work.key() {
                let took = match (self.share, operation.length) {
                    (Some(Share::Equal(took)), _) => took,
                    (Some(Share::Predicted { took, predicted }), Some(length)) => {
                        Nanos((u128::from(took.0) * u128::from(length.0) / u128::from(predicted.0)) as u64)
                    }
                    _ => now.saturating_since(began),
                };
                self.lengths.observe(key, took, is_first || self.is_late_news);
            }
        }
        // First the engine, which others may wait for.
        if operation.state == State::Held {
            if self.is_unwanted {
                self.keep_hold(operation.job, actions);
            }
            self.go_on(now, actions);
        }
        actions.push(Action::Retire(id));
        self.jobs.retire(now, operation.job, &mut self.job_events);
    }

    fn granted(&mut self, now: Instant, is_locked: bool, actions: &mut Vec<Action>) {
        let Hold::Acquiring(engine) = self.hold else { panic!("nothing was acquired") };
        self.take(now, engine, is_locked);
        let first = self.candidate().filter(|&at| self.policy.engines.engine(self.pending[at].work) == Some(engine));
        if let Some(at) = first {
            self.open(at, actions);
        }
        self.go_on(now, actions);
    }

    /// The operation that runs next: its dependencies are complete, and it is behind none that is not even begun.
    fn candidate(&self) -> Option<usize> {
        if self.is_exiting {
            return None;
        }
        for (at, operation) in self.pending.iter().enumerate() {
            match (operation.state, self.order) {
                (State::Gated { is_ready: true }, _) => return Some(at),
                (State::Held, _) => {}
                (State::Gated { is_ready: false } | State::Loose { .. }, Order::InOrder) => return None,
                (State::Gated { is_ready: false } | State::Loose { .. }, Order::OutOfOrder) => {
                    if operation.work == Work::Barrier {
                        return None;
                    }
                }
            }
        }
        None
    }

    /// Acquires what the next operation needs, and says which jobs began and ended.
    fn advance(&mut self, actions: &mut Vec<Action>) {
        actions.extend(self.job_events.drain(..).map(Action::Job));
        if !matches!(self.hold, Hold::Nothing) {
            return;
        }
        if let Some(at) = self.candidate() {
            let Operation { work, job, .. } = self.pending[at];
            let engine = self.policy.engines.engine(work).expect("only what needs an engine has a gate");
            self.hold = Hold::Acquiring(engine);
            let deadline = self.jobs.deadline(job);
            actions.push(Action::Acquire { engine, token: self.token.is_none(), job, deadline });
        } else if self.pending.iter().any(|operation| operation.state == State::Gated { is_ready: false }) {
            self.release_token(actions);
        }
    }
}

impl Operation {
    /// Whether its hold ended before it was complete.
    fn was_late(&self) -> bool {
        matches!(self.state, State::Loose { .. }) && !self.work.uses_no_engine()
    }
}
