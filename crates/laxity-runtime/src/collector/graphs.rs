//! Tokens, counted again by the rules that simulated and live graphs share: what follows from each completion and each
//! arrival, in the simulator's order.

use laxity_model::{EdgeId, Instant, JobId, TaskId};
use laxity_policy::graph::{Action, Event, Tokens};
use laxity_trace as trace;

use crate::plan::{LiveGraph, LivePlan, NodeId};

/// The tokens of all graphs, as far as the trace has come.
#[derive(Debug)]
pub(super) struct Graphs {
    graphs: Vec<Graph>,
    /// For each task the node that it is.
    nodes: Vec<Option<NodeId>>,
    actions: Vec<Action>,
}

#[derive(Debug)]
struct Graph {
    tokens: Tokens,
    first_task: usize,
    first_edge: usize,
    has_started: bool,
}

impl Graphs {
    pub fn new(plan: &LivePlan) -> Graphs {
        let graph = |graph: &LiveGraph| Graph {
            tokens: Tokens::new(graph.plan.plan.clone(), graph.releasing),
            first_task: graph.plan.first_task,
            first_edge: graph.plan.first_edge,
            has_started: false,
        };
        Graphs {
            graphs: plan.graphs.iter().map(graph).collect(),
            nodes: plan.tasks.iter().map(|task| task.trigger.node()).collect(),
            actions: Vec::new(),
        }
    }

    /// The first graph of which something happens because time passes, and when: its start, or the release of a job that
    /// only has to wait for its time.
    pub fn next_timeout(&self) -> Option<(Instant, usize)> {
        let next = |(number, graph): (usize, &Graph)| {
            let at = if graph.has_started { graph.tokens.next_timeout()? } else { Instant::ZERO };
            Some((at, number))
        };
        self.graphs.iter().enumerate().filter_map(next).min()
    }

    /// Starts `graph`, or releases the jobs whose time has come by `now`.
    pub fn timeout(&mut self, graph: usize, now: Instant, record: &mut impl FnMut(trace::Event)) {
        let Graph { tokens, has_started, .. } = &mut self.graphs[graph];
        match std::mem::replace(has_started, true) {
            false => tokens.handle(now, Event::Started, &mut self.actions),
            true => tokens.timeout(now, &mut self.actions),
        }
        self.follow(graph, record);
    }

    /// The time of a job of `task` has come; answers whether that is a node, whose release this sees to.
    pub fn arrive(&mut self, task: usize, now: Instant, record: &mut impl FnMut(trace::Event)) -> bool {
        let Some(NodeId { graph, node }) = self.nodes.get(task).copied().flatten() else { return false };
        self.graphs[graph].tokens.handle(now, Event::Arrived { node, at: now }, &mut self.actions);
        self.follow(graph, record);
        true
    }

    /// A job of `task` completed: if that is a node, its tokens are there.
    pub fn complete(&mut self, task: usize, now: Instant, record: &mut impl FnMut(trace::Event)) {
        let Some(NodeId { graph, node }) = self.nodes.get(task).copied().flatten() else { return };
        self.graphs[graph].tokens.handle(now, Event::Completed { node }, &mut self.actions);
        self.follow(graph, record);
    }

    fn follow(&mut self, graph: usize, record: &mut impl FnMut(trace::Event)) {
        let Graph { first_task, first_edge, .. } = self.graphs[graph];
        let job = |node: usize, index: u64| JobId { task: TaskId((first_task + node) as u32), index: index as u32 };
        let edge_id = |edge: usize| EdgeId((first_edge + edge) as u32);
        for action in self.actions.drain(..) {
            match action {
                Action::Released { node, index, deadline, .. } => {
                    record(trace::Event::Release { job: job(node, index), deadline });
                }
                Action::Consumed { node, index, edge, tokens } => {
                    record(trace::Event::Consume { job: job(node, index), edge: edge_id(edge), tokens });
                }
                Action::Produced { node, index, edge, tokens } => {
                    record(trace::Event::Produce { job: job(node, index), edge: edge_id(edge), tokens });
                }
                // Live it is ready when its thread begins it.
                Action::Ready { .. } => {}
            }
        }
    }
}
