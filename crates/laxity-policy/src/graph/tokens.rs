//! Tokens on edges, and the jobs that they release.

use laxity_model::{Instant, TaskId};

use super::CompiledGraph;
use super::period::Arrival;
use crate::cpu::ReleaseQueue;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The graph starts: before anything else, once.
    Started,
    /// A job of the source `node` arrived. Arrivals come in order.
    Arrived {
        /// The source.
        node: usize,
        /// When: now, or earlier if that was noticed late.
        at: Instant,
    },
    /// The job of `node` that is ready completed.
    Completed {
        /// The node.
        node: usize,
    },
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A job is released. Its node's previous job may still run.
    Released {
        /// The node.
        node: usize,
        /// Which of its jobs, from 0.
        index: u64,
        /// What its deadline is counted from; later than now if it is released early.
        arrival: Instant,
        /// Absolute deadline.
        deadline: Instant,
    },
    /// The job took tokens; they are gone before it is ready.
    Consumed {
        /// The node.
        node: usize,
        /// Which of its jobs.
        index: u64,
        /// From where, a position in [`CompiledGraph::edges`].
        edge: usize,
        /// How many.
        tokens: u32,
    },
    /// The released job may run from now on.
    Ready {
        /// The node.
        node: usize,
        /// Which of its jobs.
        index: u64,
    },
    /// The job, which completed, put tokens on an edge.
    Produced {
        /// The node.
        node: usize,
        /// Which of its jobs.
        index: u64,
        /// Where, a position in [`CompiledGraph::edges`].
        edge: usize,
        /// How many.
        tokens: u32,
    },
}

/// Whether a job may run before its arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Releasing {
    /// Jobs of nodes that are not sources may, with the deadline of the arrival (paper 003, section 5.2.3).
    #[default]
    Early,
    /// No job may.
    OnTime,
}

/// The tokens of a graph and the state of its nodes.
///
/// Job n of a node arrives at `r = max(r_prev + p, the last of its tokens)`, a source's also not before its time. It is
/// released at r; early if its tokens are there and its predecessor is complete. Being announced no earlier, however
/// many tokens lie ahead, a node has no more than one released job whose arrival is in the future. Feedback tokens
/// delay the job but neither its arrival nor its deadline (paper 003, section 5.4.1, footnote 13).
///
/// Tokens count from the moment the producer completes. A driver that takes time to signal several consumers must
/// not let the producer be preempted meanwhile (paper 003, section 5.2.3: it is boosted, if another job tries).
///
/// The order of a job's actions is that of paper 003, Fig. 5.5: Released, Consumed (tokens, then feedback tokens),
/// Ready; then Produced (feedback tokens, then tokens). Effects of one event on several nodes come by node. The
/// driver hands over completions of one instant by node, then timeouts, then arrivals. A timeout that is handed over
/// late changes when a job is announced, never its arrival.
///
/// Nothing is allocated after [`Tokens::new`], but by `actions`.
#[derive(Clone, Debug)]
pub struct Tokens {
    plan: CompiledGraph,
    releasing: Releasing,
    /// What there is to know: the tokens of an edge follow from the jobs of its two nodes.
    nodes: Vec<State>,
    /// For each node the arrival of its next job if only time is missing.
    timeouts: ReleaseQueue,
}

/// A node: `completed <= started <= released`, and at most one job between `started` and `completed`.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Of a source: jobs whose time has come.
    arrived: u64,
    released: u64,
    /// Jobs that were ready.
    started: u64,
    completed: u64,
    /// Of the last released job.
    arrival: Option<Arrival>,
}

impl Tokens {
    /// The initial tokens; nothing released.
    pub fn new(plan: CompiledGraph, releasing: Releasing) -> Self {
        let nodes = plan.nodes().len();
        Tokens { releasing, nodes: vec![State::default(); nodes], timeouts: ReleaseQueue::with_capacity(nodes), plan }
    }

    /// Takes note of `event` and appends what follows. Panics if a job completes that was not ready, or if a node that
    /// is no source is said to arrive.
    pub fn handle(&mut self, now: Instant, event: Event, actions: &mut Vec<Action>) {
        // Timeouts of this very instant come after its completions; those that were missed come first.
        self.fire(Instant(now.0.saturating_sub(1)), actions);
        match event {
            Event::Started => {
                for node in 0..self.nodes.len() {
                    self.advance(node, now, now, actions);
                }
            }
            Event::Arrived { node, at } => {
                assert!(self.plan.nodes()[node].is_source, "only sources arrive by time");
                assert!(at <= now, "an arrival is noticed when it happened or later");
                self.nodes[node].arrived += 1;
                self.advance(node, at, now, actions);
            }
            Event::Completed { node } => self.complete(node, now, actions),
        }
    }

