//! Execution rates of the nodes of a graph, and from them the periods of the tasks that stand for them.

use num_bigint::BigInt;
use num_integer::Integer;

use super::{TokenEdge, TokenGraph};
use crate::Rational;
use crate::exact::whole;

/// A node executes `jobs` jobs in any interval of `time`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Number of jobs, chi.
    pub jobs: BigInt,
    /// Length of the interval in ticks, v.
    pub time: Rational,
}

/// Why a graph has no rates.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// An edge names a node that does not exist, or tokens of which there are none.
    #[error("edge {edge}: it needs two known nodes, produce and consume of at least 1, threshold >= consume")]
    Edge {
        /// Index of the edge.
        edge: usize,
    },
    /// Forward edges form a cycle, or a node has neither a producer nor a period.
    #[error("node {node}: no rate follows; give it a period, or mark the edge that closes its cycle")]
    NoRate {
        /// Index of the node.
        node: usize,
    },
    /// A source's period is not positive.
    #[error("node {node}: its period must be positive")]
    Period {
        /// Index of the node.
        node: usize,
    },
    /// Two producers ask for different rates: tokens would pile up without bound.
    #[error("node {node}: its producers ask for {} and {} jobs per tick; tokens would pile up without bound",
        .asked[0], .asked[1])]
    Inconsistent {
        /// Index of the node.
        node: usize,
        /// Jobs per tick that one producer asks for, and another, or the node's own period.
        asked: Box<[Rational; 2]>,
    },
}

impl Rate {
    /// The period of the node's task, v / chi, in ticks; also its relative deadline.
    pub fn period(&self) -> Rational {
        &self.time / whole(self.jobs.clone())
    }
}

/// The rate of every node. A source executes once a period; another node k, over its forward edges from j,
///
/// ```text
/// v_k = lcm_j( kappa * v_j / gcd(rho * chi_j, kappa) )         chi_k = v_k * rho * chi_j / (kappa * v_j)
/// ```
///
/// # Errors
/// [`RateError`] names the edge or node.
pub fn rates(graph: &TokenGraph) -> Result<Vec<Rate>, RateError> {
    let nodes = graph.sources.len();
    for (index, edge) in graph.edges.iter().enumerate() {
        let known = edge.producer < nodes && edge.consumer < nodes;
        if !known || edge.produce == 0 || edge.consume == 0 || edge.threshold < edge.consume {
            return Err(RateError::Edge { edge: index });
        }
    }
    let mut found: Vec<Option<Rate>> = vec![None; nodes];
    // Each sweep resolves at least one node whose producers are all resolved, or ends the search.
    loop {
        let ready =
            |node: &usize| found[*node].is_none() && producers(graph, *node).all(|e| found[e.producer].is_some());
        let Some(node) = (0..nodes).find(ready) else { break };
        found[node] = Some(rate(graph, node, &found)?);
    }
    found.into_iter().enumerate().map(|(node, rate)| rate.ok_or(RateError::NoRate { node })).collect()
}

fn producers(graph: &TokenGraph, node: usize) -> impl Iterator<Item = &TokenEdge> {
    graph.edges.iter().filter(move |edge| edge.consumer == node && !edge.back_edge)
}

fn rate(graph: &TokenGraph, node: usize, found: &[Option<Rate>]) -> Result<Rate, RateError> {
    let own = graph.sources[node].as_ref();
    if own.is_some_and(|period| *period <= whole(0)) {
        return Err(RateError::Period { node });
    }
    let mut time: Option<Rational> = own.cloned();
    let mut asked: Option<Rational> = own.map(|period| whole(1) / period);
    for edge in producers(graph, node) {
        let Some(producer) = &found[edge.producer] else { return Err(RateError::NoRate { node }) };
        let (produce, consume) = (BigInt::from(edge.produce), BigInt::from(edge.consume));
        let tokens = &produce * &producer.jobs;
        let interval = &producer.time * whole(consume.clone()) / whole(tokens.gcd(&consume));
        time = Some(time.map_or(interval.clone(), |time| least_common_multiple(&time, &interval)));
        let rate = whole(tokens) / (whole(consume) * &producer.time);
        match &asked {
            Some(other) if *other != rate => {
                return Err(RateError::Inconsistent { node, asked: Box::new([rate, other.clone()]) });
            }
            _ => asked = Some(rate),
        }
    }
    let (Some(time), Some(rate)) = (time, asked) else { return Err(RateError::NoRate { node }) };
    let jobs = (rate * &time).to_integer();
    Ok(Rate { jobs, time })
}

/// For fractions in lowest terms: the lcm of the numerators over the gcd of the denominators.
fn least_common_multiple(a: &Rational, b: &Rational) -> Rational {
    Rational::new(a.numer().lcm(b.numer()), a.denom().gcd(b.denom()))
}
