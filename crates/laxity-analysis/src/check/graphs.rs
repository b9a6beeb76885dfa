//! End-to-end bounds of graphs whose nodes have response-time bounds.

use laxity_model::{Graph, Nanos, Workload};

use super::settle::needed;
use super::{GraphReport, NodeBound, TaskReport};
use crate::exact::{ceil_ticks, whole};
use crate::pgm::{Responses, TokenGraph, end_to_end, latencies, rates};

/// A report for each graph; `tasks` are the workload's tasks, then the nodes of each graph, and `together` as in
/// [`Solution`](super::coupled::Solution).
pub(super) fn graphs(workload: &Workload, tasks: &[TaskReport], together: &[Option<u64>]) -> Vec<GraphReport> {
    let mut first = workload.tasks.len();
    let mut reports = Vec::with_capacity(workload.graphs.len());
    for graph in &workload.graphs {
        let tasks = &tasks[first..first + graph.nodes.len()];
        let together = together.get(first).copied().flatten().map(Nanos);
        let found = bounds(graph, first, tasks, together);
        let end_to_end = found.as_ref().ok().and_then(|(_, latency)| *latency);
        let nodes = found.map(|(nodes, _)| nodes);
        let replicas = needed(graph, tasks, together);
        reports.push(GraphReport { name: graph.name.clone(), nodes, end_to_end, replicas });
        first += graph.nodes.len();
    }
    reports
}

/// Those of the nodes, and the greatest latency of a sink.
fn bounds(
    graph: &Graph,
    first: usize,
    tasks: &[TaskReport],
    together: Option<Nanos>,
) -> Result<(Vec<NodeBound>, Option<Nanos>), String> {
    let mut responses = Vec::with_capacity(tasks.len());
    for task in tasks {
        let Some(bound) = task.response_time else {
            return Err(format!("node \"{}\" has no response-time bound", task.name));
        };
        responses.push(whole(bound.time.0));
    }
    let together = together.map(|time| whole(time.0));
    let responses = Responses { nodes: &responses, together: together.as_ref() };
    let tokens = TokenGraph::from(graph);
    let rates = rates(&tokens).map_err(|error| error.to_string())?;
    // Sources arrive exactly on time, and the bounds count from the first of them to arrive.
    let sources = graph.nodes.iter().zip(graph.sources()).filter(|(_, is_source)| *is_source);
    let origin = sources.map(|(node, _)| node.phase).min().unwrap_or(Nanos::ZERO);
    let jitters: Vec<_> = graph.nodes.iter().map(|node| whole(node.phase.0.saturating_sub(origin.0))).collect();
    let found = end_to_end(&tokens, &rates, responses, &jitters).map_err(|error| error.to_string())?;
    let is_sink = graph.sinks();
    let phases: Vec<_> = graph.nodes.iter().map(|node| whole(node.phase.0)).collect();
    let latencies = latencies(&tokens, &rates, responses, &phases).map_err(|error| error.to_string())?;
    let absolute = end_to_end(&tokens, &rates, responses, &phases).map_err(|error| error.to_string())?;
    let node = |index: usize| {
        let pending = &absolute.completions[index] - &absolute.offsets[index];
        let latency = latencies[index].as_ref();
        NodeBound {
            task: first + index,
            offset: Nanos(ceil_ticks(&found.offsets[index])),
            completion: Nanos(ceil_ticks(&found.completions[index])),
            released_after_source: latency.map(|latency| Nanos(ceil_ticks(&(latency - &pending)))),
            complete_after_source: latency.map(|latency| Nanos(ceil_ticks(latency))),
            is_sink: is_sink[index],
        }
    };
    let of_sinks =
        latencies.iter().zip(&is_sink).filter(|(_, is_sink)| **is_sink).filter_map(|(latency, _)| latency.as_ref());
    let latency = of_sinks.map(ceil_ticks).max().map(Nanos);
    Ok(((0..tasks.len()).map(node).collect(), latency))
}
