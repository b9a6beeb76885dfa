//! Random systems of graphs: nodes of many rates, of which several jobs may be released at once; graphs with replicas of
//! their data, at times too few; graphs whose tokens go from cluster to cluster; nodes that are bandwidth servers.

use laxity_model::rng::SplitMix64;
use laxity_model::{
    DataObject, Distribution, Edge, ExecutionTime, Graph, Nanos, Node, OverheadCosts, OverheadProfile, Platform,
    PriorityRule, ReleaseInterrupts, Replicas, Scheduler, Scope, ServerKind, Step, Task, TaskServer, Workload,
};

use crate::systems::{UNIT, pick};

/// What the graphs of a system have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nodes of many rates, thresholds and initial tokens; all CPUs are scheduled together, or each by itself.
    Rates,
    /// Data objects with a few replicas; rates are one to one.
    Copies,
    /// Nodes on different CPUs, each of which is scheduled by itself, and overheads; at times interrupts on a CPU of their own.
    Spread,
    /// Nodes that are bandwidth servers; all CPUs are scheduled together, or each by itself.
    Served,
}

/// A system of that kind from `seed`, and its scheduler.
pub fn system(kind: Kind, seed: u64) -> (Workload, Scheduler) {
    let rng = &mut SplitMix64::new(seed ^ 0x5eed_0000);
    let rule = pick(rng, &[PriorityRule::Edf, PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic]);
    let cpus = if kind == Kind::Spread { rng.between(2, 4) } else { rng.between(1, 3) };
    let mut scheduler = Scheduler { rule, coarse_lock: rng.below(8) == 0, ..Scheduler::GLOBAL_EDF };
    if kind == Kind::Spread || rng.below(2) == 0 {
        scheduler.scope = Scope::Partitioned;
    }
    let is_dedicated = kind == Kind::Spread && cpus > 2 && rng.below(4) == 0;
    if is_dedicated {
        scheduler.interrupts = ReleaseInterrupts::Dedicated;
    }
    let mut platform = Platform::identical(cpus as usize);
    platform.tick = Nanos(20 * UNIT);
    let has_overheads = kind == Kind::Spread || rng.below(2) == 0;
    let mut costs = if has_overheads { costs(rng) } else { OverheadCosts::default() };
    if kind == Kind::Served {
        // They would count against budgets.
        (costs.cache_preemption, costs.cache_migration) = (Nanos::ZERO, Nanos::ZERO);
    }
    platform.overheads = OverheadProfile::constant("test", costs);
    let mut workload = Workload::new("random", platform, Vec::new());
    for index in 0..rng.below(3) {
        let period = rng.between(20, 150) * UNIT;
        let body = body(rng, !is_dedicated);
        workload.tasks.push(Task { body, ..Task::periodic(format!("t{index}"), Nanos(1), Nanos(period)) });
    }
    for index in 0..rng.between(1, 2) {
        workload.graphs.push(graph(rng, kind, format!("g{index}"), !is_dedicated));
    }
    if scheduler.scope == Scope::Partitioned {
        let first = u64::from(is_dedicated);
        let nodes = workload.graphs.iter_mut().flat_map(|graph| &mut graph.nodes).map(|node| &mut node.cluster);
        for cluster in workload.tasks.iter_mut().map(|task| &mut task.cluster).chain(nodes) {
            *cluster = Some(rng.between(first, cpus - 1) as usize);
        }
    }
    (workload, scheduler)
}

fn costs(rng: &mut SplitMix64) -> OverheadCosts {
    let mut cost = || Nanos(rng.below(3).min(1) * rng.below(UNIT / 2));
    OverheadCosts {
        release: cost(),
        scheduling: cost(),
        context_switch: cost(),
        ipi_latency: cost(),
        tick: cost(),
        timer_rearming: cost(),
        cache_preemption: cost(),
        cache_migration: cost(),
        ..OverheadCosts::default()
    }
}

fn time(rng: &mut SplitMix64, longest: u64) -> ExecutionTime {
    let wcet = Nanos(rng.between(1, longest * 10) * UNIT / 10);
    match rng.below(2) {
        0 => ExecutionTime { wcet, actual: Distribution::Uniform { min: Nanos::ZERO, max: wcet } },
        _ => ExecutionTime::constant(wcet),
    }
}

fn body(rng: &mut SplitMix64, suspends: bool) -> Vec<Step> {
    let mut body = vec![Step::Cpu(time(rng, 8))];
    match rng.below(8) {
        0 => body.push(Step::NonPreemptive(time(rng, 2))),
        1 if suspends => body.extend([Step::Suspend(time(rng, 3)), Step::Cpu(time(rng, 2))]),
        _ => {}
    }
    body
}

