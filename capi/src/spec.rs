//! Describing a graph.

use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};

use ::laxity_graph::{Channel, ChannelKind, RECORDER_DEFAULT, RECORDER_MAX, Spec, SpecError};
use laxity_model::{self as model, Nanos};

use crate::error::{CallError, Error, answer, laxity_result};
use crate::handle::{self, Handle, out, text};

/// The description of a graph.
pub struct laxity_spec {
    _opaque: (),
}

/// Nodes and edges so far; checked when the graph is made.
pub(crate) struct Draft {
    graph: model::Graph,
    channels: Vec<Channel>,
    /// How many jobs of each node are remembered.
    recorder: u32,
    /// Bytes of user data of nodes, by name, and of edges.
    node_data: Vec<(String, u32)>,
    edge_data: Vec<(usize, u32)>,
    /// Bytes of the value of each latest-value edge.
    latest: Vec<u32>,
    /// Groups of edges that exchange buffers.
    swapping: Vec<Vec<usize>>,
    /// The description that a pipeline derived, to which nothing can be added.
    derived: Option<Spec>,
}

impl Handle for laxity_spec {
    type Value = Mutex<Draft>;
    const TAG: u64 = u64::from_le_bytes(*b"lax-spec");
    const NAME: &'static str = "spec";
    const IS_DESCRIPTION: bool = true;
}

/// How messages travel over an edge. With each of them a wait is one suspension, and messages are written and read in
/// the same way.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum laxity_channel {
    /// In shared memory, without a copy.
    LAXITY_CHANNEL_MEMORY = 0,
    /// Through a named pipe.
    LAXITY_CHANNEL_FIFO = 1,
    /// Through a POSIX message queue.
    LAXITY_CHANNEL_QUEUE = 2,
    /// Through a TCP connection: the consumer listens while it has its node, and the producer waits until it does.
    LAXITY_CHANNEL_TCP = 3,
}

/// The tokens and messages of an edge. All zeros: one token a job, and no data.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct laxity_edge {
    /// Tokens that each completed job of the producer adds; 0 means 1.
    produce: u32,
    /// Tokens that each job of the consumer takes away; 0 means 1.
    consume: u32,
    /// Tokens that must be there before a job of the consumer begins; 0 means as many as it takes away.
    threshold: u32,
    /// Tokens at the start.
    initial: u32,
    /// The longest message, in bytes. If this and `slots` are 0 the edge carries tokens alone, and is never full.
    message_bytes: u32,
    /// Messages that fit, one with each token.
    slots: u32,
    /// Whether it closes a cycle; such an edge needs initial tokens.
    back_edge: bool,
    /// How messages travel, one of enum laxity_channel; of no meaning on an edge without messages.
    channel: u32,
    /// Where the consumer listens, for LAXITY_CHANNEL_TCP: an address with a port, where 0 lets Linux choose one. NULL
    /// is 127.0.0.1:0. For as long as the call lasts.
    address: *const c_char,
}

impl laxity_edge {
    /// Whether it hands over one token a job, forward, and starts with none.
    pub(crate) fn is_plain(&self) -> bool {
        let one = |number| number <= 1;
        one(self.produce) && one(self.consume) && one(self.threshold) && self.initial == 0 && !self.back_edge
    }
}

impl Default for laxity_edge {
    fn default() -> Self {
        laxity_edge {
            produce: 0,
            consume: 0,
            threshold: 0,
            initial: 0,
            message_bytes: 0,
            slots: 0,
            back_edge: false,
            channel: 0,
            address: std::ptr::null(),
        }
    }
}

/// Begins the description of a graph called `name`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_spec_new(name: *const c_char, spec: *mut *mut laxity_spec) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that `spec` can be written.
        let spec = unsafe { out(spec, "spec") }?;
        *spec = std::ptr::null_mut();
        // SAFETY: the caller promises that `name` ends with NUL.
        let name = unsafe { text(name, "name") }?;
        let draft = Draft::new(name, None);
        *spec = handle::make(Mutex::new(draft));
        Ok(())
    })
}

