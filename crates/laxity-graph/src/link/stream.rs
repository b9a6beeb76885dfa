//! The two ends of an edge that is a TCP connection.
//!
//! ```text
//! consumer claims its node: listens, says where in shared memory, and wakes the producer
//! producer waits for a job: connects, and sends a hello with the number of the connection, its epoch
//! ```
//!
//! The slot of a token says to which socket it was sent and in which connection. So the consumer knows whether a message
//! that has not come is still to come: one that was sent to a socket of a former consumer does not, and one that was
//! sent to its own does, as Linux delivers it even if the producer is killed. It then waits for Linux alone.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use laxity_model::{Instant, Nanos};
use laxity_sys::channel::stream::{Listener, Received, Stream};
use laxity_sys::channel::wait_readable;
use laxity_sys::clock;

use super::channels::{self, HELLO};
use super::frame::{Frame, Start};
use super::inbox::Arrival;
use super::{Sent, Slots};
use crate::owner::State;
use crate::shared::Shared;

/// The longest frame, in bytes.
pub(super) const FRAME_MAX: usize = 32 << 10;

/// The most connections without a hello: strangers cannot fill our memory.
const STRANGERS_MAX: usize = 16;

/// How long to wait before one looks again whether there are descriptors for connections.
const STARVED: Nanos = Nanos::from_millis(10);

/// The consumer's end.
#[derive(Debug)]
pub(super) struct Listening {
    listener: Listener,
    /// Which of the edge's sockets this is.
    number: u32,
    hello: [u8; HELLO],
    connections: Vec<Connection>,
    buffer: Box<[u8]>,
}

#[derive(Debug)]
struct Connection {
    stream: Stream,
    /// Its number, when it has said its hello.
    epoch: Option<u32>,
    /// What came and was not used.
    bytes: Vec<u8>,
    has_ended: bool,
}

impl Listening {
    /// Listens for the edge, and tells its producer.
    pub fn open(shared: &Shared, edge: usize, slots: Slots, address: SocketAddr) -> io::Result<Listening> {
        let listener = Listener::bind(address)?;
        let port = listener.port()?;
        let number = shared.segment.u32(slots.layout.listeners).fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let place = u64::from(number) << 32 | u64::from(port);
        shared.segment.u64(slots.layout.listening).store(place, Ordering::Release);
        shared.rouse(shared.spec.plan().edges()[edge].producer);
        let hello = channels::hello(shared, edge, 0);
        Ok(Listening { listener, number, hello, connections: Vec::new(), buffer: vec![0; 2 * FRAME_MAX].into() })
    }

