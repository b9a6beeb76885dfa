//! A stream of a program, under arbitration.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use laxity_interpose::{LiveStream, Process};
use laxity_policy::program::{OperationId, Order, Policy};

use crate::layer::Layer;
use crate::operation::{CudaOperation, Event, Pool};
use crate::types::*;
use crate::watch::{Awaiting, Position, Watch, Watched};

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
    pub live: LiveStream<CudaOperation>,
    pub kind: Kind,
    pub context: usize,
    /// All its operations: they are told apart by their numbers.
    pub operation: Arc<CudaOperation>,
    watch: Arc<Watch>,
    watched: Watched,
    /// An event must be recorded behind an operation at once: another stream of its context came with which this one is ordered.
    is_ordered: AtomicBool,
}

impl Stream {
    pub fn new(
        process: &Arc<Process>,
        policy: Policy,
        gpu: u16,
        kind: Kind,
        context: CUcontext,
        handle: CUstream,
    ) -> Self {
        let live = LiveStream::new(process, policy, Order::InOrder, gpu, None);
        let (context, pool) = (context as usize, Arc::<Pool>::default());
        let watched = Watched { live: live.clone(), context, handle: handle as usize, pool };
        // Only the thread whose own stream it is can record an event in it.
        let is_ordered = AtomicBool::new(handle as usize == STREAM_PER_THREAD);
        Stream { live, kind, context, operation: Arc::default(), watch: Arc::default(), watched, is_ordered }
    }

    /// An event behind all that the driver has of this stream.
    pub fn record(&self) -> Option<Arc<Event>> {
        self.watched.record()
    }

    /// Operation `id` is under way, with `event` behind it, or with none yet: see [`Stream::is_alone`].
    pub fn watch(&self, id: OperationId, event: Option<Arc<Event>>) {
        self.watch.add(&self.watched, id, event, false);
    }

    /// As [`Stream::watch`], for something that uses no engine.
    pub fn watch_marker(&self, id: OperationId, event: Arc<Event>) {
        self.watch.add(&self.watched, id, Some(event), true);
    }

    /// Whether it is ordered with no other stream: an event may be recorded later than the operation that it is behind.
    pub fn is_alone(&self) -> bool {
        !self.is_ordered.load(Ordering::SeqCst)
    }

    /// Whether operations of both streams wait for one another.
    pub fn is_ordered_with(&self, other: &Stream) -> bool {
        let kinds = [self.kind, other.kind];
        self.context == other.context && kinds.contains(&Kind::Legacy) && kinds.contains(&Kind::Blocking)
    }

    /// From now on it is ordered with another stream.
    pub fn begin_order(&self) {
        self.is_ordered.store(true, Ordering::SeqCst);
        self.close_tail();
    }

    /// Something is about to be issued behind what the driver has, or to be captured.
    pub fn close_tail(&self) {
        self.watch.close_tail(&self.watched);
    }

    /// A thread of the program waits for its turn behind what is under way.
    pub fn hurry(&self) {
        self.watch.hurry();
    }

    /// The last operation that the driver has; `None`: it never had one.
    pub fn position(&self) -> Option<Position> {
        self.watch.position()
    }

    /// A thread is about to wait for what the driver has of the stream up to that place: waits until it is over, if
    /// threads are to be suspended. Operations with which other threads are held back are none that the driver waits for. To be
    /// kept until the driver answers. `is_all`: the driver waits for nothing else, unless this stream is ordered with others.
    pub fn before_wait(&self, until: Position, is_all: bool) -> Awaiting<'_> {
        // A thread that is suspended learns from the watch that they are over.
        let settles = is_all && self.is_alone() && !Layer::get().suspends();
        let (last, awaiting) = self.watch.begin_wait(until, settles);
        match last {
            Some(last) => self.live.wait_until_open(last, false),
            None => self.live.waits(),
        }
        awaiting
    }

    /// Whether something is not known to be complete.
    pub fn is_busy(&self) -> bool {
        self.live.last().is_some()
    }

    /// The driver said that the operations up to that place are complete.
    pub fn settle(&self, until: Position) {
        self.watch.settle(&self.live, until, true);
    }

    /// The program gives it up: what was issued is still watched.
    pub fn close(&self) {
        self.close_tail();
        self.watch.end_later();
        self.live.close();
    }

    /// Its context is about to be destroyed, which may be another one than this thread's: waits for all that was issued, and keeps
    /// nothing of the driver.
    pub fn end(&self) {
        self.watch.end();
        self.live.close();
    }
}
