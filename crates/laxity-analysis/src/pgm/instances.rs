//! Instances of a graph: the n-th jobs of all of its nodes, where they come from the n-th job of one source.

use super::{TokenEdge, TokenGraph};

/// The longest path through one instance, by the `weights` of nodes. `None` where tokens do not say which jobs are one instance's:
/// each node must have its jobs from those of one source, over edges that hand over one token at a time and hold none initially.
/// Tokens that other edges hold initially come from earlier instances.
pub(crate) fn longest_path(graph: &TokenGraph, weights: &[u64]) -> Option<u64> {
    let is_one_to_one = |edge: &TokenEdge| (edge.produce, edge.consume, edge.threshold) == (1, 1, 1);
    if graph.sources.iter().flatten().count() != 1 || !graph.edges.iter().all(is_one_to_one) {
        return None;
    }
    let start = |(source, &weight): (&Option<_>, &u64)| source.as_ref().map(|_| weight);
    let mut longest: Vec<Option<u64>> = graph.sources.iter().zip(weights).map(start).collect();
    // Each but the last round adds an edge to some path.
    for _ in 0..=longest.len() {
        let mut is_changed = false;
        for edge in graph.edges.iter().filter(|edge| edge.initial == 0) {
            let Some(before) = longest[edge.producer] else { continue };
            let length = before.saturating_add(weights[edge.consumer]);
            if longest[edge.consumer].is_none_or(|known| known < length) {
                longest[edge.consumer] = Some(length);
                is_changed = true;
            }
        }
        if !is_changed {
            return longest.into_iter().collect::<Option<Vec<u64>>>()?.into_iter().max();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::whole;

    /// Node 0 is the source; edges of producer, consumer and initial tokens.
    fn graph(nodes: usize, edges: &[(usize, usize, u32)]) -> TokenGraph {
        let edge = |&(producer, consumer, initial): &(usize, usize, u32)| TokenEdge {
            producer,
            consumer,
            produce: 1,
            consume: 1,
            threshold: 1,
            initial,
            back_edge: producer >= consumer,
        };
        let sources = (0..nodes).map(|node| (node == 0).then(|| whole(10))).collect();
        TokenGraph { sources, edges: edges.iter().map(edge).collect() }
    }

    #[test]
    fn of_two_branches_the_longer_counts_and_of_one_all_of_it() {
        let weights = [1, 20, 300, 4_000];
        assert_eq!(longest_path(&graph(4, &[(0, 1, 0), (0, 2, 0), (1, 3, 0), (2, 3, 0)]), &weights), Some(4_301));
        assert_eq!(longest_path(&graph(4, &[(0, 1, 0), (1, 2, 0), (2, 3, 0)]), &weights), Some(4_321));
        assert_eq!(longest_path(&graph(4, &[(0, 3, 0), (0, 1, 0), (1, 2, 0)]), &weights), Some(4_001));
    }

    #[test]
    fn edges_with_initial_tokens_lead_into_later_instances() {
        let weights = [1, 20, 300];
        let joined = graph(3, &[(0, 1, 0), (0, 2, 0), (1, 2, 1), (2, 2, 1)]);
        assert_eq!(longest_path(&joined, &weights), Some(301));
        // Its jobs are of no instance: the first one has no source's job before it.
        assert_eq!(longest_path(&graph(3, &[(0, 1, 0), (1, 2, 1)]), &weights), None);
    }

    #[test]
    fn there_are_no_instances_with_other_rates_or_sources() {
        let mut rated = graph(2, &[(0, 1, 0)]);
        rated.edges[0].produce = 2;
        assert_eq!(longest_path(&rated, &[1, 1]), None);
        let mut fused = graph(3, &[(0, 2, 0), (1, 2, 0)]);
        fused.sources[1] = Some(whole(10));
        assert_eq!(longest_path(&fused, &[1, 1, 1]), None);
        // A circle without a token never begins.
        assert_eq!(longest_path(&graph(3, &[(0, 1, 0), (1, 2, 0), (2, 1, 0)]), &[1, 1, 1]), None);
    }
}
