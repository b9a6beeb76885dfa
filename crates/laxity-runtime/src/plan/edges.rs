//! The graphs of a workload as they are shared, and what their edges carry.

use laxity_graph::{Channel, Spec};
use laxity_model::{Edge, Graph, LatestEdge, Workload};
use laxity_plan::GraphPlan;
use laxity_policy::graph::Releasing;
use laxity_sys::own_code;

use super::{LiveGraph, TaskPlan};
use crate::jobs::Messages;

/// A ring has room for so many jobs of its producer, so that it is not what bounds how far a producer is ahead.
const JOBS_AHEAD: u32 = 4;

/// The longest value of a latest-value edge, in bytes: the file does not say how long they are.
const LATEST_MAX: u32 = 64 << 10;

/// The edges of a node that carry messages, by their positions, as its code sees them: behind the edges with tokens come the
/// latest-value edges, which have positions of their own.
#[derive(Clone, Debug, Default)]
pub(crate) struct CodeEdges {
    pub inputs: Vec<(usize, own_code::Edge)>,
    pub outputs: Vec<(usize, own_code::Edge)>,
    pub latest_inputs: Vec<(usize, own_code::Edge)>,
    pub latest_outputs: Vec<(usize, own_code::Edge)>,
}

impl CodeEdges {
    pub fn is_empty(&self) -> bool {
        self.inputs().next().is_none() && self.outputs().next().is_none()
    }

    /// All that come in, in the order of the code's view.
    pub fn inputs(&self) -> impl Iterator<Item = &own_code::Edge> {
        self.inputs.iter().chain(&self.latest_inputs).map(|(_, edge)| edge)
    }

    /// All that go out, in the order of the code's view.
    pub fn outputs(&self) -> impl Iterator<Item = &own_code::Edge> {
        self.outputs.iter().chain(&self.latest_outputs).map(|(_, edge)| edge)
    }
}

/// The graphs of `workload`, with a recorder each; an edge with messages is a ring.
pub(super) fn graphs(workload: &Workload, compiled: &laxity_plan::Plan) -> Result<Vec<LiveGraph>, String> {
    let graph = |(graph, plan): (&Graph, &GraphPlan)| {
        let channels = graph.edges.iter().map(channel).collect();
        let spec = Spec::with_channels(graph.clone(), channels);
        let with_latest =
            |spec: Spec| (0..graph.latest.len()).try_fold(spec, |spec, edge| spec.with_latest(edge, LATEST_MAX));
        let spec = spec.and_then(with_latest).map_err(|error| format!("graph \"{}\": {error}", graph.name))?;
        Ok(LiveGraph { spec, plan: plan.clone(), releasing: Releasing::Early })
    };
    workload.graphs.iter().zip(&compiled.graphs).map(graph).collect()
}

fn channel(edge: &Edge) -> Channel {
    if edge.message == 0 {
        return Channel::Counter;
    }
    // What must fit, lest its nodes wait for each other for ever, several times.
    let needed = edge.threshold.saturating_add(edge.produce);
    let capacity = needed.saturating_mul(JOBS_AHEAD).saturating_add(edge.initial);
    Channel::Ring { message: edge.message, capacity }
}

/// Tells the nodes among `tasks` of the messages of their edges.
pub(super) fn set_messages(tasks: &mut [TaskPlan], graphs: &[LiveGraph]) {
    for task in tasks {
        let Some(id) = task.trigger.node() else { continue };
        let spec = &graphs[id.graph].spec;
        task.messages = messages(spec, id.node);
        let end = |peer: fn(&Edge) -> usize, taken: fn(&Edge) -> u32| {
            move |&(at, count): &(usize, u32)| {
                let edge = &spec.graph().edges[at];
                let peer = spec.graph().nodes[peer(edge)].name.clone();
                (at, own_code::Edge { peer, count, taken: taken(edge) })
            }
        };
        let latest = |near: fn(&LatestEdge) -> usize, far: fn(&LatestEdge) -> usize, taken: u32| {
            let edges = spec.graph().latest.iter().enumerate().filter(|(_, edge)| near(edge) == id.node);
            let end = |(at, edge): (usize, &LatestEdge)| {
                let peer = spec.graph().nodes[far(edge)].name.clone();
                (at, own_code::Edge { peer, count: 1, taken })
            };
            edges.map(end).collect::<Vec<_>>()
        };
        task.edges = CodeEdges {
            latest_inputs: latest(|edge| edge.consumer, |edge| edge.producer, 0),
            latest_outputs: latest(|edge| edge.producer, |edge| edge.consumer, 1),
            inputs: task.messages.inputs.iter().map(end(|edge| edge.producer, |edge| edge.consume)).collect(),
            outputs: task.messages.outputs.iter().map(end(|edge| edge.consumer, |edge| edge.produce)).collect(),
        };
    }
}

/// The messages of the edges of `node`, where edges carry any.
pub(super) fn messages(spec: &Spec, node: usize) -> Messages {
    let carries = |edge: &usize| spec.channels()[*edge] != Channel::Counter;
    let edges = spec.graph().edges.iter().enumerate().filter(|(edge, _)| carries(edge));
    let inputs = edges.clone().filter(|(_, edge)| edge.consumer == node).map(|(at, edge)| (at, edge.threshold));
    let outputs = edges.filter(|(_, edge)| edge.producer == node).map(|(at, edge)| (at, edge.produce));
    Messages { inputs: inputs.collect(), outputs: outputs.collect() }
}
