//! End-to-end latency bounds of a graph whose nodes have response-time bounds, and how many replicas of a shared data
//! object let it be pipelined without stalls.

use num_integer::Integer;

use super::{Rate, TokenEdge, TokenGraph};
use crate::Rational;
use crate::exact::{ceil_ticks, rational, whole};

/// Bounds relative to the first release of the sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndToEnd {
    /// `O_k`: job n of node k is released by `(n - 1) * p_k + O_k`, in ticks.
    pub offsets: Vec<Rational>,
    /// `O_k + R_k`: by when, relative to `(n - 1) * p_k`, it completes, in ticks.
    pub completions: Vec<Rational>,
}

/// Why there is no bound.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EndToEndError {
    /// A cycle delays itself: the throughput falls below the sources' rate.
    #[error("node {node}: a cycle delays itself, so no bound exists; add initial tokens to its back-edge")]
    SelfThrottles {
        /// Index of a node on, or behind, the cycle.
        node: usize,
    },
    /// A rate, response time and jitter are needed for each node that an edge names.
    #[error("a rate, a response time and a jitter are needed for every node")]
    Lengths,
}

/// How much later than its `(n - 1) * p` an edge may release the consumer's job, beyond the producer's completion:
/// `p_j * (a - a mod g) / rho` with `a = phi - init - 1`, `g = gcd(rho, kappa)`. Negative with many initial tokens.
pub fn shift(edge: &TokenEdge, producer_period: &Rational) -> Rational {
    let a = i64::from(edge.threshold) - i64::from(edge.initial) - 1;
    let g = i64::from(edge.produce.gcd(&edge.consume));
    producer_period * rational(a - a.mod_floor(&g), edge.produce)
}

/// `O_k = max(0, max over edges j -> k of O_j + R_j + shift)`, sources no earlier than their jitter, by longest paths
/// over all edges, back-edges included. Periodic sources; with unit rates and no initial tokens, and so no shift,
/// sporadic ones too. For unit rates the completion of a sink is the longest path of response times.
///
/// # Errors
/// [`EndToEndError::SelfThrottles`] if a cycle has positive weight, so that no bound exists.
pub fn end_to_end(
    graph: &TokenGraph,
    rates: &[Rate],
    response_times: &[Rational],
    jitters: &[Rational],
) -> Result<EndToEnd, EndToEndError> {
    let nodes = graph.sources.len();
    let known = |edge: &TokenEdge| edge.producer < nodes && edge.consumer < nodes;
    if [rates.len(), response_times.len(), jitters.len()] != [nodes; 3] || !graph.edges.iter().all(known) {
        return Err(EndToEndError::Lengths);
    }
    let periods: Vec<Rational> = rates.iter().map(Rate::period).collect();
    let shifts: Vec<Rational> = graph.edges.iter().map(|edge| shift(edge, &periods[edge.producer])).collect();
    let start = |node: usize| if graph.sources[node].is_some() { jitters[node].clone() } else { whole(0) };
    let mut offsets: Vec<Rational> = (0..nodes).map(start).collect();
    let mut last = 0;
    for _ in 0..=nodes {
        let mut changed = None;
        for (edge, shift) in graph.edges.iter().zip(&shifts) {
            let release = &offsets[edge.producer] + &response_times[edge.producer] + shift;
            if release > offsets[edge.consumer] {
                offsets[edge.consumer] = release;
                changed = Some(edge.consumer);
            }
        }
        let Some(node) = changed else {
            let completions = offsets.iter().zip(response_times).map(|(offset, response)| offset + response).collect();
            return Ok(EndToEnd { offsets, completions });
        };
        last = node;
    }
    Err(EndToEndError::SelfThrottles { node: last })
}

/// For a chain behind a sporadic source: what the edge adds to `O'`, relative to the release of the source job whose
/// tokens complete the requirement, beyond the producer's response: `p_j * (rho - g) / rho`.
pub fn sporadic_source_offset(edge: &TokenEdge, producer_period: &Rational) -> Rational {
    let g = edge.produce.gcd(&edge.consume);
    producer_period * rational(edge.produce - g, edge.produce)
}

/// The least number of replicas N of a data object with which no access ever waits: `N * p >= O_v + R_v - O_u` for
/// every node u that touches it and every descendant v that touches it too (u itself included), at unit rates of one
/// `period`. At least 1. Paper 003 uses the depth of the graph as a rule of thumb. Panics if a pair names no node.
pub fn replicas(bounds: &EndToEnd, accessors: &[(usize, usize)], period: &Rational) -> u64 {
    let needed =
        |&(first, last): &(usize, usize)| ceil_ticks(&((&bounds.completions[last] - &bounds.offsets[first]) / period));
    accessors.iter().map(needed).max().unwrap_or(1).max(1)
}

/// Least and greatest time between consecutive completions of a periodic node of execution time `wcet` whose
/// tardiness is at most `tardiness`: `[e, 2p - e + x]`. Paper 003, section 5.5.3.
pub fn completion_delays(wcet: &Rational, period: &Rational, tardiness: &Rational) -> (Rational, Rational) {
    (wcet.clone(), period * whole(2) - wcet + tardiness)
}
