//! Streams: commands that are carried out one after the other.
//!
//! ```text
//!   issued --> queue --(nothing before it waits)--> soft GPU's stream: kernels, copies, fills, in order
//!                |
//!                +-- Wait: until a point of another stream is passed --+
//!                +-- Host: until its function has returned ------------+--> the next command
//!                +-- Record: passed when all before is complete; does not hold up what is behind it
//! ```
//!
//! Without waits and host functions the queue is empty, and threads issue to the soft GPU directly.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::context::{Context, Default0};
use crate::dispatch::{self, HostCall};
use crate::driver::Driver;
use crate::event::{Mark, PassAtDrop, Point, of_gpu};
use crate::graph::{self, Captured, Step};
use crate::handles::{Handles, lock};
use crate::memory::Allocation;
use crate::operation::Operation;
use crate::types::*;

/// How a stream is ordered among those of its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The one that all threads share: it waits for blocking streams, and they for it.
    Legacy,
    Blocking,
    NonBlocking,
}

/// A stream.
pub struct Stream {
    pub context: Arc<Context>,
    pub kind: Kind,
    pub flags: u32,
    pub priority: i32,
    pub id: u64,
    soft: laxity_softgpu::Stream,
    queue: Mutex<Queue>,
    pub captured: Mutex<Option<Captured>>,
}

/// What a stream does in order.
pub enum Command {
    Operation(Operation),
    Wait(Point),
    Host(HostCall),
    Record(Arc<Mark>),
    /// Memory that is freed when all before is complete.
    Release(Arc<Allocation>),
}

#[derive(Default)]
struct Queue {
    commands: VecDeque<Command>,
    /// The last operation that the soft GPU got.
    last: Option<laxity_softgpu::Event>,
    host: Host,
    /// The thread that goes on with streams will be told when the first command can be carried out. Of that command
    /// alone: it is false again once the command is taken out.
    is_awaited: bool,
    /// What went wrong when no thread of the program was there to be told.
    failure: Option<CUresult>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Host {
    #[default]
    Idle,
    Runs,
}

/// The streams that programs made.
pub static STREAMS: Handles<Stream> = Handles::new(INVALID_HANDLE);

/// How many streams have commands that wait.
static HELD_BACK: AtomicUsize = AtomicUsize::new(0);

pub fn is_any_held_back() -> bool {
    HELD_BACK.load(Ordering::Acquire) > 0
}

/// The stream that a program means.
pub fn find(handle: CUstream, default: Default0) -> Outcome<Arc<Stream>> {
    let context = Context::current()?;
    match (handle as usize, default) {
        (0, Default0::Legacy) | (STREAM_LEGACY, _) => {
            if graph::is_any_capturing() {
                let results: Vec<Outcome> = context.streams().iter().map(|stream| stream.refuse_implicit()).collect();
                results.into_iter().collect::<Outcome>()?;
            }
            context.legacy()
        }
        (0, Default0::PerThread) | (STREAM_PER_THREAD, _) => context.per_thread(),
        _ => STREAMS.get(handle),
    }
}

impl Stream {
    pub fn new(context: &Arc<Context>, kind: Kind, flags: u32, priority: i32) -> Outcome<Arc<Stream>> {
        Driver::get()?;
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed) as u64;
        let soft = context.device.gpu()?.stream(&format!("cuda-{id}")).map_err(|error| of_gpu(&error))?;
        let (queue, captured) = (Mutex::default(), Mutex::default());
        Ok(Arc::new(Stream { context: context.clone(), kind, flags, priority, id, soft, queue, captured }))
    }

    /// Issues steps, between which no other thread's commands come: to the capture that the stream is in, or to be carried
    /// out.
    pub fn issue(self: &Arc<Self>, steps: impl IntoIterator<Item = Step>) -> Outcome {
        let mut steps = steps.into_iter();
        if graph::is_any_capturing()
            && let Some(captured) = &mut *lock(&self.captured)
        {
            return steps.try_for_each(|step| captured.add(step));
        }
        self.enqueue(steps.map(Command::from))
    }

