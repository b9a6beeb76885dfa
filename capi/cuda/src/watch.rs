//! A thread for each stream that learns when operations are complete: a callback of CUDA holds up the stream.
//!
//! ```text
//!   Parked --issue--> looks every 100 us to 5 ms    --an operation is older--> waits for its event, suspended --> looks
//!      ^                    |    ^                                                                          |
//!      '--nothing for long--'    '-------------------------------- complete --------------------------------'
//! ```
//!
//! A program that waits for its operations says itself that they are complete. So the thread is not woken for each of
//! them, which would cost a system call: it sees soon that one is under way for so long, and waits for that, unless a thread of
//! the program does. While it finds at each look that the program waited for all that it saw at the last one, or waits, it
//! looks less often, and even less often while it waits and no other client could want the engine. It waits itself, too, where
//! the program waits for more than operations that share a hold: for a function of the host, for other streams.
//!
//! Nor is an event recorded behind each operation: a program that waits needs none. One is recorded when something else
//! is about to be behind the operation, or when the thread sees it. That is so in streams that are ordered with no other one, as the
//! default stream of a program that has no more: an event in another stream would also be behind what was issued to others
//! meanwhile.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use laxity_interpose::LiveStream;
use laxity_policy::program::OperationId;
use smallvec::SmallVec;

use crate::layer::Layer;
use crate::operation::{CudaOperation, Event, Pool};
use crate::real::ask;
use crate::types::*;

/// How often it looks, and how old an operation is for which it waits.
const LOOK: Duration = Duration::from_micros(100);
/// How often it looks at a program that waits for its operations itself.
const LOOK_MAX: Duration = Duration::from_micros(400);
/// As [`LOOK_MAX`], while the program waits and no other client could want the engine.
const LOOK_ALONE: Duration = Duration::from_millis(5);
/// It parks after so much time without an operation.
const IDLE: Duration = Duration::from_millis(5);

/// The operations of a stream that are under way.
#[derive(Debug, Default)]
pub struct Watch {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    under_way: VecDeque<UnderWay>,
    /// How many were ever under way.
    count: u64,
    thread: Thread,
    /// A thread of the program waits for its turn behind them.
    is_hurried: bool,
    /// Up to which places threads of the program wait in the driver, one each: they say when that is complete.
    awaited: Vec<Position>,
}

#[derive(Debug)]
struct UnderWay {
    /// The driver got it as the so-manieth. Threads that share a stream may give it operations in another order than that of
    /// their numbers.
    position: Position,
    id: OperationId,
    /// Behind it. None: none was recorded yet, and nothing is behind it in its stream.
    event: Option<Arc<Event>>,
    is_marker: bool,
    since: Instant,
}

/// A place in the order in which the driver got a stream's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(u64);

/// A thread of the program waits in the driver for all operations up to a place, until this is dropped.
#[must_use = "it waits until this is dropped"]
pub struct Awaiting<'a> {
    watch: &'a Watch,
    until: Option<Position>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Thread {
    #[default]
    NotStarted,
    Looks,
    Parked,
    /// It is to end when nothing is under way.
    Ending,
    Ended,
}

impl Watch {
    /// Operation `id` of `stream` is under way, with `event` behind it, or with none yet. `is_marker`: it uses no engine, and may wait
    /// for anything.
    pub fn add(self: &Arc<Self>, stream: &Watched, id: OperationId, event: Option<Arc<Event>>, is_marker: bool) {
        let mut state = self.lock();
        state.count += 1;
        let position = Position(state.count);
        state.under_way.push_back(UnderWay { position, id, event, is_marker, since: Instant::now() });
        match state.thread {
            Thread::NotStarted => {
                state.thread = Thread::Looks;
                let (watch, stream) = (self.clone(), stream.clone());
                let started = thread::Builder::new().name("laxity-watch".to_owned()).spawn(move || watch.run(&stream));
                if started.is_err() {
                    // The home thread of the stream unlocks after the limit of a hold.
                    state.thread = Thread::Ended;
                }
            }
            Thread::Parked => self.changed.notify_all(),
            Thread::Looks | Thread::Ending | Thread::Ended => {}
        }
    }

