//! Random multirate graphs: releases against the bounds of the analysis, and tokens against their sums.

use laxity_analysis::pgm::{TokenGraph, end_to_end, rates};
use laxity_analysis::{Rational, rational};
use laxity_model::rng::SplitMix64;
use laxity_model::{Edge, Graph};
use laxity_policy::graph::{Action, CompiledGraph, Releasing, Tokens};
use proptest::prelude::*;

use crate::driver::{Job, Length, Run, graph, run};

/// A graph and a response-time bound for each node.
#[derive(Clone, Debug)]
struct Case {
    graph: Graph,
    responses: Vec<u64>,
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// An edge over which as many tokens come as go.
fn edge(rng: &mut SplitMix64, periods: &[u64], producer: usize, consumer: usize) -> Edge {
    let common = gcd(periods[producer], periods[consumer]);
    let times = rng.between(1, 3);
    let produce = (periods[producer] / common * times) as u32;
    let consume = (periods[consumer] / common * times) as u32;
    let threshold = consume + rng.below(u64::from(consume) * 2 + 1) as u32;
    let back_edge = consumer <= producer;
    let initial = rng.below(u64::from(threshold)) as u32
        + if back_edge { threshold + rng.below(12 * u64::from(consume)) as u32 } else { 0 };
    Edge { producer, consumer, produce, consume, threshold, initial, back_edge, delay: 0, message: 0 }
}

fn case(seed: u64) -> Case {
    let mut rng = SplitMix64::new(seed);
    let nodes = rng.between(2, 6) as usize;
    let periods: Vec<u64> = (0..nodes).map(|_| 6 * rng.between(1, 4)).collect();
    let mut sources = vec![Some(periods[0])];
    let mut edges = Vec::new();
    for node in 1..nodes {
        let is_source = rng.below(5) == 0;
        sources.push(is_source.then_some(periods[node]));
        for _ in 0..if is_source { 0 } else { rng.between(1, 2) } {
            let producer = rng.below(node as u64) as usize;
            edges.push(edge(&mut rng, &periods, producer, node));
        }
    }
    if rng.below(2) == 0 {
        let consumer = rng.below(nodes as u64) as usize;
        let producer = consumer + rng.below((nodes - consumer) as u64) as usize;
        edges.push(edge(&mut rng, &periods, producer, consumer));
    }
    let responses = periods.iter().map(|&period| rng.between(1, 2 * period)).collect();
    Case { graph: graph(&sources, edges), responses }
}

/// `O_k` of each node, if the graph does not throttle itself.
fn bounds(case: &Case) -> Option<Vec<Rational>> {
    let graph = TokenGraph::from(&case.graph);
    let rates = rates(&graph).expect("drawn with rates that agree");
    let responses: Vec<Rational> = case.responses.iter().map(|&response| rational(response, 1)).collect();
    let jitters = vec![rational(0, 1); responses.len()];
    end_to_end(&graph, &rates, &responses, &jitters).ok().map(|bounds| bounds.offsets)
}

fn respond(case: &Case, releasing: Releasing) -> Run {
    let plan = CompiledGraph::new(&case.graph).expect("a sound graph");
    run(Tokens::new(plan, releasing), &Length::Response(case.responses.clone()), 720)
}

/// `r(k, n) <= (n - 1) * p_k + O_k`, and now and then it is equal: neither the bound nor the rule is slack.
#[test]
fn no_node_is_released_later_than_its_offset_says() {
    let (mut bounded, mut attained) = (0, 0);
    for seed in 0..600 {
        let case = case(seed);
        let Some(offsets) = bounds(&case) else { continue };
        bounded += 1;
        let run = respond(&case, if seed % 2 == 0 { Releasing::Early } else { Releasing::OnTime });
        for job in &run.jobs {
            let period = run.tokens.plan().nodes()[job.node].period.floor().0;
            let latest = rational(job.index * period, 1) + &offsets[job.node];
            let arrival = rational(job.arrival, 1);
            assert!(
                arrival <= latest,
                "seed {seed}: job {} of node {} at {arrival}, not {latest}",
                job.index,
                job.node
            );
            attained += u32::from(arrival == latest && offsets[job.node] > rational(0, 1));
        }
    }
    assert!(bounded > 400 && attained > 4_000, "{bounded} {attained}");
}

/// For each job: the actions that concern it, in the order of Fig. 5.5, one of each edge.
fn follows_the_order_of_a_job(run: &Run, node: usize, index: u64) -> bool {
    let stage = |action: &Action| match *action {
        Action::Released { node, index, .. } => (node, index, 0),
        Action::Consumed { node, index, .. } => (node, index, 1),
        Action::Ready { node, index } => (node, index, 2),
        Action::Produced { node, index, .. } => (node, index, 3),
    };
    let stages = run.actions.iter().map(|it| stage(&it.1)).filter(|it| (it.0, it.1) == (node, index));
    stages.map(|it| it.2).is_sorted()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Initial tokens plus written ones are those read plus those left; no edge has a negative number.
    #[test]
    fn tokens_are_conserved(seed in any::<u64>(), early in any::<bool>()) {
        let case = case(seed);
        let run = respond(&case, if early { Releasing::Early } else { Releasing::OnTime });
        let mut tokens: Vec<i64> = case.graph.edges.iter().map(|edge| edge.initial.into()).collect();
        for (_, action) in &run.actions {
            match *action {
                Action::Produced { edge, tokens: count, .. } => tokens[edge] += i64::from(count),
                Action::Consumed { edge, tokens: count, .. } => tokens[edge] -= i64::from(count),
                Action::Released { .. } | Action::Ready { .. } => {}
            }
            prop_assert!(tokens.iter().all(|&count| count >= 0));
        }
        let left: Vec<i64> = (0..tokens.len()).map(|edge| run.tokens.tokens(edge) as i64).collect();
        prop_assert_eq!(tokens, left);
        for job in &run.jobs {
            prop_assert!(follows_the_order_of_a_job(&run, job.node, job.index), "{:?}", job);
        }
    }

    /// Arrivals of a node are a period apart, early or not, and no job is announced after its arrival.
    #[test]
    fn arrivals_are_a_period_apart_and_the_same_with_and_without_early_releasing(seed in any::<u64>()) {
        let case = case(seed);
        let (early, on_time) = (respond(&case, Releasing::Early), respond(&case, Releasing::OnTime));
        for (node, it) in early.tokens.plan().nodes().iter().enumerate() {
            let arrivals = |run: &Run| run.of(node).map(|job| job.arrival).filter(|&at| at < 720).collect::<Vec<_>>();
            prop_assert_eq!(arrivals(&early), arrivals(&on_time));
            prop_assert!(arrivals(&early).windows(2).all(|pair| pair[0] + it.period.floor().0 <= pair[1]));
            prop_assert!(on_time.of(node).all(|job| job.released == job.arrival));
            let is_in_time = |job: &Job| job.released == job.arrival || (!it.is_source && job.released < job.arrival);
            prop_assert!(early.of(node).all(is_in_time));
        }
    }
}
