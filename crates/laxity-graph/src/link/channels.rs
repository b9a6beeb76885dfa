//! The named pipes and message queues of a graph: made with it, open in every process that is attached, and removed with
//! it.
//!
//! Their names contain the random number in the graph's memory. So a process that has that memory knows them, also after a
//! power cut, and nothing else has such a name.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use laxity_sys::channel::fifo::{self, Fifo, PACKET_MAX};
use laxity_sys::channel::queue::{self, Queue};
use laxity_sys::channel::{ChannelError, stream};

use super::frame::{self, HEADER};
use super::stream::FRAME_MAX;
use crate::registry::NoChannel;
use crate::shared::Shared;
use crate::spec::Channel;

/// What this process has open, by edge.
#[derive(Debug)]
pub(crate) struct Channels(Vec<Option<Arc<Packets>>>);

/// A channel that keeps packets apart.
#[derive(Debug)]
pub(super) enum Packets {
    Fifo(Fifo),
    Queue(Queue),
}

impl Channels {
    /// Opens those of a graph, and makes those that are missing; under the lock of the graph's memory.
    pub fn open(shared: &Shared) -> Result<Channels, NoChannel> {
        let open = |(edge, channel): (usize, &Channel)| {
            open(shared, edge, *channel).map_err(|error| {
                let (from, to) = shared.ends(edge);
                NoChannel { from, to, kind: channel.kind(), error }
            })
        };
        shared.spec.channels().iter().enumerate().map(open).collect::<Result<_, _>>().map(Channels)
    }

    pub(super) fn packets(&self, edge: usize) -> Option<&Arc<Packets>> {
        self.0.get(edge)?.as_ref()
    }
}

fn open(shared: &Shared, edge: usize, channel: Channel) -> Result<Option<Arc<Packets>>, ChannelError> {
    let packets = match channel {
        Channel::Counter | Channel::Ring { .. } => return Ok(None),
        Channel::Fifo { message, capacity } => {
            let packets = frame::count(message, PACKET_MAX) * places(shared, edge, capacity);
            Packets::Fifo(Fifo::open_or_create(&fifo_path(shared, edge), packets)?)
        }
        Channel::Queue { message, capacity } => {
            // A queue takes memory of its user for the longest packets there can be.
            let longest = queue::longest_packet().min(message as usize + HEADER).max(HEADER + 1);
            let packets = frame::count(message, longest) * places(shared, edge, capacity);
            Packets::Queue(Queue::open_or_create(&queue_name(shared, edge), packets, longest)?)
        }
        Channel::Stream { message, capacity, address } => {
            stream::check_buffer(address, stream_bytes(message, capacity))?;
            return Ok(None);
        }
    };
    Ok(Some(Arc::new(packets)))
}

/// Messages that a channel has room for: those of complete jobs, and of one whose producer was killed while it sent them.
fn places(shared: &Shared, edge: usize, capacity: u32) -> u64 {
    u64::from(capacity) + u64::from(shared.spec.plan().edges()[edge].produce)
}

/// Bytes that may be on the way in one connection. A producer that was killed leaves nothing in that of its successor.
pub(super) fn stream_bytes(message: u32, capacity: u32) -> u64 {
    let headers = frame::count(message, FRAME_MAX) * HEADER as u64;
    (u64::from(message) + headers).saturating_mul(capacity.into())
}

/// Takes the names away, under the lock of the graph's memory and before that loses its own: if this process is killed
/// in between, the next process that finds the memory goes on here.
pub(crate) fn remove(shared: &Shared) {
    for (edge, channel) in shared.spec.channels().iter().enumerate() {
        match channel {
            Channel::Fifo { .. } => fifo::unlink(&fifo_path(shared, edge)),
            Channel::Queue { .. } => queue::unlink(&queue_name(shared, edge)),
            Channel::Counter | Channel::Ring { .. } | Channel::Stream { .. } => {}
        }
    }
}

