//! Pipelined graphs that share data objects.

use laxity_analysis::pgm;
use laxity_model::rng::SplitMix64;
use laxity_model::{DataObject, Edge, Graph, Nanos};
use laxity_policy::graph::{Action, CompiledGraph, EdgeKind, Releasing, Tokens};

use crate::driver::{Length, Run, back, graph, run, unit};

fn feedback(plan: &CompiledGraph) -> Vec<(usize, usize, u32)> {
    let edges = plan.edges().iter().filter(|edge| edge.kind == EdgeKind::Feedback);
    edges.map(|edge| (edge.producer, edge.consumer, edge.initial)).collect()
}

fn chain() -> Graph {
    graph(&[Some(10), None, None], vec![unit(0, 1), unit(1, 2)])
}

/// Paper 003, Example 5.1 and Fig. 5.6: A is written, changed and read by the three nodes of a chain.
#[test]
fn feedback_leads_from_every_user_of_an_object_to_the_users_before() {
    let plan = CompiledGraph::pipelined(&chain(), &[vec![0, 1, 2]], 3).expect("a sound graph");
    assert_eq!(feedback(&plan), [(1, 0, 3), (2, 1, 3), (2, 0, 3)]);
    assert_eq!((0..5).map(|job| plan.replica(job)).collect::<Vec<_>>(), [0, 1, 2, 0, 1]);
    let private = CompiledGraph::pipelined(&chain(), &[vec![0, 1], vec![2, 1]], 3).expect("a sound graph");
    assert_eq!(feedback(&private), [(1, 0, 3), (2, 1, 3)]);
}

/// A delay of two jobs from c back to a, two replicas: c's ring has four slots, a may run twice before c has run, and
/// the turned back-edge starts with two tokens as all others do.
#[test]
fn a_delay_grows_by_the_replicas_and_starts_with_its_own_tokens() {
    let delay = Edge { delay: 2, ..back(2, 0, 1) };
    let graph = graph(&[Some(10), None, None], vec![unit(0, 1), unit(1, 2), delay]);
    let plan = CompiledGraph::pipelined(&graph, &[], 2).expect("a sound graph");
    assert_eq!(plan.edges()[2].initial, 2);
    assert_eq!(feedback(&plan), [(1, 0, 2), (2, 1, 2), (0, 2, 2)]);
    assert_eq!((0..6).map(|job| plan.slot(2, job)).collect::<Vec<_>>(), [0, 1, 2, 3, 0, 1]);
}

/// A unit-rate graph, with several sources of different phases at times, whose objects are written by one node and read by
/// some of its descendants.
struct Shared {
    graph: Graph,
    accessors: Vec<Vec<usize>>,
    responses: Vec<u64>,
}

const PERIOD: u64 = 12;

fn shared(seed: u64) -> Shared {
    let mut rng = SplitMix64::new(seed);
    let nodes = rng.between(2, 7) as usize;
    let mut edges = Vec::new();
    let is_source: Vec<bool> = (0..nodes).map(|node| node == 0 || node + 1 < nodes && rng.below(5) == 0).collect();
    for node in (1..nodes).filter(|&node| !is_source[node]) {
        let producer = rng.below(node as u64) as usize;
        edges.push(unit(producer, node));
        if rng.below(3) == 0 {
            edges.push(unit(rng.below(node as u64) as usize, node));
        }
    }
    let periods: Vec<_> = is_source.iter().map(|is_source| is_source.then_some(PERIOD)).collect();
    let mut graph = graph(&periods, edges);
    for node in graph.nodes[1..].iter_mut().filter(|node| node.period.is_some()) {
        node.phase = Nanos(rng.below(4 * PERIOD));
    }
    let object = |rng: &mut SplitMix64, writer: usize| {
        let readers = (writer + 1..nodes).filter(|&node| is_descendant(&graph, writer, node));
        [writer].into_iter().chain(readers.filter(|_| rng.below(2) == 0)).collect()
    };
    let accessors = (0..nodes).map(|writer| object(&mut rng, writer)).collect();
    let responses = (0..nodes).map(|_| rng.between(1, 3 * PERIOD)).collect();
    Shared { graph, accessors, responses }
}

/// Edges lead to larger nodes only.
fn is_descendant(graph: &Graph, from: usize, to: usize) -> bool {
    from == to || graph.edges.iter().any(|edge| edge.producer == from && is_descendant(graph, edge.consumer, to))
}

/// The least N at which no access waits, by the analysis, which finds out by itself which node waits for which.
fn replicas_needed(shared: &Shared) -> u32 {
    let object = |(index, accessors): (usize, &Vec<usize>)| DataObject {
        name: format!("object {index}"),
        accessors: accessors.clone(),
        delay: 0,
    };
    let objects = shared.accessors.iter().enumerate().map(object).collect();
    let responses: Vec<Nanos> = shared.responses.iter().map(|&response| Nanos(response)).collect();
    pgm::replicas_needed(&Graph { objects, ..shared.graph.clone() }, &responses).expect("bounds")
}

