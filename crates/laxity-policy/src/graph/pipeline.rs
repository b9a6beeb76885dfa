//! Pipelining graphs whose nodes share data objects. Source: paper 003, section 5.4.1.
//!
//! ```text
//! tokens      A ---> B ---> C        a data object that A writes and B and C read, N replicas of it
//! feedback    A <--- B <--- C        each edge starts with N tokens: job j + N of a node waits for job j of each
//!             A <---------- C        descendant that uses the same replica
//! ```

use std::collections::BTreeSet;

use laxity_model::Graph;

use super::{CompiledGraph, CompiledGraphError, Edge, EdgeKind};

impl CompiledGraph {
    /// The plan of `graph` with `replicas` (N) of each data object and the feedback graph that keeps their users
    /// apart. `accessors` lists for each object the nodes that touch it.
    ///
    /// The feedback graph is a copy of the token graph, with another edge from each node that touches an object to
    /// each descendant that touches it too, all turned round and starting with N tokens. A delay of size M is not
    /// replicated: its ring grows to M + N slots ([`CompiledGraph::slot`]), and its edge starts with M tokens, whatever fewer
    /// the graph says, so that the consumer runs while the ring fills. Its turned edge has N tokens like all others:
    /// the producer's job i overwrites the data of job i - (M + N), read by the consumer's job i - N.
    pub fn pipelined(
        graph: &Graph,
        accessors: &[Vec<usize>],
        replicas: u32,
    ) -> Result<CompiledGraph, CompiledGraphError> {
        if replicas == 0 {
            return Err(CompiledGraphError::NoReplicas);
        }
        let plan = CompiledGraph::new(graph)?;
        let nodes = plan.nodes().len();
        for (object, touching) in accessors.iter().enumerate() {
            if let Some(&node) = touching.iter().find(|&&node| node >= nodes) {
                return Err(CompiledGraphError::UnknownAccessor { object, node, nodes });
            }
        }
        let mut edges = plan.edges().to_vec();
        for edge in &mut edges {
            check(graph, edge)?;
            edge.initial = edge.initial.max(edge.delay);
        }
        let feedback = pairs(&edges, accessors, nodes).into_iter().map(|(ancestor, descendant)| Edge {
            producer: descendant,
            consumer: ancestor,
            produce: 1,
            consume: 1,
            threshold: 1,
            initial: replicas,
            kind: EdgeKind::Feedback,
            delay: 0,
        });
        edges.extend(feedback.collect::<Vec<_>>());
        Ok(CompiledGraph::with(plan.nodes().to_vec(), edges, replicas))
    }
}

/// The pairs of which one must not run N jobs ahead of the other: those joined by an edge, in their order, then those that touch a common
/// object, by object and node. No pair twice.
fn pairs(edges: &[Edge], accessors: &[Vec<usize>], nodes: usize) -> Vec<(usize, usize)> {
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let mut is_there = BTreeSet::new();
    let mut add = |ancestor: usize, descendant: usize| {
        if is_there.insert((ancestor, descendant)) {
            pairs.push((ancestor, descendant));
        }
    };
    for edge in edges {
        add(edge.producer, edge.consumer);
    }
    let mut successors = vec![Vec::new(); nodes];
    for edge in edges.iter().filter(|edge| edge.kind == EdgeKind::Token) {
        successors[edge.producer].push(edge.consumer);
    }
    for touching in accessors {
        for &ancestor in touching {
            let is_reached = descendants(&successors, ancestor);
            for &descendant in touching.iter().filter(|&&other| is_reached[other]) {
                add(ancestor, descendant);
            }
        }
    }
    pairs
}

/// Which nodes a path of token edges leads to from `start`; not to itself.
fn descendants(successors: &[Vec<usize>], start: usize) -> Vec<bool> {
    let mut is_reached = vec![false; successors.len()];
    let mut to_visit = vec![start];
    while let Some(node) = to_visit.pop() {
        for &next in &successors[node] {
            if !std::mem::replace(&mut is_reached[next], true) {
                to_visit.push(next);
            }
        }
    }
    is_reached
}

/// Whether jobs of equal index meet over `edge`, up to its delay.
fn check(graph: &Graph, edge: &Edge) -> Result<(), CompiledGraphError> {
    let (from, to) = (graph.nodes[edge.producer].name.clone(), graph.nodes[edge.consumer].name.clone());
    let &Edge { produce, consume, threshold, initial, delay, .. } = edge;
    if (produce, consume, threshold) != (1, 1, 1) {
        return Err(CompiledGraphError::NotOneToOne { from, to, produce, consume, threshold });
    }
    // A back-edge without delay carries no data: it only keeps its consumer from running ahead.
    let carries_data = edge.kind == EdgeKind::Token || delay > 0;
    if carries_data && initial > delay {
        return Err(CompiledGraphError::Unwritten { from, to, initial, delay });
    }
    Ok(())
}
