//! One stream of a program, live: any thread issues operations to it, any thread says what is complete.

use std::fmt;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use laxity_gpu::{Arbitration, MobileClient};
use laxity_model::{Instant, Nanos};
use laxity_policy::program::{Admission, Event, OperationId, Order, Passage, Policy, Stream, Work};
use laxity_sys::clock;
use smallvec::{SmallVec, smallvec};

use crate::home;
use crate::issue_lock::IssueLock;
use crate::log::Line;
use crate::operation::{Label, Operation};
use crate::process::{Leave, Process};
use crate::settings::{Calls, Wait};
use crate::state::{Acquire, Home, State, Wakes};
use crate::stopped::{self, Stopped};
use crate::ticket::Ticket;

/// The most operations in a row that are unwatched: so a queue of many has room for more before it is empty.
const UNWATCHED: u16 = 16;

/// With a shorter limit every operation is watched: what is unwatched is looked for less often.
const HOLD_LIMIT_MIN: Nanos = Nanos::from_millis(500);

/// A stream. Copies are the same stream.
pub struct LiveStream<O: Operation> {
    pub(crate) inner: Arc<Inner<O>>,
}

pub(crate) struct Inner<O: Operation> {
    pub process: Arc<Process>,
    /// As a client.
    pub name: String,
    pub gpu: u16,
    pub number: u32,
    order: Order,
    /// For markers; `None`: every operation is watched.
    place: Option<O::Place>,
    pub issuing: IssueLock,
    state: Mutex<State<O>>,
    /// Wakes the home thread.
    pub work: Condvar,
    /// Wakes threads that wait for operations to be open or retired.
    pub news: Condvar,
    /// Threads of the program that wait in the driver, some perhaps for operations that are held back. Changed up with the state
    /// locked.
    pub in_driver: AtomicU32,
}

impl<O: Operation> LiveStream<O> {
    /// A stream of `process`, whose operations run in that `order` on `gpu` of the arbitration.
    /// `place`: for markers, if the front has them.
    pub fn new(process: &Arc<Process>, policy: Policy, order: Order, gpu: u16, place: Option<O::Place>) -> Self {
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
        let settings = &process.settings;
        // A log tells when each is complete, and a thread that waits in the layer is told, too. CPUs are regulated no longer than an
        // engine is used. And nothing shall be late that is complete.
        let may_be_unwatched = order == Order::InOrder
            && settings.wait == Wait::Driver
            && settings.bandwidth.is_none()
            && policy.hold_limit >= HOLD_LIMIT_MIN
            && policy.alone_length > Nanos::ZERO
            && !process.is_logging();
        let place = place.filter(|_| may_be_unwatched);
        let inner = Arc::new(Inner {
            process: process.clone(),
            name,
            gpu,
            number,
            order,
            place,
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
    #[inline]
    pub fn begin(&self, work: Work, is_ready: bool, label: impl FnOnce() -> Option<Label>) -> Option<Ticket<'_, O>> {
        let mut label = Some(label);
        self.begin_named(work, is_ready, &mut || label.take().and_then(|label| label()))
    }

    /// One for all kinds of operations: between two of them, most of what CPUs cache is the program's again.
    fn begin_named(
        &self,
        work: Work,
        is_ready: bool,
        label: &mut dyn FnMut() -> Option<Label>,
    ) -> Option<Ticket<'_, O>> {
        let issuing = self.inner.issuing.lock();
        // The driver tells names, and no lock of the state is held then.
        let has_watchers = self.inner.process.arbitration().is_some_and(Arbitration::is_watched);
        let label = if has_watchers || self.inner.process.is_logging() { label() } else { None };
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
        let is_alone = state.client.as_mut().is_some_and(MobileClient::is_alone);
        state.machine.set_alone(is_alone);
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
            if has_watchers {
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
        let is_unwatched = self.inner.place.is_some() && is_alone && is_ready && !is_gated && !has_watchers;
        let is_watched = !is_unwatched || state.unwatched() >= UNWATCHED;
        // What has a gate waits for those before it.
        let unwatched = if is_gated || !is_alone { state.take_unwatched() } else { None };
        drop(state);
        if let Some(until) = unwatched {
            self.mark(until);
        }
        Some(Ticket { stream: self, id, is_gated, is_watched, is_settled: false, _issuing: issuing })
    }

    /// Has the driver say when the last operation that was unwatched is complete. The caller holds the issue lock.
    pub(crate) fn mark(&self, until: OperationId) {
        let place = self.inner.place.expect("only with one operations are unwatched");
        match O::mark(self, place, until) {
            Some(marker) => self.inner.lock().mark(until, marker),
            // The driver says no more about them.
            None => self.complete_until(until, true),
        }
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

    /// The operation is complete, and so are those before it in an in-order stream, as it did not fail. `may_open`: on a thread that
    /// may open gates; then as [`LiveStream::complete_and_go_on`], else as [`LiveStream::complete`].
    pub fn complete_until(&self, until: OperationId, may_open: bool) {
        let mut state = self.inner.lock();
        if state.machine.is_retired(until) {
            return;
        }
        let complete = until_in_order(&state, until, self.inner.order);
        state.complete(&self.inner.process.settings, &complete);
        if may_open {
            self.inner.go_on(state);
        } else {
            self.inner.tell(&mut state);
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

    /// The last operation that was [left](Ticket::leave) by that name, unless it is known to be over.
    pub fn left_as(&self, name: usize) -> Option<OperationId> {
        self.inner.lock().left_as(name)
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
        let order = if only { Order::OutOfOrder } else { Order::InOrder };
        let complete = until_in_order(&state, until, order);
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
        // The stream's own thread puts no marker any more, as the driver's may end now.
        let _issuing = self.inner.issuing.lock();
        let mut state = self.inner.lock();
        if let Some(until) = state.take_unwatched() {
            drop(state);
            self.mark(until);
            state = self.inner.lock();
        }
        if matches!(state.home, Home::Awake | Home::Parked) {
            state.home = Home::Ending;
        }
        self.inner.work.notify_one();
        let leftovers = state.leftovers();
        drop(state);
        drop(leftovers);
    }
}

impl<O: Operation> Inner<O> {
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
    pub fn go_on(&self, mut state: MutexGuard<'_, State<O>>) {
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

/// The operations that are complete when `until` is.
pub(crate) fn until_in_order<O: Operation>(
    state: &State<O>,
    until: OperationId,
    order: Order,
) -> SmallVec<[OperationId; 16]> {
    match order {
        Order::OutOfOrder => smallvec![until],
        Order::InOrder => state.machine.pending().take_while(|&id| id <= until).collect(),
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

impl<O: Operation> Clone for LiveStream<O> {
    fn clone(&self) -> Self {
        LiveStream { inner: self.inner.clone() }
    }
}

impl<O: Operation> fmt::Debug for LiveStream<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<O: Operation> fmt::Debug for Inner<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveStream").field("name", &self.name).field("number", &self.number).finish_non_exhaustive()
    }
}
