//! Graphs to test with, and a driver that carries out jobs of given lengths.

use std::collections::BTreeSet;

use laxity_model::{Edge, Graph, Instant, Nanos, Node};
use laxity_policy::graph::{Action, CompiledGraph, Event, Tokens};

/// A graph of nodes `a`, `b`, ...; those with a period are sources.
pub fn graph(periods: &[Option<u64>], edges: Vec<Edge>) -> Graph {
    let node = |(index, period): (usize, &Option<u64>)| Node::new(char::from(b'a' + index as u8), period.map(Nanos));
    Graph::new("g", periods.iter().enumerate().map(node).collect(), edges)
}

/// An edge that hands over one token at a time.
pub fn unit(producer: usize, consumer: usize) -> Edge {
    rated(producer, consumer, 1, 1)
}

/// An edge with a threshold as low as may be.
pub fn rated(producer: usize, consumer: usize, produce: u32, consume: u32) -> Edge {
    Edge::rated(producer, consumer, produce, consume)
}

/// A back-edge that hands over one token at a time.
pub fn back(producer: usize, consumer: usize, initial: u32) -> Edge {
    Edge { initial, back_edge: true, ..unit(producer, consumer) }
}

/// A job that was released, with all that befell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    pub node: usize,
    pub index: u64,
    /// When it was announced.
    pub released: u64,
    pub arrival: u64,
    pub deadline: u64,
    pub ready: Option<u64>,
    pub completed: Option<u64>,
}

/// When a job that is ready completes.
pub enum Length {
    /// So long after it is ready, by node: plenty of CPUs.
    Execution(Vec<u64>),
    /// So long after its arrival, by node: what an analysis calls the response time.
    Response(Vec<u64>),
}

/// A run up to a horizon.
pub struct Run {
    pub jobs: Vec<Job>,
    pub actions: Vec<(u64, Action)>,
    pub tokens: Tokens,
}

impl Run {
    /// Jobs of `node`, by index.
    pub fn of(&self, node: usize) -> impl Iterator<Item = &Job> {
        self.jobs.iter().filter(move |job| job.node == node)
    }
}

/// Runs `tokens` with periodic sources until `horizon`: completions by node, then timeouts, then arrivals.
pub fn run(tokens: Tokens, length: &Length, horizon: u64) -> Run {
    run_late(tokens, length, horizon, 1)
}

/// The same with timeouts that are noticed only at multiples of `grain`.
pub fn run_late(tokens: Tokens, length: &Length, horizon: u64, grain: u64) -> Run {
    let mut run = Run { jobs: Vec::new(), actions: Vec::new(), tokens };
    let mut completions: BTreeSet<(u64, usize)> = BTreeSet::new();
    let mut arrivals: BTreeSet<(u64, usize)> = sources(run.tokens.plan()).collect();
    let mut actions = Vec::new();
    run.tokens.handle(Instant::ZERO, Event::Started, &mut actions);
    note(&mut run, 0, &mut actions, length, &mut completions);
    loop {
        let timeout = run.tokens.next_timeout().map(|at| at.0.next_multiple_of(grain));
        let first = [completions.first().map(|it| it.0), timeout, arrivals.first().map(|it| it.0)];
        let Some(now) = first.into_iter().flatten().min().filter(|&now| now < horizon) else { break };
        if let Some(&(_, node)) = completions.first().filter(|it| it.0 == now) {
            completions.pop_first();
            run.tokens.handle(Instant(now), Event::Completed { node }, &mut actions);
            let job = run.jobs.iter_mut().find(|job| job.node == node && job.completed.is_none());
            job.expect("a job that completes was released").completed = Some(now);
        } else if timeout == Some(now) {
            run.tokens.timeout(Instant(now), &mut actions);
        } else if let Some((_, node)) = arrivals.pop_first() {
            run.tokens.handle(Instant(now), Event::Arrived { node, at: Instant(now) }, &mut actions);
            arrivals.insert((now + run.tokens.plan().nodes()[node].period.floor().0, node));
        }
        note(&mut run, now, &mut actions, length, &mut completions);
        run.tokens.assert_invariants();
    }
    run
}

fn sources(plan: &CompiledGraph) -> impl Iterator<Item = (u64, usize)> + '_ {
    plan.nodes().iter().enumerate().filter(|(_, node)| node.is_source).map(|(index, node)| (node.phase.0, index))
}

fn note(run: &mut Run, now: u64, actions: &mut Vec<Action>, length: &Length, completions: &mut BTreeSet<(u64, usize)>) {
    for action in actions.drain(..) {
        run.actions.push((now, action));
        match action {
            Action::Released { node, index, arrival, deadline } => {
                assert_eq!(run.of(node).count() as u64, index, "jobs are released in order");
                let (arrival, deadline) = (arrival.0, deadline.0);
                run.jobs.push(Job { node, index, released: now, arrival, deadline, ready: None, completed: None });
            }
            Action::Ready { node, index } => {
                let job = run.jobs.iter_mut().find(|job| job.node == node && job.index == index);
                let job = job.expect("a job is released before it is ready");
                job.ready = Some(now);
                let completion = match length {
                    Length::Execution(lengths) => now + lengths[node],
                    Length::Response(lengths) => (job.arrival + lengths[node]).max(now),
                };
                completions.insert((completion, node));
            }
            Action::Consumed { .. } | Action::Produced { .. } => {}
        }
    }
}
