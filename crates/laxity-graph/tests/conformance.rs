//! Random graphs run live, by a thread for each node, and in the simulator: every job of every node reads the very same
//! messages.

mod support;

use std::collections::VecDeque;
use std::thread;

use laxity_graph::{Channel, ChannelKind, Graph, Job, Spec};
use laxity_model::{Edge, EdgeId, ExecutionTime, Instant, Nanos, Platform, Step, TaskId, Workload};
use laxity_plan::Plan;
use laxity_sim::Simulator;
use laxity_trace::Event;
use proptest::prelude::*;
use support::{Place, edge, graph};

/// In which every rate's pattern repeats.
const WINDOW: Nanos = Nanos::from_millis(60);

/// More than initial tokens start: at most 3 on each of 9 edges, which start at most 3 times as many jobs downstream,
/// and a job more at each step for what does not divide.
const EXTRA_JOBS: u32 = 300;

/// A token: the job that wrote it, from 1, and which of that job's it was; both 0 for initial tokens.
type Token = (u64, u32);
/// For each job of a node the tokens it took from each inbound edge.
type Jobs = Vec<Vec<Vec<Token>>>;

#[derive(Clone, Debug)]
struct Case {
    spec: Spec,
    /// Jobs of each node in a window.
    jobs: Vec<u64>,
    windows: u64,
}

/// Whatever the edges, rates agree: an edge carries as many tokens in a window as the jobs at its ends divide.
fn edge_between(jobs: &[u64], (producer, consumer): (usize, usize), factor: u32, ahead: u32, initial: u32) -> Edge {
    let (produce, consume) = (jobs[consumer] as u32 * factor, jobs[producer] as u32 * factor);
    Edge { produce, consume, threshold: consume + ahead, initial, ..edge(producer, consumer) }
}

/// Kinds of edges that carry messages.
const LINKS: &[ChannelKind] = &[ChannelKind::Ring, ChannelKind::Fifo, ChannelKind::Queue, ChannelKind::Stream];

/// A channel of `kind` if everybody may have one for so many messages.
fn kind_or_ring(kind: ChannelKind, capacity: u32, produce: u32) -> Channel {
    let most = match kind {
        ChannelKind::Fifo => 256,
        ChannelKind::Queue => 10,
        _ => u32::MAX,
    };
    let kind = if capacity + produce <= most { kind } else { ChannelKind::Ring };
    kind.channel(12, capacity)
}

prop_compose! {
    fn case()(nodes in 2usize..7, is_tree in any::<bool>(), windows in 1u64..6)(
        jobs in prop::collection::vec(1u64..4, nodes),
        parents in prop::collection::vec(any::<prop::sample::Index>(), nodes),
        extra in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4),
        numbers in prop::collection::vec((1u32..3, 0u32..4, 0u32..4), nodes + 4),
        kinds in prop::collection::vec(prop::sample::select(LINKS), nodes + 4),
        has_back_edge in any::<bool>(),
        slack in 0u32..5,
        is_tree in Just(is_tree), windows in Just(windows),
    ) -> Case {
        let nodes = jobs.len();
        let mut pairs: Vec<(usize, usize)> = (1..nodes).map(|node| (parents[node].index(node), node)).collect();
        if !is_tree {
            let ordered = extra.iter().map(|(a, b)| (a.index(nodes), b.index(nodes)));
            pairs.extend(ordered.filter(|(a, b)| a < b));
        }
        let mut edges: Vec<Edge> = pairs
            .iter()
            .zip(&numbers)
            .map(|(&pair, &(factor, ahead, initial))| edge_between(&jobs, pair, factor, ahead, initial))
            .collect();
        if has_back_edge && !is_tree {
            let back = edge_between(&jobs, (nodes - 1, 0), 1, 0, 0);
            // Two windows ahead, and what the paths between the two keep for themselves.
            let kept: u32 = edges.iter().map(|edge| edge.threshold + edge.produce).sum();
            let initial = back.threshold + (2 + kept) * back.consume * jobs[0] as u32;
            edges.push(Edge { initial, back_edge: true, ..back });
        }
        // In a tree the smallest rings do. Where paths join again they hold all, as a join that ends for want of tokens
        // on one path makes no room on the other. Initial tokens start some jobs more than the windows have.
        let channel = |(edge, kind): (&Edge, &ChannelKind)| {
            let smallest = (edge.threshold - 1 + edge.produce).max(edge.initial);
            let all = smallest + edge.initial + edge.produce * ((jobs[edge.producer] * windows) as u32 + EXTRA_JOBS);
            kind_or_ring(*kind, if is_tree { smallest + slack } else { all }, edge.produce)
        };
        let channels = edges.iter().zip(&kinds).map(channel).collect();
        let names: Vec<String> = (0..nodes).map(|node| format!("n{node}")).collect();
        let mut graph = graph(&names.iter().map(String::as_str).collect::<Vec<_>>(), edges);
        for (node, &jobs) in graph.nodes.iter_mut().zip(&jobs).filter(|(node, _)| node.period.is_some()) {
            node.period = Some(Nanos(WINDOW.0 / jobs));
        }
        Case { spec: Spec::with_channels(graph, channels).expect("rates agree"), jobs, windows }
    }
}

