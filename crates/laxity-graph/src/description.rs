//! A [`Spec`] as bytes, for those who attach to a graph and know only its name.
//!
//! Numbers are little-endian; a text or list is its length in 32 bits and then itself; an option is a list of at most
//! one. Reading checks everything: the bytes are in memory that others can write to.

use laxity_model::{DataObject, Edge, Graph, Nanos, Node, Replicas};

use crate::channel::ChannelKind;
use crate::spec::{Channel, Spec, SpecError};

/// Why bytes are no description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DescriptionError {
    /// They end too early, or go on, or say something that means nothing.
    Malformed,
    /// They describe a graph that cannot be.
    Spec(SpecError),
}

/// `spec` as bytes.
pub(crate) fn encode(spec: &Spec) -> Vec<u8> {
    let mut bytes = Writer(Vec::new());
    let graph = spec.graph();
    bytes.text(&graph.name);
    bytes.list(&graph.nodes, |bytes, node| {
        bytes.text(&node.name);
        bytes.option(node.period.map(|period| period.0));
        bytes.u64(node.phase.0);
        bytes.option(node.deadline.map(|deadline| deadline.0));
        bytes.option(node.priority.map(u64::from));
        bytes.option(node.cluster.map(|cluster| cluster as u64));
    });
    bytes.list(&graph.edges, |bytes, edge| {
        let numbers = [edge.produce, edge.consume, edge.threshold, edge.initial, u32::from(edge.back_edge), edge.delay];
        bytes.u32(edge.producer as u32);
        bytes.u32(edge.consumer as u32);
        numbers.into_iter().for_each(|number| bytes.u32(number));
    });
    bytes.list(&graph.objects, |bytes, object| {
        bytes.text(&object.name);
        bytes.list(&object.accessors, |bytes, &node| bytes.u32(node as u32));
        bytes.u32(object.delay);
    });
    // A spec never leaves the number of replicas to the analysis.
    bytes.option(if let Replicas::Count(count) = graph.replicas { Some(count.into()) } else { None });
    bytes.list(spec.channels(), |bytes, channel| {
        bytes.u32(channel.kind() as u32);
        bytes.u32(channel.message().unwrap_or(0));
        bytes.u32(channel.capacity().unwrap_or(0));
        if let Channel::Stream { address, .. } = channel {
            bytes.text(&address.to_string());
        }
    });
    bytes.0
}

/// The spec that `bytes` describe.
pub(crate) fn decode(bytes: &[u8]) -> Result<Spec, DescriptionError> {
    let mut bytes = Reader(bytes);
    let (graph, channels) = read(&mut bytes).filter(|_| bytes.0.is_empty()).ok_or(DescriptionError::Malformed)?;
    Spec::with_channels(graph, channels).map_err(DescriptionError::Spec)
}

fn read(bytes: &mut Reader) -> Option<(Graph, Vec<Channel>)> {
    let name = bytes.text()?;
    let nodes = bytes.list(|bytes| {
        Some(Node {
            name: bytes.text()?,
            period: bytes.option()?.map(Nanos),
            phase: Nanos(bytes.u64()?),
            deadline: bytes.option()?.map(Nanos),
            priority: bytes.option()?.map(u32::try_from).transpose().ok()?,
            cluster: bytes.option()?.map(usize::try_from).transpose().ok()?,
            body: Vec::new(),
        })
    })?;
    let edges = bytes.list(|bytes| {
        Some(Edge {
            producer: bytes.u32()? as usize,
            consumer: bytes.u32()? as usize,
            produce: bytes.u32()?,
            consume: bytes.u32()?,
            threshold: bytes.u32()?,
            initial: bytes.u32()?,
            back_edge: bytes.u32()? != 0,
            delay: bytes.u32()?,
        })
    })?;
    let objects = bytes.list(|bytes| {
        let name = bytes.text()?;
        let accessors = bytes.list(|bytes| Some(bytes.u32()? as usize))?;
        Some(DataObject { name, accessors, delay: bytes.u32()? })
    })?;
    let replicas = match bytes.option()? {
        None => Replicas::None,
        Some(count) => Replicas::Count(u32::try_from(count).ok()?),
    };
    let channels = bytes.list(|bytes| {
        let kind = bytes.u32()?;
        let kind = ChannelKind::ALL.into_iter().find(|known| *known as u32 == kind)?;
        let (message, capacity) = (bytes.u32()?, bytes.u32()?);
        let channel = kind.channel(message, capacity);
        Some(match channel {
            Channel::Stream { .. } => Channel::Stream { message, capacity, address: bytes.text()?.parse().ok()? },
            channel => channel,
        })
    })?;
    Some((Graph { name, nodes, edges, objects, replicas }, channels))
}

struct Writer(Vec<u8>);

impl Writer {
    fn u32(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn option(&mut self, number: Option<u64>) {
        self.list(number.as_slice(), |bytes, &number| bytes.u64(number));
    }

    fn text(&mut self, text: &str) {
        self.u32(text.len() as u32);
        self.0.extend(text.as_bytes());
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.u32(items.len() as u32);
        items.iter().for_each(|item| write(self, item));
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn option(&mut self) -> Option<Option<u64>> {
        match self.u32()? {
            0 => Some(None),
            1 => self.u64().map(Some),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<String> {
        let length = self.u32()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    /// Nothing is reserved beforehand: the length may be a lie, and then the bytes end early.
    fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.u32()?;
        (0..length).map(|_| read(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn spec() -> Spec {
        let node = |name: &str, period| Node {
            name: name.to_owned(),
            period,
            phase: Nanos(5),
            deadline: Some(Nanos(7)),
            priority: Some(3),
            cluster: None,
            body: Vec::new(),
        };
        let edge = |producer, consumer, back_edge| Edge {
            producer,
            consumer,
            produce: 1,
            consume: 1,
            threshold: 1,
            initial: u32::from(back_edge),
            back_edge,
            delay: u32::from(back_edge),
        };
        let mut graph = Graph::new(
            "größer",
            vec![node("a", Some(Nanos::from_millis(1))), node("b", None)],
            vec![edge(0, 1, false), edge(1, 0, true), edge(0, 1, false), edge(0, 1, false), edge(0, 1, false)],
        );
        graph.objects = vec![DataObject { name: "image".to_owned(), accessors: vec![0, 1], delay: 0 }];
        graph.replicas = Replicas::Count(2);
        let (message, capacity) = (64, 4);
        let address = "[::1]:65535".parse().expect("an address");
        let channels = vec![
            Channel::Ring { message, capacity },
            Channel::Counter,
            Channel::Fifo { message, capacity },
            Channel::Queue { message, capacity },
            Channel::Stream { message, capacity, address },
        ];
        Spec::with_channels(graph, channels).expect("it is valid")
    }

    #[test]
    fn what_was_described_is_read_back() {
        assert_eq!(decode(&encode(&spec())), Ok(spec()));
    }

    proptest! {
        /// Whoever attaches reads memory that any process of the user may have written.
        #[test]
        fn damaged_bytes_are_an_error_or_another_graph_but_never_a_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = encode(&spec());
            for (at, value) in changes {
                let at = at.index(bytes.len());
                bytes[at] = value;
            }
            let _ = decode(&bytes);
            let cut = cut.index(bytes.len());
            prop_assert!(decode(&bytes[..cut]).is_err());
        }
    }
}
