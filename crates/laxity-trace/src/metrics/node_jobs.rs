//! What the jobs of each node of a graph were like, counted from their tokens: for programs that run one graph.
//!
//! A task's response time counts from its release, which for a node may lie a period after its tokens. Here a job of a
//! node arrives with the last token that it waits for, and its response time is from then to its completion.

use std::collections::VecDeque;

use laxity_model::{Instant, JobId, Nanos, TaskId};

use super::distribution::{Distribution, DistributionSummary};
use super::origins::Origins;
use crate::{EdgeKind, Event, Sink, TaskKind, TraceHeader};

/// Follows the jobs of all nodes. Memory depends on the tokens that wait and not on the length of the run.
#[derive(Clone, Debug)]
pub struct NodeJobs {
    /// By task; of tasks that are no nodes nothing is counted.
    nodes: Vec<NodeSpans>,
    edges: Vec<Edge>,
    origins: Origins,
}

/// What the complete jobs of a node were like.
#[derive(Clone, Debug, Default)]
pub struct NodeSpans {
    /// Jobs that are complete.
    pub completed: u64,
    /// Jobs that completed after their deadlines.
    pub missed: u64,
    /// How long after at most.
    pub tardiness_max: Nanos,
    /// From the arrival to the completion.
    pub response: Spans,
    /// Of a sink: from the arrival at the source to the completion. Nothing for other nodes.
    pub end_to_end: Option<Spans>,
    kind: Kind,
    relative_deadline: Nanos,
    /// The deadlines of jobs that are released and not complete.
    deadlines: VecDeque<(u32, Instant)>,
}

/// What the arrivals of jobs follow from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    /// It is no node.
    #[default]
    Task,
    Source,
    Inner,
}

/// Spans, and the shortest of them. Percentiles are at most 1/64 above the exact value and never below it.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    min: Option<Nanos>,
    all: Distribution,
}

/// The tokens of an edge that a job of its consumer waits for: all but feedback.
#[derive(Clone, Debug)]
struct Edge {
    consumer: TaskId,
    consume: u64,
    threshold: u64,
    /// How many tokens were there or came so far, those of the start included.
    produced: u64,
    /// How many there were after each job of the producer, and when; those that no job to come waits for are forgotten.
    history: VecDeque<(u64, Instant)>,
    is_awaited: bool,
}

impl Spans {
    /// Counts one.
    pub fn record(&mut self, span: Nanos) {
        self.min = Some(self.min.map_or(span, |min| min.min(span)));
        self.all.record(span);
    }

    /// The shortest, and what else is known; nothing if there were none.
    pub fn summary(&self) -> Option<(Nanos, DistributionSummary)> {
        Some((self.min?, self.all.summary()?))
    }
}

impl NodeJobs {
    /// Nothing seen yet.
    pub fn new(header: &TraceHeader) -> Self {
        let lead_nowhere = header.lead_nowhere();
        let node = |(task, info): (usize, &crate::TaskInfo)| match info.kind {
            TaskKind::Node { source, .. } => NodeSpans {
                kind: if source { Kind::Source } else { Kind::Inner },
                end_to_end: lead_nowhere[task].then(Spans::default),
                relative_deadline: info.deadline,
                ..NodeSpans::default()
            },
            _ => NodeSpans::default(),
        };
        let edge = |edge: &crate::EdgeInfo| Edge {
            consumer: edge.consumer,
            consume: edge.consume.into(),
            threshold: edge.threshold.into(),
            produced: edge.initial.into(),
            history: VecDeque::from([(edge.initial.into(), Instant::ZERO)]),
            is_awaited: edge.kind != EdgeKind::Feedback,
        };
        NodeJobs {
            nodes: header.tasks.iter().enumerate().map(node).collect(),
            edges: header.edges.iter().map(edge).collect(),
            origins: Origins::new(header),
        }
    }

    /// By task.
    pub fn nodes(&self) -> &[NodeSpans] {
        &self.nodes
    }

