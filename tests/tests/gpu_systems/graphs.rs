//! Random graphs whose nodes use GPUs and share data objects.

use laxity_model::{
    DataObject, Edge, Graph, InterruptHandling, Nanos, Node, Replicas, Scheduler, Task, ThreadPriority, Workload,
};
use proptest::prelude::*;
use proptest::sample::select;

use super::systems;

/// Runs of a node for each run of the graph.
const RATES: [u32; 3] = [1, 2, 4];

/// What is drawn of a node: body, rate, and the earlier nodes that feed it.
type Drawn = (Vec<laxity_model::Step>, u32, Vec<prop::sample::Index>, u32);

/// As many tokens as go come; `initial` of them at the start.
fn edge(rates: &[u32], producer: usize, consumer: usize, initial: u32) -> Edge {
    let (produce, consume) = (rates[consumer], rates[producer]);
    let back_edge = consumer <= producer;
    let initial = if back_edge { 2 * consume * rates[consumer] + initial } else { initial % consume.max(1) };
    Edge { producer, consumer, produce, consume, threshold: consume, initial, back_edge, delay: 0, message: 0 }
}

/// The first node is the only source; every other node has one or two producers before it.
fn graph(drawn: Vec<Drawn>, period_ms: u64, back: bool, replicas: Option<u32>, name: &str) -> Graph {
    let rates: Vec<u32> = drawn.iter().map(|node| node.1).collect();
    let mut edges = Vec::new();
    for (node, (_, _, producers, initial)) in drawn.iter().enumerate().skip(1) {
        let mut producers: Vec<usize> = producers.iter().map(|producer| producer.index(node)).collect();
        producers.sort_unstable();
        producers.dedup();
        edges.extend(producers.into_iter().map(|producer| edge(&rates, producer, node, *initial)));
    }
    // Whatever is on one path may share an object: node 0, what it feeds, and so on.
    let mut path = vec![0];
    while let Some(next) = edges.iter().find(|edge| !edge.back_edge && Some(&edge.producer) == path.last()) {
        path.push(next.consumer);
    }
    if back {
        edges.push(edge(&rates, path[path.len() - 1], path[path.len() / 2], 1));
    }
    // Only jobs of equal index can share a replica.
    let same_rate = rates.iter().all(|&rate| rate == 1);
    let objects = vec![DataObject { name: "frame".to_owned(), accessors: path, delay: 0 }];
    let replicas = replicas.filter(|_| same_rate).map_or(Replicas::None, Replicas::Count);
    let nodes = drawn.into_iter().enumerate().map(|(index, (body, rate, _, _))| Node {
        body,
        ..Node::new(format!("n{index}"), (index == 0).then(|| Nanos::from_millis(4 * period_ms / u64::from(rate))))
    });
    let nodes = nodes.collect();
    Graph { objects, replicas, ..Graph::new(name, nodes, edges) }
}

fn graphs() -> impl Strategy<Value = Vec<Graph>> {
    let rate = prop_oneof![3 => Just(1), 1 => select(RATES.to_vec())];
    let producers = prop::collection::vec(any::<prop::sample::Index>(), 1..3);
    let node = (systems::body(), rate, producers, 0u32..4);
    let one = (prop::collection::vec(node, 2..6), 4u64..8, any::<bool>(), prop::option::of(1u32..4));
    prop::collection::vec(one, 1..3).prop_map(|drawn| {
        let named =
            |(index, (nodes, period, back, replicas))| graph(nodes, period, back, replicas, &format!("g{index}"));
        drawn.into_iter().enumerate().map(named).collect()
    })
}

fn handling() -> impl Strategy<Value = InterruptHandling> {
    select(vec![
        InterruptHandling::Linux,
        InterruptHandling::ProcessAware,
        InterruptHandling::PreemptRt(ThreadPriority::High),
        InterruptHandling::Klmirqd { threads: None },
        InterruptHandling::Klmirqd { threads: Some(1) },
    ])
}

/// One or two graphs and a task beside them, with a scheduler that can run them.
pub fn system() -> impl Strategy<Value = (Workload, Scheduler)> {
    let task = systems::body().prop_map(|body| Task { body, ..Task::periodic("t", Nanos(1), Nanos::from_millis(5)) });
    let tasks = prop::option::of(task).prop_map(Vec::from_iter);
    let workload = (graphs(), tasks, systems::management(handling()), systems::resources(), any::<bool>());
    (workload, systems::scheduler(false)).prop_map(|((graphs, tasks, gpu_management, resources, costly), scheduler)| {
        let platform = systems::platform(1, 2, costly);
        let workload = Workload { graphs, resources, gpu_management, ..Workload::new("random", platform, tasks) };
        (workload, scheduler)
    })
}
