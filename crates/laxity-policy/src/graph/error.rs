//! Why a graph cannot be carried out.

use laxity_model::{Graph, Nanos, Rate, RateError, TokenRate};

/// Why there is no [`CompiledGraph`](super::CompiledGraph) of a graph. None of these can happen with a validated workload, except those
/// that concern pipelining.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompiledGraphError {
    /// An edge names a node that does not exist.
    #[error("edge {edge}: there is no node {node}; the graph has {nodes}, counted from 0")]
    UnknownNode {
        /// Index of the edge.
        edge: usize,
        /// What it names.
        node: usize,
        /// How many there are.
        nodes: usize,
    },
    /// An edge on which no token moves, or whose consumer takes more than it waits for.
    #[error(
        "edge {from} -> {to}: produce {produce}, consume {consume}, threshold {threshold}; at least 1 token must \
         be written and read, and the threshold must not be below consume"
    )]
    Tokens {
        /// The producer.
        from: String,
        /// The consumer.
        to: String,
        /// Tokens added.
        produce: u32,
        /// Tokens removed.
        consume: u32,
        /// Tokens needed.
        threshold: u32,
    },
    /// A back-edge whose consumer waits for its own descendant from the start.
    #[error(
        "back-edge {from} -> {to}: {initial} initial tokens are below threshold {threshold}, so {to} would wait \
         for its own descendant; give it {threshold} or more"
    )]
    Deadlock {
        /// The producer.
        from: String,
        /// The consumer.
        to: String,
        /// Tokens at the start.
        initial: u32,
        /// Tokens needed.
        threshold: u32,
    },
    /// Edges that are not back-edges form a cycle; this is one of them.
    #[error(
        "edge {from} -> {to}: part of a cycle, in which every job would wait for another; make the edge that \
         closes it a back-edge with initial tokens"
    )]
    Cycle {
        /// The producer.
        from: String,
        /// The consumer.
        to: String,
    },
    /// A source has no period.
    #[error("node {node}: no edge leads here and it has no period; write how often it starts")]
    NoPeriod {
        /// The source.
        node: String,
    },
    /// Two edges into a node give it different rates.
    #[error(
        "node {node}: one edge gives it {found} but the others {expected}, and tokens would pile up without \
         bound; make produce and consume agree"
    )]
    Mismatch {
        /// The node.
        node: String,
        /// Its rate by the edges before.
        expected: Rate,
        /// Its rate by one more edge.
        found: Rate,
    },
    /// A back-edge carries more tokens than its consumer takes, or fewer.
    #[error(
        "back-edge {from} -> {to}: {from} writes {produced} but {to} reads {consumed}; make produce and consume \
         agree"
    )]
    Unbalanced {
        /// The producer.
        from: String,
        /// The consumer.
        to: String,
        /// Tokens written.
        produced: TokenRate,
        /// Tokens read.
        consumed: TokenRate,
    },
    /// The rate of a node cannot be written.
    #[error(
        "node {node}: its rate repeats only after more than {}; choose periods and token counts with common \
         factors",
        Nanos::LONGEST
    )]
    Overflow {
        /// The node.
        node: String,
    },
    /// A node runs more than once a nanosecond.
    #[error("node {node}: {rate} is more than one a nanosecond; lower produce or lengthen the period")]
    TooFast {
        /// The node.
        node: String,
        /// Its rate.
        rate: Rate,
    },
    /// A pipeline with no replica of its data objects.
    #[error("0 replicas of the data objects; a pipeline needs at least 1")]
    NoReplicas,
    /// A data object is touched by a node that does not exist.
    #[error("data object {object}: there is no node {node}; the graph has {nodes}, counted from 0")]
    UnknownAccessor {
        /// Position of the object.
        object: usize,
        /// The node.
        node: usize,
        /// How many there are.
        nodes: usize,
    },
    /// A pipelined graph has an edge that does not hand over one token at a time, so that the jobs that share a
    /// replica do not have the same index.
    #[error(
        "edge {from} -> {to}: produce {produce}, consume {consume}, threshold {threshold}; only jobs of equal \
         index can share a replica, so all three must be 1"
    )]
    NotOneToOne {
        /// The producer.
        from: String,
        /// The consumer.
        to: String,
        /// Tokens added.
        produce: u32,
        /// Tokens removed.
        consume: u32,
        /// Tokens needed.
        threshold: u32,
    },
    /// An edge of a pipelined graph starts with more tokens than its delay holds jobs, so that its consumer would read
    /// data that no job wrote.
    #[error(
        "edge {from} -> {to}: {initial} initial tokens but a delay of {delay}; {to} would read what no job wrote, \
         so lower the tokens or lengthen the delay"
    )]
    Unwritten {
        /// The producer.
        from: String,
        /// The consumer.
        to: String,
        /// Tokens at the start.
        initial: u32,
        /// Jobs that the delay holds.
        delay: u32,
    },
}

impl CompiledGraphError {
    /// `error` with the names of `graph`.
    pub(super) fn of(graph: &Graph, error: RateError) -> Self {
        let node = |node: usize| graph.nodes[node].name.clone();
        let from = |edge: usize| node(graph.edges[edge].producer);
        let to = |edge: usize| node(graph.edges[edge].consumer);
        match error {
            RateError::Cycle { edge } => CompiledGraphError::Cycle { from: from(edge), to: to(edge) },
            RateError::NoPeriod { node: source } => CompiledGraphError::NoPeriod { node: node(source) },
            RateError::Mismatch { edge, expected, found } => {
                CompiledGraphError::Mismatch { node: to(edge), expected, found }
            }
            RateError::Unbalanced { edge, produced, consumed } => {
                CompiledGraphError::Unbalanced { from: from(edge), to: to(edge), produced, consumed }
            }
            RateError::Overflow { node: fast } => CompiledGraphError::Overflow { node: node(fast) },
        }
    }
}
