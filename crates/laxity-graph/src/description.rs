//! A [`Spec`] as bytes, for processes that attach to a graph and know only its name.
//!
//! Numbers are little-endian; a text or list is its length in 32 bits and then itself; an option is a list of at most
//! one. Reading checks everything: the bytes are in memory that others can write to.

use laxity_model::{DataObject, Edge, Graph, Nanos, Node, Replicas};

use crate::channel::ChannelKind;
use crate::data_object::{Access, Object, Use};
use crate::pipeline::Pipeline;
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
    // How many edges were declared, and the objects from which the others follow.
    bytes.u32(spec.declared() as u32);
    bytes.list(spec.objects(), |bytes, object| {
        bytes.text(&object.name);
        bytes.u64(object.bytes as u64);
        bytes.u32(object.depth);
        bytes.bytes(&object.initial);
        bytes.list(&object.uses, |bytes, &Use { node, access }| {
            let (kind, ago) = match access {
                Access::Read { ago } => (0, ago),
                Access::Write => (1, 0),
                Access::Change => (2, 0),
            };
            [node as u32, kind, ago].into_iter().for_each(|number| bytes.u32(number));
        });
    });
    bytes.u32(spec.recorder());
    bytes.list(spec.node_data(), |bytes, &size| bytes.u32(size));
    bytes.list(spec.edge_data(), |bytes, &size| bytes.u32(size));
    bytes.list(spec.swapping(), |bytes, group| bytes.list(group, |bytes, &edge| bytes.u32(edge as u32)));
    bytes.0
}

/// The spec that `bytes` describe.
pub(crate) fn decode(bytes: &[u8]) -> Result<Spec, DescriptionError> {
    let mut bytes = Reader(bytes);
    let (graph, channels) = read(&mut bytes).ok_or(DescriptionError::Malformed)?;
    let (declared, objects) = read_objects(&mut bytes).ok_or(DescriptionError::Malformed)?;
    let extras = read_extras(&mut bytes).filter(|_| bytes.0.is_empty()).ok_or(DescriptionError::Malformed)?;
    let spec = if objects.is_empty() {
        Spec::with_channels(graph, channels).map_err(DescriptionError::Spec)?
    } else {
        pipelined(graph, channels, objects, declared)?
    };
    extras.added_to(spec).map_err(DescriptionError::Spec)
}

/// What a spec has beyond its graph, channels and objects.
struct Extras {
    recorder: u32,
    node_data: Vec<u32>,
    edge_data: Vec<u32>,
    swapping: Vec<Vec<usize>>,
}

fn read_extras(bytes: &mut Reader) -> Option<Extras> {
    Some(Extras {
        recorder: bytes.u32()?,
        node_data: bytes.list(Reader::u32)?,
        edge_data: bytes.list(Reader::u32)?,
        swapping: bytes.list(|bytes| bytes.list(|bytes| Some(bytes.u32()? as usize)))?,
    })
}

impl Extras {
    fn added_to(self, spec: Spec) -> Result<Spec, SpecError> {
        let mut spec = spec.with_recorder(self.recorder)?;
        let names: Vec<String> = spec.graph().nodes.iter().map(|node| node.name.clone()).collect();
        for (name, size) in names.iter().zip(self.node_data) {
            spec = spec.with_node_data(name, size)?;
        }
        for (edge, size) in self.edge_data.into_iter().enumerate() {
            spec = spec.with_edge_data(edge, size)?;
        }
        self.swapping.iter().try_fold(spec, |spec, edges| spec.with_swapping(edges))
    }
}

/// The edges keep the users of an object apart, so that they must be those that follow from it.
fn pipelined(
    graph: Graph,
    channels: Vec<Channel>,
    objects: Vec<Object>,
    declared: usize,
) -> Result<Spec, DescriptionError> {
    let Replicas::Count(replicas) = graph.replicas else { return Err(DescriptionError::Malformed) };
    let is_initialized = |object: &Object| [0, object.bytes].contains(&object.initial.len());
    let pipeline = Pipeline::of(&graph, &channels, &objects, declared).filter(|_| objects.iter().all(is_initialized));
    let spec = pipeline.and_then(|pipeline| pipeline.build(replicas).ok());
    let is_it = |spec: &Spec| *spec.graph() == graph && spec.channels() == channels && spec.objects() == objects;
    spec.filter(is_it).ok_or(DescriptionError::Malformed)
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
        let kind = ChannelKind::ALL.iter().copied().find(|known| *known as u32 == kind)?;
        let (message, capacity) = (bytes.u32()?, bytes.u32()?);
        let channel = kind.channel(message, capacity);
        Some(match channel {
            Channel::Stream { .. } => Channel::Stream { message, capacity, address: bytes.text()?.parse().ok()? },
            channel => channel,
        })
    })?;
    Some((Graph { name, nodes, edges, objects, replicas }, channels))
}