fn identity(shared: &Shared) -> u64 {
    shared.segment.u64(shared.layout.identity).load(Ordering::Relaxed)
}

/// Beside the graph's memory.
fn fifo_path(shared: &Shared, edge: usize) -> PathBuf {
    let name = &shared.spec.graph().name;
    // The graph is called as its file is, and so has no slash in its name.
    shared.segment.path().with_file_name(format!("laxity-fifo.{name}.{:016x}.{edge}", identity(shared)))
}

fn queue_name(shared: &Shared, edge: usize) -> String {
    format!("/laxity-mq.{:016x}.{edge}", identity(shared))
}

/// The first bytes of a connection: which graph, said by what only its processes know,
/// which edge, and which connection of that edge.
pub(super) fn hello(shared: &Shared, edge: usize, epoch: u32) -> [u8; HELLO] {
    let mut hello = [0; HELLO];
    hello[..8].copy_from_slice(b"laxity 1");
    let secret = shared.segment.u64(shared.layout.secret).load(Ordering::Relaxed);
    hello[8..16].copy_from_slice(&secret.to_le_bytes());
    hello[16..20].copy_from_slice(&(edge as u32).to_le_bytes());
    hello[20..].copy_from_slice(&epoch.to_le_bytes());
    hello
}

/// Bytes of a hello.
pub(super) const HELLO: usize = 24;

/// Where the consumer of an edge listens, if it is a stream.
pub(super) fn address(shared: &Shared, edge: usize) -> Option<SocketAddr> {
    match shared.spec.channels().get(edge)? {
        Channel::Stream { address, .. } => Some(*address),
        _ => None,
    }
}

impl Packets {
    /// The longest, in bytes.
    pub fn longest(&self) -> usize {
        match self {
            Packets::Fifo(_) => PACKET_MAX,
            Packets::Queue(queue) => queue.longest(),
        }
    }

    pub fn send(&self, packet: &[u8]) -> io::Result<bool> {
        match self {
            Packets::Fifo(fifo) => fifo.send(packet),
            Packets::Queue(queue) => queue.send(packet),
        }
    }

    /// Takes the oldest, if there is one.
    pub fn receive<'a>(&self, buffer: &'a mut Vec<u8>) -> io::Result<Option<&'a [u8]>> {
        buffer.resize(self.longest(), 0);
        let length = match self {
            Packets::Fifo(fifo) => {
                let packet = buffer.first_chunk_mut().expect("as long as a packet");
                fifo.receive(packet)
            }
            Packets::Queue(queue) => queue.receive(buffer),
        };
        Ok(length?.map(|length| &buffer[..length]))
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::{Edge, Graph, Nanos, Node};

    use super::*;
    use crate::{ChannelKind, Registry, Spec};

    /// A queue has no file to look for: to make one of the same name gets the old one if there is one.
    #[test]
    fn a_queue_comes_and_goes_with_its_graph() {
        let place = std::env::temp_dir().join(format!("laxity-queue-{}", std::process::id()));
        std::fs::create_dir_all(&place).expect("writable");
        let edge = Edge::new(0, 1);
        let graph =
            Graph::new("g", vec![Node::new("a", Some(Nanos::from_millis(1))), Node::new("b", None)], vec![edge]);
        let spec = Spec::with_channels(graph, vec![ChannelKind::Queue.channel(8, 2)]).expect("it can be");
        let registry = Registry::at(&place);

        let graph = registry.create(&spec).expect("the name is free");
        let name = queue_name(graph.shared(), 0);
        let longest = || Queue::open_or_create(&name, 1, 99).expect("a queue").longest();
        assert_eq!(longest(), HEADER + 8);
        drop(graph);
        assert_eq!(longest(), 99, "a new one");
        queue::unlink(&name);
        std::fs::remove_dir_all(&place).expect("ours");
    }
}
