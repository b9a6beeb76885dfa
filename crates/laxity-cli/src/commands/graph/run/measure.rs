//! Response times, deadlines and end-to-end latencies, from the times at which jobs complete: while a graph runs, in
//! memory that depends on the tokens that wait and not on the length of the run.

use std::collections::VecDeque;

use laxity_graph::Spec;
use laxity_model::{Instant, Nanos};
use laxity_policy::graph::{Arrival, Edge, EdgeKind, Plan};
use laxity_trace::metrics::Distribution;

use super::super::order::downstream;
use super::orders::arrival;
use super::record::Record;

/// Follows the jobs of a graph.
#[derive(Clone, Debug)]
pub struct Meter {
    plan: Plan,
    start: Instant,
    nodes: Vec<NodeMeter>,
    /// Producers before consumers.
    order: Vec<usize>,
    /// For each node its edges, feedback aside, as positions in the plan.
    inbound: Vec<Vec<usize>>,
    outbound: Vec<Vec<usize>>,
}

/// What the jobs of a node were like.
#[derive(Clone, Debug)]
pub struct NodeMeter {
    /// From the arrival to the completion.
    pub response: Spans,
    /// Jobs that completed after their deadlines.
    pub missed: u64,
    /// How long after at most.
    pub tardiness_max: Nanos,
    /// Of a sink: from the arrival at the source to the completion.
    pub end_to_end: Option<Spans>,
    /// What was written down of jobs that are not measured yet, in their order.
    pending: VecDeque<Record>,
    /// The measured jobs that consumers still need, and the number of the first.
    recent: VecDeque<Option<Job>>,
    recent_first: u64,
    /// What the deadline of the last job that was measured is counted from.
    release: Option<Arrival>,
}

/// A job that is complete.
#[derive(Clone, Copy, Debug)]
struct Job {
    completion: Instant,
    /// The earliest arrival at a source that led to it; nothing if tokens did that were there at the start.
    origin: Option<Instant>,
}

/// A distribution of spans. Percentiles are at most 1/64 above the exact value and never below it.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    min: Option<Nanos>,
    all: Distribution,
}

/// What is said of spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// How many.
    pub count: u64,
    /// The shortest.
    pub min: Nanos,
    /// The median.
    pub p50: Nanos,
    /// 99 of 100 are no longer.
    pub p99: Nanos,
    /// The longest.
    pub max: Nanos,
}

impl Spans {
    fn record(&mut self, span: Nanos) {
        self.min = Some(self.min.map_or(span, |min| min.min(span)));
        self.all.record(span);
    }

    /// Nothing if there were none.
    pub fn summary(&self) -> Option<Summary> {
        let all = self.all.summary()?;
        Some(Summary { count: all.count, min: self.min?, p50: all.p50, p99: all.p99, max: all.max })
    }
}

impl Meter {
    /// Of jobs that have not begun. `start` is the arrival of the first job of a source without phase.
    pub fn new(spec: &Spec, start: Instant) -> Self {
        let plan = spec.plan().clone();
        let mut inbound = vec![Vec::new(); plan.nodes().len()];
        let mut outbound = inbound.clone();
        for (number, edge) in plan.edges().iter().enumerate().filter(|(_, edge)| edge.kind != EdgeKind::Feedback) {
            inbound[edge.consumer].push(number);
            outbound[edge.producer].push(number);
        }
        let leads_on = |&edge: &usize| plan.edges()[edge].kind == EdgeKind::Token;
        let node = |outbound: &Vec<usize>| NodeMeter {
            response: Spans::default(),
            missed: 0,
            tardiness_max: Nanos::ZERO,
            end_to_end: (!outbound.iter().any(leads_on)).then(Spans::default),
            pending: VecDeque::new(),
            recent: VecDeque::new(),
            recent_first: 0,
            release: None,
        };
        let nodes = outbound.iter().map(node).collect();
        Meter { nodes, start, order: downstream(spec.graph()).0, inbound, outbound, plan }
    }

    /// In the order of the graph.
    pub fn nodes(&self) -> &[NodeMeter] {
        &self.nodes
    }