    /// Carries out `commands`, one after the other, after all before them.
    pub fn enqueue(self: &Arc<Self>, commands: impl IntoIterator<Item = Command>) -> Outcome {
        let waits = self.implicit_waits()?;
        let mut queue = lock(&self.queue);
        let was_held_back = queue.is_held_back();
        queue.commands.extend(waits.into_iter().map(Command::Wait));
        queue.commands.extend(commands);
        // Before `advance` looks at them: a point that they wait for may be passed, and kick, meanwhile.
        self.count(was_held_back, &queue);
        let result = self.advance(&mut queue);
        self.count(true, &queue);
        result
    }

    /// The point after all that was issued.
    pub fn point(self: &Arc<Self>) -> Point {
        let mut queue = lock(&self.queue);
        if !queue.is_held_back() {
            return queue.last.clone().map_or(Point::Start, Point::Soft);
        }
        let mark = Arc::<Mark>::default();
        queue.commands.push_back(Command::Record(mark.clone()));
        Point::Mark(mark)
    }

    pub fn is_complete(&self) -> bool {
        let queue = lock(&self.queue);
        !queue.is_held_back() && queue.last.as_ref().is_none_or(laxity_softgpu::Event::is_complete)
    }

    /// Waits for all that was issued.
    pub fn synchronize(self: &Arc<Self>) -> Outcome {
        self.refuse_in_capture()?;
        self.wait()
    }

    /// Waits for all that was issued to be carried out: also where the stream is captured now.
    pub fn wait(self: &Arc<Self>) -> Outcome {
        self.implicit_waits()?.iter().try_for_each(Point::wait)?;
        self.point().wait()?;
        lock(&self.queue).failure.take().map_or(Ok(()), Err)
    }

    /// The program has no handle of it any more. All that was issued is still carried out; a capture that it began ends.
    pub fn let_go(self: &Arc<Self>) {
        graph::abandon(self);
        if !self.is_complete() {
            let mark = Arc::<Mark>::default();
            self.context.retire(self.clone(), mark.clone());
            let _ = self.enqueue([Command::Record(mark)]);
        }
    }

    /// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`, which ends the capture, if there is one.
    pub fn refuse_in_capture(&self) -> Outcome {
        match &*lock(&self.captured) {
            Some(captured) => {
                captured.capture.invalidate();
                Err(STREAM_CAPTURE_UNSUPPORTED)
            }
            None => Ok(()),
        }
    }

    /// Goes on with what waited.
    pub fn go_on(self: &Arc<Self>) {
        let mut queue = lock(&self.queue);
        if queue.commands.is_empty() {
            return;
        }
        queue.is_awaited = false;
        if let Err(error) = self.advance(&mut queue) {
            queue.failure.get_or_insert(error);
        }
        self.count(true, &queue);
    }

    /// The function has returned.
    pub fn host_is_done(self: &Arc<Self>) {
        let mut queue = lock(&self.queue);
        queue.host = Host::Idle;
        if let Err(error) = self.advance(&mut queue) {
            queue.failure.get_or_insert(error);
        }
        self.count(true, &queue);
    }

    /// `CUDA_ERROR_STREAM_CAPTURE_IMPLICIT`, which ends the capture, if there is one that forbids the shared stream to wait
    /// for this one.
    fn refuse_implicit(&self) -> Outcome {
        match &*lock(&self.captured) {
            Some(captured) if self.kind == Kind::Blocking && captured.forbids_implicit() => {
                captured.capture.invalidate();
                Err(STREAM_CAPTURE_IMPLICIT)
            }
            _ => Ok(()),
        }
    }

