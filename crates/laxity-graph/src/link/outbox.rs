//! The producer's end of an edge that goes through a channel of Linux.

use std::io;
use std::sync::Arc;

use laxity_model::Instant;
use laxity_policy::graph::Edge;

use super::channels::{self, Channels, Packets};
use super::frame::Frame;
use super::stream::Sending;
use super::{Sent, Slots};
use crate::shared::Shared;
use crate::spec::Channel;

/// The messages of a job that go over one edge, in memory of this process until the job completes.
#[derive(Debug)]
pub(crate) struct Outbox {
    pub edge: usize,
    pub consumer: usize,
    slots: Slots,
    /// The longest message.
    pub longest: u32,
    initial: u64,
    sink: Sink,
    messages: Vec<Message>,
}

#[derive(Clone, Debug, Default)]
struct Message {
    bytes: Vec<u8>,
    /// How many of them are sent.
    length: usize,
}

impl Message {
    fn written(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

#[derive(Debug)]
enum Sink {
    Packets {
        channel: Arc<Packets>,
        /// That of this claim.
        epoch: u32,
        packet: Vec<u8>,
    },
    Stream {
        sending: Sending,
        /// That may be on their way.
        bytes: u64,
    },
}

impl Outbox {
    /// That of the edge at `edge`, if it goes through a channel of Linux.
    pub fn open(shared: &Shared, channels: &Channels, edge: usize, rule: &Edge) -> Option<Outbox> {
        let channel = &shared.spec.channels()[edge];
        let (layout, longest, capacity) = (shared.layout.link(edge)?, channel.message()?, channel.capacity()?);
        let slots = Slots { layout, capacity: capacity.into() };
        let sink = match channel {
            Channel::Stream { .. } => {
                Sink::Stream { sending: Sending::default(), bytes: channels::stream_bytes(longest, capacity) }
            }
            _ => {
                let (channel, epoch) = (channels.packets(edge)?.clone(), slots.new_epoch(shared));
                Sink::Packets { channel, epoch, packet: Vec::new() }
            }
        };
        let messages = vec![Message::default(); rule.produce as usize];
        let (consumer, initial) = (rule.consumer, rule.initial.into());
        Some(Outbox { edge, consumer, slots, longest, initial, sink, messages })
    }

    /// Whether the next job can send: a stream must be connected first, which this does if it can.
    ///
    /// # Errors
    /// If Linux refuses to connect to the consumer.
    pub fn prepare(&mut self, shared: &Shared, deadline: Instant) -> io::Result<bool> {
        match &mut self.sink {
            Sink::Packets { .. } => Ok(true),
            Sink::Stream { sending, bytes } => sending.connect(shared, self.edge, self.slots, *bytes, deadline),
        }
    }

    /// A job begins: what it does not write is empty.
    pub fn begin(&mut self) {
        self.messages.iter_mut().for_each(|message| message.length = 0);
    }

    /// Messages of a job.
    pub fn count(&self) -> u32 {
        self.messages.len() as u32
    }

    /// Message `number`, as long as can be. Panics if there is none.
    pub fn message(&mut self, number: u32) -> &mut [u8] {
        let message = &mut self.messages[number as usize];
        message.length = self.longest as usize;
        message.bytes.resize(message.length, 0);
        &mut message.bytes
    }

    /// Sets the length of message `number`, at most the longest. Panics if there is none.
    pub fn truncate(&mut self, number: u32, length: usize) {
        let message = &mut self.messages[number as usize];
        message.length = length;
        if message.bytes.len() < length {
            message.bytes.resize(length, 0);
        }
    }

    /// Sends what the job `index` wrote. There is room for it, and if there is none after all, because producers were
    /// killed while they sent or a consumer has just died, then the message is lost, which its slot says: this neither
    /// waits nor fails.
    pub fn send(&mut self, shared: &Shared, index: u64) {
        let first = self.initial + index * self.messages.len() as u64;
        for (token, message) in (first..).zip(&self.messages) {
            let (was_sent, epoch, listener) = self.sink.send(token, message);
            // Below 2^32, being at most the longest.
            let length = if was_sent || message.length == 0 { message.length as u32 } else { Sent::LOST };
            self.slots.write(shared, token, Sent { length, epoch, listener });
        }
    }
}

impl Sink {
    /// Whether the message of `token` was sent, in which epoch and to which listener.
    fn send(&mut self, token: u64, message: &Message) -> (bool, u32, u32) {
        match self {
            Sink::Stream { sending, .. } => sending.send(token, message.written()),
            Sink::Packets { channel, epoch, packet } => {
                let was_sent = Frame::all(token, *epoch, message.written(), channel.longest()).all(|frame| {
                    packet.clear();
                    packet.extend_from_slice(&frame.header());
                    packet.extend_from_slice(frame.bytes);
                    channel.send(packet).is_ok_and(|was_sent| was_sent)
                });
                (was_sent, *epoch, 0)
            }
        }
    }
}