    /// A job of `node` is about to complete. Said of one job twice, the last time counts.
    pub fn note(&mut self, node: usize, record: Record) {
        let pending = &mut self.nodes[node].pending;
        if pending.back().is_some_and(|last| last.index == record.index) {
            pending.pop_back();
        }
        pending.push_back(record);
    }

    /// Measures all jobs that were noted and are complete, given how many are, for each node.
    pub fn advance(&mut self, completed: &[u64]) {
        // A job is measured after those that it took tokens from. In this order one sweep does, but for back-edges.
        let mut has_moved = true;
        while has_moved {
            has_moved = false;
            for place in 0..self.order.len() {
                let node = self.order[place];
                while self.measure_next(node, completed[node]) {
                    has_moved = true;
                }
            }
        }
        (0..self.nodes.len()).for_each(|node| self.forget(node));
    }

    /// Measures the next job of `node` if it is complete and what it needs is known.
    fn measure_next(&mut self, node: usize, completed: u64) -> bool {
        let Some(&Record { index, completion }) = self.nodes[node].pending.front() else { return false };
        if index >= completed || !self.inbound(node).all(|edge| self.knows(edge, index)) {
            return false;
        }
        let (arrival, origin) = self.beginning(node, index);
        let rule = self.plan.nodes()[node];
        let meter = &mut self.nodes[node];
        meter.pending.pop_front();
        // r(j) = max(r(j-1) + p, the last token), whether or not it ran earlier; due at r(j) + d (paper 003, section
        // 5.1). By the code that `Job::release` runs, which forgets tokens that are older than its recorder.
        let release = rule.period.next_arrival(meter.release, arrival);
        meter.release = Some(release);
        let tardiness = completion.saturating_since(release.at.saturating_add(rule.deadline));
        meter.missed += u64::from(!tardiness.is_zero());
        meter.tardiness_max = meter.tardiness_max.max(tardiness);
        meter.response.record(completion.saturating_since(arrival));
        if let (Some(latencies), Some(origin)) = (&mut meter.end_to_end, origin) {
            latencies.record(completion.saturating_since(origin));
        }
        // Jobs that someone else carried out were not written down.
        while meter.recent_first + (meter.recent.len() as u64) < index {
            meter.recent.push_back(None);
        }
        meter.recent.push_back(Some(Job { completion, origin }));
        true
    }

    /// When job `index` of `node` arrived, and where it began.
    fn beginning(&self, node: usize, index: u64) -> (Instant, Option<Instant>) {
        if self.plan.nodes()[node].is_source {
            let arrival = arrival(&self.plan, self.start, node, index);
            return (arrival, Some(arrival));
        }
        let tokens =
            self.inbound(node).filter_map(|edge| Some(self.job(edge.producer, last_needed(edge, index)?)?.completion));
        let arrival = tokens.fold(self.start, Instant::max);
        let forward = self.inbound(node).filter(|edge| edge.kind == EdgeKind::Token);
        (arrival, forward.filter_map(|edge| self.origin_over(edge, index)).min())
    }

    /// The origin of the first token with one that job `index` of the consumer takes. Back-edges are not followed, and
    /// tokens that were there at the start have no origin. Origins never decrease from one job of a producer to the next.
    fn origin_over(&self, edge: &Edge, index: u64) -> Option<Instant> {
        let (consume, initial) = (u64::from(edge.consume), u64::from(edge.initial));
        let end = ((index + 1) * consume).checked_sub(initial).filter(|&end| end > 0)?;
        let last = (end - 1) / u64::from(edge.produce);
        (first_taken(edge, index)..=last).find_map(|job| self.job(edge.producer, job)?.origin)
    }

    fn inbound(&self, node: usize) -> impl Iterator<Item = &Edge> {
        self.inbound[node].iter().map(|&edge| &self.plan.edges()[edge])
    }

    /// Whether the jobs whose tokens job `index` of the consumer needs are measured.
    fn knows(&self, edge: &Edge, index: u64) -> bool {
        let producer = &self.nodes[edge.producer];
        last_needed(edge, index).is_none_or(|job| job < producer.recent_first + producer.recent.len() as u64)
    }

    fn job(&self, node: usize, index: u64) -> Option<Job> {
        let meter = &self.nodes[node];
        let place = usize::try_from(index.checked_sub(meter.recent_first)?).ok()?;
        *meter.recent.get(place)?
    }