    /// Gives what came in the connection in which a message was sent to `accept`. If nothing did, waits until something
    /// does.
    pub fn receive(&mut self, sent: Sent, deadline: Instant, mut accept: impl FnMut(Frame<'_>)) -> Arrival {
        if sent.listener != self.number {
            return Arrival::Gone;
        }
        loop {
            let can_accept = self.accept().is_ok();
            self.hear_hellos(sent.epoch);
            let connection = self.connections.iter_mut().find(|connection| connection.epoch == Some(sent.epoch));
            if let Some(connection) = connection {
                connection.receive(&mut self.buffer);
                let has_come = connection.give_frames(&mut accept);
                if has_come || connection.has_ended {
                    return if has_come { Arrival::Came } else { Arrival::Gone };
                }
            }
            let may_be_it = |connection: &&Connection| connection.epoch.is_none_or(|epoch| epoch == sent.epoch);
            let mut descriptors: Vec<_> =
                self.connections.iter().filter(may_be_it).map(|connection| connection.stream.as_fd()).collect();
            // A listener that cannot accept stays readable, so that waiting for it would be spinning.
            let until = if can_accept { deadline } else { deadline.min(clock::now().saturating_add(STARVED)) };
            if can_accept {
                descriptors.push(self.listener.as_fd());
            }
            if !wait_readable(&descriptors, until) && clock::now() >= deadline {
                return Arrival::Late;
            }
        }
    }

    /// Takes the connections that were made.
    fn accept(&mut self) -> io::Result<()> {
        while let Some(stream) = self.listener.accept()? {
            self.connections.push(Connection { stream, epoch: None, bytes: Vec::new(), has_ended: false });
        }
        Ok(())
    }

    /// Finds out which connections are which, and closes those of strangers and those older than `epoch`: messages
    /// come in order, so that all of those were taken.
    fn hear_hellos(&mut self, epoch: u32) {
        for connection in &mut self.connections {
            if connection.epoch.is_none() {
                connection.receive(&mut self.buffer);
                connection.hear_hello(&self.hello);
            }
        }
        let is_of_use = |connection: &Connection| match connection.epoch {
            Some(number) => number >= epoch,
            None => !connection.has_ended,
        };
        self.connections.retain(is_of_use);
        let strangers = self.connections.iter().filter(|connection| connection.epoch.is_none()).count();
        let mut surplus = strangers.saturating_sub(STRANGERS_MAX);
        self.connections.retain(|connection| {
            let is_surplus = connection.epoch.is_none() && surplus > 0;
            surplus -= usize::from(is_surplus);
            !is_surplus
        });
    }
}

impl Connection {
    /// Takes what came.
    fn receive(&mut self, buffer: &mut [u8]) {
        match self.stream.receive(buffer) {
            Received::Bytes(length) => self.bytes.extend_from_slice(&buffer[..length]),
            Received::Nothing => {}
            Received::End => self.has_ended = true,
        }
    }

    /// `expected` but for the number of the connection, which is at its end.
    fn hear_hello(&mut self, expected: &[u8; HELLO]) {
        let Some((hello, _)) = self.bytes.split_first_chunk::<HELLO>() else { return };
        let (greeting, epoch) = hello.split_at(HELLO - 4);
        if greeting == &expected[..HELLO - 4] {
            self.epoch = epoch.try_into().ok().map(u32::from_le_bytes);
            self.bytes.drain(..HELLO);
        } else {
            self.has_ended = true;
        }
    }

    /// Gives all frames that are whole to `accept`; answers whether there was one.
    fn give_frames(&mut self, accept: &mut impl FnMut(Frame<'_>)) -> bool {
        let mut used = 0;
        loop {
            match Frame::at_start(&self.bytes[used..], FRAME_MAX) {
                Start::Frame(frame, length) => {
                    if Some(frame.epoch) == self.epoch {
                        accept(frame);
                    }
                    used += length;
                }
                Start::Part => break,
                Start::Damaged => {
                    self.has_ended = true;
                    break;
                }
            }
        }
        self.bytes.drain(..used);
        used > 0
    }
}

/// The producer's end.
#[derive(Debug, Default)]
pub(super) struct Sending {
    connected: Option<Connected>,
}

#[derive(Debug)]
struct Connected {
    stream: Stream,
    epoch: u32,
    /// The consumer's socket, and the claim that made it.
    listener: u32,
    owner: u64,
}

impl Sending {
    /// Whether it is connected to the present owner of the consumer's node; connects if that listens.
    /// That takes no time unless too many others do; then until `deadline`, or a second.
    pub fn connect(
        &mut self,
        shared: &Shared,
        edge: usize,
        slots: Slots,
        bytes: u64,
        deadline: Instant,
    ) -> io::Result<bool> {
        let owner = shared.owner(shared.spec.plan().edges()[edge].consumer);
        let listening = shared.segment.u64(slots.layout.listening).load(Ordering::Acquire);
        let (listener, port) = ((listening >> 32) as u32, listening as u16);
        let is_same = |connected: &Connected| (connected.listener, connected.owner) == (listener, owner.word());
        if self.connected.as_ref().is_some_and(is_same) {
            return Ok(true);
        }
        self.connected = None;
        let Some(mut address) = channels::address(shared, edge) else { return Ok(false) };
        if owner.state != State::Claimed || listener == 0 {
            return Ok(false);
        }
        address.set_port(port);
        let left = deadline.saturating_since(clock::now());
        let mut stream = match Stream::connect(address, bytes, left) {
            Ok(stream) => stream,
            // The time of the wait is over.
            Err(error) if error.kind() == io::ErrorKind::TimedOut && clock::now() >= deadline => return Ok(false),
            // It was killed a moment ago, or has not begun to listen since: news of either wakes the waiter.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(false),
            Err(error) => return Err(error),
        };
        let epoch = slots.new_epoch(shared);
        if stream.send(&[&channels::hello(shared, edge, epoch)]).is_ok_and(|was_sent| was_sent) {
            self.connected = Some(Connected { stream, epoch, listener, owner: owner.word() });
        }
        Ok(self.connected.is_some())
    }

