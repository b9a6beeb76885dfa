//! One stream of a program, live: any thread issues operations to it, any thread says what is complete.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use laxity_gpu::{Arbitration, MobileClient};
use laxity_model::Instant;
use laxity_policy::program::{Admission, Event, OperationId, Order, Passage, Policy, Stream, Work};
use laxity_sys::clock;

use crate::home;
use crate::issue_lock::{IssueLock, Issuing};
use crate::log::Line;
use crate::operation::{Label, Operation};
use crate::process::{Announced, Leave, Process};
use crate::settings::Calls;
use crate::state::{Acquire, Home, State, Wakes};
use crate::stopped::{self, Stopped};

/// A stream. Copies are the same stream.
pub struct LiveStream<O> {
    pub(crate) inner: Arc<Inner<O>>,
}

pub(crate) struct Inner<O> {
    pub process: Arc<Process>,
    /// As a client.
    pub name: String,
    pub gpu: u16,
    number: u32,
    issuing: IssueLock,
    state: Mutex<State<O>>,
    /// Wakes the home thread.
    pub work: Condvar,
    /// Wakes threads that wait for operations to be open or retired.
    pub news: Condvar,
    /// Threads of the program that wait in the driver, some perhaps for operations that are held back. Changed up with the state
    /// locked.
    pub in_driver: AtomicU32,
}

/// An operation that the driver is about to get: then [`Ticket::attach`], or [`Ticket::cancel`] if it refused. Until then
/// no other thread issues to the stream.
#[must_use = "the driver has it, or refused"]
pub struct Ticket<'a, O: Operation> {
    stream: &'a LiveStream<O>,
    /// Its number.
    pub id: OperationId,
    /// Whether it needs a gate.
    pub is_gated: bool,
    is_settled: bool,
    _issuing: Issuing<'a>,
}

impl<O: Operation> LiveStream<O> {
    /// A stream of `process`, whose operations run in that `order` on `gpu` of the arbitration.
    pub fn new(process: &Arc<Process>, policy: Policy, order: Order, gpu: u16) -> Self {
        let number = process.next_stream();
        let mut name = match number {
            0 => process.program.clone(),
            _ => format!("{}.{number}", process.program),
        };
        // Names of clients are short.
        while name.len() > laxity_gpu::NAME_MAX {
            name.pop();
        }
        let mut state = State::new(Stream::new(policy, order), number, process.is_logging());
        let period = match policy.jobs {
            laxity_policy::program::JobRule::Period(period) => Some(period.0),
            _ => None,
        };
        state.note(|stream| Line::Stream { stream, name: name.clone(), gpu, period });
        let inner = Arc::new(Inner {
            process: process.clone(),
            name,
            gpu,
            number,
            issuing: IssueLock::default(),
            state: Mutex::new(state),
            work: Condvar::new(),
            news: Condvar::new(),
            in_driver: AtomicU32::new(0),
        });
        let weak: std::sync::Weak<dyn Leave> = Arc::downgrade(&inner) as _;
        process.add(weak);
        LiveStream { inner }
    }

