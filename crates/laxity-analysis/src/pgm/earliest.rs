//! When the jobs of a node have their tokens at the earliest, and how long before they arrive that may be.
//!
//! A job whose tokens are there before it arrives, a period after its predecessor, may be released at once. With
//!
//! ```text
//! L_k        job n of node k has its tokens no earlier than (n - 1) * p_k + L_k
//! O_k        it arrives no later than (n - 1) * p_k + O_k                         the offset of `end_to_end.rs`
//! ```
//!
//! the jobs that have their tokens before some time t and arrive after t - d are those of an interval of the length
//! `d + O_k - L_k`, at most `ceil((d + O_k - L_k) / p_k)`. In a graph whose cycles delay themselves offsets have no bound. There
//! `R_j` after the arrival of one job of a source, and no earlier than the arrival of another, tokens come; and over an edge
//! from a node that may itself be `E_j` early the consumer may be early by `E_j + R_j + p_j * (rho - g) / rho`, `g` being
//! gcd(rho, kappa), since a job's arrival is some job's last token and periods from there on. Jobs of initial tokens may be
//! early by `-L_k`.

use num_integer::Integer;

use super::end_to_end::{longest, offsets, shift};
use super::{Rate, TokenEdge, TokenGraph};
use crate::Rational;
use crate::exact::{rational, whole};

/// How long before its arrival a job of each node may be released at most, in ticks, if jobs respond within `response_times`;
/// 0 for sources. `None`: no bound is known, as one that comes before has no response time, or a cycle delays itself.
/// `phases` as of [`end_to_end`](super::end_to_end).
pub fn earliness(
    graph: &TokenGraph,
    rates: &[Rate],
    response_times: &[Option<Rational>],
    phases: &[Rational],
) -> Vec<Option<Rational>> {
    let nodes = graph.sources.len();
    let periods: Vec<Rational> = rates.iter().map(Rate::period).collect();
    let earliest = earliest(graph, &periods, phases);
    let is_bounded = bounded(graph, response_times);
    let shifts: Vec<Rational> = graph.edges.iter().map(|edge| shift(edge, &periods[edge.producer])).collect();
    let edges = graph.edges.iter().zip(&shifts).filter(|(edge, _)| is_bounded[edge.consumer]);
    let edges: Vec<(&TokenEdge, &Rational)> = edges.collect();
    let responses: Vec<Rational> = response_times.iter().map(|time| time.clone().unwrap_or_else(|| whole(0))).collect();
    let start = |node: usize| if graph.sources[node].is_some() { phases[node].clone() } else { whole(0) };
    let Ok(offsets) = longest(&edges, &responses, (0..nodes).map(|node| Some(start(node))).collect()) else {
        return by_producers(graph, &periods, response_times, &earliest);
    };
    let of = |node: usize| match (&offsets[node], graph.sources[node].is_some()) {
        (_, true) => Some(whole(0)),
        (Some(latest), false) if is_bounded[node] => Some((latest - &earliest[node]).max(whole(0))),
        _ => None,
    };
    (0..nodes).map(of).collect()
}

/// How long before its arrival a job of each node may be released if jobs take no time: `O_k - L_k`, of rates that differ and
/// of sources that arrive at different times; 0 for sources. `None` where a cycle delays itself even so. Where all that a source's
/// job sets off is complete together, `B` after it arrives ([`Responses`](super::Responses)), a job is early by `B` more at most.
pub fn unevenness(graph: &TokenGraph, rates: &[Rate], phases: &[Rational]) -> Option<Vec<Rational>> {
    let periods: Vec<Rational> = rates.iter().map(Rate::period).collect();
    let latest = offsets(graph, rates, &vec![whole(0); graph.sources.len()], phases).ok()?;
    let earliest = earliest(graph, &periods, phases);
    Some(latest.iter().zip(&earliest).map(|(latest, earliest)| (latest - earliest).max(whole(0))).collect())
}

