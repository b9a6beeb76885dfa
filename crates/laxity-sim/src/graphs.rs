//! Graphs: tokens release jobs.

use std::collections::VecDeque;

use laxity_model::{EdgeId, Instant, JobId, TaskId};
use laxity_plan::{GraphPlan, Plan};
use laxity_policy::graph::{Action, Event, Releasing, Tokens};
use laxity_trace::{self as trace, Sink};

use crate::context::{Context, TimerKind};

/// All graphs.
pub(crate) struct Graphs {
    graphs: Vec<Graph>,
    actions: Vec<Action>,
}

/// The tokens of a graph.
struct Graph {
    tokens: Tokens,
    first_task: usize,
    first_edge: usize,
    /// The timer set last.
    timer: Instant,
    /// For each node, the deadlines of released jobs that wait for feedback tokens or their predecessor, and when they were
    /// released.
    announced: Vec<VecDeque<(Instant, Instant)>>,
}

/// A job that is ready, by its task, and its deadline.
pub(crate) type Ready = (TaskId, Instant);

impl Graphs {
    pub fn new(plan: &Plan) -> Self {
        let graph = |graph: &GraphPlan| Graph {
            tokens: Tokens::new(graph.plan.clone(), Releasing::Early),
            first_task: graph.first_task,
            first_edge: graph.first_edge,
            timer: Instant::NEVER,
            announced: vec![VecDeque::new(); graph.plan.nodes().len()],
        };
        Graphs { graphs: plan.graphs.iter().map(graph).collect(), actions: Vec::new() }
    }

    /// The graphs start at time 0.
    pub fn plan_starts<S: Sink>(&self, cx: &mut Context<S>) {
        for graph in 0..self.graphs.len() {
            cx.set_timer(Instant::ZERO, TimerKind::GraphStart(graph as u32));
        }
    }

    /// `graph` starts. Here and below `ready` gets the jobs that are ready from now on.
    pub fn start<S: Sink>(&mut self, cx: &mut Context<S>, graph: usize, ready: &mut Vec<Ready>) {
        self.handle(cx, graph, Event::Started, ready);
    }

    /// Jobs of `graph` that only had to wait for their time are released.
    pub fn timeout<S: Sink>(&mut self, cx: &mut Context<S>, graph: usize, ready: &mut Vec<Ready>) {
        self.graphs[graph].tokens.timeout(cx.now, &mut self.actions);
        self.follow(cx, graph, ready);
    }

    /// A job of `task`, a source, has its time.
    pub fn arrive<S: Sink>(&mut self, cx: &mut Context<S>, task: TaskId, ready: &mut Vec<Ready>) {
        let (graph, node) = self.node(task);
        self.handle(cx, graph, Event::Arrived { node, at: cx.now }, ready);
    }

    /// The job of `task`, a node, completed: it produces tokens.
    pub fn complete<S: Sink>(&mut self, cx: &mut Context<S>, task: TaskId, ready: &mut Vec<Ready>) {
        let (graph, node) = self.node(task);
        self.handle(cx, graph, Event::Completed { node }, ready);
    }

    /// Whether a job of `task`, a node, was released before `now` and waits, for feedback tokens or its predecessor.
    pub fn has_waited(&self, task: TaskId, now: Instant) -> bool {
        let (graph, node) = self.node(task);
        self.graphs[graph].announced[node].front().is_some_and(|&(_, released)| released < now)
    }

    /// The graph that `task` is a node of, and its number there.
    fn node(&self, task: TaskId) -> (usize, usize) {
        let graph = self.graphs.iter().rposition(|graph| graph.first_task <= task.index()).expect("it is a node");
        (graph, task.index() - self.graphs[graph].first_task)
    }

    fn handle<S: Sink>(&mut self, cx: &mut Context<S>, graph: usize, event: Event, ready: &mut Vec<Ready>) {
        self.graphs[graph].tokens.handle(cx.now, event, &mut self.actions);
        self.follow(cx, graph, ready);
    }

    fn follow<S: Sink>(&mut self, cx: &mut Context<S>, number: usize, ready: &mut Vec<Ready>) {
        let graph = &mut self.graphs[number];
        let (first_task, first_edge) = (graph.first_task, graph.first_edge);
        let job = |node: usize, index: u64| JobId { task: TaskId((first_task + node) as u32), index: index as u32 };
        let edge_id = |edge: usize| EdgeId((first_edge + edge) as u32);
        for action in self.actions.drain(..) {
            match action {
                Action::Released { node, index, deadline, .. } => {
                    cx.record(trace::Event::Release { job: job(node, index), deadline });
                    graph.announced[node].push_back((deadline, cx.now));
                }
                Action::Consumed { node, index, edge, tokens } => {
                    cx.record(trace::Event::Consume { job: job(node, index), edge: edge_id(edge), tokens });
                }
                Action::Produced { node, index, edge, tokens } => {
                    cx.record(trace::Event::Produce { job: job(node, index), edge: edge_id(edge), tokens });
                }
                Action::Ready { node, index } => {
                    let (deadline, _) =
                        graph.announced[node].pop_front().expect("a job is released before it is ready");
                    ready.push((job(node, index).task, deadline));
                }
            }
        }
        if let Some(at) = graph.tokens.next_timeout()
            && graph.timer != at
        {
            graph.timer = at;
            cx.set_timer(at, TimerKind::GraphTimeout(number as u32));
        }
    }
}