    /// An operation that the driver is about to get. `is_ready`: whether all that it waits for is complete, apart from
    /// what is before it in the stream.
    ///
    /// `None`: it is not arbitrated, as the stream has no thread.
    pub fn begin(&self, work: Work, is_ready: bool, label: impl FnOnce() -> Option<Label>) -> Option<Ticket<'_, O>> {
        let issuing = self.inner.issuing.lock();
        // The driver tells names, and no lock of the state is held then.
        let is_watched = self.inner.process.arbitration().is_some_and(Arbitration::is_watched);
        let label = if is_watched || self.inner.process.is_logging() { label() } else { None };
        let mut state = self.inner.lock();
        if state.home == Home::NotStarted {
            home::start(&self.inner, &mut state);
        }
        if matches!(state.home, Home::Ending | Home::Ended) {
            return None;
        }
        if state.machine.holds() && !state.client.as_ref().is_none_or(MobileClient::is_wanted) {
            state.machine.renew();
        }
        // A thread that waits here requests its engine before the operation is issued.
        let mut since = None;
        let passage = 'passage: {
            match state.machine.admission(work, is_ready) {
                Admission::Through | Admission::Join => break 'passage Passage::Admitted,
                Admission::Gate => break 'passage Passage::Gated,
                Admission::TakeIfFree(engine) => {
                    let gpu = self.inner.gpu;
                    if state.client.as_mut().is_some_and(|client| client.take_if_free(gpu, engine)) {
                        break 'passage Passage::Taken;
                    }
                    if self.inner.process.settings.calls == Calls::Return || state.client.is_none() {
                        break 'passage Passage::Gated;
                    }
                    let client = state.client.take().expect("it is there");
                    drop(state);
                    since = Some(clock::now());
                    let process = &self.inner.process;
                    process.rest_others(self.inner.number);
                    let (client, is_granted) = match process.do_others_hold(self.inner.number) {
                        // This thread may be the one that their operations wait for, in a callback of the driver's.
                        true => (client, false),
                        false => process.while_waiting(self.inner.number, || self.inner.wait_for(client, engine)),
                    };
                    state = self.inner.lock();
                    state.client = Some(client);
                    // What became ready meanwhile may have requested an engine of its own.
                    if is_granted && state.machine.admission(work, is_ready) == Admission::TakeIfFree(engine) {
                        break 'passage Passage::Taken;
                    }
                    let client = state.client.as_mut().expect("it was put back");
                    client.release_engine();
                    client.release_token();
                    self.inner.work.notify_one();
                    break 'passage Passage::Gated;
                }
            }
        };
        if let (Some(client), false) = (&state.client, matches!(work, Work::Marker | Work::Barrier)) {
            client.count_operation();
            if is_watched {
                client.say(label.as_ref().map_or(kind_of(work), |label| &*label.0));
            }
        }
        let id = state.number();
        state.expect(id, label);
        self.inner.issued(&mut state, id, work, is_ready, passage, since);
        let is_gated = passage == Passage::Gated;
        if state.home == Home::Parked || (is_gated && state.needs_home()) {
            self.inner.work.notify_one();
        }
        drop(state);
        Some(Ticket { stream: self, id, is_gated, is_settled: false, _issuing: issuing })
    }

    /// The operation is complete, or failed. May be called on any thread, more than once, and by a driver: this calls none.
    pub fn complete(&self, id: OperationId) {
        let mut state = self.inner.lock();
        if !state.machine.is_retired(id) {
            state.complete(&self.inner.process.settings, &[id]);
            self.inner.tell(&mut state);
        }
    }

    /// As [`LiveStream::complete`], on a thread that may call the driver: if what comes next can have its engine at once, its
    /// gate is open when this returns, and no other thread wakes for it.
    pub fn complete_and_go_on(&self, id: OperationId) {
        let mut state = self.inner.lock();
        if !state.machine.is_retired(id) {
            state.complete(&self.inner.process.settings, &[id]);
            self.inner.go_on(state);
        }
    }

    /// As [`LiveStream::complete_and_go_on`], for operations that are seen complete at once. `has_waited`: by a thread of the
    /// program that waited for them; then as [`LiveStream::synchronized`], too.
    pub fn complete_together(&self, ids: &[OperationId], has_waited: bool) {
        let mut state = self.inner.lock();
        let settings = &self.inner.process.settings;
        state.complete(settings, ids);
        if has_waited && state.machine.last().is_none() {
            state.handle(settings, Event::Synchronized);
        }
        self.inner.go_on(state);
    }

    /// Everything that the operation waits for outside of the stream's order is complete. As [`LiveStream::complete`].
    pub fn ready(&self, id: OperationId) {
        let mut state = self.inner.lock();
        state.handle(&self.inner.process.settings, Event::Ready(id));
        self.inner.tell(&mut state);
    }

    /// The operation that was issued last, unless all are retired.
    pub fn last(&self) -> Option<OperationId> {
        self.inner.lock().machine.last()
    }

    /// The last operation that the driver has. Another one may have been issued behind it, which a thread is about to give to the
    /// driver: what the driver says now says nothing of that.
    pub fn last_given(&self) -> Option<OperationId> {
        self.inner.lock().last_given()
    }

    /// After the driver said that operations up to `until` are complete: what they held goes to others now, whether or
    /// not the driver has called back. `only` that one, or all before it, too.
    pub fn settle(&self, until: OperationId, only: bool) {
        let mut state = self.inner.lock();
        let settings = &self.inner.process.settings;
        let complete: Vec<OperationId> = match only {
            true => vec![until],
            false => state.machine.pending().take_while(|&id| id <= until).collect(),
        };
        state.complete(settings, &complete);
        if state.machine.last().is_none() {
            state.handle(settings, Event::Synchronized);
        }
        self.inner.go_on(state);
    }

    /// The program waited and found everything complete.
    pub fn synchronized(&self) {
        let mut state = self.inner.lock();
        if state.machine.last().is_none() {
            state.handle(&self.inner.process.settings, Event::Synchronized);
        }
    }

    /// Whether an operation waits for something that only the program may bring about.
    pub fn waits_for_program(&self) -> bool {
        self.inner.lock().machine.waits_for_program()
    }

    /// Whether both are the same stream.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The program gives the stream up: its thread ends when what was issued is over.
    pub fn close(&self) {
        let mut state = self.inner.lock();
        if matches!(state.home, Home::Awake | Home::Parked) {
            state.home = Home::Ending;
        }
        self.inner.work.notify_one();
        let leftovers = state.leftovers();
        drop(state);
        drop(leftovers);
    }
}

