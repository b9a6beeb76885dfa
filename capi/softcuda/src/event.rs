//! Points of streams that threads and other streams wait for, and the events of programs.

use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};

use laxity_model::Instant;
use laxity_softgpu::{GpuError, Wait};
use laxity_sys::clock;

use crate::context::Context;
use crate::graph::Capture;
use crate::handles::{Handles, lock};
use crate::types::*;

/// Is passed when all commands before it in its stream are complete.
#[derive(Debug, Default)]
pub struct Mark {
    state: Mutex<State>,
    changed: Condvar,
}

/// ```text
///   Ahead --follow--> Follows --(passed, pass)--> Passed
///     +---------------pass--------------------------^
/// ```
#[derive(Debug, Default)]
enum State {
    /// Commands before it wait in the queue of the stream.
    #[default]
    Ahead,
    /// The soft GPU has all that is before it, and notes here when that is complete.
    Follows(Arc<OnceLock<Instant>>),
    Passed(Instant),
}

/// Passes a mark when it is dropped: also where the soft GPU is lost and calls back no more.
pub struct PassAtDrop(pub Arc<Mark>);

/// Tells the thread that goes on with streams when it is dropped: also where the soft GPU is lost and calls back no more.
struct KickAtDrop;

/// A point of a stream.
#[derive(Clone, Debug)]
pub enum Point {
    /// Nothing is before it.
    Start,
    /// After an operation of a soft GPU.
    Soft(laxity_softgpu::Event),
    /// Where commands were held back when it was asked for.
    Mark(Arc<Mark>),
}

/// An event of a program.
pub struct Event {
    pub context: Arc<Context>,
    pub flags: u32,
    pub recorded: Mutex<Recorded>,
}

/// The events that programs made.
pub static EVENTS: Handles<Event> = Handles::new(INVALID_HANDLE);

/// What was recorded last.
#[derive(Default)]
pub enum Recorded {
    #[default]
    Never,
    At {
        point: Point,
        /// When the point was passed, where times are kept.
        time: Option<Arc<Mark>>,
    },
    /// Within a capture, behind these nodes.
    Captured { capture: Arc<Capture>, nodes: Vec<usize> },
}

impl Mark {
    /// It is passed at the time that the soft GPU notes in `completion`: at once, not when the soft GPU calls back, which is
    /// later than that threads which wait for the stream go on.
    pub fn follow(&self, completion: Arc<OnceLock<Instant>>) {
        *lock(&self.state) = State::Follows(completion);
    }

    /// It is passed, and those that wait for it go on. Its time is the soft GPU's, or the present if that has none.
    pub fn pass(&self) {
        let time = self.passed().unwrap_or_else(clock::now);
        *lock(&self.state) = State::Passed(time);
        self.changed.notify_all();
        crate::dispatch::kick();
    }

    pub fn passed(&self) -> Option<Instant> {
        match &*lock(&self.state) {
            State::Ahead => None,
            State::Follows(completion) => completion.get().copied(),
            State::Passed(time) => Some(*time),
        }
    }

    pub fn wait(&self) {
        let mut state = lock(&self.state);
        while !matches!(*state, State::Passed(_)) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for PassAtDrop {
    fn drop(&mut self) {
        self.0.pass();
    }
}

impl Drop for KickAtDrop {
    fn drop(&mut self) {
        crate::dispatch::kick();
    }
}

impl Point {
    pub fn is_complete(&self) -> bool {
        match self {
            Point::Start => true,
            Point::Soft(event) => event.is_complete(),
            Point::Mark(mark) => mark.passed().is_some(),
        }
    }

    /// Tells the thread that goes on with streams when it is complete, or the soft GPU is lost. Whether it will be told.
    pub fn kick_when_complete(&self) -> bool {
        match self {
            Point::Start => false,
            Point::Soft(event) => {
                let kick = KickAtDrop;
                event.on_complete(move || drop(kick)).is_ok()
            }
            // `Mark::pass` tells.
            Point::Mark(_) => true,
        }
    }

    pub fn wait(&self) -> Outcome {
        match self {
            Point::Start => Ok(()),
            Point::Soft(event) => event.wait(Wait::Blocking).map_err(|error| of_gpu(&error)),
            Point::Mark(mark) => {
                mark.wait();
                Ok(())
            }
        }
    }
}

impl Event {
    /// Whether all that was recorded is complete. An event that was never recorded counts as complete.
    pub fn query(&self) -> Outcome {
        if self.point()?.is_complete() { Ok(()) } else { Err(NOT_READY) }
    }

    pub fn wait(&self) -> Outcome {
        self.point()?.wait()
    }

    fn point(&self) -> Outcome<Point> {
        match &*lock(&self.recorded) {
            Recorded::Never => Ok(Point::Start),
            Recorded::At { point, .. } => Ok(point.clone()),
            Recorded::Captured { capture, .. } => {
                capture.invalidate();
                Err(CAPTURED_EVENT)
            }
        }
    }

    /// When it was passed. `CUDA_ERROR_INVALID_HANDLE`: it was not recorded, or keeps no time.
    pub fn time(&self) -> Outcome<Instant> {
        match &*lock(&self.recorded) {
            Recorded::At { time: Some(mark), .. } => mark.passed().ok_or(NOT_READY),
            _ => Err(INVALID_HANDLE),
        }
    }
}

/// The result that says what is wrong with a soft GPU.
pub fn of_gpu(error: &GpuError) -> CUresult {
    match error {
        GpuError::Memory { .. } | GpuError::Shortage { .. } | GpuError::Map { .. } => OUT_OF_MEMORY,
        GpuError::Failed { .. } => {
            crate::driver::say(&error.to_string());
            LAUNCH_FAILED
        }
        GpuError::Gone { .. } => DEVICE_UNAVAILABLE,
        GpuError::Inside | GpuError::Forked => NOT_PERMITTED,
        _ => INVALID_VALUE,
    }
}
