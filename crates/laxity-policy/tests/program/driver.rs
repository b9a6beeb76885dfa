//! A driver as OpenCL and CUDA describe theirs, an arbiter of one GPU, and a program: a stream is run between them, and
//! what must hold is checked after each step.

use laxity_model::{Engine, Instant, Nanos};
use laxity_policy::program::{Action, Admission, Event, JobEvent, OperationId, Order, Passage, Policy, Stream, Work};

/// The most operations of one hold of a stream that is alone.
const ALONE: u16 = 64;

pub struct World {
    pub stream: Stream,
    policy: Policy,
    order: Order,
    pub now: Instant,
    next: u64,
    /// What the driver has, in the order in which it got it.
    commands: Vec<Command>,
    pub holds: Option<Engine>,
    pub has_token: bool,
    /// What the stream waits for at the arbiter.
    pub requested: Option<(Engine, bool)>,
    /// Of the present hold, and how many may share it.
    shared_by: u16,
    most: u16,
    is_alone: bool,
    /// Whether what is complete may have been so for long.
    pub is_late_news: bool,
    is_exiting: bool,
    pub retired: Vec<OperationId>,
    pub late: Vec<OperationId>,
    pub forced: Vec<OperationId>,
    pub jobs: Vec<JobEvent>,
    pub grants: Vec<Engine>,
}

#[derive(Debug)]
struct Command {
    id: OperationId,
    work: Work,
    is_gated: bool,
    /// Whether what it waits for outside of the order is complete.
    is_ready: bool,
    was_late: bool,
}

impl World {
    pub fn new(policy: Policy, order: Order) -> Self {
        World {
            stream: Stream::new(policy, order),
            policy,
            order,
            now: Instant(1),
            next: 0,
            commands: Vec::new(),
            holds: None,
            has_token: false,
            requested: None,
            shared_by: 0,
            most: policy.batch,
            is_alone: false,
            is_late_news: false,
            is_exiting: false,
            retired: Vec::new(),
            late: Vec::new(),
            forced: Vec::new(),
            jobs: Vec::new(),
            grants: Vec::new(),
        }
    }

    /// The program issues `work`; if that is allowed and `is_free`, the engine is taken at once.
    pub fn issue(&mut self, work: Work, is_ready: bool, is_free: bool) -> (OperationId, Passage) {
        let operation = OperationId(self.next);
        self.next += 1;
        let passage = match self.stream.admission(work, is_ready) {
            Admission::Through => Passage::Admitted,
            Admission::Join => {
                self.shared_by += 1;
                Passage::Admitted
            }
            Admission::TakeIfFree(engine) if is_free => {
                assert_eq!((self.holds, self.requested), (None, None), "it takes one engine at a time");
                self.holds = Some(engine);
                self.has_token = true;
                self.grants.push(engine);
                self.shared_by = 1;
                self.begin_hold();
                Passage::Taken
            }
            Admission::TakeIfFree(_) | Admission::Gate => Passage::Gated,
        };
        let is_gated = passage == Passage::Gated;
        self.commands.push(Command { id: operation, work, is_gated, is_ready, was_late: false });
        self.tell(Event::Issued { operation, work, is_ready, passage, since: self.now });
        (operation, passage)
    }

    /// What an operation waits for outside of the order is complete; the `choice`-th of those that wait.
    pub fn resolve(&mut self, choice: usize) -> bool {
        let waiting: Vec<usize> = (0..self.commands.len()).filter(|&at| !self.commands[at].is_ready).collect();
        let Some(&at) = waiting.get(choice % waiting.len().max(1)) else { return false };
        self.commands[at].is_ready = true;
        self.tell(Event::Ready(self.commands[at].id));
        true
    }

    pub fn grant(&mut self) -> bool {
        let Some((engine, token)) = self.requested.take() else { return false };
        assert_eq!(self.holds, None);
        assert_eq!(token, !self.has_token, "a token is requested by a stream that has none");
        self.holds = Some(engine);
        self.has_token = true;
        self.grants.push(engine);
        self.shared_by = 0;
        self.begin_hold();
        self.tell(Event::Granted);
        true
    }

    /// Whether there is another client.
    pub fn set_alone(&mut self, is_alone: bool) {
        self.stream.set_alone(is_alone);
        self.is_alone = is_alone;
        if is_alone {
            self.begin_hold();
        }
    }

    fn begin_hold(&mut self) {
        let is_longer = self.policy.alone_length > self.policy.batch_length && self.order == Order::InOrder;
        self.most = if self.is_alone && is_longer { self.policy.batch.max(ALONE) } else { self.policy.batch };
    }

    /// The driver completes the `choice`-th of the commands that it can run, and another client wants the engine.
    pub fn complete(&mut self, choice: usize) -> bool {
        self.complete_one(choice, true)
    }

    /// As [`World::complete`]; `is_wanted`: whether another client wants the engine.
    pub fn complete_one(&mut self, choice: usize, is_wanted: bool) -> bool {
        let runnable = self.runnable();
        let Some(&at) = runnable.get(choice % runnable.len().max(1)) else { return false };
        let id = self.commands.remove(at).id;
        self.learn(&[id], is_wanted);
        assert!(self.stream.is_retired(id));
        true
    }

    /// The driver has completed the first `count` commands, and the program learns of all at once.
    pub fn complete_together(&mut self, count: usize) {
        let ids: Vec<OperationId> = self.commands.drain(..count).map(|command| command.id).collect();
        self.learn(&ids, true);
    }

