//! Bounds on data age and reaction time of a chain whose nodes have response-time bounds.
//!
//! A chain is cut at its latest-value edges into segments, within which tokens carry the data. With
//!
//! ```text
//! p_k        period of node k (its rate's)
//! L_k        job n of node k begins no earlier than (n - 1) * p_k + L_k          a source: its phase
//! C_k        job n of node k completes no later than (n - 1) * p_k + C_k         the end-to-end bound
//! a -> z     a segment: its first and last node
//! D, F       how far a segment's tokens lag: job n of z uses no job of a before the one of nominal time
//!            (n - 1) * p_z - D, and job m of a is used by a job of z of nominal time (m - 1) * p_a + F or earlier
//! ```
//!
//! **Data age** (last-to-last), backwards. A job of z completes at most `C_z - L_a + D` after the oldest job of a that it
//! uses began: for a source, arrived. The first job c of the next segment read the newest complete job of z, so the one
//! after that, a period later, was incomplete when c began: what c read was sampled at most `p_z + C_z - L_a + D` before.
//!
//! **Reaction time** (first-to-first), forwards. An event just after a sample waits a period of the first node for the next.
//! A job of z that uses it completes within `C_z - L_a + F`. A job c of the next segment whose nominal time lies no more
//! than a period after that completion begins later, and uses it. Hence
//!
//! ```text
//! data age      <= sum over segments of (C_z - L_a + D) + sum over latest-value edges of p_producer
//! reaction time <= p_first + sum over segments of (C_z - L_a + F) + sum over latest-value edges of p_consumer
//! ```
//!
//! For a chain of periodic nodes that latest-value edges join these are Davare et al.'s sums of response times and periods
//! (DAC 2007), less the last period for the data age. Within a segment they are the end-to-end bound of `end_to_end.rs`.

use num_integer::Integer;

use super::earliest::{earliest, most};
use super::{EndToEndError, Rate, Responses, TokenEdge, TokenGraph, end_to_end};
use crate::Rational;
use crate::exact::{rational, whole};

/// How a node of a chain gets what the node before it wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// Over the token edge of that index.
    Tokens(usize),
    /// Over a latest-value edge.
    Latest,
}

/// A chain: its nodes, and how each but the first gets its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainPath {
    /// Indices of nodes; the first is a source.
    pub nodes: Vec<usize>,
    /// One fewer.
    pub hops: Vec<Hop>,
}

/// Bounds on a chain, in ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainBounds {
    /// On the data age.
    pub data_age: Rational,
    /// On the reaction time.
    pub reaction_time: Rational,
}

/// Bounds on `chain`. `phases` are the arrivals of the first jobs of sources; other nodes have 0. Sources are periodic and
/// without jitter; what a job waits for, replicas of data objects too, is part of its response time.
///
/// # Errors
/// As [`end_to_end`]; [`EndToEndError::Lengths`] also for a chain without nodes, or with a hop too few.
pub fn chain_bounds<'a>(
    graph: &TokenGraph,
    rates: &[Rate],
    responses: impl Into<Responses<'a>>,
    phases: &[Rational],
    chain: &ChainPath,
) -> Result<ChainBounds, EndToEndError> {
    let latest = end_to_end(graph, rates, responses, phases)?.completions;
    if chain.nodes.len() != chain.hops.len() + 1 || chain.nodes.iter().any(|&node| node >= rates.len()) {
        return Err(EndToEndError::Lengths);
    }
    let periods: Vec<Rational> = rates.iter().map(Rate::period).collect();
    let earliest = earliest(graph, &periods, phases);
    let first = chain.nodes[0];
    let mut bounds = ChainBounds { data_age: whole(0), reaction_time: periods[first].clone() };
    bounds.subtract(&earliest[first]);
    for (pair, hop) in chain.nodes.windows(2).zip(&chain.hops) {
        let (from, to) = (pair[0], pair[1]);
        match hop {
            Hop::Tokens(edge) => {
                let edge = graph.edges.get(*edge).ok_or(EndToEndError::Lengths)?;
                bounds.data_age += oldest_lag(edge, &periods[from]);
                bounds.reaction_time += newest_lag(edge, &periods[from]);
            }
            Hop::Latest => {
                bounds.data_age += &latest[from] + &periods[from];
                bounds.reaction_time += &latest[from] + &periods[to];
                bounds.subtract(&earliest[to]);
            }
        }
    }
    let last = &latest[chain.nodes[chain.nodes.len() - 1]];
    bounds.data_age += last;
    bounds.reaction_time += last;
    Ok(bounds)
}

/// Bounds on the end-to-end latency of each node: from the arrival of the oldest of the sources' jobs whose tokens a job takes,
/// directly or through other nodes, to its completion; in ticks. `None`: no source leads there. Over each path from a source a
/// it is that of a chain of one segment, `C_z - L_a + D`; the greatest of all paths counts. Jobs that take more or fewer
/// tokens than one of each source take older ones than those that release them. Arguments as those of [`chain_bounds`].
///
/// # Errors
/// As [`end_to_end`].
pub fn latencies<'a>(
    graph: &TokenGraph,
    rates: &[Rate],
    responses: impl Into<Responses<'a>>,
    phases: &[Rational],
) -> Result<Vec<Option<Rational>>, EndToEndError> {
    let latest = end_to_end(graph, rates, responses, phases)?.completions;
    let is_source = |node: usize| graph.sources[node].is_some();
    // How long before the nominal time of a job the oldest job that it uses may arrive.
    let mut ages: Vec<Option<Rational>> =
        (0..latest.len()).map(|node| is_source(node).then(|| -phases[node].clone())).collect();
    // Forward edges form no cycle: after so many rounds nothing changes any more.
    for _ in 0..latest.len() {
        for edge in graph.edges.iter().filter(|edge| !edge.back_edge) {
            let Some(before) = &ages[edge.producer] else { continue };
            let age = before + oldest_lag(edge, &rates[edge.producer].period());
            let known = &mut ages[edge.consumer];
            if known.as_ref().is_none_or(|known| *known < age) {
                *known = Some(age);
            }
        }
    }
    Ok(latest.iter().zip(ages).map(|(latest, age)| age.map(|age| latest + age)).collect())
}

impl ChainBounds {
    fn subtract(&mut self, time: &Rational) {
        self.data_age -= time;
        self.reaction_time -= time;
    }
}

/// How much earlier than its own nominal time the oldest job is whose tokens a job takes. The first token that job n of the
/// consumer takes is number `x = (n - 1) * kappa - init + 1`, of job `ceil(x / rho)`.
fn oldest_lag(edge: &TokenEdge, producer_period: &Rational) -> Rational {
    let initial = i64::from(edge.initial);
    producer_period * rational(initial - 1 + most(edge, 1 - initial), edge.produce)
}

/// How much later than its own nominal time the first job is that takes a job's tokens. The first token of job m of the
/// producer is number `x = init + (m - 1) * rho + 1`; job `ceil(x / kappa)` takes it, and
/// `ceil(x / kappa) - 1 = (x - y) / kappa` with the least `y >= 1` that is congruent to `x` modulo gcd(rho, kappa).
fn newest_lag(edge: &TokenEdge, producer_period: &Rational) -> Rational {
    let common = i64::from(edge.produce.gcd(&edge.consume));
    let initial = i64::from(edge.initial);
    let least = (initial).mod_floor(&common) + 1;
    producer_period * rational(initial + 1 - least, edge.produce)
}
