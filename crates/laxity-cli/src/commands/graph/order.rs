//! The nodes of a graph from its sources to its sinks.

use laxity_model::Graph;

/// The nodes of `graph`, producers before consumers, and how many nodes the longest path to each has, itself included.
/// Back-edges do not count; the others form no cycle.
pub fn downstream(graph: &Graph) -> (Vec<usize>, Vec<usize>) {
    let nodes = graph.nodes.len();
    let mut missing = vec![0; nodes];
    let mut consumers = vec![Vec::new(); nodes];
    for edge in graph.edges.iter().filter(|edge| !edge.back_edge) {
        missing[edge.consumer] += 1;
        consumers[edge.producer].push(edge.consumer);
    }
    let mut order: Vec<usize> = (0..nodes).filter(|&node| missing[node] == 0).collect();
    let mut depth = vec![1; nodes];
    let mut done = 0;
    while let Some(&node) = order.get(done) {
        done += 1;
        for &consumer in &consumers[node] {
            depth[consumer] = depth[consumer].max(depth[node] + 1);
            missing[consumer] -= 1;
            if missing[consumer] == 0 {
                order.push(consumer);
            }
        }
    }
    assert_eq!(order.len(), nodes, "a graph that can be carried out has no cycle but over back-edges");
    (order, depth)
}

#[cfg(test)]
mod tests {
    use super::super::run::notation;
    use super::*;

    #[test]
    fn producers_come_first_and_the_longest_path_counts() {
        let graph = notation::graph("C:D,A:C,A:D,D:A@1,B:D").expect("a graph");
        let name = |node: usize| graph.nodes[node].name.as_str();
        let (order, depth) = downstream(&graph);
        let order: Vec<&str> = order.into_iter().map(name).collect();
        assert_eq!(order, ["A", "B", "C", "D"]);
        let depths: Vec<_> = depth.iter().enumerate().map(|(node, &depth)| (name(node), depth)).collect();
        assert_eq!(depths, [("C", 2), ("D", 3), ("A", 1), ("B", 1)]);
    }
}