/// Adds a node. One that no other node leads to (back-edges aside) has a period, in nanoseconds; for all others it is 0
/// and follows from their producers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_spec_node(
    spec: *mut laxity_spec,
    name: *const c_char,
    period_ns: u64,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `name` ends with NUL.
        let (spec, name) = unsafe { (handle::get(spec)?, text(name, "name")?) };
        lock(spec)
            .open()?
            .graph
            .nodes
            .push(model::Node::new(name, (period_ns != 0).then_some(Nanos::from_nanos(period_ns))));
        Ok(())
    })
}

/// Adds an edge between two nodes that were added before. Edges are numbered from 0 in the order in which they are
/// added. `edge` may be NULL, which is as if all of it were zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_spec_edge(
    spec: *mut laxity_spec,
    from: *const c_char,
    to: *const c_char,
    edge: *const laxity_edge,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, that the names end with NUL, and that
        // `edge` can be read unless it is null.
        let (spec, from, to, edge) = unsafe {
            (handle::get(spec)?, text(from, "from")?, text(to, "to")?, edge.as_ref().copied().unwrap_or_default())
        };
        // SAFETY: the caller promises that the address is NULL or ends with NUL.
        let channel = unsafe { channel(&edge) }?;
        let mut draft = lock(spec);
        let draft = draft.open()?;
        let (producer, consumer) = (draft.position(from)?, draft.position(to)?);
        let consume = edge.consume.max(1);
        draft.graph.edges.push(model::Edge {
            producer,
            consumer,
            produce: edge.produce.max(1),
            consume,
            threshold: if edge.threshold == 0 { consume } else { edge.threshold },
            initial: edge.initial,
            back_edge: edge.back_edge,
            delay: 0,
            message: 0,
        });
        draft.channels.push(channel);
        Ok(())
    })
}

/// Adds a latest-value edge between two nodes that were added before, with values of up to `bytes` bytes: a job of `to`
/// reads, when it begins, what the newest complete job of `from` wrote. Neither waits for the other. Latest-value edges are
/// numbered from 0 in the order in which they are added, apart from those with tokens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_spec_latest(
    spec: *mut laxity_spec,
    from: *const c_char,
    to: *const c_char,
    bytes: u32,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that the names end with NUL.
        let (spec, from, to) = unsafe { (handle::get(spec.cast_const())?, text(from, "from")?, text(to, "to")?) };
        let mut draft = lock(spec);
        let draft = draft.open()?;
        let (producer, consumer) = (draft.position(from)?, draft.position(to)?);
        draft.graph.latest.push(model::LatestEdge { producer, consumer });
        draft.latest.push(bytes);
        Ok(())
    })
}

/// The channel of `edge`.
///
/// # Safety
/// Its address is NULL or ends with NUL.
pub(crate) unsafe fn channel(edge: &laxity_edge) -> Result<Channel, Error> {
    const KINDS: [(laxity_channel, ChannelKind); 4] = [
        (laxity_channel::LAXITY_CHANNEL_MEMORY, ChannelKind::Ring),
        (laxity_channel::LAXITY_CHANNEL_FIFO, ChannelKind::Fifo),
        (laxity_channel::LAXITY_CHANNEL_QUEUE, ChannelKind::Queue),
        (laxity_channel::LAXITY_CHANNEL_TCP, ChannelKind::Stream),
    ];
    let kind = KINDS.iter().find(|(number, _)| *number as u32 == edge.channel);
    let (_, kind) = kind.ok_or(CallError::NoChannel { channel: edge.channel })?;
    let (message, capacity) = (edge.message_bytes, edge.slots);
    if (message, capacity) == (0, 0) {
        return Ok(Channel::Counter);
    }
    if *kind != ChannelKind::Stream || edge.address.is_null() {
        return Ok(kind.channel(message, capacity));
    }
    // SAFETY: as the caller promises.
    let address = unsafe { text(edge.address, "address") }?;
    let address = address.parse().map_err(|_| CallError::Address { address: address.to_owned() })?;
    Ok(Channel::Stream { message, capacity, address })
}

/// Makes each node of the graph remember its last `jobs`, rounded up to a power of two, for traces and releases; 64
/// bytes each. 256 unless this says otherwise; with 0 the graph cannot be traced, and knows no releases and deadlines.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_spec_recorder(spec: *mut laxity_spec, jobs: u32) -> laxity_result {
    answer(|| {
        if jobs > RECORDER_MAX {
            return Err(SpecError::Recorder { depth: jobs }.into());
        }
        // SAFETY: the caller promises that the handle is not released meanwhile.
        lock(unsafe { handle::get(spec.cast_const()) }?).recorder = jobs;
        Ok(())
    })
}

