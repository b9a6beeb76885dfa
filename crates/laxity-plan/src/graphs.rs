//! Graphs as tasks: each node is one, released by time or by tokens.

use laxity_model::{Arrival, EdgeId, Graph, Nanos, Replicas, Task, TaskId, Workload};
use laxity_policy::graph::{CompiledGraph, LatestEdge};
use laxity_trace::{ChainInfo, EdgeInfo, GraphInfo, LatestInfo, TaskKind};

use crate::tasks::ReleasedBy;
use crate::unsupported::UnsupportedFeatures;

/// A graph as it is carried out.
#[derive(Clone, Debug)]
pub struct GraphPlan {
    /// The task that is its first node; the others follow.
    pub first_task: usize,
    /// The number of its first edge in the trace; the others follow.
    pub first_edge: usize,
    /// Its rules.
    pub plan: CompiledGraph,
}

/// Numbers the nodes of the graphs of `workload` after its tasks, and their edges.
pub(crate) fn number(workload: &Workload) -> Result<Vec<GraphPlan>, UnsupportedFeatures> {
    let mut unsupported = UnsupportedFeatures::default();
    let (mut first_task, mut first_edge) = (workload.tasks.len(), 0);
    let mut plans = Vec::with_capacity(workload.graphs.len());
    for graph in &workload.graphs {
        match plan(graph) {
            Ok(plan) => {
                let edges = plan.edges().len();
                plans.push(GraphPlan { first_task, first_edge, plan });
                first_edge += edges;
            }
            Err(reason) => unsupported.add(format!("graph \"{}\": {reason}", graph.name)),
        }
        first_task += graph.nodes.len();
    }
    unsupported.none().map(|()| plans)
}

fn plan(graph: &Graph) -> Result<CompiledGraph, String> {
    let replicas = match graph.replicas {
        Replicas::None => return CompiledGraph::new(graph).map_err(|error| error.to_string()),
        Replicas::Count(count) => count,
        // The analysis computes them from its bounds, and bounds depend on the scheduler's analysis.
        Replicas::Auto => {
            return Err(
                "`replicas = \"auto\"` is settled by the analysis, not by the simulator; write the number that \
                        `laxity check` reports"
                    .to_owned(),
            );
        }
    };
    let accessors: Vec<Vec<usize>> =
        graph.objects.iter().filter(|object| object.delay == 0).map(|object| object.accessors.clone()).collect();
    CompiledGraph::pipelined(graph, &accessors, replicas).map_err(|error| error.to_string())
}

/// The nodes of all graphs as tasks, in the order of their numbers. A node that is no source is released by tokens: its
/// period, rounded down, is the least separation.
pub(crate) fn nodes(workload: &Workload, plans: &[GraphPlan]) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (graph, GraphPlan { plan, .. }) in workload.graphs.iter().zip(plans) {
        for (node, planned) in graph.nodes.iter().zip(plan.nodes()) {
            tasks.push(Task {
                name: format!("{}/{}", graph.name, node.name),
                arrival: Arrival::Periodic,
                period: planned.period.floor(),
                deadline: planned.deadline,
                phase: planned.phase,
                jitter: Nanos::ZERO,
                priority: node.priority,
                cluster: node.cluster,
                working_set: None,
                memory_demand: 0,
                memory_budget: None,
                server: node.server,
                body: node.body.clone(),
                run: node.run.clone(),
            });
        }
    }
    tasks
}

/// What the trace says of a task that is a node; `None` for others.
pub(crate) fn kind(task: usize, plans: &[GraphPlan]) -> Option<TaskKind> {
    plans.iter().enumerate().find_map(|(graph, plan)| {
        let node = plan.plan.nodes().get(task.checked_sub(plan.first_task)?)?;
        Some(TaskKind::Node { graph, source: node.is_source })
    })
}

/// What releases the jobs of a task that the trace calls `node` if it is one.
pub(crate) fn released_by(node: Option<TaskKind>) -> ReleasedBy {
    match node {
        Some(TaskKind::Node { source: true, .. }) => ReleasedBy::TimeAndTokens,
        Some(TaskKind::Node { source: false, .. }) => ReleasedBy::Tokens,
        _ => ReleasedBy::Time,
    }
}

/// What the trace says of the graphs, and of all their edges.
pub(crate) fn infos(workload: &Workload, plans: &[GraphPlan]) -> (Vec<GraphInfo>, Vec<EdgeInfo>) {
    let (mut graphs, mut edges) = (Vec::new(), Vec::new());
    for (graph, GraphPlan { first_task, plan, .. }) in workload.graphs.iter().zip(plans) {
        let task = |node: usize| TaskId((first_task + node) as u32);
        graphs.push(GraphInfo { name: graph.name.clone(), nodes: (0..graph.nodes.len()).map(task).collect() });
        edges.extend(plan.edges().iter().map(|edge| EdgeInfo {
            producer: task(edge.producer),
            consumer: task(edge.consumer),
            produce: edge.produce,
            consume: edge.consume,
            threshold: edge.threshold,
            initial: edge.initial,
            kind: edge.kind,
        }));
    }
    (graphs, edges)
}

/// The latest-value edges of all graphs, numbered after those that carry tokens.
pub(crate) fn latest(workload: &Workload, plans: &[GraphPlan]) -> Vec<LatestEdge> {
    let first: usize = plans.iter().map(|plan| plan.plan.edges().len()).sum();
    let of_graph = |(graph, plan): (&Graph, &GraphPlan)| {
        let task = |node: usize| TaskId((plan.first_task + node) as u32);
        let ends: Vec<_> = graph.latest.iter().map(|edge| (task(edge.producer), task(edge.consumer))).collect();
        ends
    };
    let ends = workload.graphs.iter().zip(plans).flat_map(of_graph).enumerate();
    ends.map(|(index, (producer, consumer))| LatestEdge { edge: EdgeId((first + index) as u32), producer, consumer })
        .collect()
}

/// What the trace says of latest-value edges, and of chains.
pub(crate) fn chain_infos(
    workload: &Workload,
    plans: &[GraphPlan],
    latest: &[LatestEdge],
) -> (Vec<LatestInfo>, Vec<ChainInfo>) {
    let edge = |edge: &LatestEdge| LatestInfo { producer: edge.producer, consumer: edge.consumer };
    let chain = |chain: &laxity_model::Chain| ChainInfo {
        name: chain.name.clone(),
        path: chain.path.iter().map(|node| TaskId((plans[chain.graph].first_task + node) as u32)).collect(),
        data_age_max: chain.data_age_max,
        reaction_time_max: chain.reaction_time_max,
    };
    (latest.iter().map(edge).collect(), workload.chains.iter().map(chain).collect())
}
