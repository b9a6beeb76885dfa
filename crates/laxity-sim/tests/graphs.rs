//! Graphs in the schedule: tokens release jobs, deadlines follow the tokens, feedback keeps replicas apart.

mod common;

use common::{draw, simulate};
use laxity_model::{
    DataObject, Edge, ExecutionTime, Graph, Instant, LatestEdge, Nanos, Node, OverheadCosts, OverheadProfile, Platform,
    Replicas, Step, Workload,
};
use laxity_trace::{Event, Record};

const MS: Nanos = Nanos::from_millis(1);

fn node(name: &str, wcet_ms: u64, period_ms: Option<u64>) -> Node {
    Node {
        body: vec![Step::Cpu(ExecutionTime::constant(Nanos::from_millis(wcet_ms)))],
        ..Node::new(name, period_ms.map(Nanos::from_millis))
    }
}

fn edge(producer: usize, consumer: usize, produce: u32, consume: u32) -> Edge {
    Edge::rated(producer, consumer, produce, consume)
}

fn workload(cpus: usize, graph: Graph) -> Workload {
    Workload { graphs: vec![graph], ..Workload::new("w", Platform::identical(cpus), Vec::new()) }
}

/// (task, job, release, deadline), in ms.
fn releases(records: &[Record]) -> Vec<(u32, u32, u64, u64)> {
    let release = |record: &Record| match record.event {
        Event::Release { job, deadline } => Some((job.task.0, job.index, record.at.0 / MS.0, deadline.0 / MS.0)),
        _ => None,
    };
    records.iter().filter_map(release).collect()
}

/// A chain of three, period 5: each node follows its producer at once, and on two CPUs the graph is pipelined.
#[test]
fn a_chain_hands_its_token_on_and_overlaps_with_the_next_frame() {
    let nodes = vec![node("A", 2, Some(5)), node("B", 3, None), node("C", 4, None)];
    let graph = Graph::new("g", nodes, vec![edge(0, 1, 1, 1), edge(1, 2, 1, 1)]);
    let records = simulate(&workload(2, graph), "G-EDF", Instant::from_millis(15));
    assert_eq!(draw(&records, 2, MS.0, 15), "cpu0 001110011100111\ncpu1 .....2222.2222.");
    assert_eq!(
        releases(&records),
        [
            (0, 0, 0, 5),
            (1, 0, 2, 7),
            (2, 0, 5, 10),
            (0, 1, 5, 10),
            (1, 1, 7, 12),
            (2, 1, 10, 15),
            (0, 2, 10, 15),
            (1, 2, 12, 17),
            (2, 2, 15, 20)
        ],
        "a deadline is the last token's time plus the period"
    );
}

/// A (1 in 4) --4/7--> B (4 in 28): B's job needs the tokens of two jobs of A, or of one where some are left over.
#[test]
fn rates_decide_when_enough_tokens_are_there() {
    let nodes = vec![node("A", 1, Some(4)), node("B", 1, None)];
    let graph = Graph::new("g", nodes, vec![edge(0, 1, 4, 7)]);
    let records = simulate(&workload(1, graph), "G-EDF", Instant::from_millis(40));
    let of_b: Vec<u64> = releases(&records).iter().filter(|release| release.0 == 1).map(|release| release.2).collect();
    assert_eq!(of_b, [5, 13, 21, 25, 33], "A's jobs complete at 1, 5, 9, ...; 8, 16, 24, 28, 36 tokens");
}

/// Tokens that come early release a job early, but its deadline counts from a period after the job before.
#[test]
fn a_job_may_run_before_its_arrival_but_keeps_the_deadline_of_its_arrival() {
    let mut first = edge(0, 1, 1, 1);
    first.initial = 2;
    let nodes = vec![node("A", 1, Some(10)), node("B", 1, None)];
    let records = simulate(&workload(1, Graph::new("g", nodes, vec![first])), "G-EDF", Instant::from_millis(9));
    let of_b: Vec<_> = releases(&records).into_iter().filter(|release| release.0 == 1).collect();
    assert_eq!(of_b, [(1, 0, 0, 10), (1, 1, 2, 20), (1, 2, 3, 30)], "B runs at 1, 2 and 3 with deadlines 10 apart");
}

