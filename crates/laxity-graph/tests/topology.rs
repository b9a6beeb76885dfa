//! The shape of a graph.

mod support;

use laxity_graph::Topology;
use laxity_model::{Edge, Graph, LatestEdge};
use support::{back, edge, graph};

/// ```text
/// a --> b --> d --> e         and back from e to a
/// +---> c ----^     ^
/// +-----------------+
/// ```
fn example() -> Graph {
    graph(
        &["a", "b", "c", "d", "e"],
        vec![edge(0, 1), edge(0, 2), edge(1, 3), edge(2, 3), edge(3, 4), edge(0, 4), back(4, 0, 3)],
    )
}

#[test]
fn neighbours_are_those_that_an_edge_joins() {
    let graph = example();
    let shape = Topology::of(&graph);
    assert_eq!((shape.successors(0), shape.predecessors(4)), (vec![1, 2, 4], vec![0, 3]));
    assert_eq!((shape.outbound(0), shape.inbound(0)), (&[0, 1, 5][..], &[6][..]));
    assert_eq!(shape.predecessors(0), [4], "a back-edge is an edge");
}

#[test]
fn descent_follows_paths_and_not_back_edges() {
    let graph = example();
    let shape = Topology::of(&graph);
    assert!(shape.is_child(4, 0) && shape.is_child(3, 1) && !shape.is_child(3, 0));
    assert!(shape.is_descendant(3, 0) && !shape.is_descendant(0, 3));
    assert!(!shape.is_child(0, 4) && !shape.is_descendant(0, 4) && !shape.is_descendant(0, 0));
}

#[test]
fn a_back_edge_makes_a_cycle_only_where_it_closes_one() {
    let mut graph = example();
    assert!(!Topology::of(&graph).is_dag());
    graph.edges.pop();
    assert!(Topology::of(&graph).is_dag());
    graph.edges.push(Edge { back_edge: true, ..edge(1, 2) });
    assert!(Topology::of(&graph).is_dag(), "b -> c closes none");
    graph.edges.push(back(3, 3, 1));
    assert!(!Topology::of(&graph).is_dag(), "d waits for itself");
}

#[test]
fn depths_are_the_weights_of_the_lightest_and_heaviest_paths() {
    let graph = example();
    let shape = Topology::of(&graph);
    assert_eq!(shape.depths(4, |_| 1), Some((2, 4)), "a e, and a b d e");
    assert_eq!(shape.depths(0, |_| 1), Some((1, 1)));
    assert_eq!(shape.depths(3, |node| [1, 10, 100, 1000, 0][node]), Some((1011, 1101)));
}

#[test]
fn dot_draws_rates_thresholds_and_back_edges_and_quotes_names() {
    let edges = vec![Edge { produce: 2, consume: 3, threshold: 5, ..edge(0, 1) }, back(1, 0, 4)];
    let latest = vec![LatestEdge { producer: 1, consumer: 0 }];
    let graph = Graph { latest, ..graph(&["say \"a\\b\"", "b"], edges) };
    let expected = r#"digraph "g" {
    rankdir=LR;
    node [shape=box];
    n0 [label="say \"a\\b\"\n10 ms"];
    n1 [label="b"];
    n0 -> n1 [label="2:3:5"];
    n1 -> n0 [label="1:1 +4", style=dashed, constraint=false];
    n1 -> n0 [label="latest", style=dotted];
}
"#;
    assert_eq!(Topology::of(&graph).dot(), expected);
}
