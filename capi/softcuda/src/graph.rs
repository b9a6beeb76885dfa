//! Captures of streams, and graphs. A graph's nodes run one after the other, in an order that their dependencies allow.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::context;
use crate::dispatch::HostCall;
use crate::handles::{Handles, lock};
use crate::operation::Operation;
use crate::stream::{Command, Stream};
use crate::types::*;

/// What a node does.
#[derive(Clone)]
pub enum Step {
    Operation(Operation),
    Host(HostCall),
}

impl From<Step> for Command {
    fn from(step: Step) -> Self {
        match step {
            Step::Operation(operation) => Command::Operation(operation),
            Step::Host(call) => Command::Host(call),
        }
    }
}

/// A node. Those that it depends on have smaller numbers.
#[derive(Clone)]
pub struct Node {
    pub step: Option<Step>,
    pub dependencies: Vec<usize>,
}

/// A graph.
#[derive(Default)]
pub struct Graph {
    pub nodes: Mutex<Vec<Node>>,
}

/// A graph that can be launched.
pub struct Executable {
    pub steps: Vec<Step>,
}

/// A capture that is under way.
pub struct Capture {
    pub graph: Arc<Graph>,
    /// Captured in which mode: 0 global, 1 thread-local, 2 relaxed.
    mode: i32,
    thread: u64,
    pub id: u64,
    is_invalid: AtomicBool,
    /// Those that are in it. `None`: it has ended.
    streams: Mutex<Option<Vec<Arc<Stream>>>>,
}

/// A stream in a capture.
pub struct Captured {
    pub capture: Arc<Capture>,
    /// What the next node depends on.
    pub nodes: Vec<usize>,
    is_origin: bool,
}

pub static GRAPHS: Handles<Graph> = Handles::new(INVALID_VALUE);
pub static EXECUTABLES: Handles<Executable> = Handles::new(INVALID_VALUE);

/// Those that are under way.
static CAPTURES: Mutex<Vec<Arc<Capture>>> = Mutex::new(Vec::new());
/// How many.
static CAPTURE_COUNT: AtomicUsize = AtomicUsize::new(0);

const RELAXED: i32 = 2;
const GLOBAL: i32 = 0;
const STREAM_CAPTURE_INVALIDATED: CUresult = 901;

/// Whether a stream may be in a capture. It costs a load.
pub fn is_any_capturing() -> bool {
    CAPTURE_COUNT.load(Ordering::Acquire) > 0
}

impl Graph {
    pub fn add(&self, step: Option<Step>, dependencies: Vec<usize>) -> Outcome<usize> {
        let mut nodes = lock(&self.nodes);
        if dependencies.iter().any(|&dependency| dependency >= nodes.len()) {
            return Err(INVALID_VALUE);
        }
        nodes.push(Node { step, dependencies });
        Ok(nodes.len() - 1)
    }

    /// In an order that dependencies allow: that in which nodes were added.
    pub fn instantiate(&self) -> Executable {
        Executable { steps: lock(&self.nodes).iter().filter_map(|node| node.step.clone()).collect() }
    }

    /// `nodes`, and all that they depend on.
    fn ancestors(&self, nodes: &[usize]) -> BTreeSet<usize> {
        let all = lock(&self.nodes);
        let (mut found, mut left) = (BTreeSet::new(), nodes.to_vec());
        while let Some(node) = left.pop() {
            if found.insert(node) {
                left.extend(&all[node].dependencies);
            }
        }
        found
    }
}

impl Capture {
    pub fn invalidate(&self) {
        self.is_invalid.store(true, Ordering::Release);
    }

    pub fn is_invalid(&self) -> bool {
        self.is_invalid.load(Ordering::Acquire)
    }

    /// `CUDA_ERROR_CAPTURED_EVENT`: it has ended. `CUDA_ERROR_ILLEGAL_STATE`: the stream is in a capture.
    fn join(self: &Arc<Self>, stream: &Arc<Stream>, nodes: Vec<usize>, is_origin: bool) -> Outcome {
        let mut streams = lock(&self.streams);
        let streams = streams.as_mut().ok_or(CAPTURED_EVENT)?;
        let mut captured = lock(&stream.captured);
        if captured.is_some() {
            return Err(ILLEGAL_STATE);
        }
        *captured = Some(Captured { capture: self.clone(), nodes, is_origin });
        streams.push(stream.clone());
        Ok(())
    }

    fn has_ended(&self) -> bool {
        lock(&self.streams).is_none()
    }

    /// Takes all streams out: the nodes that each ended with, the first one's those of the stream that began. `None`: it
    /// has ended.
    fn close(self: &Arc<Self>) -> Option<Vec<Vec<usize>>> {
        let streams = lock(&self.streams).take()?;
        let mut captures = lock(&CAPTURES);
        captures.retain(|capture| !Arc::ptr_eq(capture, self));
        CAPTURE_COUNT.store(captures.len(), Ordering::Release);
        drop(captures);
        Some(streams.iter().filter_map(|stream| lock(&stream.captured).take()).map(|captured| captured.nodes).collect())
    }
}

