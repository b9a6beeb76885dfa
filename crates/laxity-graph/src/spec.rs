//! What a live graph is made of.

use std::net::SocketAddr;

use laxity_model::{self as model, Nanos, Replicas};
use laxity_policy::graph::{CompiledGraph, CompiledGraphError};
use serde::{Deserialize, Serialize};

use crate::data_object::Object;

/// What an edge carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Channel {
    /// Tokens alone: events. Never full.
    #[default]
    Counter,
    /// A message with each token, in shared memory, written and read in place. Full when as many are there as fit:
    /// the producer then waits until its consumer is done with the oldest.
    ///
    /// The messages of initial tokens are all zero.
    Ring {
        /// The longest message, in bytes.
        message: u32,
        /// How many fit.
        capacity: u32,
    },
    /// A message with each token, through a named pipe. Full as a ring is. Messages that are in the pipe stay there while
    /// any process is attached to the graph.
    Fifo {
        /// The longest message, in bytes.
        message: u32,
        /// How many fit.
        capacity: u32,
    },
    /// As [`Channel::Fifo`], through a POSIX message queue.
    Queue {
        /// The longest message, in bytes.
        message: u32,
        /// How many fit.
        capacity: u32,
    },
    /// As [`Channel::Fifo`], through a TCP connection, which the consumer's process listens for while it has the node:
    /// the producer waits until it does. Messages under way are lost with the consumer.
    Stream {
        /// The longest message, in bytes.
        message: u32,
        /// How many fit.
        capacity: u32,
        /// Where the consumer listens; at port 0 Linux chooses one. See [`Channel::LOOPBACK`].
        #[serde(with = "address_text")]
        address: SocketAddr,
    },
}

/// A graph and what its edges carry, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    graph: model::Graph,
    channels: Vec<Channel>,
    plan: CompiledGraph,
    objects: Vec<Object>,
    /// How many of the edges do not follow from the objects.
    declared: usize,
    recorder: u32,
    /// Bytes of user data of each node.
    node_data: Vec<u32>,
    /// Bytes of user data of each edge of the graph.
    edge_data: Vec<u32>,
    /// The longest value of each latest-value edge, in bytes.
    latest: Vec<u32>,
    /// Groups of rings that exchange buffers; no ring is in two.
    swapping: Vec<Vec<usize>>,
}

/// Why a graph cannot be carried out live.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// It has no node.
    #[error("the graph has no node; add one")]
    Empty,
    /// A node's name is empty or longer than [`NAME_MAX`] bytes.
    #[error("a node's name has {} bytes; use 1 to {NAME_MAX}", name.len())]
    NodeName {
        /// The name.
        name: String,
    },
    /// Two nodes have one name.
    #[error("two nodes are called {name}; rename one")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// A period, phase or deadline of 0 or beyond [`Nanos::LONGEST`].
    #[error("node {node}: its {field} is {value}; use more than nothing and at most {} (10 years)", Nanos::LONGEST)]
    Span {
        /// The node.
        node: String,
        /// Which.
        field: &'static str,
        /// Its value.
        value: Nanos,
    },
    /// More nodes or edges than [`COUNT_MAX`].
    #[error("{count} nodes, edges or objects exceed {COUNT_MAX}; split it")]
    TooLarge {
        /// How many.
        count: usize,
    },
    /// Its tokens cannot be carried out, for instance because rates differ.
    #[error(transparent)]
    Graph(CompiledGraphError),
    /// The number of replicas is left to the analysis.
    #[error("how many replicas there are is left to the analysis; write the number that it reports")]
    Unsettled,
    /// The list of channels is not as long as that of edges.
    #[error("{channels} channels for {edges} edges; give one to each edge")]
    Channels {
        /// Edges.
        edges: usize,
        /// Channels.
        channels: usize,
    },
    /// An edge with messages on which its two nodes would wait for each other for ever.
    #[error(
        "edge {from} -> {to}: {capacity} messages fit but {needed} must, or its nodes wait for each other for ever; \
         enlarge it"
    )]
    Capacity {
        /// The producer.
        from: String,
        /// The consumer.
        to: String,
        /// Messages that fit.
        capacity: u32,
        /// Messages that must fit.
        needed: u64,
    },
    /// A recorder deeper than [`RECORDER_MAX`].
    #[error("a recorder of {depth} jobs a node exceeds {RECORDER_MAX}; make it less deep")]
    Recorder {
        /// How deep.
        depth: u32,
    },
    /// Two edges would listen at one address.
    #[error("edge {from} -> {to}: another edge listens at {address}; give it another port, or 0 for any")]
    Address {
        /// The producer of the second.
        from: String,
        /// Its consumer.
        to: String,
        /// The address.
        address: SocketAddr,
    },
    /// No node has this name.
    #[error("no node is called {name}; names match exactly")]
    NoNode {
        /// The name.
        name: String,
    },
    /// No edge has this position.
    #[error("there is no edge {edge}: the graph has {edges}, numbered from 0")]
    NoEdge {
        /// The position.
        edge: usize,
        /// How many edges there are.
        edges: usize,
    },
    /// An edge cannot exchange buffers with others.
    #[error("edge {from} -> {to}: {reason}")]
    Swapping {
        /// Its producer.
        from: String,
        /// Its consumer.
        to: String,
        /// Why not.
        reason: SwappingError,
    },
}