    /// Forgets the jobs of `node` that no job to come takes tokens from.
    fn forget(&mut self, node: usize) {
        let outbound = self.outbound[node].iter().map(|&edge| &self.plan.edges()[edge]);
        let next = |node: usize| self.nodes[node].recent_first + self.nodes[node].recent.len() as u64;
        let needed = outbound.map(|edge| first_taken(edge, next(edge.consumer))).min();
        let meter = &mut self.nodes[node];
        let old = needed.unwrap_or(u64::MAX).saturating_sub(meter.recent_first).min(meter.recent.len() as u64);
        meter.recent.drain(..old as usize);
        meter.recent_first += old;
    }
}

/// The job of the producer whose tokens are the last that job `index` of the consumer waits for; nothing if those at the
/// start suffice.
fn last_needed(edge: &Edge, index: u64) -> Option<u64> {
    edge.needed(index).checked_sub(1)
}

/// The job of the producer that wrote the first token that job `index` of the consumer takes, those at the start aside.
fn first_taken(edge: &Edge, index: u64) -> u64 {
    (index * u64::from(edge.consume)).saturating_sub(edge.initial.into()) / u64::from(edge.produce)
}

#[cfg(test)]
mod tests {
    use super::super::notation;
    use super::*;

    const START: Instant = Instant(1_000_000_000);

    /// Milliseconds.
    fn ms(time: u64) -> Nanos {
        Nanos::from_millis(time)
    }

    /// A meter of `edges`, whose sources are released every 10 ms.
    fn meter(edges: &str) -> Meter {
        let mut graph = notation::graph(edges).expect("a graph");
        for node in 0..graph.nodes.len() {
            let is_source = graph.edges.iter().all(|edge| edge.consumer != node || edge.back_edge);
            graph.nodes[node].period = is_source.then_some(ms(10));
        }
        Meter::new(&Spec::new(graph).expect("it can be"), START)
    }

    /// The jobs of each node completed at these times, in milliseconds after the start; all are told at once.
    fn measured(edges: &str, completions: &[&[u64]]) -> Meter {
        let mut meter = meter(edges);
        for (node, times) in completions.iter().enumerate() {
            for (index, &time) in times.iter().enumerate() {
                meter.note(node, Record { index: index as u64, completion: START.saturating_add(ms(time)) });
            }
        }
        meter.advance(&completions.iter().map(|times| times.len() as u64).collect::<Vec<_>>());
        meter
    }

    /// Shortest and longest.
    fn ends(spans: &Spans) -> Option<(Nanos, Nanos)> {
        spans.summary().map(|all| (all.min, all.max))
    }

    /// source (10 ms) --> filter -- 1:2:3 +1 --> sink
    const EDGES: &str = "source:filter,filter:sink.2.3+1";
    const COMPLETIONS: [&[u64]; 3] = [&[2, 14, 30, 35], &[5, 15, 33, 51], &[21, 59]];

    /// ```text
    ///           tokens there  released  due  completes     ms; the filter is due every 10, the sink every 20
    /// filter 0             2         2   12          5
    ///        1            14        14   24         15
    ///        2            30        30   40         33
    ///        3            35        40   50         51     a period after job 2, though its tokens were there before
    /// sink   0            15        15   35         21
    ///        1            51        51   71         59
    /// ```
    #[test]
    fn a_job_is_due_a_deadline_after_its_last_token_and_no_sooner_than_a_period_after_the_one_before() {
        let found = measured(EDGES, &COMPLETIONS);
        let [source, filter, sink] = found.nodes() else { panic!("three nodes") };
        assert_eq!(source.missed, 0, "it completes just in time, at most");
        assert_eq!((filter.missed, filter.tardiness_max), (1, ms(1)));
        assert_eq!(sink.missed, 0);
    }

    #[test]
    fn the_response_time_is_from_the_last_token_to_the_completion() {
        let found = measured(EDGES, &COMPLETIONS);
        let [source, filter, sink] = found.nodes() else { panic!("three nodes") };
        assert_eq!(ends(&source.response), Some((ms(2), ms(10))));
        assert_eq!(ends(&filter.response), Some((ms(1), ms(16))), "job 3 has its tokens at 35");
        assert_eq!(ends(&sink.response), Some((ms(6), ms(8))));
    }