impl Captured {
    /// Adds a node behind what the stream has.
    pub fn add(&mut self, step: Step) -> Outcome {
        if self.capture.is_invalid() {
            return Err(STREAM_CAPTURE_INVALIDATED);
        }
        let node = self.capture.graph.add(Some(step), std::mem::take(&mut self.nodes))?;
        self.nodes.push(node);
        Ok(())
    }

    pub fn forbids_implicit(&self) -> bool {
        self.capture.mode != RELAXED
    }
}

/// Begins a capture of `stream`.
pub fn begin(stream: &Arc<Stream>, mode: i32) -> Outcome {
    if !(GLOBAL..=RELAXED).contains(&mode) {
        return Err(INVALID_VALUE);
    }
    if stream.kind == crate::stream::Kind::Legacy {
        return Err(STREAM_CAPTURE_UNSUPPORTED);
    }
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let capture = Arc::new(Capture {
        graph: Arc::default(),
        mode,
        thread: context::thread(),
        id: NEXT.fetch_add(1, Ordering::Relaxed) as u64,
        is_invalid: AtomicBool::new(false),
        streams: Mutex::new(Some(Vec::new())),
    });
    // Before the stream is in it: other calls ask for streams in captures only while there are captures.
    let mut captures = lock(&CAPTURES);
    captures.push(capture.clone());
    CAPTURE_COUNT.store(captures.len(), Ordering::Release);
    drop(captures);
    capture.join(stream, Vec::new(), true).inspect_err(|_| drop(capture.close()))
}

/// Ends the capture that `stream` began.
pub fn end(stream: &Arc<Stream>) -> Outcome<Arc<Graph>> {
    let capture = {
        let captured = lock(&stream.captured);
        let captured = captured.as_ref().ok_or(ILLEGAL_STATE)?;
        if !captured.is_origin {
            captured.capture.invalidate();
            return Err(STREAM_CAPTURE_UNMATCHED);
        }
        if captured.capture.mode != RELAXED && captured.capture.thread != context::thread() {
            return Err(STREAM_CAPTURE_WRONG_THREAD);
        }
        captured.capture.clone()
    };
    let ends = capture.close().ok_or(ILLEGAL_STATE)?;
    if capture.is_invalid() {
        return Err(STREAM_CAPTURE_INVALIDATED);
    }
    // Streams that joined must have been waited for by the one that began.
    let joined = capture.graph.ancestors(ends.first().map_or(&[], |nodes| nodes));
    if ends.iter().flatten().any(|node| !joined.contains(node)) {
        return Err(STREAM_CAPTURE_UNJOINED);
    }
    Ok(capture.graph.clone())
}

/// `stream` is destroyed: the capture that it began ends without a graph. One that it joined goes on, and has the nodes that
/// the stream added.
pub fn abandon(stream: &Arc<Stream>) {
    let capture = match &*lock(&stream.captured) {
        Some(captured) if captured.is_origin => captured.capture.clone(),
        _ => return,
    };
    capture.invalidate();
    capture.close();
}

/// `CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED`, if the calling thread may make no call that is unsafe while streams are
/// captured, because of its own captures or of those of other threads: these are invalid then. Source: CUDA's
/// documentation of `cuThreadExchangeStreamCaptureMode`.
pub fn refuse_unsafe() -> Outcome {
    if !is_any_capturing() {
        return Ok(());
    }
    let (mode, thread) = (context::capture_mode(), context::thread());
    let forbids = |capture: &&Arc<Capture>| {
        if capture.thread == thread {
            capture.mode != RELAXED && mode != RELAXED
        } else {
            capture.mode == GLOBAL && mode == GLOBAL
        }
    };
    let captures = lock(&CAPTURES);
    let mut result = Ok(());
    for capture in captures.iter().filter(forbids) {
        capture.invalidate();
        result = Err(STREAM_CAPTURE_UNSUPPORTED);
    }
    result
}

/// `stream` waits for what an event recorded in a capture: it joins that capture.
/// `CUDA_ERROR_CAPTURED_EVENT`: the capture has ended.
pub fn wait(stream: &Arc<Stream>, capture: &Arc<Capture>, nodes: &[usize]) -> Outcome {
    if capture.has_ended() {
        if let Some(captured) = &*lock(&stream.captured) {
            captured.capture.invalidate();
        }
        return Err(CAPTURED_EVENT);
    }
    let mut captured = lock(&stream.captured);
    match &mut *captured {
        Some(captured) if Arc::ptr_eq(&captured.capture, capture) => {
            captured.nodes.extend(nodes);
            captured.nodes.sort_unstable();
            captured.nodes.dedup();
            Ok(())
        }
        Some(captured) => {
            captured.capture.invalidate();
            Err(STREAM_CAPTURE_MERGE)
        }
        None => {
            drop(captured);
            capture.join(stream, nodes.to_vec(), false)
        }
    }
}