    fn learn(&mut self, ids: &[OperationId], is_wanted: bool) {
        if !is_wanted {
            self.count_again();
        }
        self.is_alone &= !is_wanted;
        let mut actions = Vec::new();
        self.stream.complete(self.now, ids, is_wanted, self.is_late_news, &mut actions);
        self.carry_out(actions);
    }

    /// No other client wants the engine.
    pub fn renew(&mut self) {
        self.stream.renew();
        self.count_again();
    }

    /// Only those that are under way share the hold from now on.
    fn count_again(&mut self) {
        let is_under_way = |command: &&Command| {
            !command.is_gated && !command.was_late && self.policy.engines.engine(command.work).is_some()
        };
        if self.holds.is_some() {
            self.shared_by = self.commands.iter().filter(is_under_way).count() as u16;
        }
    }

    /// The driver refuses the command that it got last.
    pub fn refuse(&mut self) {
        let refused = self.commands.pop().expect("it got one");
        self.tell(Event::Cancelled(refused.id));
    }

    /// The program exits.
    pub fn exit(&mut self) {
        self.is_exiting = true;
        self.tell(Event::Exits);
    }

    pub fn pass(&mut self, span: Nanos) {
        self.now += span;
        let mut actions = Vec::new();
        self.stream.timeout(self.now, &mut actions);
        self.carry_out(actions);
    }

    pub fn tell(&mut self, event: Event) {
        let mut actions = Vec::new();
        self.stream.handle(self.now, event, &mut actions);
        self.carry_out(actions);
    }

    /// Commands that the driver can run now.
    fn runnable(&self) -> Vec<usize> {
        let is_first = |at: usize| match self.order {
            Order::InOrder => at == 0,
            Order::OutOfOrder => match self.commands[at].work {
                Work::Barrier => at == 0,
                _ => !self.commands[..at].iter().any(|command| command.work == Work::Barrier),
            },
        };
        let runs = |&at: &usize| {
            let command = &self.commands[at];
            !command.is_gated && command.is_ready && is_first(at)
        };
        (0..self.commands.len()).filter(runs).collect()
    }

    fn carry_out(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Acquire { engine, token, .. } => {
                    assert_eq!((self.holds, self.requested), (None, None), "it acquires one engine at a time");
                    self.requested = Some((engine, token));
                }
                Action::Open(id) => {
                    let command = self.commands.iter_mut().find(|command| command.id == id).expect("the driver has it");
                    assert!(std::mem::take(&mut command.is_gated), "a gate is opened once");
                    assert_eq!(self.policy.engines.engine(command.work), self.holds, "its engine is held");
                    self.shared_by += 1;
                }
                Action::Unlock(engine) => assert_eq!(self.holds.take(), Some(engine)),
                Action::ReleaseToken => {
                    assert_eq!(self.holds, None, "engines are unlocked before");
                    assert!(std::mem::take(&mut self.has_token));
                }
                Action::Retire(id) => self.retired.push(id),
                Action::Late(id) => {
                    self.late.push(id);
                    if let Some(command) = self.commands.iter_mut().find(|command| command.id == id) {
                        command.was_late = true;
                    }
                }
                Action::Forced(id) => {
                    self.forced.push(id);
                    let command = self.commands.iter_mut().find(|command| command.id == id).expect("it is pending");
                    assert!(std::mem::take(&mut command.is_gated), "only an operation with a gate is forced");
                    command.was_late = true;
                }
                Action::Job(event) => self.jobs.push(event),
            }
        }
        self.check();
    }

    fn check(&self) {
        let uses = |command: &Command| self.policy.engines.engine(command.work);
        let runnable: Vec<&Command> = self.runnable().into_iter().map(|at| &self.commands[at]).collect();
        for command in &runnable {
            let is_arbitrated = uses(command).is_none() || command.was_late || uses(command) == self.holds;
            assert!(is_arbitrated, "{command:?} runs without its engine");
        }
        if self.holds.is_some() {
            assert!(!runnable.is_empty(), "an engine is held, and nothing can run: {:?}", self.commands);
            assert!(self.shared_by <= self.most, "{} operations share a hold", self.shared_by);
            assert!(self.has_token);
        }
        let can_begin = |command: &&Command| command.is_gated && command.is_ready;
        if self.order == Order::InOrder
            && !self.is_exiting
            && self.holds.is_none()
            && let Some(first) = self.commands.first()
            && can_begin(&first)
        {
            assert!(self.requested.is_some(), "{first:?} could run, and no engine is requested");
        }
    }

    /// Everything that can happen happens, in any order that `choices` says; then all must be over.
    pub fn drain(&mut self, mut choices: impl FnMut() -> usize) {
        for _ in 0..10_000 {
            self.now += Nanos(100);
            let choice = choices();
            let happened = match choice % 3 {
                0 => self.complete(choice) || self.grant() || self.resolve(choice),
                1 => self.grant() || self.resolve(choice) || self.complete(choice),
                _ => self.resolve(choice) || self.complete(choice) || self.grant(),
            };
            if !happened {
                break;
            }
        }
        assert!(self.commands.is_empty(), "these never ran: {:?}", self.commands);
        assert_eq!(self.stream.pending().count(), 0);
        assert_eq!((self.holds, self.requested), (None, None));
        let numbers: Vec<u64> = {
            let mut retired = self.retired.clone();
            retired.sort();
            retired.into_iter().map(|id| id.0).collect()
        };
        assert_eq!(numbers, (0..self.next).collect::<Vec<_>>(), "each is retired once");
    }
}