/// Why an edge cannot exchange buffers with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SwappingError {
    /// Its messages are not in shared memory.
    #[error("its messages are not in shared memory and cannot be swapped; make it a ring")]
    NoRing,
    /// It does so with others already, or is named twice.
    #[error("it exchanges buffers already; name it once, in one group")]
    Twice,
    /// Its longest message is another one.
    #[error("its messages have up to {own} bytes and those that they are swapped with {first}; make them one")]
    Length {
        /// That of the first edge.
        first: u32,
        /// Its own.
        own: u32,
    },
}

/// The longest name of a node, in bytes. Names are never cut.
pub const NAME_MAX: usize = 1024;

/// How many of its last jobs each node remembers unless told otherwise: a quarter of a second of a node of 1 kHz, in 16 KiB.
pub const RECORDER_DEFAULT: u32 = 256;

/// The most jobs that a node can remember.
pub const RECORDER_MAX: u32 = 1 << 20;

/// The most nodes, and the most edges.
pub const COUNT_MAX: usize = 1 << 16;

impl Spec {
    /// `graph`, with tokens on all edges and no data. The bodies of its nodes do not matter here.
    ///
    /// # Errors
    /// [`SpecError`].
    pub fn new(graph: model::Graph) -> Result<Spec, SpecError> {
        let channels = vec![Channel::Counter; graph.edges.len()];
        Spec::with_channels(graph, channels)
    }

    /// `graph`, whose edges carry `channels`.
    ///
    /// # Errors
    /// [`SpecError`].
    pub fn with_channels(mut graph: model::Graph, channels: Vec<Channel>) -> Result<Spec, SpecError> {
        for node in &mut graph.nodes {
            (node.body, node.run) = (Vec::new(), None);
        }
        // Channels say it.
        graph.edges.iter_mut().for_each(|edge| edge.message = 0);
        check_nodes(&graph)?;
        if channels.len() != graph.edges.len() {
            return Err(SpecError::Channels { edges: graph.edges.len(), channels: channels.len() });
        }
        let plan = plan(&graph)?;
        check_latest(&graph)?;
        for (edge, &channel) in plan.edges().iter().zip(&channels) {
            let Some(capacity) = channel.capacity() else { continue };
            // The consumer may wait with phi - 1 tokens there, and then the producer needs room for rho more.
            let needed = (u64::from(edge.threshold) - 1 + u64::from(edge.produce)).max(edge.initial.into());
            if u64::from(capacity) < needed {
                let name = |node: usize| graph.nodes[node].name.clone();
                let (from, to) = (name(edge.producer), name(edge.consumer));
                return Err(SpecError::Capacity { from, to, capacity, needed });
            }
        }
        check_addresses(&graph, &channels)?;
        let declared = channels.len();
        let (node_data, edge_data) = (vec![0; graph.nodes.len()], vec![0; graph.edges.len()]);
        let latest = vec![0; graph.latest.len()];
        let (objects, swapping, recorder) = (Vec::new(), Vec::new(), RECORDER_DEFAULT);
        Ok(Spec { graph, channels, plan, objects, declared, recorder, node_data, edge_data, latest, swapping })
    }

