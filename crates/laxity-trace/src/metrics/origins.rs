//! From the completion of a graph's sink back to the arrival of its source.

use std::collections::VecDeque;

use laxity_model::{EdgeId, Instant, JobId, Nanos};

use crate::{EdgeKind, Event, Sink, TaskKind, TraceHeader};

/// One execution of a graph from end to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndToEnd {
    /// Which graph: index into [`TraceHeader::graphs`].
    pub graph: usize,
    /// The job of the sink.
    pub sink: JobId,
    /// From the arrival of the source's job to the completion of the sink's.
    pub latency: Nanos,
}

/// Follows tokens through graphs and collects the end-to-end latency of every job of a sink: a node without an outbound
/// edge that carries tokens (paper 003, section 5.5.3.2).
///
/// Tokens of an edge are consumed in the order in which they were produced, and each remembers the arrival of the
/// source's job that led to it. Where several lead to a job (edges that meet, jobs that consume several tokens), the
/// earliest counts, from which the end-to-end bounds are reckoned, too. Back-edges and feedback edges carry no data
/// downstream and are not followed; tokens that were there at the start have no origin, and neither has a job that
/// consumed no others.
#[derive(Clone, Debug)]
pub struct EndToEndLatencies {
    origins: Origins,
    found: Vec<EndToEnd>,
}

/// Where the tokens on every edge, and the jobs that consumed them, come from.
#[derive(Clone, Debug)]
pub(super) struct Origins {
    nodes: Vec<Option<Node>>,
    edges: Vec<Edge>,
}

#[derive(Clone, Debug)]
struct Node {
    graph: usize,
    is_source: bool,
    is_sink: bool,
    relative_deadline: Nanos,
    /// The jobs that are not complete and their origins, in index order.
    jobs: VecDeque<(u32, Option<Instant>)>,
}

#[derive(Clone, Debug)]
struct Edge {
    is_followed: bool,
    /// The tokens, those of one job together.
    tokens: VecDeque<(u32, Option<Instant>)>,
}

impl EndToEndLatencies {
    /// Nothing seen yet.
    pub fn new(header: &TraceHeader) -> Self {
        EndToEndLatencies { origins: Origins::new(header), found: Vec::new() }
    }

    /// The latencies, by completion.
    pub fn finish(self) -> Vec<EndToEnd> {
        self.found
    }
}

impl Sink for EndToEndLatencies {
    fn record(&mut self, at: Instant, event: Event) {
        self.found.extend(self.origins.record(at, event));
    }
}

impl Origins {
    pub fn new(header: &TraceHeader) -> Self {
        let followed = |kind: EdgeKind| kind == EdgeKind::Token;
        let edges = header
            .edges
            .iter()
            .map(|edge| Edge { is_followed: followed(edge.kind), tokens: VecDeque::from([(edge.initial, None)]) });
        let lead_nowhere = header.lead_nowhere();
        let nodes = header.tasks.iter().enumerate().map(|(index, info)| {
            let TaskKind::Node { graph, source } = info.kind else { return None };
            let (is_sink, relative_deadline) = (lead_nowhere[index], info.deadline);
            Some(Node { graph, is_source: source, is_sink, relative_deadline, jobs: VecDeque::new() })
        });
        Origins { nodes: nodes.collect(), edges: edges.collect() }
    }

    /// Takes one event; the latency, if it completes a sink's job of known origin.
    pub fn record(&mut self, at: Instant, event: Event) -> Option<EndToEnd> {
        match event {
            Event::Release { job, deadline } => self.release(job, deadline),
            Event::Consume { job, edge, tokens } => self.consume(job, edge, tokens),
            Event::Produce { job, edge, tokens } => self.produce(job, edge, tokens),
            Event::Complete { job, .. } => return self.complete(at, job),
            _ => {}
        }
        None
    }

    fn release(&mut self, job: JobId, deadline: Instant) {
        if let Some(node) = self.node(job) {
            let arrival = Instant(deadline.0.saturating_sub(node.relative_deadline.0));
            let arrival = node.is_source.then_some(arrival);
            node.note(job.index, arrival);
        }
    }

    fn consume(&mut self, job: JobId, edge: EdgeId, tokens: u32) {
        let Some(edge) = self.edges.get_mut(edge.index()).filter(|edge| edge.is_followed) else { return };
        let origin = edge.take(tokens);
        if let Some(node) = self.node(job) {
            node.note(job.index, origin);
        }
    }

    fn produce(&mut self, job: JobId, edge: EdgeId, tokens: u32) {
        let origin = self.node(job).and_then(|node| node.origin(job.index));
        if let Some(edge) = self.edges.get_mut(edge.index()).filter(|edge| edge.is_followed) {
            edge.tokens.push_back((tokens, origin));
        }
    }

    fn complete(&mut self, at: Instant, job: JobId) -> Option<EndToEnd> {
        let node = self.node(job)?;
        // Whether a job produces right before or right after its completion, it is still needed: forget its
        // predecessors only.
        while node.jobs.front().is_some_and(|&(index, _)| index < job.index) {
            node.jobs.pop_front();
        }
        let origin = node.origin(job.index).filter(|_| node.is_sink)?;
        Some(EndToEnd { graph: node.graph, sink: job, latency: at.saturating_since(origin) })
    }

    fn node(&mut self, job: JobId) -> Option<&mut Node> {
        self.nodes.get_mut(job.task.index())?.as_mut()
    }
}

impl Node {
    /// `origin`, if there is one, leads to job `index`.
    fn note(&mut self, index: u32, origin: Option<Instant>) {
        if self.jobs.back().is_none_or(|&(last, _)| last < index) {
            self.jobs.push_back((index, origin));
        } else if let Ok(position) = self.jobs.binary_search_by_key(&index, |&(job, _)| job) {
            let known = &mut self.jobs[position].1;
            *known = [*known, origin].into_iter().flatten().min();
        }
    }

    fn origin(&self, index: u32) -> Option<Instant> {
        let position = self.jobs.binary_search_by_key(&index, |&(job, _)| job).ok()?;
        self.jobs[position].1
    }
}

impl Edge {
    /// Takes the oldest tokens; returns the earliest origin among them.
    fn take(&mut self, mut tokens: u32) -> Option<Instant> {
        let mut earliest: Option<Instant> = None;
        while tokens > 0 {
            let (available, origin) = self.tokens.front_mut()?;
            let taken = tokens.min(*available);
            if taken > 0 {
                earliest = [earliest, *origin].into_iter().flatten().min();
            }
            tokens -= taken;
            *available -= taken;
            if *available == 0 {
                self.tokens.pop_front();
            }
        }
        earliest
    }
}
