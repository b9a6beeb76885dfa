//! PGM graphs (processing graph method): nodes that exchange tokens over edges. Source: paper 003, section 5.1.

use serde::{Deserialize, Serialize};

use crate::{Nanos, OwnCode, Step, TaskServer};

/// A dataflow graph. Each node is a thread whose jobs wait for tokens on all inbound edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Unique name.
    pub name: String,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The edges that carry tokens, back-edges included.
    pub edges: Vec<Edge>,
    /// The latest-value edges.
    pub latest: Vec<LatestEdge>,
    /// Data that more than one node touches and that is not carried by edges.
    pub objects: Vec<DataObject>,
    /// How many copies of each object there are, so that consecutive runs of the graph may overlap.
    pub replicas: Replicas,
}

/// Data that nodes of a graph share in memory. Source: paper 003, section 5.4.1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataObject {
    /// Name, unique among the objects of the graph.
    pub name: String,
    /// Indices of the nodes that touch it, in the order of access: none is an ancestor of one before it. Not empty.
    pub accessors: Vec<usize>,
    /// Size M of a delay: each run reads what was written M runs ago. A delay is not replicated but deepened, to M + N.
    /// 0 for data that no later run reads.
    pub delay: u32,
}

/// How many copies of its data objects a graph has. With N copies run j uses copy `j mod N`, and a feedback graph keeps
/// run `j + N` away until run j is done with it (paper 003, section 5.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Replicas {
    /// One each and no feedback graph: where they must be guarded, critical sections say so.
    #[default]
    None,
    /// This many, at least 1.
    Count(u32),
    /// As many as it takes that no run waits for a copy, computed from the bound on response times.
    Auto,
}

impl Graph {
    /// A graph without data objects.
    pub fn new(name: impl Into<String>, nodes: Vec<Node>, edges: Vec<Edge>) -> Self {
        let (latest, objects) = (Vec::new(), Vec::new());
        Graph { name: name.into(), nodes, edges, latest, objects, replicas: Replicas::None }
    }

    /// Whether each node is released by time: no edge that carries tokens leads to it, besides back-edges.
    pub fn sources(&self) -> Vec<bool> {
        let mut is_source = vec![true; self.nodes.len()];
        for edge in self.edges.iter().filter(|edge| !edge.back_edge) {
            if let Some(consumer) = is_source.get_mut(edge.consumer) {
                *consumer = false;
            }
        }
        is_source
    }

    /// Whether each node is a sink: no edge leads on from it, besides back-edges.
    pub fn sinks(&self) -> Vec<bool> {
        let forward = self.edges.iter().filter(|edge| !edge.back_edge).map(|edge| edge.producer);
        let mut is_sink = vec![true; self.nodes.len()];
        for producer in forward.chain(self.latest.iter().map(|edge| edge.producer)) {
            if let Some(producer) = is_sink.get_mut(producer) {
                *producer = false;
            }
        }
        is_sink
    }
}

/// A node of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name, unique within the graph.
    pub name: String,
    /// Period of a source; every other node's period follows from the rates of its producers.
    pub period: Option<Nanos>,
    /// Arrival of a source's first job.
    pub phase: Nanos,
    /// Relative deadline; the node's period if absent.
    pub deadline: Option<Nanos>,
    /// For fixed priorities given by hand: the smaller number is the higher priority.
    pub priority: Option<u32>,
    /// The cluster it runs on, as [`Task::cluster`](crate::Task::cluster).
    pub cluster: Option<usize>,
    /// The bandwidth server that its jobs execute in, as [`Task::server`](crate::Task::server).
    pub server: Option<TaskServer>,
    /// What a job of the node does.
    pub body: Vec<Step>,
    /// The user's code that its jobs run live; `None`: they use up CPU time as the body says.
    pub run: Option<OwnCode>,
}

impl Node {
    /// A node that executes nothing yet; a source if it has a period.
    pub fn new(name: impl Into<String>, period: Option<Nanos>) -> Self {
        Node {
            name: name.into(),
            period,
            phase: Nanos::ZERO,
            deadline: None,
            priority: None,
            cluster: None,
            server: None,
            body: Vec::new(),
            run: None,
        }
    }
}

/// What an edge is for when a graph is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EdgeKind {
    /// Carries tokens and data downstream.
    Token,
    /// Closes a cycle.
    Back,
    /// Belongs to the feedback graph: says that a replica of a data object is free again (paper 003, section 5.4.1).
    Feedback,
}

/// A latest-value edge: a register and not a queue. A job of `consumer` reads, when it begins, what the newest complete job
/// of `producer` wrote. So neither node waits for the other, their rates may differ, and nothing piles up.
///
/// Elsewhere: register or last-is-best communication (Feiertag et al., CRTS 2008) with implicit semantics, that is, read at the
/// beginning and written at the completion of a job (Hamann et al., ECRTS 2017).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LatestEdge {
    /// Index of the node that writes the value.
    pub producer: usize,
    /// Index of the node that reads it.
    pub consumer: usize,
}

/// An edge from `producer` to `consumer`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edge {
    /// Index of the node that writes tokens.
    pub producer: usize,
    /// Index of the node that reads them.
    pub consumer: usize,
    /// Tokens added by each completed job of the producer (rho), at least 1.
    pub produce: u32,
    /// Tokens removed by each job of the consumer (kappa), at least 1.
    pub consume: u32,
    /// Tokens that must be there before the consumer may start (phi), at least `consume`.
    pub threshold: u32,
    /// Tokens on the edge at the start.
    pub initial: u32,
    /// Whether it closes a cycle; a back-edge needs initial tokens.
    pub back_edge: bool,
    /// Size M of the delay this edge carries: the consumer reads the data of M jobs ago.
    pub delay: u32,
    /// The longest message that comes with a token in a live run, in bytes; 0: tokens alone. Live graphs describe what
    /// their edges carry apart from the graph.
    #[serde(skip)]
    pub message: u32,
}

impl Edge {
    /// An edge on which each job writes and reads one token.
    pub const fn new(producer: usize, consumer: usize) -> Self {
        Edge::rated(producer, consumer, 1, 1)
    }

    /// An edge on which each job writes `produce` tokens and reads `consume`.
    pub const fn rated(producer: usize, consumer: usize, produce: u32, consume: u32) -> Self {
        Edge {
            producer,
            consumer,
            produce,
            consume,
            threshold: consume,
            initial: 0,
            back_edge: false,
            delay: 0,
            message: 0,
        }
    }
}
