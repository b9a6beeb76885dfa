//! Rates of PGM graph nodes: how many jobs in what time.
//!
//! Node k runs `x_k` jobs in every `y_k`: with producers i over edges (rho, kappa),
//!
//! ```text
//! y_k = lcm over i of ( kappa * y_i / gcd(rho * x_i, kappa) )
//! x_k = y_k * rho * x_i / (kappa * y_i)                        the same for every i, or tokens pile up
//! ```
//!
//! Source: paper 003, section 5.1 (after Goddard). Example: A (1 in 4) --4/7--> B (4 in 28) --5/3--> C (20 in 84).

use std::fmt;

use crate::{Graph, Nanos, Node, Step};

/// A node runs `jobs` jobs in every window of length `window`. Not reduced: the window is that of the pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Jobs in a window, `x`.
    pub jobs: u64,
    /// Length of the window, `y`.
    pub window: Nanos,
}

/// The rates of a graph cannot be computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RateError {
    /// Edges that are not back-edges form a cycle.
    Cycle {
        /// One of them, an index into [`Graph::edges`].
        edge: usize,
    },
    /// A source has no period.
    NoPeriod {
        /// Index of the source.
        node: usize,
    },
    /// Two edges into a node give it different rates.
    Mismatch {
        /// The later of the two, an index into [`Graph::edges`].
        edge: usize,
        /// The consumer's rate by the edges before.
        expected: Rate,
        /// Its rate by this edge.
        found: Rate,
    },
    /// A back-edge carries more tokens than its consumer takes, or fewer.
    Unbalanced {
        /// Index of the back-edge in [`Graph::edges`].
        edge: usize,
        /// Tokens written.
        produced: TokenRate,
        /// Tokens read.
        consumed: TokenRate,
    },
    /// A window is longer than [`Nanos::LONGEST`], or there are more jobs in it than can be counted.
    Overflow {
        /// Index of the node.
        node: usize,
    },
}

/// Tokens in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenRate {
    /// Tokens in a window.
    pub tokens: u128,
    /// Length of the window.
    pub window: Nanos,
}

impl Graph {
    /// The rate of each node, in the order of [`Graph::nodes`].
    ///
    /// Node and edge indices must be in range and token counts at least 1, as in a validated workload.
    pub fn rates(&self) -> Result<Vec<Rate>, RateError> {
        rates(self)
    }

    /// Sum of the nodes' CPU utilizations, `x * wcet / y`; 0 where there are no rates.
    pub(crate) fn utilization_f64(&self) -> f64 {
        let rates = self.rates().unwrap_or_default();
        let share = |(node, rate): (&Node, Rate)| {
            let wcet: Nanos = node.body.iter().map(Step::cpu_wcet).sum();
            wcet.0 as f64 * rate.jobs as f64 / rate.window.0 as f64
        };
        self.nodes.iter().zip(rates).map(share).sum()
    }
}

/// See [`Graph::rates`].
pub(crate) fn rates(graph: &Graph) -> Result<Vec<Rate>, RateError> {
    let order = topological_order(graph)?;
    let mut inbound = vec![Vec::new(); graph.nodes.len()];
    for (index, edge) in graph.edges.iter().enumerate().filter(|(_, edge)| !edge.back_edge) {
        inbound[edge.consumer].push(index);
    }
    let mut rates: Vec<Option<Rate>> = vec![None; graph.nodes.len()];
    for node in order {
        rates[node] = Some(rate_of(graph, node, &inbound[node], &rates)?);
    }
    let rates: Vec<Rate> = rates.into_iter().map(|rate| rate.expect("the order holds every node")).collect();
    for (index, edge) in graph.edges.iter().enumerate().filter(|(_, edge)| edge.back_edge) {
        let tokens = |rate: Rate, count: u32| TokenRate {
            tokens: u128::from(rate.jobs) * u128::from(count),
            window: rate.window,
        };
        let produced = tokens(rates[edge.producer], edge.produce);
        let consumed = tokens(rates[edge.consumer], edge.consume);
        // Below 2^64 * 2^32 tokens and 2^59 ns: the products may need 155 bits, so reduce before comparing.
        if produced.reduced() != consumed.reduced() {
            return Err(RateError::Unbalanced { edge: index, produced, consumed });
        }
    }
    Ok(rates)
}

