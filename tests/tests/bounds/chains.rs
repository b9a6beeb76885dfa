//! Chains: no output uses older data, and no event takes longer to show, than the bounds of `check` say.

use laxity_analysis::check::{ChainBounds, Options, check};
use laxity_model::rng::SplitMix64;
use laxity_model::{
    Chain, Distribution, Edge, ExecutionTime, Graph, Instant, LatestEdge, Nanos, Node, Platform, Scheduler, Step,
    Workload,
};
use laxity_tests::simulate;
use laxity_trace::check::legality;
use laxity_trace::metrics::{ChainSummary, measure};

/// Random systems.
const SYSTEMS: u64 = 4_000;

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// An edge over which as many tokens come as go, at times with a threshold or initial tokens.
fn edge(rng: &mut SplitMix64, periods: &[u64], producer: usize, consumer: usize) -> Edge {
    let common = divisor(periods[producer], periods[consumer]);
    let times = rng.between(1, 2);
    let [produce, consume] = [producer, consumer].map(|node| (periods[node] / common * times) as u32);
    let threshold = consume + rng.below(2) as u32 * rng.below(u64::from(consume) + 1) as u32;
    let initial = rng.below(2) as u32 * rng.below(threshold.into()) as u32;
    Edge { produce, consume, threshold, initial, ..Edge::new(producer, consumer) }
}

/// A graph in which tokens drive some nodes and periods others, and latest-value edges lead to both.
fn graph(rng: &mut SplitMix64, cpus: u64) -> Graph {
    let count = rng.between(2, 6) as usize;
    let periods: Vec<u64> = (0..count).map(|_| 12 * rng.between(1, 4)).collect();
    let mut graph = Graph::new("g", Vec::new(), Vec::new());
    for (index, &period) in periods.iter().enumerate() {
        let is_source = index == 0 || rng.below(2) == 0;
        if !is_source {
            let producer = rng.below(index as u64) as usize;
            graph.edges.push(edge(rng, &periods, producer, index));
        }
        for producer in 0..index {
            let is_joined = graph.edges.iter().any(|edge| (edge.producer, edge.consumer) == (producer, index));
            if !is_joined && rng.below(3) > 0 {
                graph.latest.push(LatestEdge { producer, consumer: index });
            }
        }
        let wcet = rng.between(1, (period * cpus / count as u64).clamp(1, period));
        let actual = Distribution::Uniform { min: Nanos(wcet.div_ceil(2)), max: Nanos(wcet) };
        let phase = if is_source { rng.below(2) * rng.below(3 * period) } else { 0 };
        graph.nodes.push(Node {
            body: vec![Step::Cpu(ExecutionTime { wcet: Nanos(wcet), actual })],
            phase: Nanos(phase),
            ..Node::new(format!("n{index}"), is_source.then_some(Nanos(period)))
        });
    }
    graph
}

/// A path from a source, as far as it leads or less.
fn path(rng: &mut SplitMix64, graph: &Graph) -> Option<Vec<usize>> {
    let sources: Vec<usize> = graph.sources().iter().enumerate().filter(|(_, is)| **is).map(|(node, _)| node).collect();
    let mut path = vec![sources[rng.below(sources.len() as u64) as usize]];
    loop {
        let here = path[path.len() - 1];
        let tokens = graph.edges.iter().filter(|edge| edge.producer == here).map(|edge| edge.consumer);
        let latest = graph.latest.iter().filter(|edge| edge.producer == here).map(|edge| edge.consumer);
        let next: Vec<usize> = tokens.chain(latest).collect();
        if next.is_empty() || path.len() > 1 && rng.below(4) == 0 {
            return (path.len() > 1).then_some(path);
        }
        path.push(next[rng.below(next.len() as u64) as usize]);
    }
}

fn system(rng: &mut SplitMix64) -> Option<Workload> {
    let cpus = rng.between(1, 3);
    let graph = graph(rng, cpus);
    let chain = |path| Chain { name: "c".to_owned(), graph: 0, path, data_age_max: None, reaction_time_max: None };
    let chains = vec![chain(path(rng, &graph)?)];
    let workload = Workload::new("w", Platform::identical(cpus as usize), Vec::new());
    let workload = Workload { graphs: vec![graph], chains, ..workload };
    workload.validate().is_ok().then_some(workload)
}

/// Of two bounds, how near a chain came: 1 is attained.
fn nearness(chain: &ChainSummary, bounds: ChainBounds) -> [Option<f64>; 2] {
    let share = |longest: Option<Nanos>, bound: Nanos| Some(longest?.0 as f64 / bound.0.max(1) as f64);
    [
        share(chain.data_age.map(|times| times.max), bounds.data_age),
        share(chain.reaction_time.map(|times| times.max), bounds.reaction_time),
    ]
}

/// `cargo test -p laxity-tests --test bounds chains -- --nocapture` prints how near the bounds are.
#[test]
fn no_data_is_older_and_no_reaction_later_than_the_bounds_of_chains_say() {
    let options = Options { scaling: false, ..Options::default() };
    let mut near = [Vec::new(), Vec::new()];
    for seed in 0..SYSTEMS {
        let mut rng = SplitMix64::new(seed);
        let Some(workload) = system(&mut rng) else { continue };
        let scheduler: Scheduler = ["P-RM", "G-EDF", "P-EDF", "G-RM"][rng.below(4) as usize].parse().expect("a name");
        let report = check(&workload, &scheduler, &options);
        let Some(Ok(bounds)) = report.chains.first().map(|chain| chain.bounds.clone()) else { continue };
        let (header, records) = simulate(&workload, &scheduler, Instant(1_440), seed);
        let judged = legality(&header, &records, |_| None);
        assert!(judged.is_clean(), "seed {seed}: {judged:?}");
        let chain = &measure(&header, &records, Instant(1_440)).chains[0];
        let longest = [(chain.data_age, bounds.data_age), (chain.reaction_time, bounds.reaction_time)];
        for (what, (times, bound)) in ["data age", "reaction time"].into_iter().zip(longest) {
            let longest = times.map_or(Nanos::ZERO, |times| times.max);
            assert!(longest <= bound, "seed {seed}, {scheduler}: {what} {longest} exceeds {bound}: {workload:?}");
        }
        for (near, nearness) in near.iter_mut().zip(nearness(chain, bounds)) {
            near.extend(nearness);
        }
    }
    for (what, near) in ["data age", "reaction time"].into_iter().zip(&mut near) {
        near.sort_by(f64::total_cmp);
        let at = |share: f64| near[((near.len() - 1) as f64 * share) as usize];
        let attained = near.iter().filter(|&&near| near >= 1.0).count();
        println!(
            "{what}: {} systems; the longest is {:.2} of the bound at the median, {:.2} at the 10th percentile, {attained} \
             times the bound itself",
            near.len(),
            at(0.5),
            at(0.1)
        );
        assert!(near.len() > 2_000 && attained > 20, "hardly tested: {} systems, {attained} attained", near.len());
    }
}
