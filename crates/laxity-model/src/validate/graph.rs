//! Rules of PGM graphs.

use super::own_code::own_code;
use super::task::{feasibility, placement, server};
use super::{Names, body, object, positive_span, span};
use crate::error::{ErrorKind, FieldPath, Findings};
use crate::rates::{RateError, rates};
use crate::{Edge, Graph, Nanos, Replicas, Workload};

pub(super) fn graph(graph: &Graph, workload: &Workload, at: &FieldPath, findings: &mut Findings) {
    if graph.nodes.is_empty() {
        findings.report(at.key("node"), ErrorKind::BadValue, "the graph has no node; add a `[[graph.node]]`");
    }
    let edges_before = findings.list.len();
    for (index, it) in graph.edges.iter().enumerate() {
        edge(it, graph, &at.key("edge").index(index), findings);
    }
    let edges_are_sound = findings.list.len() == edges_before;
    latest(graph, at, findings);
    let is_source = graph.sources();
    let consumers = edges_are_sound.then(|| consumers(graph));
    let implicit_deadlines = consumers.as_ref().and_then(|consumers| structure(graph, consumers, at, findings));
    let mut names = Names::new("node");
    for (index, node) in graph.nodes.iter().enumerate() {
        let at = at.key("node").index(index);
        names.add(&node.name, &at, findings);
        timing(graph, index, is_source[index], &at, findings);
        placement(node.priority, node.cluster, workload, &at, findings);
        own_code(node.run.as_ref(), &node.body, &at, findings);
        let demand = body::body(&node.body, node.cluster, workload, &at, findings);
        if let Some(deadline) = node.deadline {
            positive_span("deadline", deadline, &at, findings);
        }
        // Without a deadline of its own a node is due a period after its release. Where the graph's mistakes hide the
        // period, nothing is said of it.
        let implicit = implicit_deadlines.as_ref().map_or(Nanos::LONGEST, |deadlines| deadlines[index]);
        feasibility(&demand, node.deadline.unwrap_or(implicit), &at, findings);
        server(node.server, implicit, &at, findings);
    }
    object::objects(graph, consumers.as_deref(), at, findings);
}

/// The consumers of each node, by forward edges.
fn consumers(graph: &Graph) -> Vec<Vec<usize>> {
    let mut consumers = vec![Vec::new(); graph.nodes.len()];
    for edge in graph.edges.iter().filter(|edge| !edge.back_edge) {
        consumers[edge.producer].push(edge.consumer);
    }
    consumers
}

fn timing(graph: &Graph, index: usize, is_source: bool, at: &FieldPath, findings: &mut Findings) {
    let node = &graph.nodes[index];
    match node.period {
        Some(period) => positive_span("period", period, at, findings),
        None if is_source => {
            let message = "`period` is missing; no edge leads here, so write how often it starts, as in \
                           `period = \"10 ms\"`";
            findings.report(at.key("period"), ErrorKind::Contradiction, message);
        }
        None => {}
    }
    span("phase", node.phase, at, findings);
    if is_source {
        return;
    }
    if let Some(period) = node.period {
        let message = format!("`period` {period} contradicts the tokens that start this node; remove it");
        findings.report(at.key("period"), ErrorKind::Contradiction, message);
    }
    if node.phase != Nanos::ZERO {
        let message = format!("`phase` {} is for sources; tokens start this node, so remove it", node.phase);
        findings.report(at.key("phase"), ErrorKind::Contradiction, message);
    }
}

fn edge(edge: &Edge, graph: &Graph, at: &FieldPath, findings: &mut Findings) {
    for (key, index) in [("from", edge.producer), ("to", edge.consumer)] {
        if index >= graph.nodes.len() {
            let message = format!("there is no node {index}: the graph has {}, counted from 0", graph.nodes.len());
            findings.report(at.key(key), ErrorKind::UnknownName, message);
        }
    }
    for (key, tokens) in [("produce", edge.produce), ("consume", edge.consume)] {
        if tokens == 0 {
            findings.report(at.key(key), ErrorKind::BadValue, format!("`{key}` is 0; write at least 1 token"));
        }
    }
    if edge.threshold < edge.consume {
        let message = format!(
            "threshold {} is below consume {}; a job cannot remove tokens that are not there, so raise the threshold",
            edge.threshold, edge.consume
        );
        findings.report(at.key("threshold"), ErrorKind::Contradiction, message);
    }
    if edge.back_edge && edge.initial < edge.threshold {
        let message = format!(
            "a back-edge with {} initial tokens and threshold {} makes its consumer wait for its own descendant; write \
             `initial = {}` or more",
            edge.initial, edge.threshold, edge.threshold
        );
        findings.report(at.key("initial"), ErrorKind::Contradiction, message);
    }
    if graph.replicas != Replicas::None {
        sharing_replicas(edge, at, findings);
    }
}