impl<O: Operation> Ticket<'_, O> {
    /// The driver has the operation.
    pub fn attach(mut self, operation: Arc<O>) {
        self.is_settled = true;
        let mut state = self.stream.inner.lock();
        let opens = state.attach(self.id, operation);
        let leftovers = state.leftovers();
        drop(state);
        if let Some(operation) = opens {
            operation.open();
        }
        drop(leftovers);
    }

    /// The driver refused it.
    pub fn cancel(self) {}

    /// The driver carried it out before it returned: `only` it, or all before it, too.
    pub fn complete(mut self, only: bool) {
        self.is_settled = true;
        self.stream.settle(self.id, only);
    }
}

impl<O: Operation> Drop for Ticket<'_, O> {
    fn drop(&mut self) {
        if !self.is_settled {
            let mut state = self.stream.inner.lock();
            state.handle(&self.stream.inner.process.settings, Event::Cancelled(self.id));
            self.stream.inner.go_on(state);
        }
    }
}

impl<O> Inner<O> {
    pub fn lock(&self) -> MutexGuard<'_, State<O>> {
        // A thread that panicked was told nothing that another must know.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O: Operation> Inner<O> {
    fn issued(
        &self,
        state: &mut State<O>,
        id: OperationId,
        work: Work,
        is_ready: bool,
        passage: Passage,
        since: Option<Instant>,
    ) {
        let now = clock::now();
        let (at, since) = (now.0, since.unwrap_or(now));
        state.handle(&self.process.settings, Event::Issued { operation: id, work, is_ready, passage, since });
        let engine = state.machine.engine(work).filter(|_| state.lines.is_some());
        if let (Some(engine), Some(job), true) = (engine, state.machine.job(id), passage != Passage::Gated) {
            if passage == Passage::Taken {
                let token = state.client.as_ref().and_then(MobileClient::token).map_or(0, |token| token.0);
                state.note(|stream| Line::Requests { at: since.0, stream, job, engine: engine.index() });
                state.note(|stream| Line::Granted { at, stream, token });
            }
            state.note_open(id);
        }
    }

    /// Waits for `engine` with the client, for as long as the program does not exit.
    pub fn wait_for(&self, mut client: MobileClient, engine: laxity_model::Engine) -> (MobileClient, bool) {
        let watch = stopped::Watch::begin(self.process.settings.policy.hold_limit);
        let keep_waiting = || {
            if let Some(Stopped { name, pid, waited }) = watch.look(self.process.arbitration(), self.gpu) {
                let way_out = format!("let it go on (kill -CONT {pid}) or end it");
                self.process.notice(format_args!(
                    "{}: has waited {waited} for {name}: process {pid} is stopped, and unlocks nothing meanwhile; {way_out}",
                    self.name
                ));
            }
            !self.process.is_exiting()
        };
        let is_granted = match client.acquire(self.gpu, engine, &keep_waiting) {
            Ok(()) => true,
            Err(laxity_gpu::LockError::TimedOut { .. }) => false,
            Err(error) => {
                self.process.notice(format_args!("{}: runs unarbitrated: {error}", self.name));
                false
            }
        };
        if !is_granted {
            client.release_token();
        }
        (client, is_granted)
    }

