//! What the nodes of a graph are doing, seen again and again.

use std::collections::VecDeque;

use laxity_graph::{Graph, NodeStatus, Ownership, Spec};
use laxity_model::{Instant, Nanos};
use laxity_policy::graph::EdgeKind;
use laxity_sys::clock;
use serde::Serialize;

use crate::quantity::TimeUnit;
use crate::table::{Cell, Table};

/// Rates are over this time.
const WINDOW: Nanos = Nanos::from_secs(2);

/// Response times are of at most so many jobs of each node.
const RECENT: u64 = 256;

/// Of a node with more inbound edges than this, the tokens on the rest are not shown.
const EDGES_SHOWN: usize = 4;

/// A graph at one time. As it runs meanwhile, what is said of different nodes is of slightly different times.
#[derive(Clone, Debug)]
pub struct Look {
    /// When.
    pub at: Instant,
    /// In the order of the graph.
    pub nodes: Vec<NodeStatus>,
    /// Tokens on each edge of the graph that no job has taken.
    pub tokens: Vec<u64>,
}

/// What a node is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No process has claimed it.
    Free,
    /// Its process has it and does something else.
    Claimed,
    /// It is suspended: until its release, until tokens or room come.
    Waiting,
    /// It is in a job.
    Running,
    /// It completes a job and is telling its consumers.
    Sending,
    /// Its process died, or let go of it in the middle of a job.
    Lost,
    /// It will run no more jobs.
    Ended,
}

/// A node as programs see it. The fields are described in `docs/reference/json.md` and are stable.
#[derive(Serialize)]
pub struct NodeLook<'a> {
    name: &'a str,
    state: &'static str,
    pid: Option<u32>,
    started: u64,
    completed: u64,
}

impl<'a> NodeLook<'a> {
    /// The node `name`, which does what `status` says.
    pub fn new(name: &'a str, status: &NodeStatus) -> Self {
        let NodeStatus { started, completed, ownership, .. } = *status;
        NodeLook { name, state: State::of(status).name(), pid: ownership.pid(), started, completed }
    }
}

impl Look {
    /// At `graph`, now.
    pub fn at(graph: &Graph) -> Self {
        let spec = graph.spec().graph();
        Look {
            at: clock::now(),
            nodes: (0..spec.nodes.len()).map(|node| graph.status(node)).collect(),
            tokens: (0..spec.edges.len()).map(|edge| graph.tokens(edge)).collect(),
        }
    }

    /// Jobs that are complete, of each node.
    pub fn completed(&self) -> Vec<u64> {
        self.nodes.iter().map(|node| node.completed).collect()
    }

    /// Jobs that are complete, of all nodes.
    pub fn jobs(&self) -> u64 {
        self.nodes.iter().map(|node| node.completed).sum()
    }
}

impl State {
    /// That it ended matters more than whose it still is.
    pub fn of(status: &NodeStatus) -> Self {
        match (status.has_terminated, status.ownership) {
            (true, _) => State::Ended,
            (false, Ownership::Free) => State::Free,
            (false, Ownership::Lost) => State::Lost,
            (false, Ownership::Claimed { .. }) if status.is_sending => State::Sending,
            (false, Ownership::Claimed { .. }) if status.started > status.completed => State::Running,
            (false, Ownership::Claimed { .. }) if status.is_waiting => State::Waiting,
            (false, Ownership::Claimed { .. }) => State::Claimed,
        }
    }

    /// One word.
    pub fn name(self) -> &'static str {
        match self {
            State::Free => "free",
            State::Claimed => "claimed",
            State::Waiting => "waiting",
            State::Running => "running",
            State::Sending => "sending",
            State::Lost => "lost",
            State::Ended => "ended",
        }
    }

    /// It, in a table.
    pub fn cell(self) -> Cell {
        match self {
            State::Claimed | State::Waiting | State::Running | State::Sending => self.name().into(),
            State::Free | State::Ended => Cell::faint(self.name()),
            State::Lost => Cell::bad(self.name()),
        }
    }
}

/// The looks of the last seconds, for rates.
#[derive(Clone, Debug, Default)]
pub struct History {
    looks: VecDeque<(Instant, Vec<u64>)>,
}

impl History {
    /// Adds a look and forgets those that are too old.
    pub fn add(&mut self, look: &Look) {
        self.looks.push_back((look.at, look.completed()));
        // The last one that is old enough stays.
        while self.looks.get(1).is_some_and(|(at, _)| look.at.saturating_since(*at) >= WINDOW) {
            self.looks.pop_front();
        }
    }

    /// Jobs of `node` a second, in tenths; nothing after a single look.
    pub fn rate(&self, node: usize) -> Option<u64> {
        self.rate_of(|completed| completed[node])
    }

    /// Jobs of all nodes a second, in tenths.
    pub fn rate_of_all(&self) -> Option<u64> {
        self.rate_of(|completed| completed.iter().sum())
    }

    fn rate_of(&self, count: impl Fn(&[u64]) -> u64) -> Option<u64> {
        let ((first_at, first), (last_at, last)) = (self.looks.front()?, self.looks.back()?);
        let span = last_at.saturating_since(*first_at);
        if span.is_zero() {
            return None;
        }
        let jobs = count(last).saturating_sub(count(first));
        // To the nearest; in 128 bits, as the product may exceed 64.
        let tenths = (u128::from(jobs) * 10_000_000_000 + u128::from(span.0 / 2)) / u128::from(span.0);
        u64::try_from(tenths).ok()
    }
}

