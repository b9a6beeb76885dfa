//! Graphs: `r_(k,n) <= (n - 1) p_k + O_k`.

use laxity_analysis::pgm::{TokenGraph, end_to_end, rates};
use laxity_analysis::{Rational, rational};
use laxity_model::rng::SplitMix64;
use laxity_model::{Edge, ExecutionTime, Graph, Instant, JobId, Nanos, Node, Platform, Scheduler, Step, Workload};
use laxity_tests::simulate;
use laxity_trace::{Event, Record};

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// An edge over which as many tokens come as go, with a threshold of up to three jobs' worth.
fn edge(rng: &mut SplitMix64, periods: &[u64], producer: usize, consumer: usize) -> Edge {
    let common = divisor(periods[producer], periods[consumer]);
    let times = rng.between(1, 3);
    let [produce, consume] = [producer, consumer].map(|node| (periods[node] / common * times) as u32);
    let threshold = consume + rng.below(2 * u64::from(consume) + 1) as u32;
    let initial = rng.below(threshold.into()) as u32;
    Edge { produce, consume, threshold, initial, ..Edge::new(producer, consumer) }
}

/// Every node but the first is a source, or reads from one or two before it. Together they take most of the CPUs.
fn random_graph(rng: &mut SplitMix64, cpus: u64) -> Graph {
    let count = rng.between(2, 6) as usize;
    let periods: Vec<u64> = (0..count).map(|_| 6 * rng.between(1, 4)).collect();
    let mut edges = Vec::new();
    let mut nodes = Vec::new();
    for (index, &period) in periods.iter().enumerate() {
        let is_source = index == 0 || rng.below(5) == 0;
        for _ in 0..if is_source { 0 } else { rng.between(1, 2) } {
            let producer = rng.below(index as u64) as usize;
            edges.push(edge(rng, &periods, producer, index));
        }
        let wcet = rng.between(1, (period * cpus / count as u64).clamp(1, period));
        nodes.push(Node {
            body: vec![Step::Cpu(ExecutionTime::constant(Nanos(wcet)))],
            ..Node::new(format!("n{index}"), is_source.then_some(Nanos(period)))
        });
    }
    Graph::new("g", nodes, edges)
}

/// Arrivals, and the longest response of each node, of jobs that completed.
fn observe(records: &[Record], periods: &[Rational]) -> (Vec<(JobId, u64)>, Vec<u64>) {
    let mut arrivals = Vec::new();
    let mut responses = vec![0; periods.len()];
    for record in records {
        match record.event {
            Event::Release { job, deadline } => {
                let period = &periods[job.task.index()];
                assert!(period.is_integer(), "periods were drawn whole");
                let arrival = rational(deadline.0, 1) - period;
                arrivals.push((job, arrival.to_integer().try_into().expect("no arrival before time 0")));
            }
            Event::Complete { job, .. } => {
                let (_, arrival) = *arrivals.iter().find(|(released, _)| *released == job).expect("released before");
                // A job may even complete before its arrival, which its tokens need not wait for.
                let response = record.at.0.saturating_sub(arrival);
                responses[job.task.index()] = responses[job.task.index()].max(response);
            }
            _ => {}
        }
    }
    (arrivals, responses)
}

/// The response times are those of the run itself, in which nodes wait for one another's CPUs: the bound holds whatever
/// they come from.
#[test]
fn no_node_is_released_later_than_its_offset_says() {
    let mut attained = 0;
    for seed in 0..1_000 {
        let mut rng = SplitMix64::new(seed);
        let cpus = rng.between(1, 3);
        let graph = random_graph(&mut rng, cpus);
        let tokens = TokenGraph::from(&graph);
        let rates = rates(&tokens).expect("drawn with rates that agree");
        let periods: Vec<Rational> = rates.iter().map(|rate| rate.period()).collect();
        let workload =
            Workload { graphs: vec![graph], ..Workload::new("g", Platform::identical(cpus as usize), Vec::new()) };
        let (_, records) = simulate(&workload, &Scheduler::GLOBAL_EDF, Instant(360), seed);
        let (arrivals, responses) = observe(&records, &periods);
        let responses: Vec<Rational> = responses.into_iter().map(|response| rational(response, 1)).collect();
        let jitters = vec![rational(0, 1); responses.len()];
        let offsets = end_to_end(&tokens, &rates, &responses, &jitters).expect("there is no cycle").offsets;
        for (job, arrival) in arrivals {
            let offset = &offsets[job.task.index()];
            let latest = &periods[job.task.index()] * rational(job.index, 1) + offset;
            let arrival = rational(arrival, 1);
            assert!(arrival <= latest, "seed {seed}: {job} arrives at {arrival}, not {latest}: {workload:?}");
            attained += u32::from(arrival == latest && *offset > rational(0, 1));
        }
    }
    assert!(attained > 1_000, "a bound that is hardly attained is hardly tested: {attained}");
}