/// The nodes, producers before consumers; back-edges do not count. Kahn's algorithm.
fn topological_order(graph: &Graph) -> Result<Vec<usize>, RateError> {
    let mut consumers = vec![Vec::new(); graph.nodes.len()];
    let mut missing = vec![0usize; graph.nodes.len()];
    for edge in graph.edges.iter().filter(|edge| !edge.back_edge) {
        consumers[edge.producer].push(edge.consumer);
        missing[edge.consumer] += 1;
    }
    let mut order: Vec<usize> = (0..graph.nodes.len()).filter(|&node| missing[node] == 0).collect();
    let mut done = 0;
    while done < order.len() {
        for &consumer in &consumers[order[done]] {
            missing[consumer] -= 1;
            if missing[consumer] == 0 {
                order.push(consumer);
            }
        }
        done += 1;
    }
    if order.len() == graph.nodes.len() {
        return Ok(order);
    }
    Err(RateError::Cycle { edge: edge_of_a_cycle(graph, &missing) })
}

/// Follows producers backwards among the nodes that were never ready: each has one that was not ready either, so the
/// walk comes back to a node that it has seen, by an edge of a cycle.
fn edge_of_a_cycle(graph: &Graph, missing: &[usize]) -> usize {
    let mut node = missing.iter().position(|&count| count > 0).expect("some node was never ready");
    let mut is_seen = vec![false; graph.nodes.len()];
    loop {
        is_seen[node] = true;
        let into = |edge: &&crate::Edge| !edge.back_edge && edge.consumer == node && missing[edge.producer] > 0;
        let edge = graph.edges.iter().position(|edge| into(&edge)).expect("a waiting node has a waiting producer");
        node = graph.edges[edge].producer;
        if is_seen[node] {
            return edge;
        }
    }
}

/// The rate of `node` by its `inbound` edges, or as a source.
fn rate_of(graph: &Graph, node: usize, inbound: &[usize], rates: &[Option<Rate>]) -> Result<Rate, RateError> {
    let overflow = || RateError::Overflow { node };
    let mut found: Option<Rate> = None;
    for &index in inbound {
        let edge = &graph.edges[index];
        let producer = rates[edge.producer].expect("producers come first");
        let (rho, kappa) = (u128::from(edge.produce), u128::from(edge.consume));
        let tokens = rho * u128::from(producer.jobs);
        let common = gcd(tokens, kappa);
        let by_edge = Rate {
            jobs: u64::try_from(tokens / common).map_err(|_| overflow())?,
            window: nanos(u128::from(producer.window.0) * (kappa / common)).ok_or_else(overflow)?,
        };
        found = Some(match found {
            None => by_edge,
            Some(other) => join(other, by_edge).ok_or_else(overflow)?.ok_or(RateError::Mismatch {
                edge: index,
                expected: other,
                found: by_edge,
            })?,
        });
    }
    let of_source = graph.nodes[node].period.map(|period| Rate { jobs: 1, window: period });
    found.or(of_source).ok_or(RateError::NoPeriod { node })
}

/// The rate over the least common window; the inner `None` if the two differ, the outer if it cannot be written.
fn join(one: Rate, other: Rate) -> Option<Option<Rate>> {
    let (a, b) = (u128::from(one.window.0), u128::from(other.window.0));
    // Windows are below 2^59 and jobs below 2^64: the cross products fit.
    if u128::from(one.jobs) * b != u128::from(other.jobs) * a {
        return Some(None);
    }
    let window = a / gcd(a, b) * b;
    let jobs = u64::try_from(window / a * u128::from(one.jobs)).ok()?;
    Some(Some(Rate { jobs, window: nanos(window)? }))
}

