//! Messages in shared memory, written and read in place.
//!
//! The message of token t of an edge is in slot t mod capacity. All tokens follow from the jobs that are complete,
//! and so does which node may touch which slot:
//!
//! ```text
//! consumer, job i        tokens  i * kappa .. i * kappa + phi          a job starts when these exist
//! producer, job j        tokens  n0 + j * rho .. n0 + (j + 1) * rho    a job starts when these fit
//! ```
#![allow(unsafe_code, reason = "messages are slices of shared memory; the two blocks argue their case")]

use std::borrow::Borrow;
use std::sync::atomic::Ordering;

use crate::layout::RingLayout;
use crate::link::{Ends, Inbox, Outbox};
use crate::shared::Shared;
use crate::spec::Channel;
use crate::swap::{SwapPort, Swaps};

/// Why there is no such message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    /// No edge with messages and this position leads to, or from, the node.
    #[error("edge {edge} carries no messages at this node, or leads the other way; ask the graph for its position")]
    NoRing {
        /// The position.
        edge: usize,
    },
    /// The job has fewer.
    #[error("edge {edge}: a job has {count} messages, numbered from 0; there is no number {number}")]
    NoMessage {
        /// The edge.
        edge: usize,
        /// Its number.
        number: u32,
        /// How many there are.
        count: u32,
    },
    /// A message is longer than the ring's longest.
    #[error("edge {edge}: a message of {length} bytes exceeds its {longest} bytes; enlarge the edge's messages")]
    TooLong {
        /// The edge.
        edge: usize,
        /// Its length.
        length: usize,
        /// The longest.
        longest: u32,
    },
    /// A message that went through a channel of Linux was taken along by a former owner of a node, which was killed or
    /// released the node. The job that was to read it is there nevertheless, and so are its other messages.
    #[error("edge {edge}: message {token} was lost with a former owner of a node; go on without it")]
    Lost {
        /// The edge.
        edge: usize,
        /// The number of its token, counted from the first that ever was on the edge.
        token: u64,
    },
    /// Messages of one edge cannot be swapped with those of another.
    #[error("edges {from} and {to} exchange no buffers at this node; describe the graph so that they do, or copy")]
    NotSwapping {
        /// The edge over which a message came.
        from: usize,
        /// The edge over which one goes.
        to: usize,
    },
    /// A message that the job reads and leaves for the next, and so cannot give away.
    #[error("edge {edge}: a job takes {consume} messages away and leaves number {number} for the next; copy it")]
    Kept {
        /// The edge.
        edge: usize,
        /// Its number.
        number: u32,
        /// How many messages the job takes away.
        consume: u32,
    },
}

/// The rings at a node, and its edges through channels of Linux.
#[derive(Debug)]
pub(crate) struct Ports {
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    swaps: Swaps,
    pub links: Ends,
}

/// One end of a ring.
#[derive(Debug)]
struct Port {
    edge: usize,
    ring: RingLayout,
    capacity: u64,
    /// The longest message.
    longest: u32,
    /// The first token of the node's job i is `first + i * advance`, and it may touch `count`.
    first: u64,
    advance: u64,
    count: u32,
    /// The job that began last and the slot of its first token: the next job's follows without a division.
    job: u64,
    slot: u64,
    /// For each message that the job writes how long it is.
    lengths: Vec<u32>,
}

/// The messages that a job reads.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    shared: &'a Shared,
    ports: &'a [Port],
    swaps: &'a [SwapPort],
    inboxes: &'a [Inbox],
}

/// The messages that a job writes.
#[derive(Debug)]
pub struct Outputs<'a> {
    shared: &'a Shared,
    ports: &'a mut [Port],
    swaps: &'a mut [SwapPort],
    outboxes: &'a mut [Outbox],
}

impl Ports {
    pub fn new(shared: &Shared, node: usize) -> Self {
        let swaps = Swaps::new(shared, node);
        let mut ports = Ports { inputs: Vec::new(), outputs: Vec::new(), swaps, links: Ends::default() };
        for (edge, (rule, channel)) in shared.spec.plan().edges().iter().zip(shared.spec.channels()).enumerate() {
            let (Channel::Ring { message, capacity }, Some(ring)) = (*channel, shared.layout.ring(edge)) else {
                continue;
            };
            let port = |first: u32, advance: u32, count: u32| Port {
                edge,
                ring,
                capacity: capacity.into(),
                longest: message,
                first: first.into(),
                advance: advance.into(),
                count,
                job: 0,
                slot: u64::from(first) % u64::from(capacity),
                lengths: Vec::new(),
            };
            if rule.consumer == node {
                ports.inputs.push(port(0, rule.consume, rule.threshold));
            }
            if rule.producer == node {
                let lengths = vec![0; rule.produce as usize];
                ports.outputs.push(Port { lengths, ..port(rule.initial, rule.produce, rule.produce) });
            }
        }
        ports
    }

