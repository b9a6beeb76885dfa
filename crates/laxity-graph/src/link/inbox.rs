//! The consumer's end of an edge that goes through a channel of Linux.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use laxity_model::{Instant, Nanos};
use laxity_policy::graph::Edge;
use laxity_sys::clock;

use super::assembly::{Assembly, Progress};
use super::channels::{Channels, Packets};
use super::frame::Frame;
use super::stream::Listening;
use super::{Sent, Slots};
use crate::ring::MessageError;
use crate::shared::Shared;
use crate::spec::Channel;

/// Within which Linux delivers on one machine what it has taken; a message that takes longer counts as lost.
const DELIVERY: Nanos = Nanos::from_secs(10);

/// What came of looking into a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// Frames, whatever they are.
    Came,
    /// Nothing in time.
    Late,
    /// Nothing, and nothing will of the message that was looked for.
    Gone,
}

/// The messages of a job that came over one edge, in memory of this process.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub edge: usize,
    slots: Slots,
    longest: u32,
    consume: u64,
    source: Source,
    assembly: Assembly,
    /// The first token of the job that began last, and what became of its messages.
    first: u64,
    held: Vec<Held>,
    /// The token whose message is awaited, and when it counts as lost.
    awaited: Option<(u64, Instant)>,
}

/// A message of a job.
#[derive(Clone, Debug)]
enum Held {
    /// In the assembly, or with the source.
    There,
    /// It did not have to be sent.
    Zeros(Vec<u8>),
    Lost,
}

#[derive(Debug)]
enum Source {
    Packets(Arc<Packets>, Vec<u8>),
    Stream(Listening),
}

impl Inbox {
    /// That of the edge at `edge`, if it goes through a channel of Linux.
    ///
    /// # Errors
    /// The address of a stream, if this process cannot listen there.
    pub fn open(
        shared: &Shared,
        channels: &Channels,
        edge: usize,
        rule: &Edge,
    ) -> Result<Option<Inbox>, (SocketAddr, io::Error)> {
        let channel = &shared.spec.channels()[edge];
        let (Some(layout), Some(longest), Some(capacity)) =
            (shared.layout.link(edge), channel.message(), channel.capacity())
        else {
            return Ok(None);
        };
        let slots = Slots { layout, capacity: capacity.into() };
        let source = match (channel, channels.packets(edge)) {
            (Channel::Stream { address, .. }, _) => {
                let listening = Listening::open(shared, edge, slots, *address);
                Source::Stream(listening.map_err(|error| (*address, error))?)
            }
            (_, Some(packets)) => Source::Packets(packets.clone(), Vec::new()),
            (_, None) => return Ok(None),
        };
        let held = vec![Held::Lost; rule.threshold as usize];
        let assembly = Assembly::new(longest, capacity);
        Ok(Some(Inbox {
            edge,
            slots,
            longest,
            consume: rule.consume.into(),
            source,
            assembly,
            first: 0,
            held,
            awaited: None,
        }))
    }

    /// Takes the messages of job `index`, which is about to begin, out of the channel. All of them were sent, so that this
    /// waits for no other process; at most for Linux to deliver what is on its way, until `deadline`. Messages that
    /// came by then are kept.
    ///
    /// # Errors
    /// The edge, if the time is over.
    pub fn fetch(&mut self, shared: &Shared, index: u64, deadline: Instant) -> Result<(), usize> {
        self.first = index * self.consume;
        for number in 0..self.held.len() {
            let token = self.first + number as u64;
            let sent = self.slots.read(shared, token);
            self.held[number] = self.hold(token, sent, deadline).ok_or(self.edge)?;
        }
        Ok(())
    }

    /// What becomes of a message that was `sent` with `token`; `None` if that is not known by `deadline`.
    fn hold(&mut self, token: u64, sent: Sent, deadline: Instant) -> Option<Held> {
        // Also whatever a process that is wrong may have written there.
        if sent.length > self.longest {
            return Some(Held::Lost);
        }
        if sent.length == 0 || sent.epoch == 0 {
            return Some(Held::Zeros(vec![0; sent.length as usize]));
        }
        loop {
            match self.assembly.progress(token, sent.epoch, sent.length) {
                Progress::There => return Some(Held::There),
                Progress::Lost => return Some(Held::Lost),
                Progress::Awaited => {}
            }
            let lost_at = self.patience(token);
            let (first, assembly) = (self.first, &mut self.assembly);
            match self.source.receive(sent, deadline.min(lost_at), |frame| assembly.accept(frame, first)) {
                Arrival::Came => {}
                Arrival::Late if clock::now() < lost_at => return None,
                Arrival::Late | Arrival::Gone => self.assembly.give_up(token, sent.epoch),
            }
        }
    }

    /// When the message of `token` counts as lost, however often it was waited for.
    fn patience(&mut self, token: u64) -> Instant {
        match self.awaited {
            Some((awaited, lost_at)) if awaited == token => lost_at,
            _ => {
                let lost_at = clock::now().saturating_add(DELIVERY);
                self.awaited = Some((token, lost_at));
                lost_at
            }
        }
    }

    /// Message `number` of the job that began last.
    pub fn get(&self, number: u32) -> Result<&[u8], MessageError> {
        let (edge, count) = (self.edge, self.held.len() as u32);
        let token = self.first + u64::from(number);
        match self.held.get(number as usize) {
            Some(Held::There) => Ok(self.assembly.message(token)),
            Some(Held::Zeros(zeros)) => Ok(zeros),
            Some(Held::Lost) => Err(MessageError::Lost { edge, token }),
            None => Err(MessageError::NoMessage { edge, number, count }),
        }
    }

    /// This process does not listen any more.
    pub fn close(&self, shared: &Shared) {
        if !matches!(self.source, Source::Packets(..)) {
            shared.segment.u64(self.slots.layout.listening).store(0, Ordering::Release);
        }
    }
}

impl Source {
    /// Gives frames that came to `accept`; if none did, waits for those of a message that was `sent`.
    fn receive(&mut self, sent: Sent, deadline: Instant, mut accept: impl FnMut(Frame<'_>)) -> Arrival {
        match self {
            Source::Stream(listening) => listening.receive(sent, deadline, accept),
            // Packets are there as soon as they are sent.
            Source::Packets(packets, buffer) => match packets.receive(buffer) {
                Ok(Some(packet)) => {
                    if let Some(frame) = Frame::of_packet(packet) {
                        accept(frame);
                    }
                    Arrival::Came
                }
                Ok(None) | Err(_) => Arrival::Gone,
            },
            // Has no frames.
        }
    }
}
