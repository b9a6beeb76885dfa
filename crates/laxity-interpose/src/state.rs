//! What the threads of a program share of one stream, and how actions of its state machine are carried out.

use std::collections::VecDeque;
use std::sync::Arc;

use laxity_gpu::MobileClient;
use laxity_model::{Engine, Instant};
use laxity_policy::program::{Action, Event, JobEvent, OperationId, Stream};
use laxity_sys::clock;

use crate::log::Line;
use crate::operation::{Label, Operation};
use crate::settings::Settings;

/// Behind the mutex of a stream, which no thread holds while it calls the driver: a driver may call back at any moment,
/// on any thread.
#[derive(Debug)]
pub(crate) struct State<O> {
    pub machine: Stream,
    /// `None` before the home thread registered, and while a thread waits with it.
    pub client: Option<MobileClient>,
    /// Those that the machine has, in its order.
    entries: VecDeque<Entry<O>>,
    /// For the home thread: what to acquire.
    pub acquire: Option<Acquire>,
    /// For the home thread, which may call the driver: gates to open.
    pub to_open: Vec<Arc<O>>,
    /// For any thread that may call the driver: to be dropped.
    garbage: Vec<Arc<O>>,
    pub home: Home,
    /// What threads of the program wait for, one each.
    awaited: Vec<Awaited>,
    pub lines: Option<Vec<Line>>,
    /// Operations that run without their engine, to be told to the user by the home thread.
    pub late: Vec<(String, Why)>,
    actions: Vec<Action>,
    next: u64,
    stream: u32,
}

/// The stream's own thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Home {
    /// It will start with the first operation.
    NotStarted,
    /// It looks at the stream every few milliseconds.
    Awake,
    /// It sleeps until it is woken.
    Parked,
    /// It is to end as soon as nothing is under way.
    Ending,
    /// It ended.
    Ended,
}

/// Why an operation runs without its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It kept the engine for too long.
    Late,
    /// It waited too long for something that its program may have to do first.
    Forced,
}

/// What a thread of the program waits for. It wakes when that is so, and for nothing else: a thread that waits for the last of
/// many operations is not woken by each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Awaited {
    /// The operation is held back no more.
    Open(OperationId),
    /// None up to it is.
    OpenUntil(OperationId),
    /// It is over.
    Retired(OperationId),
    /// All up to it are.
    RetiredUntil(OperationId),
    /// It is held back no more; or whether its stream waits for the program is not as it was, from which a time is counted.
    Turn { id: OperationId, waits_for_program: bool },
}

/// Which threads what happened concerns, to be woken when the state is unlocked: a thread that wakes before waits at once
/// for the lock.
#[derive(Clone, Copy, Debug)]
#[must_use = "the threads are to be woken"]
pub(crate) struct Wakes {
    pub home: bool,
    pub awaited: bool,
}

/// What the machine wants to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acquire {
    pub engine: Engine,
    pub job: u32,
    pub deadline: Option<Instant>,
}

#[derive(Debug)]
struct Entry<O> {
    id: OperationId,
    /// `None` while the driver is about to get it.
    operation: Option<Arc<O>>,
    /// Its gate is to be opened as soon as the driver has it.
    opens: bool,
    label: Option<Label>,
}

