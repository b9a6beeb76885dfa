//! What a live trace says of its graph.

use laxity_model::{Nanos, Scheduler, TaskId};
use laxity_policy::graph as policy;
use laxity_sys::scheduling;
use laxity_trace::{EdgeInfo, GraphInfo, Origin, TaskInfo, TaskKind, TraceHeader};

use crate::spec::Spec;

pub(super) fn of(spec: &Spec) -> TraceHeader {
    let (graph, plan) = (spec.graph(), spec.plan());
    let task = |(position, (node, rule)): (usize, (&laxity_model::Node, &policy::Node))| TaskInfo {
        // As in simulated traces.
        name: format!("{}/{}", graph.name, node.name),
        period: rule.period.floor(),
        deadline: rule.deadline,
        // Not known.
        wcet: Nanos::ZERO,
        cluster: 0,
        rank: position as u32,
        kind: TaskKind::Node { graph: 0, source: rule.is_source },
    };
    let edge = |edge: &policy::Edge| EdgeInfo {
        producer: TaskId(edge.producer as u32),
        consumer: TaskId(edge.consumer as u32),
        produce: edge.produce,
        consume: edge.consume,
        threshold: edge.threshold,
        initial: edge.initial,
        kind: edge.kind,
    };
    let nodes = (0..graph.nodes.len() as u32).map(TaskId).collect();
    TraceHeader {
        tasks: graph.nodes.iter().zip(plan.nodes()).enumerate().map(task).collect(),
        graphs: vec![GraphInfo { name: graph.name.clone(), nodes }],
        edges: plan.edges().iter().map(edge).collect(),
        ..TraceHeader::new(Origin::Live, &graph.name, scheduling::cpus(), Scheduler::GLOBAL_EDF)
    }
}
