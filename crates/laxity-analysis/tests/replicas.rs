//! How many replicas let a graph be pipelined without stalls. The tests of `laxity-policy`, which carries graphs out, show
//! that no job waits with as many replicas, and that some wait with fewer.

use laxity_analysis::pgm::{ReplicasError, replicas_needed};
use laxity_model::{DataObject, Edge, Graph, Nanos, Node};

fn chain(nodes: usize, accessors: &[usize]) -> Graph {
    let node = |index| Node::new(format!("n{index}"), (index == 0).then_some(Nanos(10)));
    let edges = (1..nodes).map(|consumer| edge(consumer - 1, consumer)).collect();
    let object = DataObject { name: "image".to_owned(), accessors: accessors.to_vec(), delay: 0 };
    Graph { objects: vec![object], ..Graph::new("g", (0..nodes).map(node).collect(), edges) }
}

fn edge(producer: usize, consumer: usize) -> Edge {
    Edge::new(producer, consumer)
}

/// Three nodes of period 10 that respond within 20 each: an image that the last one reads is in use for 60, one that is
/// only handed on for 40.
#[test]
fn an_object_is_in_use_from_the_release_of_its_first_user_to_the_completion_of_the_last() {
    let responses = [Nanos(20); 3];
    assert_eq!(replicas_needed(&chain(3, &[0, 2]), &responses), Ok(6));
    assert_eq!(replicas_needed(&chain(3, &[0, 1]), &responses), Ok(4));
    assert_eq!(replicas_needed(&chain(3, &[2, 0, 1]), &responses), Ok(6), "in whatever order");
    assert_eq!(replicas_needed(&chain(3, &[0, 2]), &[Nanos(20), Nanos(20), Nanos(21)]), Ok(7));
    assert_eq!(replicas_needed(&chain(1, &[0]), &[Nanos(100)]), Ok(1), "jobs of one node never meet");
}

/// The delay's edge leads back: its writer waits for its reader, which is released first.
#[test]
fn a_delay_is_waited_for_over_its_edge_only() {
    let mut graph = chain(3, &[0, 1]);
    graph.objects.push(DataObject { name: "points".to_owned(), accessors: vec![0, 2], delay: 6 });
    graph.edges.push(Edge { delay: 6, initial: 1, back_edge: true, ..edge(2, 0) });
    assert_eq!(replicas_needed(&graph, &[Nanos(20); 3]), Ok(4));
    graph.edges[2].delay = 5;
    let error = replicas_needed(&graph, &[Nanos(20); 3]).expect_err("a job takes 60 from end to end, and 50 ahead");
    assert!(matches!(error, ReplicasError::EndToEnd(_)), "{error}");
}

#[test]
fn what_has_no_bound_is_refused() {
    let two = [Nanos(1); 2];
    assert_eq!(replicas_needed(&chain(3, &[0]), &two), Err(ReplicasError::Lengths { nodes: 3, bounds: 2 }));
    let mut graph = chain(2, &[0, 1]);
    graph.edges[0].produce = 2;
    assert_eq!(replicas_needed(&graph, &two), Err(ReplicasError::NotOneToOne { edge: 0 }));
    let unknown = ReplicasError::UnknownAccessor { object: "image".to_owned(), node: 2 };
    assert_eq!(replicas_needed(&chain(2, &[0, 2]), &two), Err(unknown));
    assert!(matches!(replicas_needed(&Graph::new("g", vec![], vec![edge(0, 1)]), &[]), Err(ReplicasError::Rates(_))));
}