fn read_objects(bytes: &mut Reader) -> Option<(usize, Vec<Object>)> {
    let declared = bytes.u32()? as usize;
    let objects = bytes.list(|bytes| {
        Some(Object {
            name: bytes.text()?,
            bytes: usize::try_from(bytes.u64()?).ok()?,
            depth: bytes.u32()?,
            initial: bytes.bytes()?.to_vec(),
            uses: bytes.list(|bytes| {
                let node = bytes.u32()? as usize;
                let access = match (bytes.u32()?, bytes.u32()?) {
                    (0, ago) => Access::Read { ago },
                    (1, 0) => Access::Write,
                    (2, 0) => Access::Change,
                    _ => return None,
                };
                Some(Use { node, access })
            })?,
        })
    })?;
    Some((declared, objects))
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
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.u32(bytes.len() as u32);
        self.0.extend(bytes);
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.u32(items.len() as u32);
        items.iter().for_each(|item| write(self, item));
    }
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
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
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
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
    use crate::pipeline::Parameter;

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
        let spec = Spec::with_channels(graph, channels).and_then(|spec| spec.with_recorder(16));
        let spec = spec.and_then(|spec| spec.with_node_data("b", 40)).and_then(|spec| spec.with_edge_data(1, 3));
        spec.and_then(|spec| spec.with_swapping(&[0])).expect("it is valid")
    }

    fn pipelined() -> Spec {
        let pipeline = Pipeline::new("tracker", Nanos::from_millis(33))
            .object("image", 100)
            .delay_from("points", 2, &[1, 2, 3])
            .node("camera", [Parameter::output("image")])
            .node("tracker", [Parameter::inout("image"), Parameter::past("points", 2), Parameter::output("points")])
            .node("display", [Parameter::input("image"), Parameter::past("points", 1), Parameter::input("points")])
            .edge("camera", "display", Channel::Ring { message: 8, capacity: 2 });
        pipeline.build(3).expect("it is valid")
    }

    #[test]
    fn what_was_described_is_read_back() {
        for spec in [spec(), pipelined()] {
            assert_eq!(decode(&encode(&spec)), Ok(spec));
        }
    }

    /// Objects are safe to use only with the edges that follow from their uses.
    #[test]
    fn edges_that_do_not_follow_from_the_objects_are_damage() {
        let spec = pipelined();
        type Change = fn(&mut Graph, &mut Vec<Object>);
        let with = |change: Change| {
            let (mut graph, mut objects) = (spec.graph().clone(), spec.objects().to_vec());
            change(&mut graph, &mut objects);
            let channels = spec.channels()[..graph.edges.len()].to_vec();
            let changed = Spec::with_objects(graph, channels, objects, spec.declared()).expect("a graph");
            decode(&encode(&changed))
        };
        assert_eq!(with(|_, _| {}), Ok(spec.clone()));
        let damages: [Change; 5] = [
            |graph, _| graph.edges.truncate(graph.edges.len() - 1),
            |graph, _| graph.objects[0].accessors.truncate(2),
            |graph, _| graph.replicas = Replicas::None,
            |_, objects| objects[1].initial.push(4),
            |_, objects| objects[0].uses.truncate(2),
        ];
        for (number, damage) in damages.into_iter().enumerate() {
            assert_eq!(with(damage), Err(DescriptionError::Malformed), "damage {number}");
        }
    }

    proptest! {
        /// A process that attaches reads memory that any process of the user may have written.
        #[test]
        fn damaged_bytes_are_an_error_or_another_graph_but_never_a_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            cut in any::<prop::sample::Index>(),
            has_objects in any::<bool>(),
        ) {
            let mut bytes = encode(&if has_objects { pipelined() } else { spec() });
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
