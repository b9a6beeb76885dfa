//! Why a graph cannot be carried out.

use std::fmt;

use laxity_model::{Graph, Nanos, Rate, RateError, TokenRate};

/// Why there is no [`Plan`](super::Plan) of a graph. None of these can happen with a validated workload, except those
/// that concern pipelining.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// An edge names a node that does not exist.
    UnknownNode {
        /// Index of the edge.
        edge: usize,
        /// What it names.
        node: usize,
        /// How many there are.
        nodes: usize,
    },
    /// An edge on which no token moves, or whose consumer takes more than it waits for.
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
    Cycle {
        /// The producer.
        from: String,
        /// The consumer.
        to: String,
    },
    /// A source has no period.
    NoPeriod {
        /// The source.
        node: String,
    },
    /// Two edges into a node give it different rates.
    Mismatch {
        /// The node.
        node: String,
        /// Its rate by the edges before.
        expected: Rate,
        /// Its rate by one more edge.
        found: Rate,
    },
    /// A back-edge carries more tokens than its consumer takes, or fewer.
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
    Overflow {
        /// The node.
        node: String,
    },
    /// A node runs more than once a nanosecond.
    TooFast {
        /// The node.
        node: String,
        /// Its rate.
        rate: Rate,
    },
    /// A pipeline with no replica of its data objects.
    NoReplicas,
    /// A data object is touched by a node that does not exist.
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
    /// data that nobody wrote.
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

impl PlanError {
    /// `error` with the names of `graph`.
    pub(super) fn of(graph: &Graph, error: RateError) -> Self {
        let node = |node: usize| graph.nodes[node].name.clone();
        let from = |edge: usize| node(graph.edges[edge].producer);
        let to = |edge: usize| node(graph.edges[edge].consumer);
        match error {
            RateError::Cycle { edge } => PlanError::Cycle { from: from(edge), to: to(edge) },
            RateError::NoPeriod { node: source } => PlanError::NoPeriod { node: node(source) },
            RateError::Mismatch { edge, expected, found } => PlanError::Mismatch { node: to(edge), expected, found },
            RateError::Unbalanced { edge, produced, consumed } => {
                PlanError::Unbalanced { from: from(edge), to: to(edge), produced, consumed }
            }
            RateError::Overflow { node: fast } => PlanError::Overflow { node: node(fast) },
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::UnknownNode { edge, node, nodes } => {
                write!(f, "edge {edge}: there is no node {node}; the graph has {nodes}, counted from 0")
            }
            PlanError::Tokens { from, to, produce, consume, threshold } => write!(
                f,
                "edge {from} -> {to}: produce {produce}, consume {consume}, threshold {threshold}; at least 1 token \
                 must be written and read, and the threshold must not be below consume"
            ),
            PlanError::Deadlock { from, to, initial, threshold } => write!(
                f,
                "back-edge {from} -> {to}: {initial} initial tokens are below threshold {threshold}, so {to} would \
                 wait for its own descendant; give it {threshold} or more"
            ),
            PlanError::Cycle { from, to } => write!(
                f,
                "edge {from} -> {to}: part of a cycle, in which every job would wait for another; make the edge that \
                 closes it a back-edge with initial tokens"
            ),
            PlanError::NoPeriod { node } => {
                write!(f, "node {node}: no edge leads here and it has no period; write how often it starts")
            }
            PlanError::Mismatch { node, expected, found } => write!(
                f,
                "node {node}: one edge gives it {found} but the others {expected}, and tokens would pile up without \
                 bound; make produce and consume agree"
            ),
            PlanError::Unbalanced { from, to, produced, consumed } => write!(
                f,
                "back-edge {from} -> {to}: {from} writes {produced} but {to} reads {consumed}; make produce and \
                 consume agree"
            ),
            PlanError::Overflow { node } => write!(
                f,
                "node {node}: its rate repeats only after more than {}; choose periods and token counts with common \
                 factors",
                Nanos::LONGEST
            ),
            PlanError::TooFast { node, rate } => {
                write!(f, "node {node}: {rate} is more than one a nanosecond; lower produce or lengthen the period")
            }
            PlanError::NoReplicas => f.write_str("0 replicas of the data objects; a pipeline needs at least 1"),
            PlanError::UnknownAccessor { object, node, nodes } => {
                write!(f, "data object {object}: there is no node {node}; the graph has {nodes}, counted from 0")
            }
            PlanError::NotOneToOne { from, to, produce, consume, threshold } => write!(
                f,
                "edge {from} -> {to}: produce {produce}, consume {consume}, threshold {threshold}; only jobs of equal \
                 index can share a replica, so all three must be 1"
            ),
            PlanError::Unwritten { from, to, initial, delay } => write!(
                f,
                "edge {from} -> {to}: {initial} initial tokens but a delay of {delay}; {to} would read what nobody \
                 wrote, so lower the tokens or lengthen the delay"
            ),
        }
    }
}

impl std::error::Error for PlanError {}
