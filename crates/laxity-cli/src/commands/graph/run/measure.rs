//! Deadlines and end-to-end latencies, from the times at which jobs completed.

use laxity_graph::Spec;
use laxity_model::{Instant, Nanos};
use laxity_policy::graph::{Edge, EdgeKind, Plan};

use super::threads::Recording;

/// What a run was like.
#[derive(Clone, Debug)]
pub struct Measurement {
    /// From the first release to the end of the last thread.
    pub ran: Nanos,
    /// Whether it was interrupted.
    pub is_cut_short: bool,
    /// In the order of the graph.
    pub nodes: Vec<NodeMeasurement>,
}

/// What the jobs of a node were like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeMeasurement {
    /// Jobs that completed.
    pub jobs: u64,
    /// Of these, those after their deadlines.
    pub missed: u64,
    /// How long after at most.
    pub tardiness_max: Nanos,
    /// Of a sink: from the arrival at the source to the completion of its jobs.
    pub end_to_end: Option<Latency>,
}

/// A distribution of spans, exactly; percentiles by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// How many.
    pub count: u64,
    /// The shortest.
    pub min: Nanos,
    /// The median.
    pub p50: Nanos,
    /// 99 of 100 are at most this.
    pub p99: Nanos,
    /// The longest.
    pub max: Nanos,
}

impl Measurement {
    /// Of a run of `spec`.
    pub fn of(spec: &Spec, recording: &Recording) -> Self {
        let plan = spec.plan();
        let origins = origins(plan, recording);
        let nodes = (0..plan.nodes().len()).map(|node| {
            let completions = &recording.completions[node];
            let is_sink = !plan.edges().iter().any(|edge| edge.kind == EdgeKind::Token && edge.producer == node);
            let latencies = completions.iter().zip(&origins[node]);
            let latencies = latencies.filter_map(|(end, origin)| Some(end.saturating_since((*origin)?)));
            NodeMeasurement {
                end_to_end: if is_sink { Latency::of(latencies.collect()) } else { None },
                ..deadlines(plan, recording, node)
            }
        });
        Measurement {
            ran: recording.end.saturating_since(recording.start),
            is_cut_short: recording.is_cut_short,
            nodes: nodes.collect(),
        }
    }

    /// Jobs that completed.
    pub fn jobs(&self) -> u64 {
        self.nodes.iter().map(|node| node.jobs).sum()
    }

    /// Jobs that missed their deadlines.
    pub fn missed(&self) -> u64 {
        self.nodes.iter().map(|node| node.missed).sum()
    }
}

impl Latency {
    fn of(mut spans: Vec<Nanos>) -> Option<Self> {
        spans.sort_unstable();
        let (min, max) = (*spans.first()?, *spans.last()?);
        let rank = |percent: usize| spans[(spans.len() * percent).div_ceil(100) - 1];
        Some(Latency { count: spans.len() as u64, min, p50: rank(50), p99: rank(99), max })
    }
}

/// The arrival of job `index` of a source.
pub fn arrival(plan: &Plan, start: Instant, node: usize, index: u64) -> Instant {
    let node = &plan.nodes()[node];
    // The period of a source is one that was written: a whole number.
    let since = Nanos(node.period.floor().0.saturating_mul(index));
    start.saturating_add(node.phase).saturating_add(since)
}

/// Which jobs of `node` were late. Job j is released at `r(j) = max(r(j-1) + p, when its last token was there)`, whether
/// or not it ran earlier, and due at `r(j) + d` (paper 003, section 5.1).
///
/// The period is rounded down to nanoseconds, so a deadline is early by at most a nanosecond for each job in a row that
/// its period released.
fn deadlines(plan: &Plan, recording: &Recording, node: usize) -> NodeMeasurement {
    let rule = &plan.nodes()[node];
    let inbound: Vec<&Edge> =
        plan.edges().iter().filter(|edge| edge.consumer == node && edge.kind != EdgeKind::Feedback).collect();
    let completions = &recording.completions[node];
    let mut result = NodeMeasurement { jobs: completions.len() as u64, ..NodeMeasurement::default() };
    let mut earliest = recording.start;
    for (index, &completion) in completions.iter().enumerate() {
        let tokens = inbound.iter().filter_map(|edge| tokens_there(edge, &recording.completions[edge.producer], index));
        let release = match rule.is_source {
            true => arrival(plan, recording.start, node, index as u64),
            false => tokens.fold(earliest, Instant::max),
        };
        earliest = release.saturating_add(rule.period.floor());
        let tardiness = completion.saturating_since(release.saturating_add(rule.deadline));
        result.missed += u64::from(!tardiness.is_zero());
        result.tardiness_max = result.tardiness_max.max(tardiness);
    }
    result
}

/// When the tokens of job `index` of the consumer were there; nothing if they were at the start.
fn tokens_there(edge: &Edge, producer: &[Instant], index: usize) -> Option<Instant> {
    let needed = u64::from(edge.threshold) + index as u64 * u64::from(edge.consume);
    let jobs = needed.saturating_sub(edge.initial.into()).div_ceil(edge.produce.into());
    producer.get(usize::try_from(jobs).ok()?.checked_sub(1)?).copied()
}

/// For each job of each node the earliest arrival of a source's job that led to it, as in schedules: back-edges are not
/// followed, and tokens that were there at the start have no origin.
fn origins(plan: &Plan, recording: &Recording) -> Vec<Vec<Option<Instant>>> {
    let mut found: Vec<Vec<Option<Instant>>> = vec![Vec::new(); plan.nodes().len()];
    for node in downstream(plan) {
        let jobs = 0..recording.completions[node].len();
        found[node] = match plan.nodes()[node].is_source {
            true => jobs.map(|index| Some(arrival(plan, recording.start, node, index as u64))).collect(),
            false => jobs
                .map(|index| {
                    let inbound = tokens_into(plan, node);
                    inbound.filter_map(|edge| origin_over(edge, &found[edge.producer], index as u64)).min()
                })
                .collect(),
        };
    }
    found
}