/// A graph of that kind, whose nodes name no cluster.
pub(crate) fn graph(rng: &mut SplitMix64, kind: Kind, name: String, suspends: bool) -> Graph {
    let count = rng.between(2, 5) as usize;
    let base = 12 * UNIT * rng.between(1, 4);
    let times = |rng: &mut SplitMix64| if kind == Kind::Rates || rng.below(4) == 0 { rng.between(1, 4) } else { 2 };
    let periods: Vec<u64> = match kind {
        Kind::Copies => vec![2 * base; count],
        _ => (0..count).map(|_| base * times(rng)).collect(),
    };
    let mut graph = Graph::new(name, Vec::new(), Vec::new());
    for (index, &period) in periods.iter().enumerate() {
        let is_source = index == 0 || kind != Kind::Copies && rng.below(6) == 0;
        for _ in 0..if is_source { 0 } else { rng.between(1, 2) } {
            let producer = rng.below(index as u64) as usize;
            if graph.edges.iter().all(|edge| (edge.producer, edge.consumer) != (producer, index)) {
                graph.edges.push(edge(rng, kind, &periods, producer, index));
            }
        }
        let phase = if is_source { rng.below(2) * rng.below(2 * period) } else { 0 };
        let longest = if kind == Kind::Served { 110 } else { 300 };
        let deadline = (rng.below(2) == 0).then(|| Nanos(period * rng.between(60, longest) / 100));
        let mut node = Node {
            body: body(rng, suspends),
            phase: Nanos(phase),
            deadline,
            ..Node::new(format!("n{index}"), is_source.then_some(Nanos(period)))
        };
        if kind == Kind::Served && rng.below(3) > 0 {
            serve(rng, &mut node, period);
        }
        graph.nodes.push(node);
    }
    if kind == Kind::Copies {
        graph.replicas = Replicas::Count(rng.between(1, 4) as u32);
        let accessors: Vec<usize> = (0..count).filter(|&node| node == 0 || rng.below(2) == 0).collect();
        graph.objects.push(DataObject { name: "image".to_owned(), accessors, delay: 0 });
    } else if rng.below(4) == 0 {
        let consumer = rng.below(count as u64 - 1) as usize;
        let producer = rng.between(consumer as u64 + 1, count as u64 - 1) as usize;
        let mut back = edge(rng, kind, &periods, producer, consumer);
        (back.back_edge, back.initial) = (true, back.threshold + back.consume * rng.below(12) as u32);
        graph.edges.push(back);
    }
    graph
}

/// Makes the node, whose jobs arrive `period` apart or more, a server.
fn serve(rng: &mut SplitMix64, node: &mut Node, period: u64) {
    let budgets = rng.between(1, 3);
    let own = Nanos(period * rng.between(5, 50) / 100 / budgets);
    let budget = Nanos((own.0 * rng.between(3, 40) / 100).max(1));
    if budgets > 1 || rng.below(2) == 0 {
        let wcet = Nanos(budget.0 * rng.between(50, 100 * budgets) / 100 + 1);
        let actual = match rng.below(2) {
            0 => Distribution::WorstCase,
            _ => Distribution::Uniform { min: Nanos(wcet.0 / 9 * rng.below(2)), max: wcet },
        };
        node.body = vec![Step::Cpu(ExecutionTime { wcet, actual })];
    }
    let kind = pick(rng, &[ServerKind::CbsHard, ServerKind::CbsSoft, ServerKind::Sporadic]);
    node.server = Some(TaskServer { kind, budget, period: Some(own) });
}

/// Over which as many tokens come as go.
fn edge(rng: &mut SplitMix64, kind: Kind, periods: &[u64], producer: usize, consumer: usize) -> Edge {
    if kind == Kind::Copies {
        return Edge::new(producer, consumer);
    }
    let common = divisor(periods[producer], periods[consumer]);
    let times = rng.between(1, 2);
    let [produce, consume] = [producer, consumer].map(|node| (periods[node] / common * times) as u32);
    let is_plain = rng.below(2) == 0;
    let threshold = consume + if is_plain { 0 } else { rng.below(u64::from(consume) + 1) as u32 };
    let initial = if is_plain { 0 } else { rng.below(3 * u64::from(threshold)) as u32 };
    Edge { produce, consume, threshold, initial, ..Edge::new(producer, consumer) }
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}