    /// When [`Tokens::timeout`] wants to be called.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.timeouts.next()
    }

    /// Releases the jobs whose arrival has come.
    pub fn timeout(&mut self, now: Instant, actions: &mut Vec<Action>) {
        self.fire(now, actions);
    }

    /// The plan that is carried out.
    pub fn plan(&self) -> &CompiledGraph {
        &self.plan
    }

    /// Tokens on `edge`.
    pub fn tokens(&self, edge: usize) -> u64 {
        let edge = &self.plan.edges()[edge];
        edge.tokens(self.nodes[edge.producer].completed, self.nodes[edge.consumer].started)
    }

    /// Each timeout as of its own instant, so that being late makes no difference to arrivals.
    fn fire(&mut self, until: Instant, actions: &mut Vec<Action>) {
        while let Some((node, due)) = self.timeouts.pop_due(until) {
            self.advance(node.index(), due, due, actions);
        }
    }

    /// The job writes its tokens, and the nodes that wait for them go on.
    fn complete(&mut self, node: usize, now: Instant, actions: &mut Vec<Action>) {
        let state = &mut self.nodes[node];
        assert_eq!(state.started, state.completed + 1, "only the ready job of a node completes");
        let index = state.completed;
        state.completed += 1;
        for &edge in &self.plan.links(node).out {
            let tokens = self.plan.edges()[edge].produce;
            actions.push(Action::Produced { node, index, edge, tokens });
        }
        for position in 0..self.plan.links(node).affected.len() {
            self.advance(self.plan.links(node).affected[position], now, now, actions);
        }
    }

    /// Releases what can be released and makes ready what can be, given that the state of `node` changed at `at`.
    fn advance(&mut self, node: usize, at: Instant, now: Instant, actions: &mut Vec<Action>) {
        // After a job that arrives at `at` or later the next one arrives in the future: the loop ends unless that
        // next one may be early, and then its predecessor is complete and it is not.
        while self.is_triggered(node) {
            let arrival = self.next_arrival(node, at);
            if arrival.at > now && !self.may_be_early(node) {
                self.timeouts.set(TaskId(node as u32), arrival.at, 0);
                break;
            }
            self.timeouts.cancel(TaskId(node as u32));
            let state = &mut self.nodes[node];
            let index = state.released;
            state.released += 1;
            state.arrival = Some(arrival);
            let deadline = arrival.at.saturating_add(self.plan.nodes()[node].deadline);
            actions.push(Action::Released { node, index, arrival: arrival.at, deadline });
        }
        self.start(node, actions);
    }

    /// Whether the next job of `node` has its tokens, after those that wait before it, and as a source its time.
    fn is_triggered(&self, node: usize) -> bool {
        let state = &self.nodes[node];
        (!self.plan.nodes()[node].is_source || state.arrived > state.released)
            && self.have_tokens(&self.plan.links(node).tokens_in, state.released)
    }

    /// Whether all of `edges` have the tokens of job `index` of their consumer.
    fn have_tokens(&self, edges: &[usize], index: u64) -> bool {
        let suffices = |&edge: &usize| {
            let edge = &self.plan.edges()[edge];
            edge.suffices(self.nodes[edge.producer].completed, index)
        };
        edges.iter().all(suffices)
    }

    /// `max(r_prev + p, at)`.
    fn next_arrival(&self, node: usize, at: Instant) -> Arrival {
        self.plan.nodes()[node].period.next_arrival(self.nodes[node].arrival, at)
    }

    fn may_be_early(&self, node: usize) -> bool {
        let state = &self.nodes[node];
        self.releasing == Releasing::Early && !self.plan.nodes()[node].is_source && state.completed == state.released
    }

    /// Makes the next released job ready if it may run.
    fn start(&mut self, node: usize, actions: &mut Vec<Action>) {
        let state = &self.nodes[node];
        let links = self.plan.links(node);
        if state.started > state.completed || state.released == state.started {
            return;
        }
        if !self.have_tokens(&links.feedback_in, state.started) {
            return;
        }
        let index = state.started;
        for &edge in links.tokens_in.iter().chain(&links.feedback_in) {
            let tokens = self.plan.edges()[edge].consume;
            actions.push(Action::Consumed { node, index, edge, tokens });
        }
        actions.push(Action::Ready { node, index });
        self.nodes[node].started += 1;
    }

    /// Panics if an invariant does not hold; for tests and fuzzing.
    pub fn assert_invariants(&self) {
        for state in &self.nodes {
            assert!(state.started <= state.released, "a job is released before it is ready");
            assert!(state.started - state.completed <= 1, "jobs of a node never overlap");
        }
        for edge in self.plan.edges() {
            let is_there =
                |started: u64| started == 0 || edge.suffices(self.nodes[edge.producer].completed, started - 1);
            assert!(is_there(self.nodes[edge.consumer].started), "no job takes tokens that are not there");
        }
        self.timeouts.assert_invariants();
    }
}
