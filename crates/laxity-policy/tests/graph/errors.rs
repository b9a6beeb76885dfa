//! Errors about graphs have names and both numbers.

use laxity_model::Edge;
use laxity_policy::graph::CompiledGraph;

use crate::driver::{back, graph, rated, unit};

#[track_caller]
fn assert_refused(periods: &[Option<u64>], edges: Vec<Edge>, words: &[&str]) {
    let error = CompiledGraph::new(&graph(periods, edges)).expect_err("it cannot be carried out").to_string();
    for word in words {
        assert!(error.contains(word), "{word:?} is missing in {error:?}");
    }
}

#[test]
fn rates_that_disagree_are_named_both() {
    let edges = vec![unit(0, 2), unit(1, 2)];
    assert_refused(&[Some(4), Some(6), None], edges, &["node c", "1 job in 6 ns", "1 job in 4 ns"]);
    let unbalanced = vec![unit(0, 1), Edge { back_edge: true, initial: 2, ..rated(1, 0, 1, 2) }];
    assert_refused(&[Some(4), None], unbalanced, &["b -> a", "1 token in 4 ns", "2 tokens in 4 ns"]);
}

#[test]
fn graphs_that_cannot_start_are_refused() {
    assert_refused(&[Some(4), None, None], vec![unit(0, 1), unit(1, 2), unit(2, 1)], &["cycle"]);
    assert_refused(&[Some(4), None], vec![unit(0, 1), back(1, 0, 0)], &["b -> a", "0 initial", "threshold 1"]);
    assert_refused(&[None], vec![], &["node a", "no period"]);
}

#[test]
fn edges_that_make_no_sense_are_refused() {
    assert_refused(&[Some(4), None], vec![unit(0, 7)], &["edge 0", "no node 7"]);
    assert_refused(&[Some(4), None], vec![rated(0, 1, 0, 1)], &["a -> b", "produce 0"]);
    assert_refused(&[Some(4), None], vec![Edge { threshold: 1, ..rated(0, 1, 1, 2) }], &["threshold 1", "consume 2"]);
}

#[test]
fn rates_beyond_all_bounds_are_refused() {
    assert_refused(&[Some(4), None], vec![rated(0, 1, 5, 1)], &["node b", "5 jobs in 4 ns"]);
    let edges = (0..40).map(|node| rated(node, node + 1, 1, u32::MAX)).collect();
    let periods: Vec<_> = (0..41).map(|node| (node == 0).then_some(4_000_000)).collect();
    assert_refused(&periods, edges, &["node c", "315360000 s"]);
}

#[test]
fn what_cannot_be_pipelined_is_refused() {
    let refuse = |edge: Edge, objects: &[Vec<usize>], replicas| {
        let graph = graph(&[Some(4), None], vec![edge]);
        CompiledGraph::pipelined(&graph, objects, replicas).expect_err("it cannot be pipelined").to_string()
    };
    assert!(refuse(unit(0, 1), &[], 0).contains("0 replicas"));
    assert!(refuse(unit(0, 1), &[vec![0], vec![1, 2]], 2).contains("data object 1: there is no node 2"));
    assert!(refuse(rated(0, 1, 2, 2), &[], 2).contains("edge a -> b: produce 2, consume 2"));
    let unwritten = refuse(Edge { initial: 3, delay: 2, ..unit(0, 1) }, &[], 2);
    assert!(unwritten.contains("3 initial tokens but a delay of 2"), "{unwritten}");
}