    /// Sends a message; answers whether that was so, and where to. After a failure the connection is of no use: part of
    /// the message may be on its way.
    pub fn send(&mut self, token: u64, message: &[u8]) -> (bool, u32, u32) {
        let Some(connected) = &mut self.connected else { return (false, 0, 0) };
        let (epoch, listener) = (connected.epoch, connected.listener);
        let was_sent = Frame::all(token, epoch, message, FRAME_MAX)
            .all(|frame| connected.stream.send(&[&frame.header(), frame.bytes]).is_ok_and(|was_sent| was_sent));
        if !was_sent {
            self.connected = None;
        }
        (was_sent, epoch, listener)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpStream;

    use laxity_model::{Edge, Graph, Node};

    use super::*;
    use crate::{ChannelKind, Registry, Spec, WaitError};

    /// Linux is not made to be late: what it delivers is sent by the test, after the token that says that it was sent.
    #[test]
    fn a_message_that_linux_has_not_delivered_holds_a_wait_up_to_its_deadline_and_not_longer() {
        let place = std::env::temp_dir().join(format!("laxity-late-{}", std::process::id()));
        std::fs::create_dir_all(&place).expect("writable");
        let (produce, consume, threshold) = (1, 1, 1);
        let edge = Edge { produce, consume, threshold, ..Edge::new(0, 1) };
        let graph =
            Graph::new("g", vec![Node::new("a", Some(Nanos::from_millis(1))), Node::new("b", None)], vec![edge]);
        let spec = Spec::with_channels(graph, vec![ChannelKind::Stream.channel(8, 2)]).expect("it can be");
        let graph = Registry::at(&place).create(&spec).expect("the name is free");
        let mut b = graph.claim("b").expect("it is free");
        let shared = graph.shared();
        let slots = Slots { layout: shared.layout.link(0).expect("a stream"), capacity: 2 };
        let listening = shared.segment.u64(slots.layout.listening).load(Ordering::Acquire);
        let (listener, port) = ((listening >> 32) as u32, listening as u16);
        slots.write(shared, 0, Sent { length: 5, epoch: 1, listener });
        shared.complete(0, 0);

        let late = Err(WaitError::TimedOut { node: "b".into(), in_flight: Some(("a".into(), "b".into())) });
        assert_eq!(b.try_wait().map(|_| ()), late);
        assert_eq!(b.wait_for(Nanos::from_millis(1)).map(|_| ()), late);
        assert_eq!(graph.status(1).started, 0, "the job has not begun");
        let mut producer = TcpStream::connect(("127.0.0.1", port)).expect("b listens");
        producer.write_all(&channels::hello(shared, 0, 1)).expect("there is room");
        assert_eq!(b.wait_for(Nanos::from_millis(1)).map(|_| ()), late, "half of it");
        for frame in Frame::all(0, 1, b"hello", FRAME_MAX) {
            producer.write_all(&frame.header()).expect("there is room");
            producer.write_all(frame.bytes).expect("there is room");
        }
        let mut job = b.wait_for(Nanos::from_secs(20)).expect("it comes");
        assert_eq!(job.input(0, 0), Ok(&b"hello"[..]));
        job.complete();
        drop((b, graph));
        std::fs::remove_dir_all(&place).expect("ours");
    }
}
