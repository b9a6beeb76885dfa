//! Graphs whose end-to-end bounds are known: with every response time at its bound, each node attains its offset.

use laxity_model::{Edge, Graph};
use laxity_policy::graph::{CompiledGraph, Releasing, Tokens};

use crate::driver::{Length, back, graph, rated, run, unit};

/// Runs 40 periods with responses `R`, each counted from the arrival, and returns by how much the latest release of
/// each node exceeds `(n - 1) * p`: what `O` bounds.
fn offsets(graph: &Graph, responses: &[u64]) -> Vec<u64> {
    let rates = graph.rates().expect("rates");
    let mut latest = Vec::new();
    for releasing in [Releasing::Early, Releasing::OnTime] {
        let plan = CompiledGraph::new(graph).expect("a sound graph");
        let run = run(Tokens::new(plan, releasing), &Length::Response(responses.to_vec()), 4_000);
        let excess = |node: usize| {
            let (jobs, window) = (rates[node].jobs, rates[node].window.0);
            run.of(node).map(|job| job.arrival - job.index * window / jobs).max().expect("it runs")
        };
        latest.push((0..responses.len()).map(excess).collect::<Vec<u64>>());
    }
    assert_eq!(latest[0], latest[1], "early releasing changes no arrival");
    latest.swap_remove(0)
}

/// Pedestrian detection, with thirds of a millisecond as the unit: R = 2p, O = 0, 200/3, 400/3, 200 ms.
#[test]
fn a_chain_adds_up_its_response_times() {
    let chain = graph(&[Some(100), None, None, None], vec![unit(0, 1), unit(1, 2), unit(2, 3)]);
    assert_eq!(offsets(&chain, &[200; 4]), [0, 200, 400, 600]);
}

/// In half milliseconds: p = 10, 7.5, 15; O = 0, 30, 52.5.
#[test]
fn a_multirate_chain_attains_its_offsets() {
    let edges = vec![Edge { threshold: 5, ..rated(0, 1, 4, 3) }, rated(1, 2, 1, 2)];
    assert_eq!(offsets(&graph(&[Some(20), None, None], edges), &[40, 30, 60]), [0, 60, 105]);
}

#[test]
fn a_diamond_attains_its_longest_path() {
    let edges = vec![unit(0, 1), unit(0, 2), unit(1, 3), unit(2, 3)];
    assert_eq!(offsets(&graph(&[Some(20), None, None, None], edges), &[30; 4]), [0, 30, 30, 60]);
}

#[test]
fn a_multirate_diamond_attains_its_offsets() {
    let edges =
        vec![rated(0, 1, 2, 1), Edge { threshold: 3, ..rated(0, 2, 1, 2) }, rated(1, 3, 1, 4), rated(2, 3, 1, 1)];
    assert_eq!(offsets(&graph(&[Some(12), None, None, None], edges), &[12, 6, 24, 24]), [0, 12, 36, 60]);
}

/// Three nodes of R = 20 at p = 10: six tokens on the back-edge throttle nothing, five do.
#[test]
fn six_tokens_suffice_and_five_do_not() {
    let looped = |tokens| graph(&[Some(10), None, None], vec![unit(0, 1), unit(1, 2), back(2, 0, tokens)]);
    assert_eq!(offsets(&looped(6), &[20; 3]), [0, 20, 40]);
    assert!(offsets(&looped(5), &[20; 3])[0] > 100, "the source falls behind without bound");
}
