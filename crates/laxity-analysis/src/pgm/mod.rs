//! PGM graphs as sets of sporadic tasks: rates, end-to-end bounds and replica counts. Paper 003, sections 5.1, 5.4.1;
//! Goddard's dissertation 1998; Liu & Anderson, RTSS 2010.

mod chains;
mod details;
mod earliest;
mod end_to_end;
mod instances;
mod rates;
mod settle;

pub use chains::{ChainBounds, ChainPath, Hop, chain_bounds, latencies};
pub use earliest::{earliness, unevenness};
pub use end_to_end::{
    EndToEnd, EndToEndError, Responses, completion_delays, end_to_end, replicas, shift, sporadic_source_offset,
};
pub(crate) use instances::longest_path;
pub use rates::{Rate, RateError, rates};
pub(crate) use settle::replicas_needed_within;
pub use settle::{ReplicasError, replicas_needed};

use laxity_model::Graph;

use crate::Rational;
use crate::exact::whole;

/// The tokens of a graph, as the analysis sees them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenGraph {
    /// For each node its period in ticks if it is a source.
    pub sources: Vec<Option<Rational>>,
    /// The edges.
    pub edges: Vec<TokenEdge>,
}

/// An edge: each completed job of the producer adds `produce` tokens; a job of the consumer needs `threshold` tokens
/// and removes `consume` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenEdge {
    /// Index of the node that adds tokens.
    pub producer: usize,
    /// Index of the node that removes them.
    pub consumer: usize,
    /// Tokens added, rho.
    pub produce: u32,
    /// Tokens removed, kappa.
    pub consume: u32,
    /// Tokens needed, phi.
    pub threshold: u32,
    /// Tokens at the start.
    pub initial: u32,
    /// Whether it closes a cycle: rates do not propagate over it.
    pub back_edge: bool,
}

impl From<&Graph> for TokenGraph {
    fn from(graph: &Graph) -> Self {
        let sources = graph.nodes.iter().map(|node| node.period.map(|period| whole(period.0))).collect();
        let edge = |edge: &laxity_model::Edge| TokenEdge {
            producer: edge.producer,
            consumer: edge.consumer,
            produce: edge.produce,
            consume: edge.consume,
            threshold: edge.threshold,
            initial: edge.initial,
            back_edge: edge.back_edge,
        };
        TokenGraph { sources, edges: graph.edges.iter().map(edge).collect() }
    }
}
