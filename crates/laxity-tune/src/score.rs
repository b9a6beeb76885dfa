//! How good a configuration is.

use std::cmp::Ordering;

use laxity_analysis::check::{Options, Report, check, settle};
use laxity_model::{GpuArbitration, Graph, Instant, Invocation, Nanos, Scheduler, Workload};
use laxity_plan::Plan;
use laxity_sim::{Simulator, pace};
use laxity_trace::metrics::{EndToEndLatencies, Metrics};
use laxity_trace::{EdgeKind, TaskInfo, TaskKind, TraceHeader};
use serde::Serialize;

/// What an evaluation may cost, and what it is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effort {
    /// How long is simulated.
    pub simulated: Nanos,
    /// With which seed.
    pub seed: u64,
    /// The end-to-end latency of each graph that has the machine for itself: what no configuration takes from it, as that a
    /// node waits for frames to come.
    alone: Vec<Nanos>,
}

impl Effort {
    /// For configurations of `workload`: simulates each of its graphs alone, for a while.
    pub fn new(workload: &Workload, simulated: Nanos, seed: u64) -> Effort {
        let alone = workload.graphs.iter().map(|graph| alone(workload, graph, seed)).collect();
        Effort { simulated, seed, alone }
    }

    /// The same for longer simulations with other draws.
    pub fn longer(&self, times: u64) -> Effort {
        Effort {
            simulated: Nanos(self.simulated.0.saturating_mul(times)),
            seed: self.seed.wrapping_add(1),
            alone: self.alone.clone(),
        }
    }
}

/// The least latency of `graph` without anything beside it once it is full, as tokens that are there at the start make the
/// first runs short; zero if it cannot be simulated so.
fn alone(workload: &Workload, graph: &Graph, seed: u64) -> Nanos {
    const PERIODS: u64 = 60;
    let mut workload = Workload {
        tasks: Vec::new(),
        best_effort: Vec::new(),
        chains: Vec::new(),
        graphs: vec![graph.clone()],
        scheduler: Scheduler { invocation: Invocation::EventDriven, ..workload.scheduler },
        ..workload.clone()
    };
    workload.gpu_management.arbitration = GpuArbitration::Driver;
    let scheduler = workload.scheduler;
    settle(&mut workload, &scheduler);
    let Ok(plan) = Plan::new(&workload, &scheduler, seed) else { return Nanos::ZERO };
    let end = Instant(period(graph).0.saturating_mul(PERIODS));
    let mut simulator = Simulator::new(&plan, EndToEndLatencies::new(&plan.header));
    simulator.run_until(end);
    let latencies = simulator.finish().finish();
    latencies[latencies.len() / 2..].iter().map(|found| found.latency).min().unwrap_or(Nanos::ZERO)
}

/// That of its fastest source.
fn period(graph: &Graph) -> Nanos {
    graph.nodes.iter().filter_map(|node| node.period).min().unwrap_or(Nanos(1))
}

/// How good a configuration is. The better one is the greater: a proven one before any other, then the one with more
/// proven laxity, then the one with the better simulated tail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Score {
    /// What is proven, if every deadline is.
    pub proof: Option<Proof>,
    /// What was simulated; `None` if the simulator refuses the configuration, or its time was over before it had come to the end.
    pub tail: Option<Tail>,
    /// Why nothing is proven, if so.
    pub unproven: Option<String>,
}

/// That every deadline is met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// The least laxity of all tasks, nodes and chains, in millionths of their deadlines.
    pub laxity_ppm: i64,
    /// Whose that is.
    pub tightest: String,
    /// The greatest end-to-end bound of a graph, in millionths of its period; 0 without graphs.
    pub end_to_end_ppm: u64,
}

/// The end of what was simulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tail {
    /// Jobs of tasks and outputs of chains that missed their deadlines, and of a chain that never had an output each sample.
    /// Late nodes of graphs are counted only where the latency of their graph does not show it.
    pub missed: u64,
    /// The greatest 99th percentile of a task's response time in millionths of its deadline, and of what a graph's end-to-end
    /// latency lies above that of the graph alone, in millionths of its period; of a chain, of data age and reaction time in
    /// millionths of their deadlines.
    pub p99_ppm: u64,
    /// The same of the longest ones.
    pub max_ppm: u64,
    /// Whose 99th percentile that is.
    pub worst: String,
}

impl Ord for Score {
    fn cmp(&self, other: &Self) -> Ordering {
        let proof = |score: &Score| {
            score.proof.as_ref().map(|proof| (proof.laxity_ppm, std::cmp::Reverse(proof.end_to_end_ppm)))
        };
        let tail = |score: &Score| {
            let tail = score.tail.as_ref();
            tail.map(|tail| std::cmp::Reverse((tail.missed, tail.p99_ppm, tail.max_ppm)))
        };
        // `None` is less than anything.
        proof(self).cmp(&proof(other)).then_with(|| tail(self).cmp(&tail(other)))
    }
}