    fn complete(&mut self, at: Instant, job: JobId) {
        let tokens = self.edges.iter_mut().filter(|edge| edge.is_awaited && edge.consumer == job.task);
        let tokens = tokens.map(|edge| edge.arrival(job.index)).max();
        let Some(node) = self.nodes.get_mut(job.task.index()).filter(|node| node.kind != Kind::Task) else { return };
        node.completed += 1;
        let Some(deadline) = node.take_deadline(job.index) else { return };
        let tardiness = at.saturating_since(deadline);
        node.missed += u64::from(!tardiness.is_zero());
        node.tardiness_max = node.tardiness_max.max(tardiness);
        let arrival = match node.kind {
            Kind::Source => Instant(deadline.0.saturating_sub(node.relative_deadline.0)),
            Kind::Inner | Kind::Task => tokens.unwrap_or(Instant::ZERO),
        };
        node.response.record(at.saturating_since(arrival));
    }
}

impl Sink for NodeJobs {
    fn record(&mut self, at: Instant, event: Event) {
        match event {
            Event::Release { job, deadline } => {
                if let Some(node) = self.nodes.get_mut(job.task.index()) {
                    node.deadlines.push_back((job.index, deadline));
                }
            }
            Event::Complete { job, .. } => self.complete(at, job),
            Event::Produce { edge, tokens, .. } => {
                if let Some(edge) = self.edges.get_mut(edge.index()).filter(|edge| edge.is_awaited) {
                    edge.produced += u64::from(tokens);
                    edge.history.push_back((edge.produced, at));
                }
            }
            _ => {}
        }
        if let Some(found) = self.origins.record(at, event)
            && let Some(spans) = &mut self.nodes[found.sink.task.index()].end_to_end
        {
            spans.record(found.latency);
        }
    }
}

impl NodeSpans {
    fn take_deadline(&mut self, index: u32) -> Option<Instant> {
        while self.deadlines.front().is_some_and(|&(job, _)| job < index) {
            self.deadlines.pop_front();
        }
        let &(_, deadline) = self.deadlines.front().filter(|&&(job, _)| job == index)?;
        self.deadlines.pop_front();
        Some(deadline)
    }
}