    /// Job `index` begins: what it does not write is empty, not what an earlier job wrote there.
    #[inline]
    pub fn begin(&mut self, shared: &Shared, index: u64) {
        self.inputs.iter_mut().for_each(|port| port.move_to(index));
        for port in &mut self.outputs {
            port.move_to(index);
            port.lengths.fill(0);
        }
        if !self.swaps.is_empty() {
            self.swaps.begin(shared, index);
        }
        self.links.begin();
    }

    /// Job `index` is about to be complete, which makes what this writes visible.
    #[inline]
    pub fn complete(&mut self, shared: &Shared, index: u64) {
        self.outputs.iter().for_each(|port| port.give_lengths(shared));
        if !self.swaps.is_empty() {
            self.swaps.complete(shared);
        }
        self.links.send(shared, index);
    }

    /// Swaps a message of the job that began last with one that it writes.
    pub fn swap(&mut self, from: (usize, u32), to: (usize, u32)) -> Result<(), MessageError> {
        self.swaps.swap(from, to)
    }

    /// Those of the job that began last.
    pub fn messages<'a>(&'a mut self, shared: &'a Shared) -> (Inputs<'a>, Outputs<'a>) {
        let Ports { inputs, outputs, swaps, links: Ends { inboxes, outboxes, .. } } = self;
        let Swaps { inputs: swapped_inputs, outputs: swapped_outputs } = swaps;
        (
            Inputs { shared, ports: inputs, swaps: swapped_inputs, inboxes },
            Outputs { shared, ports: outputs, swaps: swapped_outputs, outboxes },
        )
    }
}

impl Port {
    #[inline]
    fn move_to(&mut self, job: u64) {
        if job == self.job + 1 {
            // A ring holds what a job writes and what it reads.
            self.slot = wrapped(self.slot + self.advance, self.capacity);
        } else if job != self.job {
            // Tokens are numbered in 64 bits: one a nanosecond for 584 years.
            self.slot = (self.first + job * self.advance) % self.capacity;
        }
        self.job = job;
    }

    /// Writes down how long the messages of the job are. Mostly as long as those that were in their slots before: what does
    /// not change stays in the caches of producer and consumer.
    #[inline]
    fn give_lengths(&self, shared: &Shared) {
        for (number, &length) in (0..).zip(&self.lengths) {
            let word = shared.segment.u32(self.length_of(self.slot(number)));
            if word.load(Ordering::Relaxed) != length {
                word.store(length, Ordering::Relaxed);
            }
        }
    }

    /// The slot of token `number` of the job.
    #[inline]
    fn slot(&self, number: u32) -> usize {
        wrapped(self.slot + u64::from(number), self.capacity) as usize
    }

    #[inline]
    fn length_of(&self, slot: usize) -> usize {
        self.ring.lengths + 4 * slot
    }

    #[inline]
    fn message_of(&self, slot: usize) -> usize {
        self.ring.messages + self.ring.stride * slot
    }
}

/// `position` on a circle of `length`, around which it went less than twice.
#[inline]
fn wrapped(position: u64, length: u64) -> u64 {
    if position < length { position } else { position - length }
}

/// The one of `ports` at `edge`, which has a message `number`.
#[inline]
fn find<P: Borrow<Port>>(ports: impl IntoIterator<Item = P>, edge: usize, number: u32) -> Result<P, MessageError> {
    let mut ports = ports.into_iter();
    let port = ports.find(|port| port.borrow().edge == edge).ok_or(MessageError::NoRing { edge })?;
    check_number(edge, number, port.borrow().count)?;
    Ok(port)
}

#[inline]
pub(crate) fn check_number(edge: usize, number: u32, count: u32) -> Result<(), MessageError> {
    if number < count { Ok(()) } else { Err(MessageError::NoMessage { edge, number, count }) }
}

pub(crate) fn check_length(edge: usize, length: usize, longest: u32) -> Result<u32, MessageError> {
    let fitting = u32::try_from(length).ok().filter(|&length| length <= longest);
    fitting.ok_or(MessageError::TooLong { edge, length, longest })
}