/// A rate in tenths as text: `29.9`.
pub fn tenths(rate: u64) -> String {
    format!("{}.{}", rate / 10, rate % 10)
}

/// What a look does not tell of a node.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Jobs that completed after their deadlines, if someone counted them.
    pub missed: Option<u64>,
    /// Median and maximum of response times; nothing before the first job.
    pub response: Option<(Nanos, Nanos)>,
}

impl Times {
    /// Of the last jobs that `node` remembers, for a caller that does not follow all of them.
    pub fn recent(graph: &Graph, node: usize) -> Times {
        let mut responses = graph.response_times(node, RECENT);
        responses.sort_unstable();
        let median = responses.get(responses.len().saturating_sub(1) / 2);
        Times { missed: None, response: median.copied().zip(responses.last().copied()) }
    }
}

/// A row for each node, but for those beyond `rows`. Besides what `look` tells: `losses` and `times` of each node, and
/// the process that has it where deadlines were not counted.
pub fn table(spec: &Spec, look: &Look, history: &History, losses: &[u64], times: &[Times], rows: usize) -> Table {
    let longest = times.iter().filter_map(|times| Some(times.response?.1)).max();
    let unit = TimeUnit::for_longest(longest.unwrap_or_default());
    let counts_misses = times.iter().any(|times| times.missed.is_some());
    let mut table = Table::of("node")
        .text("state")
        .group("jobs", if counts_misses { &["completed", "1/s", "late"] } else { &["completed", "1/s"] })
        .group(&format!("response time, {}", unit.name), &["median", "max"])
        .group("lost", &[""]);
    if !counts_misses {
        table = table.group("process", &[""]);
    }
    table = table.text("tokens waiting");
    for (node, status) in look.nodes.iter().enumerate().take(rows) {
        let rate = history.rate(node).map_or(Cell::faint("-"), |rate| tenths(rate).into());
        let mut row = vec![spec.graph().nodes[node].name.clone().into(), State::of(status).cell()];
        row.extend([status.completed.to_string().into(), rate]);
        let Times { missed, response } = times[node];
        row.extend(missed.map(Cell::mishaps));
        let shown = |span: Option<Nanos>| span.map_or(Cell::faint("-"), |span| unit.show(span).into());
        row.extend([shown(response.map(|(median, _)| median)), shown(response.map(|(_, max)| max))]);
        row.push(Cell::mishaps(losses.get(node).copied().unwrap_or_default()));
        if !counts_misses {
            row.push(status.ownership.pid().map_or(Cell::faint("-"), |pid| pid.to_string().into()));
        }
        row.push(waiting(spec, look, node));
        table.row(row);
    }
    table
}

/// The tokens on each edge to `node`, in the order of the graph.
fn waiting(spec: &Spec, look: &Look, node: usize) -> Cell {
    let edges = spec.plan().edges().iter().zip(&look.tokens);
    let inbound = edges.filter(|(edge, _)| edge.consumer == node && edge.kind != EdgeKind::Feedback);
    let tokens: Vec<String> = inbound.map(|(_, tokens)| tokens.to_string()).collect();
    match tokens.len() {
        0 => Cell::faint("-"),
        1..=EDGES_SHOWN => tokens.join(" ").into(),
        _ => format!("{} ...", tokens[..EDGES_SHOWN].join(" ")).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(at: u64, completed: u64) -> Look {
        let (ownership, has_terminated) = (Ownership::Claimed { pid: 1 }, false);
        let (is_waiting, is_sending) = (true, false);
        let status = NodeStatus { ownership, started: completed, completed, has_terminated, is_waiting, is_sending };
        Look { at: Instant(at), nodes: vec![status], tokens: Vec::new() }
    }

    #[test]
    fn rates_are_over_the_last_seconds() {
        let mut history = History::default();
        assert_eq!(history.rate(0), None);
        history.add(&look(0, 1_000));
        assert_eq!(history.rate(0), None, "one look shows no movement");
        history.add(&look(500_000_000, 1_015));
        assert_eq!(history.rate(0), Some(300));
        // After these the first two are older than the window.
        for (at, completed) in [(2_500_000_000, 1_015), (3_500_000_000, 1_016)] {
            history.add(&look(at, completed));
        }
        assert_eq!(history.rate(0), Some(3), "1 job in 3 s");
        assert_eq!(tenths(3), "0.3");
    }

    #[test]
    fn a_node_in_a_job_runs_and_one_that_ended_does_no_more() {
        let status = look(0, 5).nodes[0];
        assert_eq!(State::of(&status), State::Waiting);
        assert_eq!(State::of(&NodeStatus { is_waiting: false, ..status }), State::Claimed);
        assert_eq!(State::of(&NodeStatus { started: 6, ..status }), State::Running);
        assert_eq!(State::of(&NodeStatus { is_sending: true, ..status }), State::Sending);
        assert_eq!(State::of(&NodeStatus { started: 6, ownership: Ownership::Lost, ..status }), State::Lost);
        assert_eq!(State::of(&NodeStatus { started: 6, has_terminated: true, ..status }), State::Ended);
    }
}