    /// `graph` as a pipeline derived it of its `objects`, from which all but the first `declared` edges follow.
    pub(crate) fn with_objects(
        graph: model::Graph,
        channels: Vec<Channel>,
        objects: Vec<Object>,
        declared: usize,
    ) -> Result<Spec, SpecError> {
        Ok(Spec { objects, declared, ..Spec::with_channels(graph, channels)? })
    }

    /// The same, with a recorder of the last `depth` jobs of each node, rounded up to a power of two; 64 bytes each.
    /// 0 turns it off: the graph can then not be traced, and knows no releases and deadlines.
    ///
    /// # Errors
    /// [`SpecError::Recorder`].
    pub fn with_recorder(self, depth: u32) -> Result<Spec, SpecError> {
        if depth > RECORDER_MAX {
            return Err(SpecError::Recorder { depth });
        }
        Ok(Spec { recorder: if depth == 0 { 0 } else { depth.next_power_of_two() }, ..self })
    }

    /// How many of its last jobs each node remembers; 0: none.
    pub fn recorder(&self) -> u32 {
        self.recorder
    }

    /// The same, with `bytes` of user data at the node called `node`: see [`UserData`](crate::UserData).
    ///
    /// # Errors
    /// [`SpecError::NoNode`].
    pub fn with_node_data(mut self, node: &str, bytes: u32) -> Result<Spec, SpecError> {
        let found = self.graph.nodes.iter().position(|known| known.name == node);
        let position = found.ok_or_else(|| SpecError::NoNode { name: node.to_owned() })?;
        self.node_data[position] = bytes;
        Ok(self)
    }

    /// The same, with `bytes` of user data at the edge at `edge` of the graph: see [`UserData`](crate::UserData).
    ///
    /// # Errors
    /// [`SpecError::NoEdge`].
    pub fn with_edge_data(mut self, edge: usize, bytes: u32) -> Result<Spec, SpecError> {
        let edges = self.edge_data.len();
        *self.edge_data.get_mut(edge).ok_or(SpecError::NoEdge { edge, edges })? = bytes;
        Ok(self)
    }

    /// The same, with values of up to `bytes` on the latest-value edge at `edge` of [`Graph::latest`](model::Graph::latest):
    /// see [`Job::latest`](crate::Job::latest). Each takes four times as many.
    ///
    /// # Errors
    /// [`SpecError::NoEdge`].
    pub fn with_latest(mut self, edge: usize, bytes: u32) -> Result<Spec, SpecError> {
        let edges = self.latest.len();
        *self.latest.get_mut(edge).ok_or(SpecError::NoEdge { edge, edges })? = bytes;
        Ok(self)
    }

    /// The same, whose rings at `edges` exchange buffers: a job may [swap](crate::Job::swap) a message that came over
    /// one of them with one that goes over another, without a copy. Their longest messages are of one length. It costs
    /// another 8 bytes a message.
    ///
    /// # Errors
    /// [`SpecError::NoEdge`], [`SpecError::Swapping`].
    pub fn with_swapping(mut self, edges: &[usize]) -> Result<Spec, SpecError> {
        let mut longest = None;
        for (number, &edge) in edges.iter().enumerate() {
            let count = self.channels.len();
            let channel = self.channels.get(edge).ok_or(SpecError::NoEdge { edge, edges: count })?;
            let is_taken = self.swapping.iter().any(|group| group.contains(&edge)) || edges[..number].contains(&edge);
            let reason = match *channel {
                _ if is_taken => Some(SwappingError::Twice),
                Channel::Ring { message, .. } => {
                    let first = *longest.get_or_insert(message);
                    (first != message).then_some(SwappingError::Length { first, own: message })
                }
                _ => Some(SwappingError::NoRing),
            };
            if let Some(reason) = reason {
                let name = |node: usize| self.graph.nodes[node].name.clone();
                let ends = &self.graph.edges[edge];
                return Err(SpecError::Swapping { from: name(ends.producer), to: name(ends.consumer), reason });
            }
        }
        if !edges.is_empty() {
            self.swapping.push(edges.to_vec());
        }
        Ok(self)
    }

    /// The longest value of each latest-value edge of [`Spec::graph`], in bytes.
    pub fn latest_bytes(&self) -> &[u32] {
        &self.latest
    }

