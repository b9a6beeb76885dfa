//! How regularly the nodes of graphs complete, and how long graphs take from end to end.

use laxity_model::{Instant, JobId, Nanos, TaskId};
use serde::Serialize;

use super::distribution::{Distribution, DistributionSummary};
use super::origins::Origins;
use crate::{Event, Sink, TraceHeader};

/// A graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GraphSummary {
    /// Its name.
    pub name: String,
    /// From the arrival of the source's job to the completion of the sink's; `None` if no sink completed.
    pub end_to_end: Option<DistributionSummary>,
    /// Its nodes.
    pub nodes: Vec<NodeSummary>,
}

/// A node of a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NodeSummary {
    /// Which task.
    pub task: TaskId,
    /// Time between consecutive completions (paper 003, section 5.5.3.1); `None` before the second.
    pub completion_delay: Option<DistributionSummary>,
}

/// The exact completion delays of every task: the differences between consecutive completions of its jobs (paper 003,
/// section 5.5.3.1).
#[derive(Clone, Debug)]
pub struct CompletionDelays {
    last: Vec<Option<Instant>>,
    delays: Vec<Vec<Nanos>>,
}

/// The fold over graphs.
#[derive(Clone, Debug)]
pub(super) struct Graphs {
    names: Vec<String>,
    nodes: Vec<Vec<TaskId>>,
    origins: Origins,
    end_to_end: Vec<Distribution>,
    /// By task; of nodes only.
    last: Vec<Option<Instant>>,
    delays: Vec<Distribution>,
}

impl CompletionDelays {
    /// Nothing seen yet.
    pub fn new(header: &TraceHeader) -> Self {
        CompletionDelays { last: vec![None; header.tasks.len()], delays: vec![Vec::new(); header.tasks.len()] }
    }

    /// The delays of each task, by `TaskId`, in the order in which they occurred.
    pub fn finish(self) -> Vec<Vec<Nanos>> {
        self.delays
    }
}

impl Sink for CompletionDelays {
    fn record(&mut self, at: Instant, event: Event) {
        let Event::Complete { job, .. } = event else { return };
        if let Some(delay) = completion_delay(&mut self.last, at, job) {
            self.delays[job.task.index()].push(delay);
        }
    }
}

impl Graphs {
    pub fn new(header: &TraceHeader) -> Self {
        Graphs {
            names: header.graphs.iter().map(|graph| graph.name.clone()).collect(),
            nodes: header.graphs.iter().map(|graph| graph.nodes.clone()).collect(),
            origins: Origins::new(header),
            end_to_end: vec![Distribution::default(); header.graphs.len()],
            last: vec![None; header.tasks.len()],
            delays: vec![Distribution::default(); header.tasks.len()],
        }
    }

    pub fn record(&mut self, at: Instant, event: Event) {
        if let Event::Complete { job, .. } = event
            && let Some(delay) = completion_delay(&mut self.last, at, job)
        {
            self.delays[job.task.index()].record(delay);
        }
        if let Some(found) = self.origins.record(at, event)
            && let Some(graph) = self.end_to_end.get_mut(found.graph)
        {
            graph.record(found.latency);
        }
    }

    pub fn summary(&self) -> Vec<GraphSummary> {
        let node = |&task: &TaskId| NodeSummary {
            task,
            completion_delay: self.delays.get(task.index()).and_then(Distribution::summary),
        };
        let graphs = self.names.iter().zip(&self.nodes).zip(&self.end_to_end);
        graphs
            .map(|((name, nodes), end_to_end)| GraphSummary {
                name: name.clone(),
                end_to_end: end_to_end.summary(),
                nodes: nodes.iter().map(node).collect(),
            })
            .collect()
    }
}

/// The time since the last completion of the job's task, if there was one.
fn completion_delay(last: &mut [Option<Instant>], at: Instant, job: JobId) -> Option<Nanos> {
    let before = last.get_mut(job.task.index())?.replace(at)?;
    Some(at.saturating_since(before))
}
