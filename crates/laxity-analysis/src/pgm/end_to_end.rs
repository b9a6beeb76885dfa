//! End-to-end latency bounds of a graph whose nodes have response-time bounds, and how many replicas of a shared data
//! object let it be pipelined without stalls.

use num_integer::Integer;

use super::earliest::earliest;
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

/// For how long jobs may be pending, in ticks.
#[derive(Clone, Copy, Debug)]
pub struct Responses<'a> {
    /// `R_k`: from the arrival of a job of each node to its completion.
    pub nodes: &'a [Rational],
    /// `B`: from the arrival of a source's job to the completion of all jobs that it releases, directly or through others. It
    /// may be known where the response times are not, and be less than their sum.
    pub together: Option<&'a Rational>,
}

impl<'a> From<&'a Vec<Rational>> for Responses<'a> {
    fn from(nodes: &'a Vec<Rational>) -> Self {
        Responses { nodes, together: None }
    }
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
/// If jobs took no time, a job would arrive by the same with `R = 0`. So all of its tokens are there, and it is complete, by
/// `B` after that: the smaller bound holds.
///
/// # Errors
/// [`EndToEndError::SelfThrottles`] if a cycle has positive weight, so that no bound exists.
pub fn end_to_end<'a>(
    graph: &TokenGraph,
    rates: &[Rate],
    responses: impl Into<Responses<'a>>,
    jitters: &[Rational],
) -> Result<EndToEnd, EndToEndError> {
    let Responses { nodes: response_times, together } = responses.into();
    let nodes = graph.sources.len();
    let known = |edge: &TokenEdge| edge.producer < nodes && edge.consumer < nodes;
    if [rates.len(), response_times.len(), jitters.len()] != [nodes; 3] || !graph.edges.iter().all(known) {
        return Err(EndToEndError::Lengths);
    }
    let by_responses = offsets(graph, rates, response_times, jitters);
    let Some(together) = together else {
        let offsets = by_responses?;
        let completions = offsets.iter().zip(response_times).map(|(offset, response)| offset + response).collect();
        return Ok(EndToEnd { offsets, completions });
    };
    let at_once = offsets(graph, rates, &vec![whole(0); nodes], jitters)?;
    let all_at_once: Vec<Rational> = at_once.iter().map(|offset| offset + together).collect();
    let Ok(mut offsets) = by_responses else {
        return Ok(EndToEnd { offsets: all_at_once.clone(), completions: all_at_once });
    };
    let mut completions = Vec::with_capacity(nodes);
    for ((offset, response), latest) in offsets.iter_mut().zip(response_times).zip(all_at_once) {
        completions.push((&*offset + response).min(latest.clone()));
        *offset = offset.clone().min(latest);
    }
    Ok(EndToEnd { offsets, completions })
}

/// `O_k` by response times alone.
pub(super) fn offsets(
    graph: &TokenGraph,
    rates: &[Rate],
    response_times: &[Rational],
    jitters: &[Rational],
) -> Result<Vec<Rational>, EndToEndError> {
    let periods: Vec<Rational> = rates.iter().map(Rate::period).collect();
    let shifts: Vec<Rational> = graph.edges.iter().map(|edge| shift(edge, &periods[edge.producer])).collect();
    let start = |node: usize| if graph.sources[node].is_some() { jitters[node].clone() } else { whole(0) };
    let starts = (0..graph.sources.len()).map(|node| Some(start(node))).collect();
    let edges: Vec<(&TokenEdge, &Rational)> = graph.edges.iter().zip(&shifts).collect();
    let offsets = longest(&edges, response_times, starts).map_err(|node| EndToEndError::SelfThrottles { node })?;
    Ok(offsets.into_iter().flatten().collect())
}

/// The longest paths from where there is a start, over `edges` with what they shift by. `None`: none leads there.
///
/// # Errors
/// A node on, or behind, a cycle of positive weight.
pub(super) fn longest(
    edges: &[(&TokenEdge, &Rational)],
    response_times: &[Rational],
    starts: Vec<Option<Rational>>,
) -> Result<Vec<Option<Rational>>, usize> {
    let mut offsets = starts;
    let mut last = 0;
    for _ in 0..=offsets.len() {
        let mut changed = None;
        for (edge, shift) in edges {
            let Some(from) = &offsets[edge.producer] else { continue };
            let release = from + &response_times[edge.producer] + *shift;
            if offsets[edge.consumer].as_ref().is_none_or(|known| release > *known) {
                offsets[edge.consumer] = Some(release);
                changed = Some(edge.consumer);
            }
        }
        let Some(node) = changed else { return Ok(offsets) };
        last = node;
    }
    Err(last)
}