fn tokens_into(plan: &Plan, node: usize) -> impl Iterator<Item = &Edge> {
    plan.edges().iter().filter(move |edge| edge.consumer == node && edge.kind == EdgeKind::Token)
}

/// The origin of the first token with one that job `index` of the consumer takes. Origins never decrease from one job of
/// the producer to the next.
fn origin_over(edge: &Edge, producer: &[Option<Instant>], index: u64) -> Option<Instant> {
    let (consume, initial) = (u64::from(edge.consume), u64::from(edge.initial));
    let taken = (index * consume).max(initial)..((index + 1) * consume).max(initial);
    let last = taken.end.checked_sub(initial + 1).filter(|_| !taken.is_empty())? / u64::from(edge.produce);
    let first = (taken.start - initial) / u64::from(edge.produce);
    (first..=last).find_map(|job| *producer.get(job as usize)?)
}

/// The nodes, producers before consumers; back-edges and feedback do not count.
fn downstream(plan: &Plan) -> Vec<usize> {
    let nodes = plan.nodes().len();
    let mut missing: Vec<usize> = (0..nodes).map(|node| tokens_into(plan, node).count()).collect();
    let mut order: Vec<usize> = (0..nodes).filter(|&node| missing[node] == 0).collect();
    let mut done = 0;
    while let Some(&node) = order.get(done) {
        done += 1;
        for edge in plan.edges().iter().filter(|edge| edge.kind == EdgeKind::Token && edge.producer == node) {
            missing[edge.consumer] -= 1;
            if missing[edge.consumer] == 0 {
                order.push(edge.consumer);
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use laxity_model as model;

    use super::*;

    const START: Instant = Instant(1_000_000_000);

    /// source (10 ms) -- 1:1 --> filter -- 1:2:3 +1 --> sink
    fn spec() -> Spec {
        let node = |name: &str, period| model::Node {
            name: name.to_owned(),
            period,
            phase: Nanos::ZERO,
            deadline: None,
            priority: None,
            cluster: None,
            body: Vec::new(),
        };
        let edge = |producer, consume, threshold, initial| model::Edge {
            producer,
            consumer: producer + 1,
            produce: 1,
            consume,
            threshold,
            initial,
            back_edge: false,
            delay: 0,
        };
        let nodes = vec![node("source", Some(Nanos::from_millis(10))), node("filter", None), node("sink", None)];
        Spec::new(model::Graph::new("g", nodes, vec![edge(0, 1, 1, 0), edge(1, 2, 3, 1)])).expect("it can be")
    }

    /// Milliseconds after the start.
    fn at(times: &[u64]) -> Vec<Instant> {
        times.iter().map(|&ms| START.saturating_add(Nanos::from_millis(ms))).collect()
    }

    fn measured(source: &[u64], filter: &[u64], sink: &[u64]) -> Measurement {
        let completions = vec![at(source), at(filter), at(sink)];
        Measurement::of(&spec(), &Recording { start: START, end: at(&[60])[0], completions, is_cut_short: false })
    }

    /// ```text
    ///           tokens there  arrives  due  completes     ms; the filter is due every 10, the sink every 20
    /// filter 0             2        2   12          5
    ///        1            14       14   24         15
    ///        2            30       30   40         33
    ///        3            35       40   50         51     a period after job 2, though its tokens were there before
    /// sink   0            15       15   35         21
    ///        1            51       51   71         59
    /// ```
    #[test]
    fn a_job_is_due_a_deadline_after_its_last_token_and_no_sooner_than_a_period_after_the_one_before() {
        let found = measured(&[2, 14, 30, 35], &[5, 15, 33, 51], &[21, 59]);
        let [source, filter, sink] = &found.nodes[..] else { panic!("three nodes") };
        assert_eq!((source.jobs, source.missed), (4, 0), "to complete at the deadline is not to miss it");
        assert_eq!((filter.jobs, filter.missed, filter.tardiness_max), (4, 1, Nanos::from_millis(1)));
        assert_eq!((sink.jobs, sink.missed), (2, 0));
        assert_eq!((found.jobs(), found.missed(), found.ran), (10, 1, Nanos::from_millis(60)));
    }

    /// The sink's job 0 takes the initial token and the filter's first, its job 1 the filter's second and third.
    #[test]
    fn latencies_begin_where_the_earliest_token_began_that_a_job_of_the_sink_takes() {
        let found = measured(&[2, 14, 30, 35], &[5, 15, 33, 51], &[21, 59]);
        let ms = Nanos::from_millis;
        let latency = Latency { count: 2, min: ms(21), p50: ms(21), p99: ms(49), max: ms(49) };
        assert_eq!(found.nodes[2].end_to_end, Some(latency));
        assert_eq!(found.nodes[0].end_to_end, None, "no sink");
        assert_eq!(measured(&[2], &[5], &[]).nodes[2].end_to_end, None, "no job");
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let latency = Latency::of((1..=200).rev().map(Nanos).collect()).expect("there are some");
        assert_eq!(
            (latency.min, latency.p50, latency.p99, latency.max),
            (Nanos(1), Nanos(100), Nanos(198), Nanos(200))
        );
        assert_eq!(Latency::of(Vec::new()), None);
    }
}