/// Gives the node called `node` `bytes` bytes that users keep with it, for every process: see laxity_data_read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_spec_node_data(
    spec: *mut laxity_spec,
    node: *const c_char,
    bytes: u32,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile, and that `node` ends with NUL.
        let (spec, node) = unsafe { (handle::get(spec.cast_const())?, text(node, "node")?) };
        lock(spec).node_data.push((node.to_owned(), bytes));
        Ok(())
    })
}

/// Gives the edge numbered `edge` `bytes` bytes that users keep with it, for every process: see laxity_data_read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_spec_edge_data(spec: *mut laxity_spec, edge: usize, bytes: u32) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        lock(unsafe { handle::get(spec.cast_const()) }?).edge_data.push((edge, bytes));
        Ok(())
    })
}

/// Makes the `count` edges numbered `edges` exchange buffers: see laxity_job_swap. Their messages are in memory, and
/// the longest of each is of one length.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_spec_swapping(
    spec: *mut laxity_spec,
    edges: *const usize,
    count: usize,
) -> laxity_result {
    answer(|| {
        // SAFETY: the caller promises that the handle is not released meanwhile.
        let spec = unsafe { handle::get(spec.cast_const()) }?;
        if edges.is_null() {
            return Err(CallError::Null { argument: "edges" }.into());
        }
        // SAFETY: the caller promises that `count` numbers can be read there.
        let edges = unsafe { handle::slice(edges, count, "edges") }?;
        lock(spec).swapping.push(edges.to_vec());
        Ok(())
    })
}

/// Releases a description; graphs that were made of it stay. Sets `*spec` to NULL; does nothing if it is NULL already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn laxity_spec_release(spec: *mut *mut laxity_spec) -> laxity_result {
    // SAFETY: the caller promises that the handle is not used any more.
    answer(|| unsafe { handle::take(spec) }.map(drop))
}

impl Draft {
    fn new(name: &str, derived: Option<Spec>) -> Self {
        let graph = model::Graph::new(name, Vec::new(), Vec::new());
        Draft {
            graph,
            channels: Vec::new(),
            recorder: RECORDER_DEFAULT,
            node_data: Vec::new(),
            edge_data: Vec::new(),
            latest: Vec::new(),
            swapping: Vec::new(),
            derived,
        }
    }

    /// Itself, unless it is derived.
    fn open(&mut self) -> Result<&mut Draft, Error> {
        if self.derived.is_some() { Err(CallError::Derived { name: self.graph.name.clone() }.into()) } else { Ok(self) }
    }

    fn position(&self, name: &str) -> Result<usize, Error> {
        let found = self.graph.nodes.iter().position(|node| node.name == name);
        found.ok_or_else(|| CallError::NoNode { name: name.to_owned() }.into())
    }
}

/// A handle to the description that a pipeline derived.
pub(crate) fn derived(spec: Spec) -> *mut laxity_spec {
    let name = spec.graph().name.clone();
    handle::make(Mutex::new(Draft::new(&name, Some(spec))))
}

/// The description, checked.
pub(crate) fn check(spec: &Mutex<Draft>) -> Result<Spec, Error> {
    let draft = lock(spec);
    let spec = match &draft.derived {
        Some(spec) => spec.clone(),
        None => Spec::with_channels(draft.graph.clone(), draft.channels.clone())?,
    };
    let mut spec = spec.with_recorder(draft.recorder)?;
    for (node, bytes) in &draft.node_data {
        spec = spec.with_node_data(node, *bytes)?;
    }
    for &(edge, bytes) in &draft.edge_data {
        spec = spec.with_edge_data(edge, bytes)?;
    }
    for (edge, &bytes) in draft.latest.iter().enumerate() {
        spec = spec.with_latest(edge, bytes)?;
    }
    for edges in &draft.swapping {
        spec = spec.with_swapping(edges)?;
    }
    Ok(spec)
}

fn lock(spec: &Mutex<Draft>) -> std::sync::MutexGuard<'_, Draft> {
    // Nothing is ever half-added: a push is the last thing that each function does.
    spec.lock().unwrap_or_else(PoisonError::into_inner)
}