    /// The sink's job 0 takes the initial token and the filter's first, its job 1 the filter's second and third.
    #[test]
    fn latencies_begin_where_the_earliest_token_began_that_a_job_of_the_sink_takes() {
        let found = measured(EDGES, &COMPLETIONS);
        let sink = found.nodes()[2].end_to_end.as_ref().and_then(Spans::summary).expect("two jobs");
        assert_eq!((sink.count, sink.min, sink.max), (2, ms(21), ms(49)));
        assert!(found.nodes()[0].end_to_end.is_none(), "no sink");
        let none = measured(EDGES, &[&[2], &[5], &[]]);
        assert!(none.nodes()[2].end_to_end.as_ref().expect("a sink").summary().is_none(), "no job");
    }

    /// B's job 1 waits for C's job 0, which completes at 14; what comes over the back-edge is no origin.
    #[test]
    fn back_edges_delay_arrivals_but_are_no_origin() {
        let found = measured("A:B,B:C,C:B@1", &[&[1, 11], &[3, 15], &[14, 16]]);
        let [a, b, c] = found.nodes() else { panic!("three nodes") };
        assert_eq!(ends(&a.response), Some((ms(1), ms(1))));
        assert_eq!(ends(&b.response), Some((ms(1), ms(2))));
        assert_eq!(c.end_to_end.as_ref().and_then(ends), Some((ms(6), ms(14))));
        assert!(b.end_to_end.is_none() && c.end_to_end.is_some(), "an edge back does not keep C from being a sink");
    }

    /// Tokens at the start make the sink run ahead: its job 2 is the first that takes one with an origin.
    #[test]
    fn tokens_at_the_start_have_no_origin() {
        let found = measured("A:B+2", &[&[1, 11], &[0, 0, 20, 21]]);
        let latency = found.nodes()[1].end_to_end.as_ref().and_then(Spans::summary).expect("two jobs");
        assert_eq!((latency.count, latency.min, latency.max), (2, ms(11), ms(20)));
    }

    #[test]
    fn what_is_told_in_pieces_and_out_of_order_gives_the_same() {
        let mut meter = meter(EDGES);
        let at = |time| START.saturating_add(ms(time));
        let mut told = [0; 3];
        // The sink first, one job at a time, so that much has to wait.
        for round in 0..8 {
            for node in [2, 1, 0] {
                let index = told[node];
                if let Some(&time) = COMPLETIONS[node].get(index).filter(|_| round % (node + 1) == 0) {
                    // A job that is lost and done again.
                    meter.note(node, Record { index: index as u64, completion: at(time - 1) });
                    meter.advance(&told.map(|count| count as u64));
                    meter.note(node, Record { index: index as u64, completion: at(time) });
                    told[node] += 1;
                }
                meter.advance(&told.map(|count| count as u64));
            }
        }
        let expected = measured(EDGES, &COMPLETIONS);
        for (found, expected) in meter.nodes().iter().zip(expected.nodes()) {
            assert_eq!(found.response.summary(), expected.response.summary());
            assert_eq!((found.missed, found.tardiness_max), (expected.missed, expected.tardiness_max));
            let latency = |node: &NodeMeter| node.end_to_end.as_ref().and_then(Spans::summary);
            assert_eq!(latency(found), latency(expected));
            assert!(found.recent.len() <= 3 && found.pending.is_empty(), "what is used is forgotten");
        }
    }

    #[test]
    fn jobs_that_nobody_wrote_down_are_left_out() {
        let mut meter = meter("A:B");
        let record = |index| Record { index, completion: START.saturating_add(ms(10 * index + 1)) };
        [0, 2].into_iter().for_each(|index| meter.note(0, record(index)));
        (0..3).for_each(|index| meter.note(1, record(index)));
        meter.advance(&[3, 3]);
        let counts: Vec<u64> = meter.nodes().iter().map(|node| node.response.summary().expect("jobs").count).collect();
        assert_eq!(counts, [2, 3]);
        assert_eq!(meter.nodes()[1].end_to_end.as_ref().and_then(Spans::summary).expect("jobs").count, 2);
    }
}
