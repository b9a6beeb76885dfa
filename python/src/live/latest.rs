//! Latest-value edges: registers, apart from edges with tokens.

use std::sync::Arc;

use laxity_graph::{MessageError, Spec};
use laxity_model::LatestEdge;
use pyo3::prelude::*;

use super::claimed::{Claimed, State};
use super::errors::{message_of_register, unknown};
use super::message::Message;

/// A latest-value edge as Python describes it: producer, consumer, and the longest value in bytes.
pub type Described = (String, String, u32);

/// The position of the latest-value edge between the node of `state` and `peer`, which writes it if `inbound`.
pub fn position(py: Python<'_>, state: &State, peer: &str, inbound: bool) -> PyResult<usize> {
    let (graph, own) = (state.graph.spec().graph(), state.node.position());
    let is_it = |edge: &LatestEdge| {
        let (near, far) = if inbound { (edge.consumer, edge.producer) } else { (edge.producer, edge.consumer) };
        near == own && graph.nodes[far].name == peer
    };
    graph.latest.iter().position(is_it).ok_or_else(|| {
        let (node, leads) = (&graph.nodes[own].name, if inbound { "from" } else { "to" });
        unknown(py, format!("node {node}: there is no latest-value edge {leads} {peer}"))
    })
}

/// The value that the job of `state` reads over `edge`; none if no job of its producer was complete.
pub fn read(
    py: Python<'_>,
    claimed: &Arc<Claimed>,
    state: &mut State,
    edge: usize,
) -> PyResult<Option<(Message, u64)>> {
    let Some(mut job) = state.node.job() else { return Ok(None) };
    let found = job.latest(edge).map(|found| found.map(|value| (Message::input(claimed, value.bytes), value.job)));
    found.map_err(|error| failed(py, state.graph.spec(), edge, &error))
}

/// The value that it writes, of which it writes the first `length` bytes, if that is said.
pub fn write(
    py: Python<'_>,
    claimed: &Arc<Claimed>,
    state: &mut State,
    edge: usize,
    length: Option<usize>,
) -> PyResult<Option<Message>> {
    let Some(mut job) = state.node.job() else { return Ok(None) };
    let made = match length {
        // Too long for it: nothing is changed.
        Some(length) => job.truncate_latest(edge, length),
        None => Ok(()),
    };
    let made = made.and_then(|()| job.latest_output(edge).map(|bytes| Message::output(claimed, bytes)));
    let made =
        made.and_then(|message| length.map_or(Ok(()), |length| job.truncate_latest(edge, length)).map(|()| message));
    made.map(Some).map_err(|error| failed(py, state.graph.spec(), edge, &error))
}

fn failed(py: Python<'_>, spec: &Spec, edge: usize, error: &MessageError) -> PyErr {
    let graph = spec.graph();
    let name = |node: usize| graph.nodes[node].name.as_str();
    let ends = graph.latest.get(edge).map(|edge| format!("{} -> {}", name(edge.producer), name(edge.consumer)));
    message_of_register(py, &ends.unwrap_or_else(|| edge.to_string()), error)
}

/// The positions of the ends of `described`, and its longest value.
pub fn read_edges(py: Python<'_>, graph: &str, names: &[&str], described: &[Described]) -> PyResult<Vec<LatestEdge>> {
    let node = |name: &str| {
        let found = names.iter().position(|known| *known == name);
        found.ok_or_else(|| {
            unknown(py, format!("graph {graph}: no node is called {name}; there is {}", names.join(", ")))
        })
    };
    described.iter().map(|(from, to, _)| Ok(LatestEdge { producer: node(from)?, consumer: node(to)? })).collect()
}
