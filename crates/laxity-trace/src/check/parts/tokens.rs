//! Tokens on the edges of graphs, and the replicas of data objects.

use laxity_model::{EdgeId, Instant, JobId};

use super::super::{Problem, Report, Violation};
use crate::{EdgeInfo, EdgeKind, Event, Origin, TraceHeader};

/// Finds faults of the token semantics (paper 003, section 5.2) and stale reads (section 5.4.1):
///
/// - each job puts on an edge, once and in index order, what the edge says its producer does, and takes what it says
///   its consumer does, from an edge that has its threshold;
/// - a job is dispatched only after it consumed from every inbound edge, and completes only after its predecessor
///   produced on every outbound one (its own tokens may follow within the instant);
/// - a writer's job is dispatched only after the readers of the replica that it overwrites are complete: on a feedback
///   edge, whose producers are the readers, as many jobs must be complete as its tokens say.
///
/// In a recording that may begin with any job only amounts and owners are judged.
#[derive(Debug)]
pub(super) struct Tokens<'a> {
    header: &'a TraceHeader,
    /// Whether the trace shows all jobs.
    from_start: bool,
    edges: Vec<Edge>,
    /// The edges that lead to and from each task.
    inbound: Vec<Vec<usize>>,
    outbound: Vec<Vec<usize>>,
    /// Jobs completed, by task.
    completed: Vec<u64>,
    /// The next job that is dispatched for the first time, by task.
    next: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Edge {
    tokens: u64,
    /// Jobs that produced and that consumed.
    produced: u64,
    consumed: u64,
}

impl<'a> Tokens<'a> {
    pub fn new(header: &'a TraceHeader) -> Self {
        let edge = |info: &EdgeInfo| Edge { tokens: u64::from(info.initial), ..Edge::default() };
        Tokens {
            header,
            from_start: header.origin == Origin::Simulated,
            edges: header.edges.iter().map(edge).collect(),
            inbound: header.edges_by(|edge| edge.consumer),
            outbound: header.edges_by(|edge| edge.producer),
            completed: vec![0; header.tasks.len()],
            next: vec![0; header.tasks.len()],
        }
    }

    pub fn expect_all_jobs(&mut self) {
        self.from_start = true;
    }

    pub fn record(&mut self, at: Instant, event: Event, report: &mut Report) {
        let mut found = |job, what| report.push(Violation { at, cpu: None, job: Some(job), what });
        match event {
            Event::Produce { job, edge, tokens } => self.produce(job, edge, tokens, &mut found),
            Event::Consume { job, edge, tokens } => self.consume(job, edge, tokens, &mut found),
            Event::Dispatch { job, .. } => self.dispatch(job, &mut found),
            Event::Complete { job, .. } => self.complete(job, &mut found),
            _ => {}
        }
    }

    fn produce(&mut self, job: JobId, edge: EdgeId, tokens: u32, found: &mut impl FnMut(JobId, Problem)) {
        let Some(info) = self.header.edges.get(edge.index()) else { return found(job, Problem::UnknownEdge { edge }) };
        let state = &mut self.edges[edge.index()];
        if info.producer != job.task {
            found(job, Problem::WrongEnd { edge });
        } else if self.from_start && u64::from(job.index) != state.produced {
            found(job, Problem::TokensOutOfTurn { edge });
        } else if tokens != info.produce {
            found(job, Problem::WrongTokens { edge, tokens, expected: info.produce });
        }
        state.tokens = state.tokens.saturating_add(u64::from(tokens));
        state.produced += 1;
    }

    fn consume(&mut self, job: JobId, edge: EdgeId, tokens: u32, found: &mut impl FnMut(JobId, Problem)) {
        let Some(info) = self.header.edges.get(edge.index()) else { return found(job, Problem::UnknownEdge { edge }) };
        let state = &mut self.edges[edge.index()];
        let needed = info.threshold.max(tokens);
        if info.consumer != job.task {
            found(job, Problem::WrongEnd { edge });
        } else if self.from_start && u64::from(job.index) != state.consumed {
            found(job, Problem::TokensOutOfTurn { edge });
        } else if tokens != info.consume {
            found(job, Problem::WrongTokens { edge, tokens, expected: info.consume });
        } else if self.from_start && state.tokens < u64::from(needed) {
            found(job, Problem::BelowThreshold { edge, tokens: state.tokens, threshold: needed });
        }
        state.tokens = state.tokens.saturating_sub(u64::from(tokens));
        state.consumed += 1;
    }

    fn dispatch(&mut self, job: JobId, found: &mut impl FnMut(JobId, Problem)) {
        let Some(next) = self.next.get_mut(job.task.index()).filter(|next| job.index >= **next) else { return };
        *next = job.index.saturating_add(1);
        if !self.from_start {
            return;
        }
        for &index in &self.inbound[job.task.index()] {
            let info = &self.header.edges[index];
            let edge = EdgeId(index as u32);
            if self.edges[index].consumed <= u64::from(job.index) {
                found(job, Problem::StartedWithoutTokens { edge });
            }
            let readers = readers_before(info, job.index);
            let completed = self.completed.get(info.producer.index()).copied().unwrap_or(0);
            if info.kind == EdgeKind::Feedback && completed < readers {
                let reader = JobId { task: info.producer, index: u32::try_from(readers - 1).unwrap_or(u32::MAX) };
                found(job, Problem::StaleRead { reader });
            }
        }
    }

    fn complete(&mut self, job: JobId, found: &mut impl FnMut(JobId, Problem)) {
        let Some(completed) = self.completed.get_mut(job.task.index()) else { return };
        *completed += 1;
        let lacks = |&&index: &&usize| self.edges[index].produced < u64::from(job.index);
        if let Some(&index) = self.outbound[job.task.index()].iter().find(lacks).filter(|_| self.from_start) {
            found(job, Problem::TokensOutOfTurn { edge: EdgeId(index as u32) });
        }
    }
}

/// How many jobs of a feedback edge's producer must be complete before job `index` of its consumer starts:
/// initial + produce * completed >= consume * index + threshold.
fn readers_before(info: &EdgeInfo, index: u32) -> u64 {
    let needed = u64::from(info.consume) * u64::from(index) + u64::from(info.threshold);
    needed.saturating_sub(u64::from(info.initial)).div_ceil(u64::from(info.produce.max(1)))
}
