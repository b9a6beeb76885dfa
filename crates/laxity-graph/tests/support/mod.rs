//! Graphs in a directory of their own, and short ways to write them.
#![allow(dead_code, reason = "each test file uses some of it")]

pub mod random;

use laxity_graph::{Channel, Registry, Spec};
use laxity_model::{Edge, Graph, Nanos, Node};

/// Graphs in a directory of shared memory that goes with it.
pub type Place = laxity_testing::TestRegistry<Registry>;

/// Nodes without producers have a period of 10 ms.
pub fn graph(nodes: &[&str], edges: Vec<Edge>) -> Graph {
    let node = |(index, name): (usize, &&str)| {
        Node::new(
            *name,
            (!edges.iter().any(|edge| edge.consumer == index && !edge.back_edge)).then_some(Nanos::from_millis(10)),
        )
    };
    let nodes = nodes.iter().enumerate().map(node).collect();
    Graph::new("g", nodes, edges)
}

/// One token at a time.
pub fn edge(producer: usize, consumer: usize) -> Edge {
    Edge::new(producer, consumer)
}

/// One token at a time, against the flow, with `initial` at the start.
pub fn back(producer: usize, consumer: usize, initial: u32) -> Edge {
    Edge { initial, back_edge: true, ..edge(producer, consumer) }
}

pub fn spec(nodes: &[&str], edges: Vec<Edge>) -> Spec {
    Spec::new(graph(nodes, edges)).expect("a graph that can be")
}

/// All edges are rings of `capacity` messages of `message` bytes.
pub fn ringed(nodes: &[&str], edges: Vec<Edge>, message: u32, capacity: u32) -> Spec {
    let channels = vec![Channel::Ring { message, capacity }; edges.len()];
    Spec::with_channels(graph(nodes, edges), channels).expect("a graph that can be")
}
