//! PGM graphs against a simulation that moves tokens (I5), and relations between their bounds (I31).

use laxity_analysis::pgm::{EndToEnd, EndToEndError, Responses, TokenEdge, TokenGraph, end_to_end, rates, replicas};
use laxity_analysis::{Rational, rational};
use laxity_model::rng::SplitMix64;
use proptest::prelude::*;

/// A graph with the periods it was drawn for, response-time bounds and source jitters, in ticks.
#[derive(Clone, Debug)]
struct Case {
    graph: TokenGraph,
    periods: Vec<u64>,
    responses: Vec<u64>,
    jitters: Vec<u64>,
}

fn exact(values: &[u64]) -> Vec<Rational> {
    values.iter().map(|&value| rational(value, 1)).collect()
}

fn greatest_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_divisor(b, a % b) }
}

impl Case {
    fn bounds(&self) -> Result<EndToEnd, EndToEndError> {
        let rates = rates(&self.graph).expect("drawn with consistent rates");
        let periods: Vec<Rational> = rates.iter().map(|rate| rate.period()).collect();
        assert_eq!(periods, exact(&self.periods));
        end_to_end(&self.graph, &rates, &exact(&self.responses), &exact(&self.jitters))
    }
}

/// An edge on which tokens neither pile up nor run out: tokens produced per time are tokens consumed per time.
fn edge(rng: &mut SplitMix64, periods: &[u64], producer: usize, consumer: usize) -> TokenEdge {
    let common = greatest_divisor(periods[producer], periods[consumer]);
    let times = rng.between(1, 3);
    let produce = (periods[producer] / common * times) as u32;
    let consume = (periods[consumer] / common * times) as u32;
    let threshold = consume + rng.below(u64::from(consume) * 2 + 1) as u32;
    let back_edge = consumer <= producer;
    let initial = rng.below(u64::from(threshold) + if back_edge { 12 * u64::from(consume) } else { 1 }) as u32;
    TokenEdge { producer, consumer, produce, consume, threshold, initial, back_edge }
}

fn random_case(rng: &mut SplitMix64, unit_rate: bool) -> Case {
    let nodes = rng.between(2, 6) as usize;
    let periods: Vec<u64> = (0..nodes).map(|_| if unit_rate { 12 } else { 6 * rng.between(1, 4) }).collect();
    let mut sources = vec![Some(rational(periods[0], 1))];
    let mut edges = Vec::new();
    for node in 1..nodes {
        if rng.below(5) == 0 {
            sources.push(Some(rational(periods[node], 1)));
            continue;
        }
        sources.push(None);
        let first = rng.below(node as u64) as usize;
        edges.push(edge(rng, &periods, first, node));
        if rng.below(2) == 0 {
            let second = rng.below(node as u64) as usize;
            edges.push(edge(rng, &periods, second, node));
        }
    }
    if rng.below(2) == 0 {
        let consumer = rng.below(nodes as u64) as usize;
        let producer = consumer + rng.below((nodes - consumer) as u64) as usize;
        edges.push(edge(rng, &periods, producer, consumer));
    }
    let responses = periods.iter().map(|&period| rng.between(1, 2 * period)).collect();
    let jitters = (0..nodes).map(|_| rng.below(2) * rng.below(9)).collect();
    Case { graph: TokenGraph { sources, edges }, periods, responses, jitters }
}

/// A node of the simulation.
#[derive(Clone, Debug, Default)]
struct Node {
    released: Vec<u64>,
    /// Completions to come, ascending.
    completions: Vec<u64>,
    last_completion: u64,
}