/// One thread for each node; sources end after their jobs, and their end empties the graph.
fn live(case: &Case, graph: &Graph) -> Vec<Jobs> {
    let nodes = &case.spec.graph().nodes;
    thread::scope(|scope| {
        let run = |(position, name): (usize, String)| {
            let limit = nodes[position].period.map_or(u64::MAX, |_| case.jobs[position] * case.windows);
            let mut node = graph.claim(&name).expect("it is free");
            let mut jobs = Jobs::new();
            while (jobs.len() as u64) < limit
                && let Ok(mut job) = node.wait_for(Nanos::from_secs(20))
            {
                jobs.push(exchange(&case.spec, position, &mut job));
                job.complete();
            }
            node.terminate();
            jobs
        };
        let threads: Vec<_> = (0..nodes.len())
            .map(|position| (position, nodes[position].name.clone()))
            .map(|node| scope.spawn(move || run(node)))
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// What the job takes away, and writes what it produces.
fn exchange(spec: &Spec, node: usize, job: &mut Job<'_>) -> Vec<Vec<Token>> {
    let index = job.index();
    let (inputs, mut outputs) = job.messages();
    let mut taken = Vec::new();
    for (position, edge) in spec.graph().edges.iter().enumerate() {
        if edge.producer == node {
            for number in 0..edge.produce {
                let message = outputs.get(position, number).expect("the job's own");
                message[..8].copy_from_slice(&(index + 1).to_le_bytes());
                message[8..].copy_from_slice(&number.to_le_bytes());
            }
        }
        if edge.consumer == node {
            let token = |number| {
                let message = inputs.get(position, number).expect("the job's own");
                let (job, number) = message.split_at(8);
                (u64::from_le_bytes(job.try_into().expect("8")), u32::from_le_bytes(number.try_into().expect("4")))
            };
            taken.push((0..edge.consume).map(token).collect());
        }
    }
    taken
}

/// The tokens that the simulator's jobs take are told apart by their order.
fn simulated(case: &Case) -> Vec<Jobs> {
    let mut graph = case.spec.graph().clone();
    for node in &mut graph.nodes {
        node.body = vec![Step::Cpu(ExecutionTime::constant(Nanos(100)))];
    }
    let edges = graph.edges.clone();
    let nodes = graph.nodes.len();
    let workload = Workload { graphs: vec![graph], ..Workload::new("w", Platform::identical(nodes), Vec::new()) };
    let plan = Plan::new(&workload, &"G-EDF".parse().expect("a scheduler"), 0).expect("the simulator can run it");
    let mut simulator = Simulator::new(&plan, Vec::new());
    // The sources' next jobs would arrive now.
    simulator.run_until(Instant(WINDOW.0 * case.windows - 1));
    let mut on_edges: Vec<VecDeque<Token>> =
        edges.iter().map(|edge| (0..edge.initial).map(|_| (0, 0)).collect()).collect();
    let mut jobs: Vec<Jobs> = vec![Vec::new(); nodes];
    for record in simulator.finish() {
        match record.event {
            Event::Ready { job, .. } => begin(&mut jobs, job.task, job.index),
            Event::Produce { job, edge: EdgeId(edge), tokens } => {
                on_edges[edge as usize].extend((0..tokens).map(|number| (u64::from(job.index) + 1, number)));
            }
            Event::Consume { job, edge: EdgeId(edge), tokens } => {
                begin(&mut jobs, job.task, job.index);
                let taken = (0..tokens).map(|_| on_edges[edge as usize].pop_front().expect("a token")).collect();
                jobs[job.task.0 as usize].last_mut().expect("begun").push(taken);
            }
            _ => {}
        }
    }
    jobs
}

fn begin(jobs: &mut [Jobs], TaskId(node): TaskId, index: u32) {
    let jobs = &mut jobs[node as usize];
    if jobs.len() == index as usize {
        jobs.push(Vec::new());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn live_jobs_read_what_simulated_jobs_read(case in case()) {
        let place = Place::new("conformance");
        let graph = place.create(&case.spec).expect("the name is free");
        let live = live(&case, &graph);
        let simulated = simulated(&case);
        for (node, (live, simulated)) in live.iter().zip(&simulated).enumerate() {
            prop_assert_eq!(live, simulated, "node {}", node);
        }
    }
}
