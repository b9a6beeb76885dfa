//! When the jobs of a node have their tokens at the earliest.

use num_integer::Integer;

use super::{TokenEdge, TokenGraph};
use crate::Rational;
use crate::exact::{rational, whole};

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