/// Whether each node has only producers, and these again, whose response times are known.
fn bounded(graph: &TokenGraph, response_times: &[Option<Rational>]) -> Vec<bool> {
    let mut is_bounded = vec![true; graph.sources.len()];
    for _ in 0..graph.sources.len() {
        for edge in &graph.edges {
            is_bounded[edge.consumer] &= is_bounded[edge.producer] && response_times[edge.producer].is_some();
        }
    }
    is_bounded
}

/// The same without bounds on when jobs arrive: from how early and how late each producer may be. Where a cycle leads back
/// to another node than a source there is none.
fn by_producers(
    graph: &TokenGraph,
    periods: &[Rational],
    response_times: &[Option<Rational>],
    earliest: &[Rational],
) -> Vec<Option<Rational>> {
    let nodes = graph.sources.len();
    let mut early: Vec<Option<Rational>> =
        graph.sources.iter().map(|source| source.as_ref().map(|_| whole(0))).collect();
    for _ in 0..nodes {
        for node in (0..nodes).filter(|&node| graph.sources[node].is_none()) {
            let over = |edge: &TokenEdge| {
                let common = edge.produce.gcd(&edge.consume);
                let uneven = &periods[edge.producer] * rational(edge.produce - common, edge.produce);
                let response = response_times[edge.producer].as_ref().filter(|_| !edge.back_edge)?;
                Some(early[edge.producer].as_ref()? + response + uneven)
            };
            let edges = graph.edges.iter().filter(|edge| edge.consumer == node);
            let all: Option<Vec<Rational>> = edges.map(over).collect();
            early[node] = all.and_then(|all| all.into_iter().chain([whole(0), -&earliest[node]]).max());
        }
    }
    early
}

/// `L_k`. A source's job begins no earlier than it arrives. Another node's job n needs `v = ceil(x / rho)` complete jobs of a
/// producer, `x = phi + (n - 1) * kappa - init`, so that `v - 1 = (x - y) / rho` with `y` at most [`most`]; and
/// `kappa * p_j / rho = p_k`. A job for which initial tokens suffice needs none.
pub(super) fn earliest(graph: &TokenGraph, periods: &[Rational], phases: &[Rational]) -> Vec<Rational> {
    let nodes = periods.len();
    let mut earliest: Vec<Option<Rational>> =
        (0..nodes).map(|node| graph.sources[node].is_some().then(|| phases[node].clone())).collect();
    let forward = || graph.edges.iter().filter(|edge| !edge.back_edge);
    // Forward edges form no cycle: after so many rounds nothing changes any more.
    for _ in 0..nodes {
        for edge in forward() {
            let Some(from) = &earliest[edge.producer] else { continue };
            let ahead = i64::from(edge.threshold) - i64::from(edge.initial);
            let begin = from + &periods[edge.producer] * rational(ahead - most(edge, ahead), edge.produce);
            let begin = begin.min(initial_jobs(edge) * &periods[edge.consumer]);
            let known = &mut earliest[edge.consumer];
            if known.as_ref().is_none_or(|known| *known < begin) {
                *known = Some(begin);
            }
        }
    }
    earliest.into_iter().map(|time| time.unwrap_or_else(|| whole(0))).collect()
}

/// `-n` for the last job n, counted from 0, that the initial tokens release; far above all else if they release none.
fn initial_jobs(edge: &TokenEdge) -> Rational {
    match edge.initial.checked_sub(edge.threshold) {
        Some(spare) => -whole(spare / edge.consume),
        None => whole(u64::MAX),
    }
}

/// The greatest `y` from 1 to rho that is congruent to `x` modulo gcd(rho, kappa).
pub(super) fn most(edge: &TokenEdge, x: i64) -> i64 {
    let common = i64::from(edge.produce.gcd(&edge.consume));
    i64::from(edge.produce) - (-x).mod_floor(&common)
}