    /// Bytes of user data of each node.
    pub fn node_data(&self) -> &[u32] {
        &self.node_data
    }

    /// Bytes of user data of each edge of [`Spec::graph`].
    pub fn edge_data(&self) -> &[u32] {
        &self.edge_data
    }

    /// The groups of edges that exchange buffers.
    pub fn swapping(&self) -> &[Vec<usize>] {
        &self.swapping
    }

    /// The graph; the bodies of its nodes are empty.
    pub fn graph(&self) -> &model::Graph {
        &self.graph
    }

    /// What the edges of [`Spec::graph`] carry.
    pub fn channels(&self) -> &[Channel] {
        &self.channels
    }

    /// The data objects that are in the graph's memory: those of a [`Pipeline`](crate::Pipeline).
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// How many edges, the first ones, do not follow from the objects.
    pub(crate) fn declared(&self) -> usize {
        self.declared
    }

    /// The tokens that are exchanged: the edges of the graph, then those of its feedback graph.
    pub fn plan(&self) -> &CompiledGraph {
        &self.plan
    }
}

fn check_addresses(graph: &model::Graph, channels: &[Channel]) -> Result<(), SpecError> {
    let mut taken = Vec::new();
    for (edge, channel) in graph.edges.iter().zip(channels) {
        let Channel::Stream { address, .. } = *channel else { continue };
        if address.port() != 0 && taken.contains(&address) {
            let name = |node: usize| graph.nodes[node].name.clone();
            return Err(SpecError::Address { from: name(edge.producer), to: name(edge.consumer), address });
        }
        taken.push(address);
    }
    Ok(())
}

fn check_latest(graph: &model::Graph) -> Result<(), SpecError> {
    let nodes = graph.nodes.len();
    if graph.latest.len() > COUNT_MAX {
        return Err(SpecError::TooLarge { count: graph.latest.len() });
    }
    for (edge, ends) in graph.latest.iter().enumerate() {
        if let Some(node) = [ends.producer, ends.consumer].into_iter().find(|&node| node >= nodes) {
            return Err(SpecError::Graph(CompiledGraphError::UnknownNode { edge, node, nodes }));
        }
    }
    Ok(())
}

fn check_nodes(graph: &model::Graph) -> Result<(), SpecError> {
    if graph.nodes.is_empty() {
        return Err(SpecError::Empty);
    }
    let count = graph.nodes.len().max(graph.edges.len()).max(graph.objects.len());
    if count > COUNT_MAX {
        return Err(SpecError::TooLarge { count });
    }
    for node in &graph.nodes {
        let name = node.name.clone();
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(SpecError::NodeName { name });
        }
        let of_use = |span: Option<Nanos>| span.is_none_or(|span| !span.is_zero() && span <= Nanos::LONGEST);
        let phase = (!node.phase.is_zero()).then_some(node.phase);
        for (field, span) in [("period", node.period), ("deadline", node.deadline), ("phase", phase)] {
            if !of_use(span) {
                return Err(SpecError::Span { node: name, field, value: span.unwrap_or_default() });
            }
        }
    }
    let mut names: Vec<&str> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(SpecError::Duplicate { name: pair[0].to_owned() }),
        None => Ok(()),
    }
}

fn plan(graph: &model::Graph) -> Result<CompiledGraph, SpecError> {
    let replicas = match graph.replicas {
        Replicas::None => return CompiledGraph::new(graph).map_err(SpecError::Graph),
        Replicas::Count(count) => count,
        Replicas::Auto => return Err(SpecError::Unsettled),
    };
    // A delay is not replicated but deepened, which its edge says.
    let replicated = graph.objects.iter().filter(|object| object.delay == 0);
    let accessors: Vec<Vec<usize>> = replicated.map(|object| object.accessors.clone()).collect();
    CompiledGraph::pipelined(graph, &accessors, replicas).map_err(SpecError::Graph)
}

/// Addresses as text: serde's numbers leave the scope of an IPv6 address out.
mod address_text {
    use std::net::SocketAddr;

    use serde::{Deserialize, Deserializer, Serializer, de};

    pub fn serialize<S: Serializer>(address: &SocketAddr, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&address.to_string())
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<SocketAddr, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}