impl PartialOrd for Score {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Score {
    /// Whether the configuration can be had at all.
    pub fn is_possible(&self) -> bool {
        self.proof.is_some() || self.tail.is_some()
    }
}

/// Analyses and simulates `workload` as it is configured, the latter until it `is_over`. Replicas that are left to the analysis are
/// settled first.
pub fn evaluate(workload: &Workload, effort: &Effort, is_over: &dyn Fn() -> bool) -> Score {
    let impossible = |reason: String| Score { proof: None, tail: None, unproven: Some(reason) };
    if let Err(errors) = workload.validate() {
        return impossible(errors.to_string());
    }
    let scheduler = workload.scheduler;
    let mut workload = workload.clone();
    settle(&mut workload, &scheduler);
    let report = check(&workload, &scheduler, &Options { scaling: false, ..Options::default() });
    let proof = proof(&workload, &report);
    let unproven = proof.is_none().then(|| why_not(&report));
    match Plan::new(&workload, &scheduler, effort.seed) {
        Ok(plan) => Score { proof, tail: tail(&workload, &plan, effort, is_over), unproven },
        Err(refusal) => match proof {
            // What cannot be carried out is of no use, even if it is proven.
            Some(_) | None => impossible(refusal.to_string()),
        },
    }
}

fn proof(workload: &Workload, report: &Report) -> Option<Proof> {
    if !report.hard.is_schedulable() {
        return None;
    }
    let laxities = report.tasks.iter().map(|task| {
        let laxity = task.laxity.map_or(0, |laxity| laxity.0);
        (relative(laxity, task.deadline), task.name.as_str())
    });
    let mut of_chains = Vec::new();
    for chain in &report.chains {
        let limits = [chain.data_age_max, chain.reaction_time_max];
        let bounds = chain.bounds.as_ref().ok().map(|bounds| [bounds.data_age, bounds.reaction_time]);
        for (index, limit) in limits.into_iter().enumerate().filter_map(|(index, limit)| Some((index, limit?))) {
            // A deadline of a chain without a bound is not proven.
            let laxity = i128::from(limit.0) - i128::from(bounds?[index].0);
            if laxity < 0 {
                return None;
            }
            of_chains.push((relative(laxity as i64, limit), chain.name.as_str()));
        }
    }
    let (laxity_ppm, tightest) = laxities.chain(of_chains).min().unwrap_or((1_000_000, ""));
    let ends = report
        .graphs
        .iter()
        .zip(&workload.graphs)
        .map(|(graph, info)| graph.end_to_end.map_or(0, |bound| ppm(bound, period(info))));
    Some(Proof { laxity_ppm, tightest: tightest.to_owned(), end_to_end_ppm: ends.max().unwrap_or(0) })
}

/// `laxity` in millionths of `deadline`.
fn relative(laxity: i64, deadline: Nanos) -> i64 {
    (i128::from(laxity) * 1_000_000 / i128::from(deadline.0.max(1))) as i64
}

fn why_not(report: &Report) -> String {
    let refusal = report.refusals.first().map(|refusal| format!("{}: {}", refusal.subject, refusal.reason));
    let failure = || report.hard.failures.first().map(|failure| failure.message.clone());
    refusal.or_else(failure).unwrap_or_else(|| "no test proves it".to_owned())
}

fn tail(workload: &Workload, plan: &Plan, effort: &Effort, is_over: &dyn Fn() -> bool) -> Option<Tail> {
    let end = Instant::ZERO.saturating_add(effort.simulated);
    let mut simulator = Simulator::new(plan, Metrics::new(&plan.header));
    pace::run(&mut simulator, end, |_| if is_over() { Err(()) } else { Ok(()) }).ok()?;
    let summary = simulator.finish().finish(end);
    let mut found = Tail { missed: 0, p99_ppm: 0, max_ppm: 0, worst: String::new() };
    let mut note = |p99: u64, max: u64, name: &str| {
        found.max_ppm = found.max_ppm.max(max);
        if found.worst.is_empty() || p99 > found.p99_ppm {
            (found.p99_ppm, found.worst) = (p99, name.to_owned());
        }
    };
    let mut missed = 0;
    for task in summary.tasks.iter().take(workload.tasks.len()) {
        missed += task.jobs.missed;
        let deadline = plan.header.tasks[task.task.index()].deadline;
        if let Some(times) = task.jobs.response_time {
            note(ppm(times.p99, deadline), ppm(times.max, deadline), &task.name);
        }
    }
    let unseen = beside_the_latency(&plan.header);
    missed +=
        summary.tasks.iter().zip(unseen).filter(|(_, unseen)| *unseen).map(|(task, _)| task.jobs.missed).sum::<u64>();
    for (index, (graph, info)) in summary.graphs.iter().zip(&workload.graphs).enumerate() {
        let alone = effort.alone.get(index).map_or(0, |alone| alone.0);
        let beyond = |latency: Nanos| ppm(Nanos(latency.0.saturating_sub(alone)), period(info));
        match &graph.end_to_end {
            Some(latency) => note(beyond(latency.p99), beyond(latency.max), &graph.name),
            // It never got to its end.
            None => missed += 1,
        }
    }
    for chain in &summary.chains {
        missed += chain.missed;
        if chain.outputs == 0 {
            // Whatever it waits for takes longer than the simulation.
            let limits = [chain.data_age_max, chain.reaction_time_max];
            let Some(limit) = limits.into_iter().flatten().min() else { continue };
            let first = chain.path.first().and_then(|first| summary.tasks.get(first.index()));
            missed += first.map_or(0, |task| task.jobs.released).max(1);
            let beyond = ppm(effort.simulated, limit);
            note(beyond, beyond, &chain.name);
            continue;
        }
        for (limit, seen) in [(chain.data_age_max, &chain.data_age), (chain.reaction_time_max, &chain.reaction_time)] {
            if let (Some(limit), Some(seen)) = (limit, seen) {
                note(ppm(seen.p99, limit), ppm(seen.max, limit), &chain.name);
            }
        }
    }
    found.missed = missed;
    Some(found)
}

/// Of each task: whether it is a node whose delay is in no end-to-end latency of its graph, as no tokens that it produces
/// get to a sink. Its output is lost, or the latest value that others read.
fn beside_the_latency(header: &TraceHeader) -> Vec<bool> {
    let is_node = |task: &TaskInfo| matches!(task.kind, TaskKind::Node { .. });
    let mut beside: Vec<bool> = header.tasks.iter().map(is_node).collect();
    let tokens = || header.edges.iter().filter(|edge| edge.kind == EdgeKind::Token);
    for (index, beside) in beside.iter_mut().enumerate() {
        let produces = tokens().any(|edge| edge.producer.index() == index);
        let is_read = header.latest.iter().any(|edge| edge.producer.index() == index);
        *beside &= produces || is_read;
    }
    // From the sinks up, an edge further each time.
    while let Some(edge) = tokens().find(|edge| beside[edge.producer.index()] && !beside[edge.consumer.index()]) {
        beside[edge.producer.index()] = false;
    }
    beside
}

/// `span` in millionths of `whole`.
fn ppm(span: Nanos, whole: Nanos) -> u64 {
    u64::try_from(u128::from(span.0) * 1_000_000 / u128::from(whole.0.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(missed: u64, p99_ppm: u64) -> Option<Tail> {
        Some(Tail { missed, p99_ppm, max_ppm: p99_ppm, worst: "a".to_owned() })
    }

    fn proof(laxity_ppm: i64) -> Option<Proof> {
        Some(Proof { laxity_ppm, tightest: "a".to_owned(), end_to_end_ppm: 0 })
    }

    /// Node b takes three tokens of a at a time, for c, whose values d reads. With d on the CPU of a and x, b never completes, so
    /// that the chain to d has no output; `laxity tune` found that "late 0, p99 0.0 %".
    #[test]
    fn a_chain_without_an_output_is_worse_than_any_late_one() {
        let score = |scheduler: &str, cluster: u32| {
            let text = format!(
                r#"
                laxity = 1
                name = "w"
                scheduler = "{scheduler}"
                platform = {{ cpus = 2 }}
                [[graph]]
                name = "g"
                edge = [{{ from = "a", to = "b", produce = 2, consume = 3 }}, "b -> c"]
                latest = ["c -> d", "x -> d"]
                node = [
                    {{ name = "a", period = "10 ms", wcet = "3 ms", priority = 1, cluster = 0 }},
                    {{ name = "b", wcet = "2 ms", priority = 2, cluster = 0 }},
                    {{ name = "c", wcet = "1 ms", priority = 3, cluster = 1 }},
                    {{ name = "d", period = "7 ms", phase = "1 ms", wcet = "2 ms", priority = 4, cluster = {cluster} }},
                    {{ name = "x", period = "9 ms", wcet = "4 ms", priority = 5, cluster = 0 }},
                ]
                [[chain]]
                name = "main"
                path = ["g/a", "g/b", "g/c", "g/d"]
                data_age_max = "40 ms"
                reaction_time_max = "50 ms"
                "#
            );
            let workload = Workload::from_toml(&text, "w.toml").expect("it is valid");
            evaluate(&workload, &Effort::new(&workload, Nanos::from_secs(1), 0), &|| false)
        };
        let (own, starved) = (score("P-FP", 1), score("P-RM/CEm", 0));
        assert!(own.proof.is_none() && starved.proof.is_none());
        assert!(starved < own, "{starved:?} {own:?}");
        let tail = starved.tail.expect("it can be simulated");
        assert!(tail.missed >= 100 && tail.max_ppm >= 20_000_000 && tail.worst == "main", "{tail:?}");
    }

    #[test]
    fn what_is_proven_comes_first_then_more_laxity_then_the_better_tail() {
        let score = |proof, tail| Score { proof, tail, unproven: None };
        let sorted = [
            score(None, None),
            score(None, tail(3, 10)),
            score(None, tail(0, 90)),
            score(None, tail(0, 80)),
            score(proof(5), tail(0, 95)),
            score(proof(7), tail(0, 99)),
            score(proof(7), tail(0, 98)),
        ];
        assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
