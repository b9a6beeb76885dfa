//! Blocking under the k-FMLP: k replicas, a FIFO queue each, a request joins the shortest. Paper 000, appendix A.

use super::machine_covering::cover;
use crate::Rational;
use crate::exact::{rational, whole};

/// Which bound on the blocking of a request is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocking {
    /// Equation 1: the others' critical sections, divided evenly: `sum(l_q) / k`.
    Aware,
    /// Equation 2: `l_max * (n - 1) / k` for n tasks with critical sections.
    Oblivious,
    /// Equation 2 with whole requests: `l_max * floor((n - 1) / k)`.
    ObliviousInteger,
    /// Equation 3: the worst assignment of the others to queues, in which the shortest queue is longest. Where the
    /// search is too large, an upper bound on it that is at most equation 1.
    Exact,
}

/// A blocking bound in ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockingBound {
    /// The bound.
    pub bound: Rational,
    /// Whether it is the value of its equation; otherwise the search was cut short and it is an upper bound on it.
    pub is_exact: bool,
}

/// Bounds on how long each task's request for one of `k` replicas is blocked, given the critical-section lengths of
/// all tasks (0: it never requests). Each job requests once; a length includes everything done while holding.
///
/// Equation 3 is printed with clashing indices; read here as: maximise b such that every queue's length is at least b,
/// over all assignments of the other tasks to the k queues. `nodes` bounds the search for each task. Panics if `k` is
/// 0.
pub fn blocking(lengths: &[u64], k: u32, kind: Blocking, nodes: u64) -> Vec<BlockingBound> {
    assert!(k > 0, "a resource has at least one replica");
    let requesters = lengths.iter().filter(|&&length| length > 0).count() as u64;
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let total: u128 = lengths.iter().map(|&length| u128::from(length)).sum();
    let mut known: Vec<(u64, BlockingBound)> = Vec::new();
    let mut bound = |index: usize| {
        let own = lengths[index];
        if own == 0 {
            return BlockingBound { bound: whole(0), is_exact: true };
        }
        if let Some((_, bound)) = known.iter().find(|(length, _)| *length == own) {
            // Tasks with sections of equal length face the same others.
            return bound.clone();
        }
        let (bound, is_exact) = match kind {
            Blocking::Aware => (rational(total - u128::from(own), k), true),
            Blocking::Oblivious => (rational(u128::from(longest) * u128::from(requesters - 1), k), true),
            Blocking::ObliviousInteger => {
                (whole(u128::from(longest) * u128::from((requesters - 1) / u64::from(k))), true)
            }
            Blocking::Exact => {
                let others = lengths.iter().enumerate().filter(|&(other, &l)| other != index && l > 0);
                let (value, is_exact) = cover(others.map(|(_, &length)| length).collect(), k as usize, nodes);
                (whole(value), is_exact)
            }
        };
        let bound = BlockingBound { bound, is_exact };
        known.push((own, bound.clone()));
        bound
    };
    (0..lengths.len()).map(&mut bound).collect()
}
