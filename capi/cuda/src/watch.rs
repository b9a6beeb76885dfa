//! A thread for each stream that learns when operations are complete: a callback of CUDA holds up the stream.
//!
//! ```text
//!   Parked --issue--> looks every 100 us --an operation is older--> waits for its event, suspended --complete--> looks
//!      ^                    |    ^                                                                               |
//!      '--nothing for long--'    '-------------------------------------------------------------------------------'
//! ```
//!
//! A program that waits for its operations says itself that they are complete. So the thread is not woken for each of
//! them, which would cost a system call: it sees within 100 us that one is under way for so long, and waits for that.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use laxity_interpose::LiveStream;
use laxity_policy::program::OperationId;

use crate::operation::{CudaOperation, Event, Pool};
use crate::real::ask;
use crate::types::*;

/// How often it looks, and how old an operation is for which it waits.
const LOOK: Duration = Duration::from_micros(100);
/// It parks after so many looks without an operation.
const IDLE_LOOKS: u32 = 50;

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
}

#[derive(Debug)]
struct UnderWay {
    /// The driver got it as the so-manieth. Threads that share a stream may give it operations in another order than that of
    /// their numbers.
    position: Position,
    id: OperationId,
    event: Arc<Event>,
    since: Instant,
}

/// A place in the order in which the driver got a stream's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position(u64);

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
    /// Operation `id` of `stream` is under way, with `event` behind it.
    pub fn add(self: &Arc<Self>, stream: &Watched, id: OperationId, event: Arc<Event>) {
        let mut state = self.lock();
        state.count += 1;
        let position = Position(state.count);
        state.under_way.push_back(UnderWay { position, id, event, since: Instant::now() });
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

    /// The last operation that the driver has.
    pub fn position(&self) -> Option<Position> {
        Some(self.lock().count).filter(|&count| count > 0).map(Position)
    }

    /// All operations up to that place are known to be complete.
    pub fn settle(&self, live: &LiveStream<CudaOperation>, until: Position) {
        let mut over = Vec::new();
        {
            let mut state = self.lock();
            while state.under_way.front().is_some_and(|first| first.position <= until) {
                over.extend(state.under_way.pop_front());
            }
        }
        over.iter().for_each(|operation| live.complete(operation.id));
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
        let mut idle = 0;
        loop {
            let Some(first) = state.under_way.front() else {
                if state.thread == Thread::Ending {
                    break;
                }
                state.is_hurried = false;
                idle += 1;
                if idle > IDLE_LOOKS {
                    state.thread = Thread::Parked;
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    if state.thread == Thread::Parked {
                        state.thread = Thread::Looks;
                    }
                    idle = 0;
                } else {
                    state = self.sleep(state, LOOK);
                }
                continue;
            };
            idle = 0;
            let age = first.since.elapsed();
            if age < LOOK && !state.is_hurried && state.thread != Thread::Ending {
                state = self.sleep(state, LOOK - age);
                continue;
            }
            let (position, event) = (first.position, first.event.clone());
            drop(state);
            if !event.is_complete() {
                event.wait();
            }
            drop(event);
            self.settle(&stream.live, position);
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

/// What the thread watches.
#[derive(Clone)]
pub struct Watched {
    pub live: LiveStream<CudaOperation>,
    pub context: usize,
    pub pool: Arc<Pool>,
}
