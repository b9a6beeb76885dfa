//! How many replicas of its data objects a graph needs so that no job waits for one.

use laxity_model::{Graph, Nanos};

use super::{EndToEndError, RateError, Responses, TokenGraph, rates, replicas};
use crate::Rational;
use crate::exact::whole;

/// Why there is no such number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplicasError {
    /// As many bounds are needed as there are nodes.
    #[error("{bounds} bounds on response times for {nodes} nodes; give one for each")]
    Lengths {
        /// Nodes.
        nodes: usize,
        /// Bounds.
        bounds: usize,
    },
    /// A data object names a node that does not exist.
    #[error("data object {object}: there is no node {node}; nodes are counted from 0")]
    UnknownAccessor {
        /// The object.
        object: String,
        /// The node.
        node: usize,
    },
    /// An edge does not hand over one token at a time, so that no two jobs share a replica by their index.
    #[error("edge {edge}: only jobs of equal index share a replica, so produce, consume and threshold must be 1")]
    NotOneToOne {
        /// Index of the edge.
        edge: usize,
    },
    /// The graph has no rates.
    #[error("{0}")]
    Rates(RateError),
    /// The graph has no bounds from end to end.
    #[error("{0}")]
    EndToEnd(EndToEndError),
    /// It exceeds 32 bits.
    #[error("more than {} replicas; a response time is far beyond the period, so check both", u32::MAX)]
    TooMany,
}

/// What settles [`Replicas::Auto`](laxity_model::Replicas::Auto): the least number N of replicas with which no job waits
/// for one, if each node has a bound on its response time, from its release on.
///
/// N * p is at least what passes between the release of a node and the completion of each node that the feedback graph
/// makes it wait for ([`replicas`]): its consumers, and its descendants that touch a data object that it touches, too (paper 003,
/// section 5.4.1). Periodic sources; tokens one at a time.
///
/// # Errors
/// [`ReplicasError`].
pub fn replicas_needed(graph: &Graph, response_times: &[Nanos]) -> Result<u32, ReplicasError> {
    replicas_needed_within(graph, response_times, None)
}

/// The same if all that a source's job releases is complete `together` after it arrived: [`Responses`].
pub(crate) fn replicas_needed_within(
    graph: &Graph,
    response_times: &[Nanos],
    together: Option<Nanos>,
) -> Result<u32, ReplicasError> {
    let nodes = graph.nodes.len();
    if response_times.len() != nodes {
        return Err(ReplicasError::Lengths { nodes, bounds: response_times.len() });
    }
    let is_one_to_one = |edge: &laxity_model::Edge| (edge.produce, edge.consume, edge.threshold) == (1, 1, 1);
    if let Some(edge) = graph.edges.iter().position(|edge| !is_one_to_one(edge)) {
        return Err(ReplicasError::NotOneToOne { edge });
    }
    let mut tokens = TokenGraph::from(graph);
    for (edge, described) in tokens.edges.iter_mut().zip(&graph.edges) {
        // A delay starts with as many tokens as jobs can be read.
        edge.initial = edge.initial.max(described.delay);
    }
    let rates = rates(&tokens).map_err(ReplicasError::Rates)?;
    // One period, or, in a graph of several parts, the one that asks for most.
    let Some(period) = rates.iter().map(|rate| rate.period()).min() else { return Ok(1) };
    let responses: Vec<Rational> = response_times.iter().map(|response| whole(response.0)).collect();
    // A replica stays in use while a job waits for the data of a source that arrives later.
    let phases: Vec<Rational> = graph.nodes.iter().map(|node| whole(node.phase.0)).collect();
    let together = together.map(|time| whole(time.0));
    let responses = Responses { nodes: &responses, together: together.as_ref() };
    let count = replicas(&tokens, &rates, responses, &phases, &pairs(graph, &tokens)?, &period);
    let count = count.map_err(ReplicasError::EndToEnd)?;
    u32::try_from(count).map_err(|_| ReplicasError::TooMany)
}

/// Which nodes must not run ahead of which others.
fn pairs(graph: &Graph, tokens: &TokenGraph) -> Result<Vec<(usize, usize)>, ReplicasError> {
    let mut pairs: Vec<(usize, usize)> = tokens.edges.iter().map(|edge| (edge.producer, edge.consumer)).collect();
    // A delay is deepened and not replicated: its edge says which node waits.
    for object in graph.objects.iter().filter(|object| object.delay == 0) {
        for &first in &object.accessors {
            if first >= graph.nodes.len() {
                return Err(ReplicasError::UnknownAccessor { object: object.name.clone(), node: first });
            }
            let is_later = descendants(tokens, first);
            let later = object.accessors.iter().filter(|&&node| is_later.get(node).copied().unwrap_or(false));
            pairs.extend(later.map(|&last| (first, last)));
        }
    }
    Ok(pairs)
}

/// The nodes that a path of forward edges leads to.
fn descendants(tokens: &TokenGraph, start: usize) -> Vec<bool> {
    let mut is_reached = vec![false; tokens.sources.len()];
    let mut to_visit = vec![start];
    while let Some(node) = to_visit.pop() {
        for edge in tokens.edges.iter().filter(|edge| edge.producer == node && !edge.back_edge) {
            if !std::mem::replace(&mut is_reached[edge.consumer], true) {
                to_visit.push(edge.consumer);
            }
        }
    }
    is_reached
}