impl<'a> Inputs<'a> {
    /// Message `number` of those that came over the edge at position `edge`, the oldest being 0. A job sees as many as
    /// its threshold says, and takes the first `consume` of them away when it completes.
    ///
    /// # Errors
    /// [`MessageError`].
    #[inline]
    pub fn get(&self, edge: usize, number: u32) -> Result<&'a [u8], MessageError> {
        if let Some(inbox) = self.inboxes.iter().find(|inbox| inbox.edge == edge) {
            return inbox.get(number);
        }
        if let Some(port) = self.swaps.iter().find(|port| port.edge == edge) {
            return port.message(self.shared, number);
        }
        let port = find(self.ports, edge, number)?;
        let slot = port.slot(number);
        // Written by another process, which may be wrong about it but shall not lead us beyond the slot.
        let length = self.shared.segment.u32(port.length_of(slot)).load(Ordering::Relaxed).min(port.longest);
        // SAFETY: no thread writes the slot while the job lasts, which `'a` does not outlive. The job is begun, so its
        // tokens exist: their producer completed the jobs that wrote them (seen with acquire order). It writes a slot
        // again only for a token `capacity` further on, for which it needs room, which this node makes by completing
        // the job. Only one thread in all processes has claimed either node: a claim is taken from a process that
        // died only when that has ended. Processes that attach to a graph write to it through this library only.
        Ok(unsafe { self.shared.segment.bytes(port.message_of(slot), length as usize) })
    }
}

impl<'a> Outputs<'a> {
    /// Message `number` of those that go over the edge at position `edge`, as long as can be; what is in it is
    /// undetermined. See [`Outputs::truncate`].
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn get(&mut self, edge: usize, number: u32) -> Result<&mut [u8], MessageError> {
        let Outputs { shared, ref mut ports, ref mut swaps, ref mut outboxes } = *self;
        Outputs { shared, ports, swaps, outboxes }.into_message(edge, number)
    }

    /// As [`Outputs::get`], for the only message that is written.
    #[inline]
    pub fn into_message(self, edge: usize, number: u32) -> Result<&'a mut [u8], MessageError> {
        if let Some(outbox) = self.outboxes.iter_mut().find(|outbox| outbox.edge == edge) {
            check_number(edge, number, outbox.count())?;
            return Ok(outbox.message(number));
        }
        if let Some(port) = self.swaps.iter_mut().find(|port| port.edge == edge) {
            return port.message_mut(self.shared, number);
        }
        let port = find(self.ports, edge, number)?;
        let slot = port.slot(number);
        port.lengths[number as usize] = port.longest;
        // SAFETY: no other thread touches the slot while the job lasts. The job is begun, so there is room for its tokens:
        // the consumer completed the jobs that read what was in the slot (seen with acquire order), and begins one
        // that reads it again only when this job is complete. If this node is the consumer, too, its inputs are older
        // tokens that are still in their slots. Claims are exclusive, as in `Inputs::get`. Within this process
        // `Outputs` is the one way to the slot: it is not `Clone`, `get` lends it exclusively, and `into_message`
        // consumes it.
        Ok(unsafe { self.shared.segment.bytes_mut(port.message_of(slot), port.longest as usize) })
    }

    /// All messages that are written to rings, as long as can be, with their edges, in the order of the edges and then of
    /// their numbers. Rings that exchange buffers are left out: their messages are had by [`Outputs::get`].
    pub fn into_messages(self) -> impl Iterator<Item = (usize, &'a mut [u8])> {
        let shared = self.shared;
        let is_swapped = |edge: usize| self.swaps.iter().any(|port| port.edge == edge);
        let swapped: Vec<bool> = self.ports.iter().map(|port| is_swapped(port.edge)).collect();
        let own = self.ports.iter_mut().zip(swapped).filter(|(_, is_swapped)| !is_swapped);
        own.flat_map(move |(port, _)| {
            port.lengths.fill(port.longest);
            let port: &'a Port = port;
            (0..port.count).map(move |number| {
                let slot = port.message_of(port.slot(number));
                // SAFETY: as in `Outputs::into_message`, for all messages at once: each is in a slot of its own, as a ring
                // holds what a job writes, and no other way leads there, as `self` is consumed.
                (port.edge, unsafe { shared.segment.bytes_mut(slot, port.longest as usize) })
            })
        })
    }

    /// Sets the length of a message, which starts as the longest when it is asked for and is 0 if it never is.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn truncate(&mut self, edge: usize, number: u32, length: usize) -> Result<(), MessageError> {
        if let Some(outbox) = self.outboxes.iter_mut().find(|outbox| outbox.edge == edge) {
            check_number(edge, number, outbox.count())?;
            check_length(edge, length, outbox.longest)?;
            outbox.truncate(number, length);
            return Ok(());
        }
        if let Some(port) = self.swaps.iter_mut().find(|port| port.edge == edge) {
            return port.truncate(number, length);
        }
        let port = find(&mut *self.ports, edge, number)?;
        port.lengths[number as usize] = check_length(edge, length, port.longest)?;
        Ok(())
    }

    /// Copies `message` into message `number` of `edge`, whose length it then has.
    ///
    /// # Errors
    /// [`MessageError`].
    pub fn write(&mut self, edge: usize, number: u32, message: &[u8]) -> Result<(), MessageError> {
        self.truncate(edge, number, message.len())?;
        self.get(edge, number)?[..message.len()].copy_from_slice(message);
        self.truncate(edge, number, message.len())
    }
}