impl Edge {
    /// When the last token came that job `index` of the consumer waits for; forgets what no later job waits for.
    fn arrival(&mut self, index: u32) -> Instant {
        let needed = u64::from(index) * self.consume + self.threshold;
        while self.history.front().is_some_and(|&(produced, _)| produced < needed) {
            self.history.pop_front();
        }
        self.history.front().map_or(Instant::ZERO, |&(_, at)| at)
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::{CpuId, EdgeId, Scheduler};

    use super::*;
    use crate::{EdgeInfo, GraphInfo, Origin, TaskInfo};

    const CPU: CpuId = CpuId(0);

    fn ms(time: u64) -> Nanos {
        Nanos::from_millis(time)
    }

    fn at(time: u64) -> Instant {
        Instant::ZERO + ms(time)
    }

    /// Nodes with their relative deadlines; edges as producer, consumer, consume, threshold, initial and kind.
    fn header(deadlines: &[u64], edges: &[(u32, u32, u32, u32, u32, EdgeKind)]) -> TraceHeader {
        let node = |(task, &deadline): (usize, &u64)| TaskInfo {
            name: format!("n{task}"),
            period: ms(10),
            deadline: ms(deadline),
            wcet: ms(1),
            cluster: 0,
            rank: task as u32,
            kind: TaskKind::Node { graph: 0, source: task == 0 },
        };
        let edge =
            |&(producer, consumer, consume, threshold, initial, kind): &(u32, u32, u32, u32, u32, EdgeKind)| EdgeInfo {
                producer: TaskId(producer),
                consumer: TaskId(consumer),
                produce: 1,
                consume,
                threshold,
                initial,
                kind,
            };
        TraceHeader {
            tasks: deadlines.iter().enumerate().map(node).collect(),
            edges: edges.iter().map(edge).collect(),
            graphs: vec![GraphInfo { name: "g".to_owned(), nodes: (0..deadlines.len() as u32).map(TaskId).collect() }],
            ..TraceHeader::new(Origin::Live, "g", 1, Scheduler::GLOBAL_EDF)
        }
    }

    /// One job from its release to its completion, with what it takes from and puts on edges of one token each.
    fn job(jobs: &mut NodeJobs, (task, index): (u32, u32), due: u64, takes: &[(u32, u32)], done: u64, puts: &[u32]) {
        let job = JobId { task: TaskId(task), index };
        jobs.record(at(0), Event::Release { job, deadline: at(due) });
        for &(edge, tokens) in takes {
            jobs.record(at(done), Event::Consume { job, edge: EdgeId(edge), tokens });
        }
        jobs.record(at(done), Event::Complete { cpu: CPU, job });
        for &edge in puts {
            jobs.record(at(done), Event::Produce { job, edge: EdgeId(edge), tokens: 1 });
        }
    }

    /// The shortest and the longest.
    fn ends(spans: &Spans) -> Option<(Nanos, Nanos)> {
        spans.summary().map(|(min, all)| (min, all.max))
    }

    /// source -> filter -- 1:2:3 +1 --> sink. The sink's job 0 takes the initial token and the filter's first, and waits
    /// for the filter's second; its job 1 takes the second and third, and waits for the fourth.
    fn measured() -> NodeJobs {
        let token = EdgeKind::Token;
        let mut jobs = NodeJobs::new(&header(&[10, 10, 20], &[(0, 1, 1, 1, 0, token), (1, 2, 2, 3, 1, token)]));
        for (index, done) in [(0, 2), (1, 14), (2, 30), (3, 35)] {
            job(&mut jobs, (0, index), 10 + 10 * u64::from(index), &[], done, &[0]);
        }
        for (index, due, done) in [(0, 12, 5), (1, 24, 15), (2, 40, 33), (3, 50, 51)] {
            job(&mut jobs, (1, index), due, &[(0, 1)], done, &[1]);
        }
        job(&mut jobs, (2, 0), 35, &[(1, 2)], 21, &[]);
        job(&mut jobs, (2, 1), 71, &[(1, 2)], 59, &[]);
        jobs
    }

    #[test]
    fn the_response_time_is_from_the_last_token_that_a_job_waits_for_to_its_completion() {
        let jobs = measured();
        let [source, filter, sink] = jobs.nodes() else { panic!("three nodes") };
        assert_eq!(ends(&source.response), Some((ms(2), ms(10))));
        assert_eq!(ends(&filter.response), Some((ms(1), ms(16))), "job 3 has its tokens at 35");
        assert_eq!(ends(&sink.response), Some((ms(6), ms(8))));
    }

    #[test]
    fn a_job_that_completes_after_its_deadline_is_missed() {
        let jobs = measured();
        let counts = |node: &NodeSpans| (node.completed, node.missed, node.tardiness_max);
        let expected = [(4, 0, ms(0)), (4, 1, ms(1)), (2, 0, ms(0))];
        assert!(jobs.nodes().iter().map(counts).eq(expected), "the source completes just in time, at most");
    }

    #[test]
    fn latencies_begin_where_the_earliest_token_began_that_a_job_of_the_sink_takes() {
        let jobs = measured();
        let sink = jobs.nodes()[2].end_to_end.as_ref().expect("a sink");
        assert_eq!((sink.summary().expect("two jobs").1.count, ends(sink)), (2, Some((ms(21), ms(49)))));
        assert!(jobs.nodes()[0].end_to_end.is_none(), "no sink");
    }

    /// B's job 1 waits for C's job 0, which completes at 14; tokens of a back-edge are no origin.
    #[test]
    fn back_edges_delay_arrivals_and_feedback_does_not() {
        let (token, back, feedback) = (EdgeKind::Token, EdgeKind::Back, EdgeKind::Feedback);
        let edges = [(0, 1, 1, 1, 0, token), (1, 2, 1, 1, 0, token), (2, 1, 1, 1, 1, back), (2, 0, 1, 1, 1, feedback)];
        let mut jobs = NodeJobs::new(&header(&[10, 10, 10], &edges));
        job(&mut jobs, (0, 0), 10, &[(3, 1)], 1, &[0]);
        job(&mut jobs, (0, 1), 20, &[(3, 1)], 11, &[0]);
        job(&mut jobs, (1, 0), 11, &[(0, 1), (2, 1)], 3, &[1]);
        job(&mut jobs, (2, 0), 13, &[(1, 1)], 14, &[2, 3]);
        job(&mut jobs, (1, 1), 24, &[(0, 1), (2, 1)], 15, &[1]);
        job(&mut jobs, (2, 1), 25, &[(1, 1)], 16, &[2, 3]);
        let [a, b, c] = jobs.nodes() else { panic!("three nodes") };
        assert_eq!(ends(&a.response), Some((ms(1), ms(1))), "a source arrives with its time");
        assert_eq!(ends(&b.response), Some((ms(1), ms(2))));
        assert_eq!(c.end_to_end.as_ref().and_then(ends), Some((ms(6), ms(14))));
        assert!(b.end_to_end.is_none() && c.end_to_end.is_some(), "a back-edge does not keep C from being a sink");
    }
}
