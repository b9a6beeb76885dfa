//! Questions about the shape of a graph, and a drawing of it.
//!
//! Nodes and edges are positions. Back-edges are edges, but they lead nowhere: they make no node an ancestor.

use std::fmt::Write;

use laxity_model::Graph;

/// The shape of a graph.
#[derive(Clone, Debug)]
pub struct Topology<'a> {
    graph: &'a Graph,
    /// For each node the edges that lead to it, and from it.
    inbound: Vec<Vec<usize>>,
    outbound: Vec<Vec<usize>>,
}

impl<'a> Topology<'a> {
    /// Of `graph`, whose edges name nodes that exist.
    pub fn of(graph: &'a Graph) -> Self {
        let mut inbound = vec![Vec::new(); graph.nodes.len()];
        let mut outbound = inbound.clone();
        for (position, edge) in graph.edges.iter().enumerate() {
            inbound[edge.consumer].push(position);
            outbound[edge.producer].push(position);
        }
        Topology { graph, inbound, outbound }
    }

    /// The edges to `node`, back-edges included; as many as its in-degree.
    pub fn inbound(&self, node: usize) -> &[usize] {
        &self.inbound[node]
    }

    /// The edges from `node`, back-edges included; as many as its out-degree.
    pub fn outbound(&self, node: usize) -> &[usize] {
        &self.outbound[node]
    }

    /// The nodes with an edge to `node`, each once, in order.
    pub fn predecessors(&self, node: usize) -> Vec<usize> {
        distinct(self.inbound[node].iter().map(|&edge| self.graph.edges[edge].producer))
    }

    /// The nodes with an edge from `node`, each once, in order.
    pub fn successors(&self, node: usize) -> Vec<usize> {
        distinct(self.outbound[node].iter().map(|&edge| self.graph.edges[edge].consumer))
    }

    /// Whether an edge that is no back-edge leads from `parent` to `child`.
    pub fn is_child(&self, child: usize, parent: usize) -> bool {
        self.children(parent).any(|node| node == child)
    }

    /// Whether a path without back-edges leads from `ancestor` to `descendant`. No node of a sound graph is its own.
    pub fn is_descendant(&self, descendant: usize, ancestor: usize) -> bool {
        let mut is_seen = vec![false; self.graph.nodes.len()];
        let mut to_visit: Vec<usize> = self.children(ancestor).collect();
        while let Some(node) = to_visit.pop() {
            if node == descendant {
                return true;
            }
            if !std::mem::replace(&mut is_seen[node], true) {
                to_visit.extend(self.children(node));
            }
        }
        false
    }

    /// Whether the graph has no cycle, back-edges included.
    pub fn is_dag(&self) -> bool {
        !self.graph.edges.iter().any(|edge| self.is_reachable(edge.consumer, edge.producer))
    }

    /// The least and the greatest weight of a path from a source to `node`, the weights of both ends included; back-edges
    /// do not count. Nothing if the graph is not sound and a cycle leads to `node`.
    ///
    /// With a weight of 1 these are 1 and the number of nodes on the longest path; with response times, bounds on latency.
    pub fn depths(&self, node: usize, weight: impl Fn(usize) -> u64) -> Option<(u64, u64)> {
        let mut found: Vec<Option<(u64, u64)>> = vec![None; self.graph.nodes.len()];
        // Every sweep settles at least one node whose parents are settled, or none is left that can be.
        loop {
            let parents = |node: usize| -> Vec<usize> {
                let edges = self.inbound[node].iter().map(|&edge| &self.graph.edges[edge]);
                edges.filter(|edge| !edge.back_edge).map(|edge| edge.producer).collect()
            };
            let is_next =
                |&node: &usize| found[node].is_none() && parents(node).iter().all(|&node| found[node].is_some());
            let Some(next) = (0..found.len()).find(is_next) else { return found[node] };
            let before = parents(next).into_iter().filter_map(|parent| found[parent]);
            let (least, greatest) =
                before.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1))).unwrap_or_default();
            found[next] = Some((least.saturating_add(weight(next)), greatest.saturating_add(weight(next))));
            if next == node {
                return found[node];
            }
        }
    }

    /// The graph in the language of Graphviz: nodes with their periods, edges with produce, consume and threshold, and
    /// back-edges dashed with their initial tokens. Latest-value edges are dotted.
    pub fn dot(&self) -> String {
        let mut text = format!("digraph {} {{\n    rankdir=LR;\n    node [shape=box];\n", quoted(&self.graph.name));
        for (position, node) in self.graph.nodes.iter().enumerate() {
            let label = match node.period {
                Some(period) => quoted(&format!("{}\n{period}", node.name)),
                None => quoted(&node.name),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "    n{position} [label={label}];");
        }
        for edge in &self.graph.edges {
            let mut label = format!("{}:{}", edge.produce, edge.consume);
            if edge.threshold != edge.consume {
                let _ = write!(label, ":{}", edge.threshold);
            }
            if edge.initial != 0 {
                let _ = write!(label, " +{}", edge.initial);
            }
            let style = if edge.back_edge { ", style=dashed, constraint=false" } else { "" };
            let _ = writeln!(text, "    n{} -> n{} [label=\"{label}\"{style}];", edge.producer, edge.consumer);
        }
        for edge in &self.graph.latest {
            let style = "label=\"latest\", style=dotted";
            let _ = writeln!(text, "    n{} -> n{} [{style}];", edge.producer, edge.consumer);
        }
        text.push_str("}\n");
        text
    }

    fn children(&self, node: usize) -> impl Iterator<Item = usize> {
        let edges = self.outbound[node].iter().map(|&edge| &self.graph.edges[edge]);
        edges.filter(|edge| !edge.back_edge).map(|edge| edge.consumer)
    }

    /// Whether a path leads from `start` to `end`, perhaps an empty one; over back-edges as well.
    fn is_reachable(&self, start: usize, end: usize) -> bool {
        let mut is_seen = vec![false; self.graph.nodes.len()];
        let mut to_visit = vec![start];
        while let Some(node) = to_visit.pop() {
            if node == end {
                return true;
            }
            if !std::mem::replace(&mut is_seen[node], true) {
                to_visit.extend(self.successors(node));
            }
        }
        false
    }
}

fn distinct(nodes: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut nodes: Vec<usize> = nodes.collect();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

/// A quoted string of Graphviz: only quotes and backslashes mean something in it, and a line's end is written `\n`.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}
