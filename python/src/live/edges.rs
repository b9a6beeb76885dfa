//! Which edge is meant.

use laxity_graph::Spec;
use pyo3::prelude::*;

use super::errors::unknown;
use crate::argument::choice;

choice! {
    /// An edge of a graph: its position, or the names of its producer and consumer.
    pub enum EdgeOfGraph: "an edge: its position, or (producer, consumer)" {
        Position(usize),
        Names((String, String)),
    }
}

choice! {
    /// An edge of a node: its position, or the name of the node at its other end.
    #[derive(Clone)]
    pub enum EdgeOfNode: "an edge: its position, or the name of the node at its other end" {
        Position(usize),
        Name(String),
    }
}

/// To a node, or from it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    In,
    Out,
}

/// The edge at `position`, for people.
pub fn name(spec: &Spec, position: usize) -> String {
    match ends(spec, position) {
        Some((producer, consumer)) => format!("{producer} -> {consumer}"),
        None => position.to_string(),
    }
}

/// The names of the producer and the consumer of the edge at `position`.
pub fn ends(spec: &Spec, position: usize) -> Option<(&str, &str)> {
    let graph = spec.graph();
    let edge = graph.edges.get(position)?;
    Some((&graph.nodes[edge.producer].name, &graph.nodes[edge.consumer].name))
}

/// The position of an edge of the graph.
pub fn of_graph(py: Python<'_>, spec: &Spec, edge: &EdgeOfGraph) -> PyResult<usize> {
    let graph = spec.graph();
    let mut all = 0..graph.edges.len();
    let is_it = |position: usize| match edge {
        EdgeOfGraph::Position(wanted) => position == *wanted,
        EdgeOfGraph::Names((from, to)) => {
            let edge = &graph.edges[position];
            graph.nodes[edge.producer].name == *from && graph.nodes[edge.consumer].name == *to
        }
    };
    let found: Vec<usize> = all.clone().filter(|&position| is_it(position)).collect();
    let what = || match edge {
        EdgeOfGraph::Position(position) => format!("edge {position}"),
        EdgeOfGraph::Names((from, to)) => format!("edge {from} -> {to}"),
    };
    the_only(py, spec, &found, what, &mut all)
}

/// The position of an edge that leads to the node at `node`, or from it.
pub fn of_node(py: Python<'_>, spec: &Spec, node: usize, direction: Direction, edge: &EdgeOfNode) -> PyResult<usize> {
    let graph = spec.graph();
    let ends = |position: usize| {
        let edge = &graph.edges[position];
        match direction {
            Direction::In => (edge.consumer, edge.producer),
            Direction::Out => (edge.producer, edge.consumer),
        }
    };
    let mut ours = (0..graph.edges.len()).filter(|&position| ends(position).0 == node);
    let is_it = |position: usize| match edge {
        EdgeOfNode::Position(wanted) => position == *wanted,
        EdgeOfNode::Name(peer) => graph.nodes[ends(position).1].name == *peer,
    };
    let found: Vec<usize> = ours.clone().filter(|&position| is_it(position)).collect();
    let (node, leads) = (&graph.nodes[node].name, if direction == Direction::In { "from" } else { "to" });
    let what = || match edge {
        EdgeOfNode::Position(position) if direction == Direction::In => format!("edge {position} to node {node}"),
        EdgeOfNode::Position(position) => format!("edge {position} from node {node}"),
        EdgeOfNode::Name(peer) => format!("node {node}: edge {leads} {peer}"),
    };
    the_only(py, spec, &found, what, &mut ours)
}

/// The only position in `found`, where `what` was looked for. If there is none, `all` says what there is.
fn the_only(
    py: Python<'_>,
    spec: &Spec,
    found: &[usize],
    what: impl FnOnce() -> String,
    all: &mut dyn Iterator<Item = usize>,
) -> PyResult<usize> {
    if let [position] = found {
        return Ok(*position);
    }
    let what = what();
    match found {
        [] => {
            let all: Vec<String> = all.map(|edge| format!("{edge} ({})", name(spec, edge))).collect();
            let all = if all.is_empty() { "no edge".to_owned() } else { all.join(", ") };
            Err(unknown(py, format!("{what} does not exist; there is {all}")))
        }
        _ => {
            Err(unknown(py, format!("{what}: there are {}; say which by its position, one of {found:?}", found.len())))
        }
    }
}