/// Releases of each node up to `horizon`, a tick at a time: completed jobs add tokens, then whatever has its tokens,
/// its separation and, for a source, its time is released. `response` draws how long a job takes, up to its bound.
fn simulate(case: &Case, horizon: u64, mut response: impl FnMut(u64) -> u64, jittered: bool) -> Vec<Vec<u64>> {
    let graph = &case.graph;
    let mut tokens: Vec<u64> = graph.edges.iter().map(|edge| edge.initial.into()).collect();
    let mut nodes = vec![Node::default(); graph.sources.len()];
    for now in 0..horizon {
        for (index, node) in nodes.iter_mut().enumerate() {
            let completed = node.completions.partition_point(|&completion| completion <= now);
            node.completions.drain(..completed);
            for (edge, tokens) in graph.edges.iter().zip(&mut tokens) {
                if edge.producer == index {
                    *tokens += u64::from(edge.produce) * completed as u64;
                }
            }
        }
        for (index, node) in nodes.iter_mut().enumerate() {
            let period = case.periods[index];
            let separated = node.released.last().is_none_or(|&last| now >= last + period);
            let jitter = if jittered { case.jitters[index] } else { 0 };
            let due = graph.sources[index].is_none() || now >= node.released.len() as u64 * period + jitter;
            let mut inputs = graph.edges.iter().zip(&mut tokens).filter(|(edge, _)| edge.consumer == index);
            if !(separated && due && inputs.all(|(edge, tokens)| *tokens >= edge.threshold.into())) {
                continue;
            }
            for (edge, tokens) in graph.edges.iter().zip(&mut tokens).filter(|(edge, _)| edge.consumer == index) {
                *tokens -= u64::from(edge.consume);
            }
            let completion = (now + response(case.responses[index])).max(node.last_completion);
            node.last_completion = completion;
            node.completions.push(completion);
            node.released.push(now);
        }
    }
    nodes.into_iter().map(|node| node.released).collect()
}

#[test]
fn no_node_is_released_later_than_its_offset_says() {
    const HORIZON: u64 = 720;
    let (mut bounded, mut throttled, mut attained) = (0, 0, 0);
    for seed in 0..1_500u64 {
        let mut rng = SplitMix64::new(seed);
        let case = random_case(&mut rng, seed % 3 == 0);
        let Ok(bounds) = case.bounds() else {
            throttled += 1;
            continue;
        };
        bounded += 1;
        // Always the bound, then anything below it.
        for random in [false, true] {
            let response = |bound| if random { rng.between(1, bound) } else { bound };
            let releases = simulate(&case, HORIZON, response, !random);
            for (node, releases) in releases.iter().enumerate() {
                let latest = |job: u64| rational(job * case.periods[node], 1) + &bounds.offsets[node];
                for (job, &release) in releases.iter().enumerate() {
                    let latest = latest(job as u64);
                    let release = rational(release, 1);
                    assert!(release <= latest, "seed {seed}: job {job} of node {node} at {release}, not {latest}");
                    attained += u32::from(release == latest && bounds.offsets[node] > rational(0, 1));
                }
                let next = latest(releases.len() as u64);
                assert!(next >= rational(HORIZON, 1), "seed {seed}: node {node} still waits, not released by {next}");
            }
        }
    }
    assert!(bounded > 1_000 && throttled > 20 && attained > 10_000, "{bounded} {throttled} {attained}");
}

/// Longest path by trying all of them: the sum of responses over the nodes of a path that ends in `node`.
fn longest_path(case: &Case, node: usize) -> u64 {
    let before = case.graph.edges.iter().filter(|edge| edge.consumer == node);
    case.responses[node] + before.map(|edge| longest_path(case, edge.producer)).max().unwrap_or(0)
}

fn any_case(unit_rate: bool) -> impl Strategy<Value = Case> {
    any::<u64>().prop_map(move |seed| random_case(&mut SplitMix64::new(seed), unit_rate))
}

