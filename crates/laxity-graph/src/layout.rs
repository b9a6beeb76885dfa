//! Where things are in a graph's segment. Sizes follow from the graph.
//!
//! ```text
//! header of the segment | members (laxity-membership) | length of the description, start
//! description
//! nodes          two pairs of cache lines each: what its owner writes, what others write
//! rings          lengths of the messages, then the messages
//! swapped rings  for each: words of filled and of free buffers; for each group of them: the buffers
//! objects        replicas, or the slots of a delay
//! registers      for each latest-value edge: its words, then four slots
//! identity       two random numbers
//! links          for each edge through a channel of Linux: its words, then what was sent with each token
//! recorder       for each node the last jobs, one cache line each
//! user data      for each node and edge that has any: a version, and two copies
//! ```

use laxity_membership::CONTENTS;
use laxity_sys::segment::Format;

use crate::recorder::SLOT;
use crate::spec::{Channel, Spec};

/// Our segments.
pub(crate) const FORMAT: Format = Format { magic: *b"laxgraph", version: 8 };

/// Length of the description, in bytes: 64 bits.
pub(crate) const DESCRIPTION_LENGTH: usize = CONTENTS;
/// When the graph's sources start: 64 bits, 0 before that is settled.
pub(crate) const START: usize = CONTENTS + 8;
/// The description.
pub(crate) const DESCRIPTION: usize = CONTENTS + 64;

/// Instants of completions beside the number of completed jobs: as many as fill the cache line.
pub(crate) const RECENT: u64 = 4;

const LINE: usize = 64;
/// CPUs fetch cache lines in pairs.
const PAIR: usize = 2 * LINE;

/// The offsets of one graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    nodes: usize,
    rings: Vec<Option<RingLayout>>,
    swaps: Vec<Option<SwapLayout>>,
    objects: Vec<ObjectLayout>,
    registers: Vec<RegisterLayout>,
    recorder: usize,
    /// Slots of a node, a power of two or 0.
    recorded: u64,
    /// A random number that tells this graph from all others: 64 bits. It is part of the names of files.
    pub identity: usize,
    /// A random number that only processes that have this memory know: 64 bits.
    pub secret: usize,
    links: Vec<Option<LinkLayout>>,
    node_data: Vec<UserDataLayout>,
    edge_data: Vec<UserDataLayout>,
    /// Bytes, the segment's header included.
    pub total: usize,
}

/// The offsets of the ring of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingLayout {
    /// A length of 32 bits for each message.
    pub lengths: usize,
    /// The messages.
    pub messages: usize,
    /// From one message to the next; a multiple of a cache line.
    pub stride: usize,
}

/// The offsets of the ring of an edge that exchanges buffers with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SwapLayout {
    /// For each slot the buffer and the length of the message in it: 64 bits, written by the producer.
    pub filled: usize,
    /// For each slot the buffer that is free for the next message in it: 32 bits, written by the consumer.
    pub free: usize,
    /// The first of the buffers that were its own when the graph was made.
    pub first: u32,
    /// The buffers of its group.
    pub pool: PoolLayout,
}

/// The offsets of the buffers of rings that exchange them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolLayout {
    /// The first buffer.
    pub start: usize,
    /// How many there are.
    pub buffers: u32,
    /// From one buffer to the next; a multiple of a cache line.
    pub stride: usize,
}

/// The offsets of a data object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectLayout {
    /// The first place.
    pub start: usize,
    /// From one place to the next; a multiple of a cache line.
    pub stride: usize,
    /// How many places there are.
    pub copies: u64,
}

/// The offsets of a latest-value edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegisterLayout {
    /// Words of 32 bits; the reader's in a line of its own.
    pub words: usize,
    /// The first slot.
    start: usize,
    /// From one slot to the next; a multiple of a cache line.
    stride: usize,
}

/// The offsets of an edge through a channel of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkLayout {
    /// How often its producer began to send: 32 bits.
    pub epoch: usize,
    /// How often its consumer began to listen: 32 bits.
    pub listeners: usize,
    /// Where its consumer listens: 64 bits.
    pub listening: usize,
    /// What was sent with each token, [`LinkLayout::SLOT`] bytes.
    pub slots: usize,
}

/// The offsets of what users keep with a node or an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserDataLayout {
    /// How often it was written: 64 bits, if there are any bytes.
    pub version: usize,
    /// How many bytes there are.
    pub bytes: usize,
}

impl RegisterLayout {
    /// The pair that the reader uses, among the words.
    pub const READING: usize = 0;
    /// The pair that was written last.
    pub const LATEST: usize = PAIR;
    /// For each pair the slot that was written last.
    pub const SLOTS: usize = PAIR + 4;
    /// What is in front of the value in a slot: job and length. A cache line, for which values are aligned.
    pub const HEAD: usize = LINE;

