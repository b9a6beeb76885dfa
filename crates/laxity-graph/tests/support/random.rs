//! Random graphs of counter edges, whatever their shape with rates that agree, and threads that run them.

use std::thread;

use laxity_graph::{Graph, Job, Node, Spec};
use laxity_model::{DataObject, Edge, Nanos, Replicas};
use proptest::prelude::*;

use super::{edge, graph};

/// A graph, and how many jobs each of its sources has.
#[derive(Clone, Debug)]
pub struct Case {
    pub spec: Spec,
    /// For each node; only those of sources count.
    pub jobs: Vec<u64>,
}

prop_compose! {
    /// In each window node i completes `rates[i]` jobs, so that an edge's producer and consumer divide its tokens.
    pub fn case(window: Nanos)(nodes in 2usize..7, windows in 1u64..6)(
        rates in prop::collection::vec(1u64..4, nodes),
        parents in prop::collection::vec(any::<prop::sample::Index>(), nodes),
        extra in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..4),
        numbers in prop::collection::vec((1u32..3, 0u32..4, 0u32..4), nodes + 4),
        has_object in any::<bool>(),
        windows in Just(windows),
    ) -> Case {
        let nodes = rates.len();
        let mut pairs: Vec<(usize, usize)> = (1..nodes).map(|node| (parents[node].index(node), node)).collect();
        let ordered = extra.iter().map(|(a, b)| (a.index(nodes), b.index(nodes)));
        pairs.extend(ordered.filter(|(a, b)| a < b));
        let edges = pairs.iter().zip(&numbers).map(|(&(producer, consumer), &(factor, ahead, initial))| {
            let (produce, consume) = (rates[consumer] as u32 * factor, rates[producer] as u32 * factor);
            Edge { produce, consume, threshold: consume + ahead, initial, ..edge(producer, consumer) }
        });
        let names: Vec<String> = (0..nodes).map(|node| format!("n{node}")).collect();
        let mut graph = graph(&names.iter().map(String::as_str).collect::<Vec<_>>(), edges.collect());
        for (node, rate) in graph.nodes.iter_mut().zip(&rates).filter(|(node, _)| node.period.is_some()) {
            node.period = Some(Nanos(window.0 / rate));
        }
        // All of one rate may share an object, whose replicas bring feedback edges.
        if has_object && rates.iter().all(|&rate| rate == rates[0]) {
            graph.objects = vec![DataObject { name: "o".to_owned(), accessors: (0..nodes).collect(), delay: 0 }];
            graph.replicas = Replicas::Count(40);
        }
        let jobs = rates.iter().map(|rate| rate * windows).collect();
        match Spec::new(graph.clone()) {
            Ok(spec) => Case { spec, jobs },
            Err(_) => {
                graph.replicas = Replicas::None;
                Case { spec: Spec::new(graph).expect("rates agree"), jobs }
            }
        }
    }
}

/// One thread for each node. Sources end after their jobs, and their end empties the graph. Answers what `note` says of
/// each job of each node.
pub fn run<T: Send>(
    case: &Case,
    graph: &Graph,
    prepare: impl Fn(&mut Node) + Sync,
    note: impl Fn(&Job<'_>) -> T + Sync,
) -> Vec<Vec<T>> {
    let run = |position: usize| {
        let described = &case.spec.graph().nodes[position];
        let limit = described.period.map_or(u64::MAX, |_| case.jobs[position]);
        let mut node = graph.claim(&described.name).expect("it is free");
        prepare(&mut node);
        let mut notes = Vec::new();
        while (notes.len() as u64) < limit
            && let Ok(job) = node.wait_for(Nanos::from_secs(20))
        {
            notes.push(note(&job));
            job.complete();
        }
        node.terminate();
        notes
    };
    thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = (0..case.jobs.len()).map(|node| scope.spawn(move || run(node))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}