/// A writes an object that C still reads: with one replica A's next job waits for C; its release and deadline do not.
#[test]
fn feedback_delays_a_job_without_shifting_its_deadline() {
    let nodes = || vec![node("A", 1, Some(5)), node("B", 1, None), node("C", 5, None)];
    let edges = || vec![edge(0, 1, 1, 1), edge(1, 2, 1, 1)];
    let object = || DataObject { name: "frame".to_owned(), accessors: vec![0, 1, 2], delay: 0 };
    let started = |replicas| {
        let graph = Graph { objects: vec![object()], replicas, ..Graph::new("g", nodes(), edges()) };
        let records = simulate(&workload(3, graph), "G-EDF", Instant::from_millis(12));
        let ready: Vec<u64> = records
            .iter()
            .filter_map(|record| match record.event {
                Event::Ready { job, .. } if job.task.0 == 0 => Some(record.at.0 / MS.0),
                _ => None,
            })
            .collect();
        let releases: Vec<_> = releases(&records).into_iter().filter(|release| release.0 == 0).collect();
        (ready, releases)
    };
    let (ready, releases) = started(Replicas::Count(1));
    assert_eq!(ready, [0, 7], "C is done with the only replica at 7");
    assert_eq!(releases[1], (0, 1, 5, 10));
    assert_eq!(started(Replicas::Count(2)).0, [0, 5, 10], "a second replica is free in time");
}

/// Signalling takes time on the producer's CPU, before anything else runs there.
#[test]
fn a_producer_signals_all_consumers_in_one_go_before_it_is_preempted() {
    let nodes = vec![node("A", 1, Some(20)), node("B", 1, None), node("C", 1, None)];
    let graph = Graph::new("g", nodes, vec![edge(0, 1, 1, 1), edge(0, 2, 1, 1)]);
    let mut workload = workload(1, graph);
    let costs = OverheadCosts { release: Nanos::from_micros(100), ..OverheadCosts::default() };
    workload.platform.overheads = OverheadProfile::constant("release", costs);
    let records = simulate(&workload, "G-EDF", Instant::from_millis(10));
    let ready: Vec<(u32, u64)> = records
        .iter()
        .filter_map(|record| match record.event {
            Event::Ready { job, .. } => Some((job.task.0, record.at.0 / 1_000)),
            _ => None,
        })
        .collect();
    assert_eq!(ready, [(0, 100), (1, 1_200), (2, 1_200)]);
}

#[test]
fn a_graph_that_never_settles_is_refused_by_name() {
    let nodes = vec![node("A", 1, Some(4)), node("B", 1, None), node("C", 1, None), node("D", 1, None)];
    let edges = vec![edge(0, 1, 1, 1), edge(0, 2, 2, 1), edge(1, 3, 1, 1), edge(2, 3, 1, 1)];
    let error = laxity_plan::Plan::new(&workload(1, Graph::new("g", nodes, edges)), &Default::default(), 0)
        .map(drop)
        .expect_err("tokens pile up at D");
    assert!(error.to_string().contains("graph \"g\"") && error.to_string().contains('D'), "{error}");
}

/// ```text
///          0 1 2 3 4 5 6 7 8 9
///   A      0 0 . 1 1 . 2 2 . 3     period 3: complete at 2, 5, 8
///   B      0 . . . 1 . . . 2 .     period 4: begins at 0, 4, 8; at 8 the completion of that instant counts
/// ```
#[test]
fn a_job_reads_the_newest_complete_value_when_it_begins() {
    let nodes = vec![node("A", 2, Some(3)), node("B", 1, Some(4))];
    let graph = Graph { latest: vec![LatestEdge { producer: 0, consumer: 1 }], ..Graph::new("g", nodes, Vec::new()) };
    let records = simulate(&workload(2, graph), "G-EDF", Instant::from_millis(10));
    let read = |record: &Record| match record.event {
        Event::Read { job, value, .. } => Some((record.at.0 / MS.0, job.task.0, job.index, value)),
        _ => None,
    };
    let reads: Vec<_> = records.iter().filter_map(read).collect();
    assert_eq!(reads, [(0, 1, 0, None), (4, 1, 1, Some(0)), (8, 1, 2, Some(2))]);
}