    /// A slot: its head, then the value.
    pub fn slot(&self, pair: u32, slot: u32) -> usize {
        self.start + self.stride * (2 * pair + slot) as usize
    }

    /// From `start` on, for values of up to `bytes`, and where it ends; `None` if that exceeds the address space.
    fn place(start: usize, bytes: u32) -> Option<(RegisterLayout, usize)> {
        let first = start.checked_add(2 * PAIR)?;
        let stride = Self::HEAD.checked_add((bytes as usize).checked_next_multiple_of(LINE)?)?;
        let end = first.checked_add(stride.checked_mul(4)?)?.checked_next_multiple_of(PAIR)?;
        Some((RegisterLayout { words: start, start: first, stride }, end))
    }
}

impl LinkLayout {
    /// Bytes of a slot: length, epoch and listener of 32 bits each, and 32 bits of nothing.
    pub const SLOT: usize = 16;
}

/// The words of a node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeWords {
    /// Jobs completed: 64 bits, written by the owner only. All tokens follow from these.
    pub completed: usize,
    /// Jobs begun: 64 bits, written by the owner only.
    pub started: usize,
    /// The CPU on which its owner was seen last, plus 1: 32 bits, written by the owner only.
    pub cpu: usize,
    /// What it is doing, for schedulers: 32 bits, written by the owner only.
    pub flags: usize,
    /// When its last [`RECENT`] jobs completed, job i at i mod that: 64 bits each, written by the owner only, for
    /// readers of `completed`, which have the line anyway.
    pub recent: usize,
    /// Whose it is: 64 bits.
    pub owner: usize,
    /// Where its owner waits: 32 bits.
    pub parked: usize,
    /// Whether it terminated: 32 bits.
    pub terminated: usize,
    /// The random number in the name of its owner's bell, 0 if it has none: 64 bits, written by the owner only.
    pub bell: usize,
}

impl Layout {
    /// For `spec`, whose description has `description` bytes; `None` if it exceeds the address space.
    pub fn of(spec: &Spec, description: usize) -> Option<Layout> {
        let nodes = DESCRIPTION.checked_add(description)?.checked_next_multiple_of(PAIR)?;
        let mut end = nodes.checked_add(spec.graph().nodes.len().checked_mul(2 * PAIR)?)?;
        let mut rings = Vec::with_capacity(spec.channels().len());
        for (edge, channel) in spec.channels().iter().enumerate() {
            let is_swapped = spec.swapping().iter().flatten().any(|&swapped| swapped == edge);
            let (Channel::Ring { message, capacity }, false) = (*channel, is_swapped) else {
                rings.push(None);
                continue;
            };
            let (message, capacity) = (message as usize, capacity as usize);
            let stride = stride_of(message);
            let lengths = end;
            let messages = lengths.checked_add(capacity.checked_mul(4)?)?.checked_next_multiple_of(PAIR)?;
            end = messages.checked_add(capacity.checked_mul(stride)?)?.checked_next_multiple_of(PAIR)?;
            rings.push(Some(RingLayout { lengths, messages, stride }));
        }
        let mut swaps = vec![None; spec.channels().len()];
        for group in spec.swapping() {
            end = place_group(group, spec.channels(), end, &mut swaps)?;
        }
        let mut objects = Vec::with_capacity(spec.objects().len());
        for object in spec.objects() {
            let stride = object.bytes.checked_next_multiple_of(LINE)?;
            let copies = object.copies(spec.plan().replicas());
            let start = end.checked_next_multiple_of(PAIR)?;
            end = start.checked_add(stride.checked_mul(usize::try_from(copies).ok()?)?)?;
            objects.push(ObjectLayout { start, stride, copies });
        }
        let mut registers = Vec::with_capacity(spec.latest_bytes().len());
        for &bytes in spec.latest_bytes() {
            let (register, next) = RegisterLayout::place(end.checked_next_multiple_of(PAIR)?, bytes)?;
            registers.push(register);
            end = next;
        }
        let (identity, secret) = (end, end.checked_add(8)?);
        end = end.checked_add(PAIR)?;
        let mut links = Vec::with_capacity(spec.channels().len());
        for channel in spec.channels() {
            let Some(capacity) = channel.capacity().filter(|_| channel.is_link()) else {
                links.push(None);
                continue;
            };
            let slots = end.checked_add(LINE)?;
            let (epoch, listeners, listening) = (end, end + 4, end + 8);
            end = slots.checked_add((capacity as usize).checked_mul(LinkLayout::SLOT)?)?;
            end = end.checked_next_multiple_of(PAIR)?;
            links.push(Some(LinkLayout { epoch, listeners, listening, slots }));
        }
        let recorder = end.checked_next_multiple_of(PAIR)?;
        let recorded = u64::from(spec.recorder());
        let slots = spec.graph().nodes.len().checked_mul(spec.recorder() as usize)?;
        let mut total = recorder.checked_add(slots.checked_mul(SLOT)?)?;
        let mut place = |&bytes: &u32| {
            let data = UserDataLayout { version: total, bytes: bytes as usize };
            total = total.checked_add(data.total()?)?;
            Some(data)
        };
        let node_data = spec.node_data().iter().map(&mut place).collect::<Option<_>>()?;
        let edge_data = spec.edge_data().iter().map(&mut place).collect::<Option<_>>()?;
        Some(Layout {
            nodes,
            rings,
            swaps,
            objects,
            registers,
            identity,
            secret,
            links,
            recorder,
            recorded,
            node_data,
            edge_data,
            total,
        })
    }