/// Jobs of equal index share a replica of the graph's data, and so meet over each edge, up to its delay.
fn sharing_replicas(edge: &Edge, at: &FieldPath, findings: &mut Findings) {
    for (key, tokens) in [("produce", edge.produce), ("consume", edge.consume), ("threshold", edge.threshold)] {
        if tokens > 1 {
            let message = format!(
                "`{key}` is {tokens}; jobs of equal index share a replica, so write 1, or leave `replicas` of the graph out"
            );
            findings.report(at.key(key), ErrorKind::Contradiction, message);
        }
    }
    // A back-edge without delay carries no data.
    let carries_data = !edge.back_edge || edge.delay > 0;
    if carries_data && edge.initial > edge.delay {
        let message = format!(
            "{} initial tokens and a delay of {}: with `replicas` the consumer would read what no job wrote; lower `initial`, or \
             lengthen `delay`",
            edge.initial, edge.delay
        );
        findings.report(at.key("initial"), ErrorKind::Contradiction, message);
    }
}

/// Latest-value edges by themselves.
fn latest(graph: &Graph, at: &FieldPath, findings: &mut Findings) {
    let nodes = graph.nodes.len();
    for (index, edge) in graph.latest.iter().enumerate() {
        let at = at.key("latest").index(index);
        let mut report = |key: Option<&'static str>, kind, message: String| {
            findings.report(key.map_or(at.clone(), |key| at.key(key)), kind, message);
        };
        for (key, node) in [("from", edge.producer), ("to", edge.consumer)] {
            if node >= nodes {
                let message = format!("there is no node {node}: the graph has {nodes}, counted from 0");
                report(Some(key), ErrorKind::UnknownName, message);
            }
        }
        let (Some(from), Some(to)) = (graph.nodes.get(edge.producer), graph.nodes.get(edge.consumer)) else { continue };
        if edge.producer == edge.consumer {
            let message =
                format!("leads from \"{}\" to itself; a node has its own last value, so remove it", from.name);
            report(None, ErrorKind::Contradiction, message);
        } else if graph.latest[..index].contains(edge) {
            let message = format!("is a second one from \"{}\" to \"{}\"; remove one of them", from.name, to.name);
            report(None, ErrorKind::Duplicate, message);
        }
    }
}

/// What concerns more than one edge: cycles, back-edges that close none, rates. Returns the periods of the nodes,
/// rounded down, where they can be computed.
fn structure(graph: &Graph, consumers: &[Vec<usize>], at: &FieldPath, findings: &mut Findings) -> Option<Vec<Nanos>> {
    let name = |node: usize| graph.nodes[node].name.as_str();
    for (index, edge) in graph.edges.iter().enumerate().filter(|(_, edge)| edge.back_edge) {
        if !reached_from(consumers, edge.consumer)[edge.producer] {
            let message = format!(
                "the back-edge from \"{}\" to \"{}\" closes no cycle; remove `back_edge = true`",
                name(edge.producer),
                name(edge.consumer)
            );
            findings.report(at.key("edge").index(index).key("back_edge"), ErrorKind::Contradiction, message);
        }
    }
    let error = match rates(graph) {
        Ok(rates) => return Some(rates.iter().map(|rate| Nanos(rate.window.0 / rate.jobs)).collect()),
        Err(error) => error,
    };
    let (at, message) = match error {
        RateError::Cycle { edge } => (
            at.key("edge").index(edge),
            format!(
                "the edge from \"{}\" to \"{}\" is part of a cycle, in which every job would wait for another; mark the \
                 edge that closes it with `back_edge = true` and give it initial tokens",
                name(graph.edges[edge].producer),
                name(graph.edges[edge].consumer)
            ),
        ),
        // Reported where the period is missing.
        RateError::NoPeriod { .. } => return None,
        RateError::Mismatch { edge, expected, found } => (
            at.key("edge").index(edge),
            format!(
                "node \"{}\" would run {found} by this edge but {expected} by its other edges, and tokens would pile up \
                 without bound; make produce and consume agree",
                name(graph.edges[edge].consumer)
            ),
        ),
        RateError::Unbalanced { edge, produced, consumed } => (
            at.key("edge").index(edge),
            format!(
                "\"{}\" produces {produced} but \"{}\" consumes {consumed}, and tokens would pile up or run out; make \
                 produce and consume agree",
                name(graph.edges[edge].producer),
                name(graph.edges[edge].consumer)
            ),
        ),
        RateError::Overflow { node } => (
            at.key("node").index(node),
            format!(
                "the rate of \"{}\" repeats only after more than {}; choose periods and token counts with common factors",
                name(node),
                Nanos::LONGEST
            ),
        ),
    };
    findings.report(at, ErrorKind::Contradiction, message);
    None
}

/// Whether a path of forward edges leads from `start` to each node; to itself always.
pub(super) fn reached_from(consumers: &[Vec<usize>], start: usize) -> Vec<bool> {
    let mut is_reached = vec![false; consumers.len()];
    let mut to_visit = vec![start];
    is_reached[start] = true;
    while let Some(node) = to_visit.pop() {
        for &consumer in &consumers[node] {
            if !std::mem::replace(&mut is_reached[consumer], true) {
                to_visit.push(consumer);
            }
        }
    }
    is_reached
}
