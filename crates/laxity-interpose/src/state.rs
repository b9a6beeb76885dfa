//! What the threads of a program share of one stream, and how actions of its state machine are carried out.

use std::collections::VecDeque;
use std::sync::Arc;

use laxity_gpu::MobileClient;
use laxity_model::{Engine, Instant};
use laxity_policy::program::{Action, Event, JobEvent, OperationId, Stream};
use laxity_sys::clock;
use smallvec::SmallVec;

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
    garbage: SmallVec<[Arc<O>; 4]>,
    pub home: Home,
    /// The last one that is unwatched, and how many are.
    unwatched: Option<(OperationId, u16)>,
    /// Entries that are, or were.
    left: usize,
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
    is_given: bool,
    /// `None` before the driver has it, and of some that are unwatched.
    operation: Option<Arc<O>>,
    /// It is, or was, unwatched; then its operation is a marker behind it.
    is_left: bool,
    /// What the front calls it, if it is unwatched; else 0.
    name: usize,
    /// Its gate is to be opened as soon as the driver has it.
    opens: bool,
    label: Option<Label>,
}

/// An operation that the driver has.
pub(crate) struct Attached<O> {
    pub id: OperationId,
    pub operation: Arc<O>,
    pub is_open: bool,
    /// When it is complete, so are those before it.
    pub is_marker: bool,
}

/// What a thread outside of the driver has to do after it unlocked the state.
#[must_use = "operations are dropped where the driver may be called"]
pub(crate) struct Leftovers<O>(#[expect(dead_code, reason = "kept to be dropped")] SmallVec<[Arc<O>; 4]>);

impl<O: Operation> State<O> {
    pub fn new(machine: Stream, stream: u32, is_logging: bool) -> Self {
        State {
            machine,
            client: None,
            entries: VecDeque::new(),
            acquire: None,
            to_open: Vec::new(),
            garbage: SmallVec::new(),
            home: Home::NotStarted,
            unwatched: None,
            left: 0,
            awaited: Vec::new(),
            lines: is_logging.then(Vec::new),
            late: Vec::new(),
            actions: Vec::new(),
            next: 0,
            stream,
        }
    }

    /// How many operations were issued.
    pub fn issued(&self) -> u64 {
        self.next
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
        self.machine.complete(now, ids, is_wanted, self.left > 0, &mut actions);
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
        self.entries.push_back(Entry {
            id,
            is_given: false,
            operation: None,
            is_left: false,
            name: 0,
            opens: false,
            label,
        });
    }

    /// The driver has it; answers it if its gate is to be opened at once. When it is complete, so are those before it.
    pub fn attach(&mut self, id: OperationId, operation: Arc<O>) -> Option<Arc<O>> {
        // It is not there any more if it was complete before the driver returned.
        let entry = self.entries.iter_mut().rev().find(|entry| entry.id == id)?;
        entry.is_given = true;
        entry.operation = Some(operation.clone());
        let opens = entry.opens.then_some(operation);
        self.unwatched = None;
        opens
    }

    /// The driver has it, and is not asked to say when it is complete.
    pub fn leave(&mut self, id: OperationId, name: usize) {
        if let Some(entry) = self.entries.iter_mut().rev().find(|entry| entry.id == id) {
            (entry.is_given, entry.is_left, entry.name) = (true, true, name);
            self.left += 1;
            self.unwatched = Some((id, 1 + self.unwatched()));
        }
    }

    /// The driver has a marker behind it.
    pub fn mark(&mut self, id: OperationId, marker: Arc<O>) {
        if let Some(entry) = self.entries.iter_mut().rev().find(|entry| entry.id == id) {
            entry.operation = Some(marker);
        }
    }

    /// The last operation that was left by that name and is not over.
    pub fn left_as(&self, name: usize) -> Option<OperationId> {
        self.entries.iter().rev().find(|entry| entry.name == name).map(|entry| entry.id)
    }

    /// How many operations in a row are unwatched.
    pub fn unwatched(&self) -> u16 {
        self.unwatched.map_or(0, |(_, count)| count)
    }

    /// The last one that is unwatched, to be marked now.
    pub fn take_unwatched(&mut self) -> Option<OperationId> {
        self.unwatched.take().map(|(id, _)| id)
    }

    /// Whether operations are unwatched that are to be marked now.
    pub fn should_mark(&mut self, is_leaving: bool) -> bool {
        self.unwatched.is_some() && (is_leaving || !self.client.as_mut().is_some_and(MobileClient::is_alone))
    }

    /// The last operation that the driver has.
    pub fn last_given(&self) -> Option<OperationId> {
        self.entries.iter().rev().find(|entry| entry.is_given).map(|entry| entry.id)
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

    /// Operations that the driver has: to be asked about.
    pub fn attached(&self) -> Vec<Attached<O>> {
        let attached = |entry: &Entry<O>| {
            let operation = entry.operation.clone()?;
            let (id, is_marker) = (entry.id, entry.is_left);
            Some(Attached { id, operation, is_open: self.machine.is_open(id), is_marker })
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
    #[inline]
    pub fn note(&mut self, line: impl FnOnce(u32) -> Line) {
        if self.lines.is_some() {
            self.write_down(line);
        }
    }

    /// Apart from what is executed without a log.
    #[cold]
    #[inline(never)]
    fn write_down(&mut self, line: impl FnOnce(u32) -> Line) {
        let stream = self.stream;
        self.lines.get_or_insert_default().push(line(stream));
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
        self.unwatched = self.unwatched.filter(|&(last, _)| last != id);
        if let Some(at) = self.entries.iter().position(|entry| entry.id == id) {
            let entry = self.entries.remove(at).expect("it was found");
            self.left -= usize::from(entry.is_left);
            self.garbage.extend(entry.operation);
        }
    }
}