    pub fn node(&self, node: usize) -> NodeWords {
        let start = self.nodes + node * 2 * PAIR;
        NodeWords {
            completed: start,
            started: start + 8,
            cpu: start + 16,
            flags: start + 20,
            recent: start + 24,
            owner: start + PAIR,
            parked: start + PAIR + 8,
            terminated: start + PAIR + 12,
            bell: start + PAIR + 16,
        }
    }

    /// The slot of job `index` of a node, there being a recorder.
    #[inline]
    pub fn slot(&self, node: usize, index: u64) -> usize {
        self.recorder + (node * self.recorded as usize + (index & (self.recorded - 1)) as usize) * SLOT
    }

    /// The ring of an edge of the graph, if it has one. Edges of the feedback graph carry no data.
    pub fn ring(&self, edge: usize) -> Option<RingLayout> {
        self.rings.get(edge).copied().flatten()
    }

    /// The ring of an edge of the graph, if it exchanges buffers with others.
    pub fn swap(&self, edge: usize) -> Option<SwapLayout> {
        self.swaps.get(edge).copied().flatten()
    }

    /// A data object, by its position in the spec.
    pub fn object(&self, object: usize) -> ObjectLayout {
        self.objects[object]
    }

    /// A latest-value edge, by its position in the graph.
    pub fn register(&self, edge: usize) -> RegisterLayout {
        self.registers[edge]
    }

    /// What users keep with a node.
    pub fn node_data(&self, node: usize) -> UserDataLayout {
        self.node_data[node]
    }

    /// What users keep with an edge of the graph.
    pub fn edge_data(&self, edge: usize) -> UserDataLayout {
        self.edge_data[edge]
    }

    /// The words of an edge of the graph, if it goes through a channel of Linux.
    pub fn link(&self, edge: usize) -> Option<LinkLayout> {
        self.links.get(edge).copied().flatten()
    }
}

/// From one message to the next.
fn stride_of(message: usize) -> usize {
    message.max(1).next_multiple_of(LINE)
}

/// Places the rings of a `group`, which are of messages of one length, from `start` on. Answers with where they end;
/// `None` if that exceeds the address space, or buffers the numbers that they have.
fn place_group(group: &[usize], channels: &[Channel], start: usize, swaps: &mut [Option<SwapLayout>]) -> Option<usize> {
    let mut end = start;
    let mut pool = PoolLayout { start, buffers: 0, stride: LINE };
    let mut placed = Vec::with_capacity(group.len());
    for &edge in group {
        let Channel::Ring { message, capacity } = channels[edge] else { continue };
        let filled = end;
        let free = filled.checked_add(8 * capacity as usize)?.checked_next_multiple_of(PAIR)?;
        end = free.checked_add(4 * capacity as usize)?.checked_next_multiple_of(PAIR)?;
        placed.push((edge, filled, free, pool.buffers));
        pool = PoolLayout {
            start: end,
            buffers: pool.buffers.checked_add(capacity)?,
            stride: stride_of(message as usize),
        };
    }
    for (edge, filled, free, first) in placed {
        swaps[edge] = Some(SwapLayout { filled, free, first, pool });
    }
    end.checked_add(pool.stride.checked_mul(pool.buffers as usize)?)?.checked_next_multiple_of(PAIR)
}

impl ObjectLayout {
    /// Where a job finds what the job `ago` before it left. Jobs before the first have places, too: `ago` is below
    /// `copies`, as a delay of size M has M + N.
    #[inline]
    pub fn place(&self, job: u64, ago: u32) -> usize {
        let slot = (job % self.copies + self.copies - u64::from(ago)) % self.copies;
        self.start + self.stride * slot as usize
    }
}

impl UserDataLayout {
    /// 64-bit words of one copy.
    pub fn words(&self) -> usize {
        self.bytes.div_ceil(8)
    }

    /// Where the value of a version is.
    pub fn copy_of(&self, version: u64) -> usize {
        self.version + 8 + 8 * self.words() * (version % 2) as usize
    }

    /// Bytes from one to the next; a multiple of a cache line.
    fn total(&self) -> Option<usize> {
        if self.bytes == 0 {
            return Some(0);
        }
        self.words().checked_mul(2 * 8)?.checked_add(8)?.checked_next_multiple_of(LINE)
    }
}
