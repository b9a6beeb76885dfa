//! How many replicas let a graph be pipelined without stalls. The tests of `laxity-policy`, which carries graphs out, show
//! that no job waits with as many replicas, and that some wait with fewer.

use laxity_analysis::check::{Options, Report, Status, check};
use laxity_analysis::pgm::{ReplicasError, replicas_needed};
use laxity_model::{
    Chain, DataObject, Edge, ExecutionTime, Graph, Nanos, Node, Platform, Replicas, Scheduler, Step, Workload,
};

fn chain(nodes: usize, accessors: &[usize]) -> Graph {
    let node = |index| Node::new(format!("n{index}"), (index == 0).then_some(Nanos(10)));
    let edges = (1..nodes).map(|consumer| edge(consumer - 1, consumer)).collect();
    let object = DataObject { name: "image".to_owned(), accessors: accessors.to_vec(), delay: 0 };
    Graph { objects: vec![object], ..Graph::new("g", (0..nodes).map(node).collect(), edges) }
}

fn edge(producer: usize, consumer: usize) -> Edge {
    Edge::new(producer, consumer)
}

/// Three nodes of period 10 that respond within 20 each: an image that the last one reads is in use for 60, one that is
/// only handed on for 40.
#[test]
fn an_object_is_in_use_from_the_release_of_its_first_user_to_the_completion_of_the_last() {
    let responses = [Nanos(20); 3];
    assert_eq!(replicas_needed(&chain(3, &[0, 2]), &responses), Ok(6));
    assert_eq!(replicas_needed(&chain(3, &[0, 1]), &responses), Ok(4));
    assert_eq!(replicas_needed(&chain(3, &[2, 0, 1]), &responses), Ok(6), "in whatever order");
    assert_eq!(replicas_needed(&chain(3, &[0, 2]), &[Nanos(20), Nanos(20), Nanos(21)]), Ok(7));
    assert_eq!(replicas_needed(&chain(1, &[0]), &[Nanos(100)]), Ok(1), "jobs of one node never meet");
}

/// The delay's edge leads back: its writer waits for its reader, which is released first.
#[test]
fn a_delay_is_waited_for_over_its_edge_only() {
    let mut graph = chain(3, &[0, 1]);
    graph.objects.push(DataObject { name: "points".to_owned(), accessors: vec![0, 2], delay: 6 });
    graph.edges.push(Edge { delay: 6, initial: 1, back_edge: true, ..edge(2, 0) });
    assert_eq!(replicas_needed(&graph, &[Nanos(20); 3]), Ok(4));
    graph.edges[2].delay = 5;
    let error = replicas_needed(&graph, &[Nanos(20); 3]).expect_err("a job takes 60 from end to end, and 50 ahead");
    assert!(matches!(error, ReplicasError::EndToEnd(_)), "{error}");
}

#[test]
fn what_has_no_bound_is_refused() {
    let two = [Nanos(1); 2];
    assert_eq!(replicas_needed(&chain(3, &[0]), &two), Err(ReplicasError::Lengths { nodes: 3, bounds: 2 }));
    let mut graph = chain(2, &[0, 1]);
    graph.edges[0].produce = 2;
    assert_eq!(replicas_needed(&graph, &two), Err(ReplicasError::NotOneToOne { edge: 0 }));
    let unknown = ReplicasError::UnknownAccessor { object: "image".to_owned(), node: 2 };
    assert_eq!(replicas_needed(&chain(2, &[0, 2]), &two), Err(unknown));
    assert!(matches!(replicas_needed(&Graph::new("g", vec![], vec![edge(0, 1)]), &[]), Err(ReplicasError::Rates(_))));
}

/// `near` may be released as soon as `first` is, its other producer taking no time, while what `last` waits for besides takes
/// its longest: last's job 0 is then complete 20 + 50 + 20 after the arrival of near's job 0.
#[test]
fn a_node_that_is_released_early_waits_for_one_that_another_path_holds_up() {
    let names = ["first", "quick", "near", "far", "last"];
    let nodes = names.map(|name| Node::new(name, (name == "first").then_some(Nanos(10))));
    let edges = [(0, 1), (1, 2), (2, 4), (0, 3), (3, 4)].map(|(producer, consumer)| edge(producer, consumer));
    let object = DataObject { name: "image".to_owned(), accessors: vec![2, 4], delay: 0 };
    let mut graph = Graph { objects: vec![object], ..Graph::new("g", nodes.to_vec(), edges.to_vec()) };
    let responses = [20, 10, 10, 50, 20].map(Nanos);
    assert_eq!(replicas_needed(&graph, &responses), Ok(9));
    graph.edges.retain(|edge| edge.producer != 3);
    assert_eq!(replicas_needed(&graph, &responses), Ok(7), "first is kept until far is done");
}

/// Three nodes of 2 ms every 10 ms with a CPU each, and an image that all of them touch.
fn pipeline(replicas: u32, wcet_ms: u64) -> Workload {
    let mut graph = Graph { replicas: Replicas::Count(replicas), ..chain(3, &[0, 1, 2]) };
    for node in &mut graph.nodes {
        node.period = node.period.map(|_| Nanos::from_millis(10));
        node.body = vec![Step::Cpu(ExecutionTime::constant(Nanos::from_millis(wcet_ms)))];
    }
    Workload { graphs: vec![graph], ..Workload::new("w", Platform::identical(3), Vec::new()) }
}

fn checked(workload: &Workload) -> Report {
    check(workload, &Scheduler::GLOBAL_EDF, &Options::default())
}

/// In use for 3 * 4 ms of 10 ms.
#[test]
fn a_graph_of_too_few_replicas_is_not_proven_and_the_number_that_is_enough_is_told() {
    assert!(checked(&pipeline(2, 4)).hard.is_schedulable());
    let report = checked(&pipeline(1, 4));
    for finding in [&report.hard, &report.soft] {
        assert_eq!(finding.status, Status::NotProven);
        let message = &finding.failures[0].message;
        assert!(message.contains("one of 1 replicas") && message.contains("2 replicas are enough"), "{message}");
    }
    assert!(report.tasks.iter().all(|task| task.response_time.is_none()), "a job that waits takes longer");
}

#[test]
fn execution_times_grow_no_further_than_replicas_and_deadlines_of_chains_allow() {
    let growth = |workload: &Workload| checked(workload).scaling.and_then(|scaling| scaling.permille);
    assert_eq!(growth(&pipeline(1, 2)), Some(1_666), "6 ms of 10 ms");
    assert_eq!(growth(&pipeline(2, 2)), Some(3_333), "of 20 ms");
    let mut workload = pipeline(9, 2);
    assert_eq!(growth(&workload), Some(5_000), "each node to its period");
    let limit = Some(Nanos::from_millis(9));
    let chain = |data_age_max, reaction_time_max| {
        let (name, path) = ("c".to_owned(), vec![0, 1, 2]);
        vec![Chain { name, graph: 0, path, data_age_max, reaction_time_max }]
    };
    workload.chains = chain(limit, None);
    assert_eq!(growth(&workload), Some(1_500), "6 ms of 9 ms");
    workload.chains = chain(None, limit);
    assert_eq!(growth(&workload), None, "an event waits for the next sample up to 10 ms");
}