/// Ready at the moment at which it would be without feedback: released, and its predecessor complete.
fn waits_for_feedback(run: &Run) -> bool {
    run.jobs.iter().any(|job| {
        let before = run.of(job.node).find(|other| other.index + 1 == job.index);
        let free = before.map_or(Some(0), |before| before.completed);
        free.is_some_and(|free| job.ready.is_none_or(|ready| ready > free.max(job.released)))
    })
}

/// Whether a job ran while, or after, a later job wrote the replica that it uses: readers of an object against its
/// writer, the first of its accessors.
fn has_stale_read(run: &Run, shared: &Shared, replicas: u64) -> bool {
    shared.accessors.iter().any(|object| {
        object[1..].iter().any(|&reader| {
            run.of(reader).any(|job| {
                let overwriter = run.of(object[0]).find(|other| other.index == job.index + replicas);
                let overwritten = overwriter.and_then(|other| other.ready);
                overwritten.is_some_and(|at| job.completed.is_none_or(|completed| completed > at))
            })
        })
    })
}

fn respond(plan: CompiledGraph, shared: &Shared) -> Run {
    run(Tokens::new(plan, Releasing::OnTime), &Length::Response(shared.responses.clone()), 60 * PERIOD)
}

#[test]
fn with_as_many_replicas_as_the_bound_says_no_job_waits_and_with_fewer_some_do() {
    let (mut checked, mut too_few) = (0, 0);
    for seed in 0..300 {
        let shared = shared(seed);
        let needed = replicas_needed(&shared);
        let plan =
            |replicas| CompiledGraph::pipelined(&shared.graph, &shared.accessors, replicas).expect("a sound graph");
        let enough = respond(plan(needed), &shared);
        assert!(!waits_for_feedback(&enough), "seed {seed}: {needed} replicas");
        assert!(!has_stale_read(&enough, &shared, needed.into()), "seed {seed}");
        checked += 1;
        if needed > 1 {
            let run = respond(plan(needed - 1), &shared);
            too_few += u32::from(waits_for_feedback(&run));
            assert!(!has_stale_read(&run, &shared, u64::from(needed) - 1), "seed {seed}: they wait, and read well");
        }
    }
    // With fewer the wait shows unless the node's own predecessor takes as long.
    assert!(checked == 300 && too_few > 100, "{checked} {too_few}");
}

/// The failsafe: whatever N, no replica is overwritten while it is in use. Without feedback it is.
#[test]
fn without_feedback_a_replica_is_overwritten_before_it_is_read() {
    let shared = Shared { graph: chain(), accessors: vec![vec![0, 2]], responses: vec![8, 20, 20] };
    let with = CompiledGraph::pipelined(&shared.graph, &shared.accessors, 2).expect("a sound graph");
    assert!(!has_stale_read(&respond(with, &shared), &shared, 2));
    // The one edge from c to a, which no path of other feedback edges replaces: no other node touches the object.
    let without_last = CompiledGraph::pipelined(&shared.graph, &[], 2).expect("a sound graph");
    assert_eq!(feedback(&without_last), [(1, 0, 2), (2, 1, 2)]);
    assert!(has_stale_read(&respond(without_last, &shared), &shared, 2));
}

/// With a single replica a pipeline is none: a waits for c, which is ready after it (drawn in periods of 10).
///
/// ```text
/// a   #  :#        released at 10, ready at 25
/// b    #   #
/// c     #   #
/// ```
#[test]
fn one_replica_runs_the_graph_end_to_end_before_it_starts_again() {
    let shared = Shared { graph: chain(), accessors: vec![vec![0, 1, 2]], responses: vec![0; 3] };
    let plan = CompiledGraph::pipelined(&shared.graph, &shared.accessors, 1).expect("a sound graph");
    let run = run(Tokens::new(plan, Releasing::Early), &Length::Execution(vec![5, 10, 10]), 60);
    let ready: Vec<u64> = run.of(0).filter_map(|job| job.ready).collect();
    let arrivals: Vec<u64> = run.of(0).map(|job| job.arrival).collect();
    assert_eq!((ready, arrivals), (vec![0, 25, 50], vec![0, 10, 20, 30, 40, 50]));
    let feedback_taken = |action: &Action| matches!(action, Action::Consumed { node: 0, edge, .. } if *edge >= 2);
    assert_eq!(run.actions.iter().filter(|it| feedback_taken(&it.1)).count(), 3 * 2);
}