/// For a chain behind a sporadic source: what the edge adds to `O'`, relative to the release of the source job whose
/// tokens complete the requirement, beyond the producer's response: `p_j * (rho - g) / rho`.
pub fn sporadic_source_offset(edge: &TokenEdge, producer_period: &Rational) -> Rational {
    let g = edge.produce.gcd(&edge.consume);
    producer_period * rational(edge.produce - g, edge.produce)
}

/// The least number of replicas N with which, for each pair (u, v) of `pairs`, job j + N of u arrives no earlier than job
/// j of v is complete, at unit rates of one `period`; at least 1. Other arguments as those of [`end_to_end`], `phases` those
/// of sources. Paper 003 uses the depth of the graph as a rule of thumb.
///
/// A node's arrivals never come closer than a period: counted from the n-th period, u arrives no earlier with each job. The
/// last token of job j of v comes over a path from u, or over one that does not pass it. With `P` the longest path
/// from u to v, `O` the latest release of v over paths without u, and `L` the earliest arrival of u,
///
/// ```text
/// N * p >= R_v + max(P, O - L)
/// ```
///
/// Hence `O_v + R_v - O_u` does not suffice: where u is released early, and v by another path late. With `P` and `O` of jobs
/// that take no time, `N * p >= B + max(P, O - L)` suffices as well.
///
/// # Errors
/// As [`end_to_end`].
pub fn replicas<'a>(
    graph: &TokenGraph,
    rates: &[Rate],
    responses: impl Into<Responses<'a>>,
    phases: &[Rational],
    pairs: &[(usize, usize)],
    period: &Rational,
) -> Result<u64, EndToEndError> {
    let responses = responses.into();
    end_to_end(graph, rates, responses, phases)?;
    let Responses { nodes: response_times, together } = responses;
    let by_responses = releases(graph, rates, response_times, phases, pairs).map(|releases| {
        let completion = |(release, pair): (&Rational, &(usize, usize))| release + &response_times[pair.1];
        releases.iter().zip(pairs).map(completion).collect::<Vec<_>>()
    });
    let completions = match together {
        None => by_responses?,
        Some(together) => {
            let at_once = releases(graph, rates, &vec![whole(0); response_times.len()], phases, pairs)?;
            let mut completions: Vec<Rational> = at_once.iter().map(|release| release + together).collect();
            for (completion, other) in completions.iter_mut().zip(by_responses.into_iter().flatten()) {
                *completion = other.min(completion.clone());
            }
            completions
        }
    };
    Ok(completions.iter().map(|time| ceil_ticks(&(time / period))).fold(1, u64::max))
}

/// Of each pair (u, v): `max(P, O - L)`, by when v is released once u has arrived.
fn releases(
    graph: &TokenGraph,
    rates: &[Rate],
    response_times: &[Rational],
    phases: &[Rational],
    pairs: &[(usize, usize)],
) -> Result<Vec<Rational>, EndToEndError> {
    let nodes = graph.sources.len();
    let periods: Vec<Rational> = rates.iter().map(Rate::period).collect();
    let shifts: Vec<Rational> = graph.edges.iter().map(|edge| shift(edge, &periods[edge.producer])).collect();
    let all: Vec<(&TokenEdge, &Rational)> = graph.edges.iter().zip(&shifts).collect();
    let earliest = earliest(graph, &periods, phases);
    let self_throttles = |node| EndToEndError::SelfThrottles { node };
    let start = |node: usize| if graph.sources[node].is_some() { phases[node].clone() } else { whole(0) };
    let mut found = vec![whole(0); pairs.len()];
    let mut firsts: Vec<usize> = pairs.iter().map(|pair| pair.0).collect();
    firsts.sort_unstable();
    firsts.dedup();
    for first in firsts {
        let from_first = (0..nodes).map(|node| (node == first).then(|| whole(0))).collect();
        let through = longest(&all, response_times, from_first).map_err(self_throttles)?;
        let others: Vec<(&TokenEdge, &Rational)> =
            all.iter().filter(|(edge, _)| edge.producer != first).copied().collect();
        let around = longest(&others, response_times, (0..nodes).map(|node| Some(start(node))).collect())
            .map_err(self_throttles)?;
        let arrival = earliest[first].clone().max(whole(0));
        for (found, pair) in found.iter_mut().zip(pairs).filter(|(_, pair)| pair.0 == first) {
            let around = around[pair.1].as_ref().map(|latest| latest - &arrival);
            *found = through[pair.1].clone().max(around).unwrap_or_else(|| whole(0));
        }
    }
    Ok(found)
}

/// Least and greatest time between consecutive completions of a periodic node of execution time `wcet` whose
/// tardiness is at most `tardiness`: `[e, 2p - e + x]`. Paper 003, section 5.5.3.
pub fn completion_delays(wcet: &Rational, period: &Rational, tardiness: &Rational) -> (Rational, Rational) {
    (wcet.clone(), period * whole(2) - wcet + tardiness)
}