    /// As [`Inner::wait_for`], for what the machine requested.
    pub fn acquire(&self, mut client: MobileClient, request: Acquire) -> (MobileClient, bool) {
        if let Err(error) = client.begin_job(self.process.settings.base(request.deadline)) {
            self.process.notice(format_args!("{}: {error}", self.name));
        }
        self.process.while_waiting(self.number, || self.wait_for(client, request.engine))
    }

    /// What the machine wants is held from now on, if it is free and no other client wants it. Then the home need not wake
    /// for it, which would take longer than a short operation.
    fn take_free(&self, state: &mut State<O>) {
        let (Some(request), Some(client)) = (state.acquire, state.client.as_mut()) else { return };
        let base = self.process.settings.base(request.deadline);
        if client.begin_job(base).is_err() || !client.take_if_free(self.gpu, request.engine) {
            return;
        }
        let (job, engine) = (request.job, request.engine.index());
        let token = client.token().map_or(0, |token| token.0);
        state.acquire = None;
        state.note(|stream| Line::Requests { at: clock::now().0, stream, job, engine });
        state.note(|stream| Line::Granted { at: clock::now().0, stream, token });
        state.handle(&self.process.settings, Event::Granted);
    }

    /// A token that is kept between holds goes to another stream of the program if one waits: only that may let this one go on.
    fn yield_token(&self, state: &mut State<O>) {
        if state.machine.keeps_token() && self.process.is_any_waiting() {
            state.handle(&self.process.settings, Event::Waits);
        }
    }

    /// As [`Inner::tell`], on a thread that may call the driver: it opens gates itself, and drops what is over.
    fn go_on(&self, mut state: MutexGuard<'_, State<O>>) {
        self.yield_token(&mut state);
        self.take_free(&mut state);
        let gates = std::mem::take(&mut state.to_open);
        let wakes = state.wakes();
        let leftovers = state.leftovers();
        drop(state);
        self.wake(wakes);
        gates.iter().for_each(|operation| operation.open());
        drop(leftovers);
    }

    /// Wakes the threads that what just happened concerns.
    pub fn tell(&self, state: &mut State<O>) {
        self.yield_token(state);
        self.take_free(state);
        self.wake(state.wakes());
    }

    /// Wakes them.
    fn wake(&self, wakes: Wakes) {
        if wakes.home {
            self.work.notify_one();
        }
        if wakes.awaited {
            self.news.notify_all();
        }
    }
}

impl<O: Operation> Leave for Inner<O> {
    fn number(&self) -> u32 {
        self.number
    }

    fn exit(&self) {
        let mut state = self.lock();
        state.handle(&self.process.settings, Event::Exits);
        if self.in_driver.load(Ordering::Relaxed) > 0 {
            // What these threads wait for is opened by no grant any more, and a destructor may wait for them.
            let held_back = state.held_back();
            state.to_open.extend(held_back);
        }
        self.work.notify_one();
        self.news.notify_all();
    }

    fn is_quiet(&self) -> bool {
        !self.lock().machine.holds_or_requests()
    }

    fn write(&self) {
        self.process.log(|| self.lock().lines.as_mut().map(std::mem::take).unwrap_or_default());
    }

    fn rest(&self) {
        let mut state = self.lock();
        state.handle(&self.process.settings, Event::Waits);
        self.tell(&mut state);
    }

    fn announce(&self, job: Announced) {
        let event = match job {
            Announced::Begins(deadline) => Event::JobBegins(deadline),
            Announced::Ends => Event::JobEnds,
        };
        let mut state = self.lock();
        state.handle(&self.process.settings, event);
        self.tell(&mut state);
    }

    fn stop(&self) {
        let mut state = self.lock();
        if matches!(state.home, Home::Awake | Home::Parked) {
            state.home = Home::Ending;
        }
        self.work.notify_one();
        while state.home == Home::Ending {
            state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What an operation without a name is called.
fn kind_of(work: Work) -> &'static str {
    match work {
        Work::CopyIn { .. } => "copy in",
        Work::CopyOut { .. } => "copy out",
        Work::Kernel { .. } => "copy or fill",
        Work::Marker | Work::Barrier => "marker",
    }
}

impl<O> Clone for LiveStream<O> {
    fn clone(&self) -> Self {
        LiveStream { inner: self.inner.clone() }
    }
}

impl<O> fmt::Debug for LiveStream<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<O> fmt::Debug for Inner<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveStream").field("name", &self.name).field("number", &self.number).finish_non_exhaustive()
    }
}