/// A bound that does not exist is beyond all others.
fn at_most(before: &Result<EndToEnd, EndToEndError>, after: &Result<EndToEnd, EndToEndError>) -> bool {
    match (before, after) {
        (_, Err(_)) => true,
        (Err(_), Ok(_)) => false,
        (Ok(before), Ok(after)) => before.completions.iter().zip(&after.completions).all(|(b, a)| b <= a),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// I31
    #[test]
    fn bounds_scale_with_the_unit_of_time(case in any_case(false), factor in 2u64..1_000) {
        let times = |values: &[u64]| values.iter().map(|value| value * factor).collect::<Vec<_>>();
        let mut scaled = case.clone();
        scaled.periods = times(&case.periods);
        scaled.responses = times(&case.responses);
        scaled.jitters = times(&case.jitters);
        for source in scaled.graph.sources.iter_mut().flatten() {
            *source = &*source * rational(factor, 1);
        }
        let all = |values: Vec<Rational>| values.into_iter().map(|v| v * rational(factor, 1)).collect::<Vec<_>>();
        let expected = case.bounds().map(|b| EndToEnd { offsets: all(b.offsets), completions: all(b.completions) });
        prop_assert_eq!(scaled.bounds(), expected);
    }

    /// I31
    #[test]
    fn another_edge_never_makes_a_graph_faster(case in any_case(false), seed in any::<u64>()) {
        let mut rng = SplitMix64::new(seed);
        let mut more = case.clone();
        let (a, b) = (rng.below(case.periods.len() as u64) as usize, rng.below(case.periods.len() as u64) as usize);
        let added = edge(&mut rng, &case.periods, a, b);
        more.graph.edges.push(added);
        prop_assert!(at_most(&case.bounds(), &more.bounds()));
    }

    /// I31
    #[test]
    fn more_initial_tokens_never_make_a_graph_slower(case in any_case(false), extra in 1u32..9, which in any::<prop::sample::Index>()) {
        let mut more = case.clone();
        if !more.graph.edges.is_empty() {
            let edge = which.index(more.graph.edges.len());
            more.graph.edges[edge].initial += extra;
        }
        prop_assert!(at_most(&more.bounds(), &case.bounds()));
    }

    /// I31
    #[test]
    fn at_unit_rates_the_end_to_end_bound_is_the_longest_path(case in any_case(true)) {
        let mut case = case;
        case.graph.edges.retain(|edge| !edge.back_edge);
        for edge in &mut case.graph.edges {
            *edge = TokenEdge { produce: 1, consume: 1, threshold: 1, initial: 0, ..*edge };
        }
        case.jitters.fill(0);
        let bounds = case.bounds().expect("no cycle");
        let expected: Vec<u64> = (0..case.periods.len()).map(|node| longest_path(&case, node)).collect();
        prop_assert_eq!(bounds.completions, exact(&expected));
    }
}

/// A chain of three whose jobs respond within 6, all of them within 8 of the source's arrival.
#[test]
fn what_is_complete_together_bounds_a_graph_where_sums_are_longer() {
    let edge = |producer, consumer, initial| TokenEdge {
        producer,
        consumer,
        produce: 1,
        consume: 1,
        threshold: 1,
        initial,
        back_edge: consumer < producer,
    };
    let mut graph =
        TokenGraph { sources: vec![Some(rational(10, 1)), None, None], edges: vec![edge(0, 1, 0), edge(1, 2, 0)] };
    let (nodes, none, together) = (exact(&[6; 3]), exact(&[0; 3]), rational(8, 1));
    let rates = rates(&graph).expect("one to one");
    let both = Responses { nodes: &nodes, together: Some(&together) };
    let bounds = end_to_end(&graph, &rates, both, &none).expect("no cycle");
    assert_eq!((bounds.offsets, bounds.completions), (exact(&[0, 6, 8]), exact(&[6, 8, 8])));
    let replicas = |responses: Responses<'_>| replicas(&graph, &rates, responses, &none, &[(0, 2)], &rational(5, 1));
    assert_eq!((replicas((&nodes).into()), replicas(both)), (Ok(4), Ok(2)));
    // 18 pass until a token has gone around, and one comes every 10.
    graph.edges.push(edge(2, 0, 1));
    assert_eq!(end_to_end(&graph, &rates, &nodes, &none), Err(EndToEndError::SelfThrottles { node: 0 }));
    assert_eq!(end_to_end(&graph, &rates, both, &none).map(|bounds| bounds.completions), Ok(exact(&[8; 3])));
}