    /// Points of other streams that are not passed and that a command issued now is behind: the order among the streams
    /// of a context.
    pub fn implicit_waits(self: &Arc<Self>) -> Outcome<Vec<Point>> {
        let open = |stream: &Arc<Stream>| Some(stream.point()).filter(|point| !point.is_complete());
        Ok(match self.kind {
            Kind::NonBlocking => Vec::new(),
            Kind::Blocking => self.context.used_legacy().iter().filter_map(open).collect(),
            Kind::Legacy => {
                let streams = self.context.streams();
                streams.iter().filter(|stream| stream.kind == Kind::Blocking).filter_map(open).collect()
            }
        })
    }

    fn count(&self, was_held_back: bool, queue: &Queue) {
        match (was_held_back, queue.is_held_back()) {
            (false, true) => drop(HELD_BACK.fetch_add(1, Ordering::AcqRel)),
            (true, false) => drop(HELD_BACK.fetch_sub(1, Ordering::AcqRel)),
            _ => {}
        }
    }

    /// Carries out commands until one must wait. The thread that goes on with streams is told when the wait is over.
    ///
    /// No wake-up is lost. Whenever the lock of the queue is free and commands are in it, then a host function runs, after
    /// which `host_is_done` goes on; or the first command waits and `is_awaited`. Each command that comes to the front is
    /// looked at here, as taking one out resets `is_awaited`, and it may stay only in these two ways:
    ///
    /// - For an operation of a soft GPU: `on_complete` tells even if the operation completed after it was looked at. If it
    ///   fails, the soft GPU is lost, and there is nothing to wait for; if it is lost later, dropping `KickAtDrop` tells.
    /// - For a mark: `Mark::pass` sets the time, then kicks. It was not set when it was looked at, so the kick is later.
    ///
    /// The stream counts in `HELD_BACK` since before the command was looked at, so that such a kick is sent. The thread
    /// that gets it locks the queue, and looks again. If another thread has gone on meanwhile, the command that is first
    /// then has its own wake-up.
    ///
    /// An operation that fails does not hold up those behind it. The first error is answered.
    fn advance(self: &Arc<Self>, queue: &mut Queue) -> Outcome {
        let mut result = Ok(());
        while queue.host == Host::Idle
            && let Some(command) = queue.commands.pop_front()
        {
            let was_awaited = std::mem::take(&mut queue.is_awaited);
            match command {
                Command::Operation(operation) => match operation.submit(&self.soft) {
                    Ok(Some(event)) => queue.last = Some(event),
                    Ok(None) => {}
                    Err(error) => result = result.and(Err(of_gpu(&error))),
                },
                Command::Wait(point) => {
                    if !point.is_complete() && (was_awaited || point.kick_when_complete()) {
                        queue.is_awaited = true;
                        queue.commands.push_front(Command::Wait(point));
                        break;
                    }
                }
                Command::Host(call) => {
                    let last = queue.last.clone().map_or(Point::Start, Point::Soft);
                    if !last.is_complete() && (was_awaited || last.kick_when_complete()) {
                        queue.is_awaited = true;
                        queue.commands.push_front(Command::Host(call));
                        break;
                    }
                    queue.host = Host::Runs;
                    dispatch::call(self, call);
                }
                Command::Record(mark) => {
                    if let Some(last) = &queue.last {
                        mark.follow(last.completion());
                    }
                    self.after_last(queue, PassAtDrop(mark));
                }
                Command::Release(memory) => self.after_last(queue, memory),
            }
        }
        result
    }

    /// Drops `what` when all operations are complete.
    fn after_last(&self, queue: &Queue, what: impl Send + 'static) {
        match &queue.last {
            // The soft GPU drops what it does not call.
            Some(last) if !last.is_complete() => drop(last.on_complete(move || drop(what))),
            _ => drop(what),
        }
    }
}

impl Queue {
    fn is_held_back(&self) -> bool {
        !self.commands.is_empty() || self.host == Host::Runs
    }
}