/// What a thread outside of the driver has to do after it unlocked the state.
#[must_use = "operations are dropped where the driver may be called"]
pub(crate) struct Leftovers<O>(#[expect(dead_code, reason = "kept to be dropped")] Vec<Arc<O>>);

impl<O: Operation> State<O> {
    pub fn new(machine: Stream, stream: u32, is_logging: bool) -> Self {
        State {
            machine,
            client: None,
            entries: VecDeque::new(),
            acquire: None,
            to_open: Vec::new(),
            garbage: Vec::new(),
            home: Home::NotStarted,
            awaited: Vec::new(),
            lines: is_logging.then(Vec::new),
            late: Vec::new(),
            actions: Vec::new(),
            next: 0,
            stream,
        }
    }

    /// The number of the next operation.
    pub fn number(&mut self) -> OperationId {
        self.next += 1;
        OperationId(self.next - 1)
    }

    /// Something happens now.
    pub fn handle(&mut self, settings: &Settings, event: Event) {
        let now = clock::now();
        let mut actions = std::mem::take(&mut self.actions);
        self.machine.handle(now, event, &mut actions);
        self.carry_out(now, settings, &mut actions);
        self.actions = actions;
    }

    /// Operations are complete, or failed; several are seen complete at once.
    pub fn complete(&mut self, settings: &Settings, ids: &[OperationId]) {
        let now = clock::now();
        let is_wanted = self.client.as_ref().is_none_or(MobileClient::is_wanted);
        let mut actions = std::mem::take(&mut self.actions);
        self.machine.complete(now, ids, is_wanted, &mut actions);
        self.carry_out(now, settings, &mut actions);
        self.actions = actions;
    }

    /// What is due happens.
    pub fn timeout(&mut self, settings: &Settings) {
        let now = clock::now();
        if self.machine.next_timeout().is_some_and(|due| due <= now) {
            let mut actions = std::mem::take(&mut self.actions);
            self.machine.timeout(now, &mut actions);
            self.carry_out(now, settings, &mut actions);
            self.actions = actions;
        }
    }

    /// An operation is about to be given to the driver.
    pub fn expect(&mut self, id: OperationId, label: Option<Label>) {
        self.entries.push_back(Entry { id, operation: None, opens: false, label });
    }

    /// The driver has it; answers it if its gate is to be opened at once.
    pub fn attach(&mut self, id: OperationId, operation: Arc<O>) -> Option<Arc<O>> {
        // It is not there any more if it was complete before the driver returned.
        let entry = self.entries.iter_mut().rev().find(|entry| entry.id == id)?;
        entry.operation = Some(operation.clone());
        entry.opens.then_some(operation)
    }

    /// The last operation that the driver has.
    pub fn last_given(&self) -> Option<OperationId> {
        self.entries.iter().rev().find(|entry| entry.operation.is_some()).map(|entry| entry.id)
    }

    /// Whether it is so. Where the stream has no thread any more, nothing changes, and no thread waits.
    pub fn is_so(&self, awaited: Awaited) -> bool {
        let machine = &self.machine;
        self.home == Home::Ended
            || match awaited {
                Awaited::Open(id) => machine.is_open(id),
                Awaited::OpenUntil(id) => machine.are_open_until(id),
                Awaited::Retired(id) => machine.is_retired(id),
                Awaited::RetiredUntil(id) => machine.pending().next().is_none_or(|first| first > id),
                Awaited::Turn { id, waits_for_program } => {
                    machine.is_open(id) || machine.waits_for_program() != waits_for_program
                }
            }
    }

    /// A thread begins to wait.
    pub fn begin_wait(&mut self, awaited: Awaited) {
        self.awaited.push(awaited);
    }

    /// A thread that waited for it woke.
    pub fn end_wait(&mut self, awaited: Awaited) {
        // Those that wait for the same are alike.
        let at = self.awaited.iter().position(|other| *other == awaited).expect("it waited");
        self.awaited.swap_remove(at);
    }

    /// Which threads are to be woken now.
    pub fn wakes(&self) -> Wakes {
        Wakes {
            home: self.needs_home() || self.home == Home::Ending,
            awaited: self.awaited.iter().any(|&awaited| self.is_so(awaited)),
        }
    }

    /// Whether the home thread has something to do.
    pub fn needs_home(&self) -> bool {
        self.acquire.is_some() || !self.to_open.is_empty() || !self.late.is_empty()
    }

    /// To be dropped by a thread that may call the driver, after it unlocked the state.
    pub fn leftovers(&mut self) -> Leftovers<O> {
        Leftovers(std::mem::take(&mut self.garbage))
    }

    /// Operations that the driver has, with whether each is open: to be asked about.
    pub fn attached(&self) -> Vec<(OperationId, Arc<O>, bool)> {
        let attached = |entry: &Entry<O>| {
            let operation = entry.operation.clone()?;
            Some((entry.id, operation, self.machine.is_open(entry.id)))
        };
        self.entries.iter().filter_map(attached).collect()
    }

    /// Operations that the driver has and that are held back.
    pub fn held_back(&self) -> Vec<Arc<O>> {
        let held_back = self.entries.iter().filter(|entry| !self.machine.is_open(entry.id));
        held_back.filter_map(|entry| entry.operation.clone()).collect()
    }

    pub fn is_idle(&self) -> bool {
        self.entries.is_empty() && !self.needs_home() && self.garbage.is_empty()
    }

    /// Notes a line, if there is a log.
    pub fn note(&mut self, line: impl FnOnce(u32) -> Line) {
        let stream = self.stream;
        if let Some(lines) = &mut self.lines {
            lines.push(line(stream));
        }
    }

    /// Whether there are lines for the log.
    pub fn has_noted(&self) -> bool {
        self.lines.as_ref().is_some_and(|lines| !lines.is_empty())
    }

    fn carry_out(&mut self, now: Instant, settings: &Settings, actions: &mut Vec<Action>) {
        for action in actions.drain(..) {
            match action {
                Action::Acquire { engine, job, deadline, .. } => {
                    self.acquire = Some(Acquire { engine, job, deadline });
                }
                Action::Open(id) => self.open(id),
                Action::Unlock(_) => {
                    self.note(|stream| Line::Unlocks { at: clock::now().0, stream });
                    if let Some(client) = &mut self.client {
                        client.release_engine();
                    }
                }
                Action::ReleaseToken => {
                    self.note(|stream| Line::Releases { at: clock::now().0, stream });
                    if let Some(client) = &mut self.client {
                        client.release_token();
                    }
                }
                Action::Retire(id) => self.retire(now, id),
                Action::Late(id) => {
                    self.note(|stream| Line::Late { at: now.0, stream, operation: id.0 });
                    self.late.push((self.name(id), Why::Late));
                }
                Action::Forced(id) => {
                    self.note_open(id);
                    self.late.push((self.name(id), Why::Forced));
                }
                Action::Job(JobEvent::Began { number, release, deadline }) => {
                    let level = settings.level(deadline);
                    let deadline = deadline.map(|deadline| deadline.0);
                    self.note(|stream| Line::Begins { at: release.0, stream, job: number, deadline, level });
                }
                Action::Job(JobEvent::Ended { number, at }) => {
                    self.note(|stream| Line::Ends { at: at.0, stream, job: number });
                }
            }
        }
    }

    fn name(&self, id: OperationId) -> String {
        let label = self.entries.iter().find(|entry| entry.id == id).and_then(|entry| entry.label.clone());
        label.map_or_else(|| format!("operation {}", id.0), |label| label.0.to_string())
    }

    fn open(&mut self, id: OperationId) {
        self.note_open(id);
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.id == id) {
            match &entry.operation {
                Some(operation) => self.to_open.push(operation.clone()),
                None => entry.opens = true,
            }
        }
    }

    /// Notes that the driver may run the operation.
    pub fn note_open(&mut self, id: OperationId) {
        if self.lines.is_some() {
            let entry = self.entries.iter().rev().find(|entry| entry.id == id);
            let label = entry.and_then(|entry| entry.label.as_ref()).map(|label| label.0.to_string());
            self.note(|stream| Line::Opens { at: clock::now().0, stream, operation: id.0, label });
        }
    }

    fn retire(&mut self, now: Instant, id: OperationId) {
        self.note(|stream| Line::Complete { at: now.0, stream, operation: id.0 });
        if let Some(at) = self.entries.iter().position(|entry| entry.id == id) {
            let entry = self.entries.remove(at).expect("it was found");
            self.garbage.extend(entry.operation);
        }
    }
}
