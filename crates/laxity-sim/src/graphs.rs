//! Graphs in the schedule: tokens release jobs.
//!
//! A job that completes signals its consumers at once. Where releases cost time, the producer's CPU spends it on all of
//! them in one interrupt handler, which nothing preempts: that is the producer's boost while it signals (paper 003,
//! section 5.2.3).

use std::cmp::Reverse;

use laxity_model::{CpuId, EdgeId, Instant, JobId, TaskId};
use laxity_policy::graph::{Action, Event, Releasing, Tokens};
use laxity_trace::{self as trace, Sink};

use crate::Simulator;
use crate::interrupt::Interrupt;
use crate::simulator::{Timer, TimerKind};
use laxity_plan::Plan;

/// The tokens of all graphs.
pub(crate) struct Graphs {
    graphs: Vec<Tokens>,
    /// The timer set last for each graph.
    timers: Vec<Instant>,
    actions: Vec<Action>,
}

impl Graphs {
    pub fn new(plan: &Plan) -> Self {
        let graphs = plan.graphs.iter().map(|graph| Tokens::new(graph.plan.clone(), Releasing::Early)).collect();
        Graphs { graphs, timers: vec![Instant::NEVER; plan.graphs.len()], actions: Vec::new() }
    }
}

impl<S: Sink> Simulator<S> {
    /// The graphs start at time 0.
    pub(crate) fn plan_graphs(&mut self) {
        for graph in 0..self.plan.graphs.len() {
            self.timers.push(Reverse(Timer { at: Instant::ZERO, kind: TimerKind::GraphStart(graph as u32) }));
        }
    }

    #[inline(never)]
    pub(crate) fn start_graph(&mut self, graph: usize) {
        self.tokens(graph, None, Event::Started);
    }

    /// Jobs of `graph` that only had to wait for their time are released.
    #[inline(never)]
    pub(crate) fn graph_timeout(&mut self, graph: usize) {
        let mut actions = std::mem::take(&mut self.graphs.actions);
        self.graphs.graphs[graph].timeout(self.now, &mut actions);
        self.follow_tokens(graph, None, actions);
    }

    /// The graph that `task` is a node of, and its number there.
    fn node(&self, task: TaskId) -> Option<(usize, usize)> {
        let index = task.index();
        let within = |graph: &laxity_plan::GraphPlan| index.checked_sub(graph.first_task);
        let graph = self.plan.graphs.iter().rposition(|graph| within(graph).is_some())?;
        let node = within(&self.plan.graphs[graph])?;
        (node < self.plan.graphs[graph].plan.nodes().len()).then_some((graph, node))
    }

    /// A job of `task` has its time; answers whether `task` is a source of a graph, which then sees to the release.
    #[inline(never)]
    pub(crate) fn arrive_at_graph(&mut self, task: TaskId) -> bool {
        let Some((graph, node)) = self.node(task) else { return false };
        self.tokens(graph, None, Event::Arrived { node, at: self.now });
        true
    }

    /// The job of `task` completed on `cpu`: if it is a node, its tokens go out.
    #[inline(never)]
    pub(crate) fn produce_tokens(&mut self, cpu: CpuId, task: TaskId) {
        if let Some((graph, node)) = self.node(task) {
            self.tokens(graph, Some(cpu), Event::Completed { node });
        }
    }

    fn tokens(&mut self, graph: usize, cpu: Option<CpuId>, event: Event) {
        let mut actions = std::mem::take(&mut self.graphs.actions);
        self.graphs.graphs[graph].handle(self.now, event, &mut actions);
        self.follow_tokens(graph, cpu, actions);
    }

    /// Carries out `actions`. Jobs made ready by a completion on `cpu` are released there in one go, others by the timer
    /// of their task.
    fn follow_tokens(&mut self, graph: usize, cpu: Option<CpuId>, mut actions: Vec<Action>) {
        let (first_task, first_edge) = (self.plan.graphs[graph].first_task, self.plan.graphs[graph].first_edge);
        let job = |node: usize, index: u64| JobId { task: TaskId((first_task + node) as u32), index: index as u32 };
        let edge_id = |edge: usize| EdgeId((first_edge + edge) as u32);
        let mut ready = self.spare_batches.pop().unwrap_or_default();
        for action in actions.drain(..) {
            match action {
                Action::Released { node, index, deadline, .. } => {
                    let job = job(node, index);
                    self.sink.record(self.now, trace::Event::Release { job, deadline });
                    self.tasks[job.task.index()].sharing.announced.push_back(deadline);
                }
                Action::Consumed { node, index, edge, tokens } => {
                    let (job, edge) = (job(node, index), edge_id(edge));
                    self.sink.record(self.now, trace::Event::Consume { job, edge, tokens });
                }
                Action::Produced { node, index, edge, tokens } => {
                    let (job, edge) = (job(node, index), edge_id(edge));
                    self.sink.record(self.now, trace::Event::Produce { job, edge, tokens });
                }
                Action::Ready { node, index } => {
                    let task = job(node, index).task;
                    let run = &mut self.tasks[task.index()];
                    let deadline = run.sharing.announced.pop_front().expect("a job is released before it is ready");
                    run.backlog.push_back(deadline);
                    ready.push(task);
                }
            }
        }
        self.graphs.actions = actions;
        self.release_nodes(cpu, ready);
        self.plan_timeout(graph);
    }

    fn release_nodes(&mut self, cpu: Option<CpuId>, mut ready: Vec<TaskId>) {
        if let (Some(cpu), false) = (cpu, ready.is_empty()) {
            return self.raise(cpu, Interrupt::Release(ready));
        }
        for task in ready.drain(..) {
            let cpu = self.plan.dedicated.unwrap_or(self.tasks[task.index()].timer_cpu);
            let mut batch = self.spare_batches.pop().unwrap_or_default();
            batch.push(task);
            self.raise(cpu, Interrupt::Release(batch));
        }
        self.spare_batches.push(ready);
    }

    fn plan_timeout(&mut self, graph: usize) {
        let Some(at) = self.graphs.graphs[graph].next_timeout() else { return };
        if self.graphs.timers[graph] != at {
            self.graphs.timers[graph] = at;
            self.timers.push(Reverse(Timer { at, kind: TimerKind::GraphTimeout(graph as u32) }));
        }
    }
}