    /// Records an event behind the last operation if it has none: something else is about to be behind it.
    pub fn close_tail(&self, stream: &Watched) {
        let mut state = self.lock();
        if let Some(last) = state.under_way.back_mut().filter(|last| last.event.is_none()) {
            // The lock is held, so that no other thread records behind what is about to be issued.
            last.event = stream.record();
        }
    }

    /// The last operation that the driver has.
    pub fn position(&self) -> Option<Position> {
        Some(self.lock().count).filter(|&count| count > 0).map(Position)
    }

    /// A thread of the program is about to wait for the operations up to that place: the last of them that is under way. `settles`:
    /// it waits in the driver for these alone, and settles them. They are not watched for as long as what this returns
    /// lives, unless something among them uses no engine: the others would keep theirs until that is over.
    pub fn begin_wait(&self, until: Position, settles: bool) -> (Option<OperationId>, Awaiting<'_>) {
        let mut state = self.lock();
        let meant = || state.under_way.iter().take_while(|operation| operation.position <= until);
        let last = meant().last().map(|operation| operation.id);
        let settles = settles && !meant().any(|operation| operation.is_marker);
        if settles {
            state.awaited.push(until);
        }
        (last, Awaiting { watch: self, until: Some(until).filter(|_| settles) })
    }

    /// All operations up to that place are known to be complete. `has_waited`: by a thread of the program.
    pub fn settle(&self, live: &LiveStream<CudaOperation>, until: Position, has_waited: bool) {
        // Those that are over are dropped, and their events go back, when the lock is free.
        let over: SmallVec<[UnderWay; 1]> = {
            let mut state = self.lock();
            let count = state.under_way.iter().take_while(|operation| operation.position <= until).count();
            state.under_way.drain(..count).collect()
        };
        let ids: SmallVec<[OperationId; 1]> = over.iter().map(|operation| operation.id).collect();
        if has_waited || !ids.is_empty() {
            live.complete_together(&ids, has_waited);
        }
    }

    /// The next completion is waited for now.
    pub fn hurry(&self) {
        let mut state = self.lock();
        state.is_hurried = true;
        self.changed.notify_all();
    }

    /// Ends the thread, once nothing is under way, and waits for that.
    pub fn end(&self) {
        let mut state = self.close(self.lock());
        while !matches!(state.thread, Thread::NotStarted | Thread::Ended) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// As [`Watch::end`], without waiting.
    pub fn end_later(&self) {
        drop(self.close(self.lock()));
    }

    fn close<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.thread = match state.thread {
            Thread::NotStarted | Thread::Ended => Thread::Ended,
            Thread::Looks | Thread::Parked | Thread::Ending => Thread::Ending,
        };
        self.changed.notify_all();
        state
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, stream: &Watched) {
        ask!(c"cuCtxSetCurrent": fn(CUcontext)(stream.context as CUcontext));
        // What this thread does is no part of any capture, and must end none.
        let mut relaxed: std::ffi::c_int = 2;
        ask!(c"cuThreadExchangeStreamCaptureMode": fn(*mut std::ffi::c_int)(&mut relaxed));
        let mut state = self.lock();
        let (mut idle, mut look) = (Duration::ZERO, LOOK);
        loop {
            let Some(first) = state.under_way.front() else {
                if state.thread == Thread::Ending {
                    break;
                }
                state.is_hurried = false;
                if idle > IDLE {
                    state.thread = Thread::Parked;
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    if state.thread == Thread::Parked {
                        state.thread = Thread::Looks;
                    }
                    (idle, look) = (Duration::ZERO, LOOK);
                } else {
                    idle += look;
                    state = self.sleep(state, look);
                    look = (2 * look).min(LOOK_MAX);
                }
                continue;
            };
            idle = Duration::ZERO;
            let (age, is_awaited) = (first.since.elapsed(), state.is_awaited(first.position));
            if (age < LOOK || is_awaited) && !state.is_hurried && state.thread != Thread::Ending {
                state = self.sleep(state, if is_awaited { look } else { look - age });
                look = (2 * look).min(if is_awaited && is_only_client() { LOOK_ALONE } else { LOOK_MAX });
                continue;
            }
            look = LOOK;
            let position = first.position;
            let first = state.under_way.front_mut().expect("it is there");
            if first.event.is_none() {
                first.event = stream.record();
            }
            let event = first.event.clone();
            drop(state);
            // Without an event the driver says no more about the operation.
            if let Some(event) = event.filter(|event| !event.is_complete()) {
                event.wait();
            }
            self.settle(&stream.live, position, false);
            state = self.lock();
        }
        drop(state);
        stream.pool.clear();
        self.lock().thread = Thread::Ended;
        self.changed.notify_all();
    }