fn nanos(value: u128) -> Option<Nanos> {
    u64::try_from(value).ok().map(Nanos).filter(|&span| span <= Nanos::LONGEST)
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl TokenRate {
    fn reduced(self) -> (u128, u128) {
        let window = u128::from(self.window.0);
        let common = gcd(self.tokens, window).max(1);
        (self.tokens / common, window / common)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} in {}", self.jobs, if self.jobs == 1 { "job" } else { "jobs" }, self.window)
    }
}

impl fmt::Display for TokenRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} in {}", self.tokens, if self.tokens == 1 { "token" } else { "tokens" }, self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edge, Node};

    fn graph(periods: &[Option<u64>], edges: &[(usize, usize, u32, u32)]) -> Graph {
        let node =
            |(index, period): (usize, &Option<u64>)| Node::new(format!("n{index}"), period.map(Nanos::from_millis));
        let edge = |&(producer, consumer, produce, consume): &_| Edge::rated(producer, consumer, produce, consume);
        Graph::new("g", periods.iter().enumerate().map(node).collect(), edges.iter().map(edge).collect())
    }

    fn rate(jobs: u64, millis: u64) -> Rate {
        Rate { jobs, window: Nanos::from_millis(millis) }
    }

    /// The example of paper 003: A (1 in 4) --4/7--> B (4 in 28) --5/3--> C (20 in 84).
    #[test]
    fn rates_follow_the_tokens_of_the_papers_example() {
        let graph = graph(&[Some(4), None, None], &[(0, 1, 4, 7), (1, 2, 5, 3)]);
        assert_eq!(graph.rates(), Ok(vec![rate(1, 4), rate(4, 28), rate(20, 84)]));
    }

    #[test]
    fn two_producers_must_agree_and_then_share_their_least_common_window() {
        let agreeing = graph(&[Some(4), Some(6), None], &[(0, 2, 1, 3), (1, 2, 1, 2)]);
        assert_eq!(agreeing.rates(), Ok(vec![rate(1, 4), rate(1, 6), rate(1, 12)]));
        let disagreeing = graph(&[Some(4), Some(6), None], &[(0, 2, 1, 1), (1, 2, 1, 1)]);
        let error = RateError::Mismatch { edge: 1, expected: rate(1, 4), found: rate(1, 6) };
        assert_eq!(disagreeing.rates(), Err(error));
    }

    #[test]
    fn a_cycle_is_found_by_one_of_its_edges_and_a_back_edge_is_none() {
        let mut looped = graph(&[Some(4), None, None], &[(0, 1, 1, 1), (1, 2, 1, 1), (2, 1, 1, 1)]);
        let Err(RateError::Cycle { edge }) = looped.rates() else { panic!("a cycle") };
        assert!([1, 2].contains(&edge), "edge {edge} is not part of it");
        looped.edges[2].back_edge = true;
        assert_eq!(looped.rates(), Ok(vec![rate(1, 4); 3]));
        looped.edges[2].consume = 2;
        let tokens = |tokens| TokenRate { tokens, window: Nanos::from_millis(4) };
        let error = RateError::Unbalanced { edge: 2, produced: tokens(1), consumed: tokens(2) };
        assert_eq!(looped.rates(), Err(error));
    }

    #[test]
    fn windows_beyond_all_bounds_are_an_error_and_not_an_overflow() {
        let edges: Vec<_> = (0..40).map(|node| (node, node + 1, 1, u32::MAX)).collect();
        let periods: Vec<_> = (0..41).map(|node| (node == 0).then_some(4)).collect();
        // 4 ms * (2^32 - 1) are half a year; the next step leads beyond ten.
        assert_eq!(graph(&periods, &edges).rates(), Err(RateError::Overflow { node: 2 }));
        assert_eq!(graph(&[None], &[]).rates(), Err(RateError::NoPeriod { node: 0 }));
    }
}