    fn sleep<'a>(&'a self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Whether no other stream, of this process or another one, is a client of the arbitration.
fn is_only_client() -> bool {
    Layer::get().process().arbitration().is_none_or(|arbitration| arbitration.clients() <= 1)
}

impl State {
    fn is_awaited(&self, position: Position) -> bool {
        self.awaited.iter().any(|&until| position <= until)
    }
}

impl Drop for Awaiting<'_> {
    fn drop(&mut self) {
        let Some(until) = self.until else { return };
        let mut state = self.watch.lock();
        // Those that wait for the same are alike.
        let at = state.awaited.iter().position(|&other| other == until).expect("it waits");
        state.awaited.swap_remove(at);
    }
}

/// What the thread watches.
#[derive(Clone)]
pub struct Watched {
    pub live: LiveStream<CudaOperation>,
    pub context: usize,
    /// What the driver calls the stream, on the threads that may use it.
    pub handle: usize,
    pub pool: Arc<Pool>,
}

impl Watched {
    /// An event behind all that the driver has of the stream.
    pub fn record(&self) -> Option<Arc<Event>> {
        self.pool.record(self.handle as CUstream)
    }
}

#[cfg(test)]
mod tests {
    use laxity_interpose::Process;
    use laxity_policy::program::{Order, Policy};
    use laxity_testing::until;

    use super::*;

    /// No driver is there: the thread settles what it looks at.
    #[test]
    fn what_a_thread_of_the_program_waits_for_is_left_to_it() {
        let process = Arc::new(Process::start("test"));
        let live = LiveStream::new(&process, Policy::default(), Order::InOrder, 0, None);
        let stream = Watched { live, context: 0, handle: 0, pool: Arc::default() };
        let watch = Arc::<Watch>::default();
        let under_way = || watch.lock().under_way.iter().map(|operation| operation.id.0).collect::<Vec<_>>();
        let (last, awaiting) = watch.begin_wait(Position(2), true);
        assert_eq!(last, None);
        (0..3).for_each(|number| watch.add(&stream, OperationId(number), None, false));
        thread::sleep(20 * LOOK_MAX);
        assert_eq!(under_way(), [0, 1, 2], "the third one is behind them");
        watch.settle(&stream.live, Position(2), true);
        until("the thread looks at the third one", || under_way().is_empty());
        drop(awaiting);
        assert!(watch.lock().awaited.is_empty());
        // With a function of the host among them the program would wait for that, too.
        watch.add(&stream, OperationId(3), None, false);
        watch.add(&stream, OperationId(4), None, true);
        let (last, awaiting) = watch.begin_wait(Position(5), true);
        assert_eq!(last, Some(OperationId(4)));
        until("the thread looks at both", || under_way().is_empty());
        drop(awaiting);
        watch.end();
    }
}
