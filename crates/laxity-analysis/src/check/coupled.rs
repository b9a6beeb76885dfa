//! What is found about all clusters together, where nodes of graphs depend on one another.
//!
//! A node of a graph is a sporadic task to others, but for what follows from bounds on the nodes before it, in whatever cluster:
//!
//! - **Early jobs.** Tokens that come faster than at their rate, after a late job or of several jobs at a time, release jobs
//!   before they arrive: how early is [`earliness`].
//! - **Interrupts.** A complete job of one cluster may release jobs of another: the interrupt is handled on the CPU of
//!   the former, and may wait there behind others.
//! - **Replicas.** With too few replicas of the data of its graph a job may wait for one beyond its arrival: then its response
//!   takes longer, and those of its node that pile up meanwhile delay others more. So bounds hold for clusters that have nodes
//!   of such a graph only if its replicas suffice under these bounds ([`replicas_needed`](crate::pgm::replicas_needed)).
//!
//! So bounds are found from below, from execution times up, until what follows from them changes nothing. That is no circle: let
//! some job be the first that responds later than its bound, is released earlier, or waits for a replica. Until then none
//! did, so that all that bounds rest on was as supposed; then neither does this one.

use std::ops::Range;

use laxity_model::{Graph, Nanos, Replicas, Workload};

use super::analysed_task::{AnalysedTask, Tokens, UNBOUNDED};
use super::analysis::{Analysis, Found, find, task_report};
use super::assign::Cluster;
use super::busy_period::beyond_tests;
use super::context::Context;
use super::hard::{infeasible, overload};
use super::served::with_budgets;
use super::{Accounting, Failure, Finding, Status, TaskReport, explain, safe};
use crate::exact::{ceil_ticks, whole};
use crate::pgm::{Rate, TokenGraph, earliness, rates, replicas_needed_within, unevenness};
use crate::{Limits, Rational};

/// Rounds in which bounds settle; in practice a handful.
const ROUNDS_MAX: u32 = 25;

/// What was found with execution times of some thousandths.
pub(super) struct Solution {
    /// What was analysed, budgets in place of jobs that use them up, and the clusters.
    pub analysed: Vec<AnalysedTask>,
    pub clusters: Vec<Cluster>,
    /// About each cluster.
    pub found: Vec<Found>,
    /// Of each task: by when all is complete that the job of a source sets off, counted from its arrival.
    pub together: Vec<Option<u64>>,
}

/// The tokens of a graph.
pub(super) struct Flow {
    /// The task that is its first node.
    first: usize,
    graph: TokenGraph,
    rates: Vec<Rate>,
    phases: Vec<Rational>,
    /// Of each node: how unevenly its tokens come, if jobs take no time.
    uneven: Vec<u64>,
    /// Of each node: those whose tokens, or use of replicas, may be the last that its job waits for.
    releasers: Vec<Vec<usize>>,
}

impl Flow {
    /// Those of all graphs of `workload` that have rates.
    pub fn all(workload: &Workload) -> Vec<Flow> {
        let mut first = workload.tasks.len();
        let mut flows = Vec::with_capacity(workload.graphs.len());
        for described in &workload.graphs {
            let graph = TokenGraph::from(described);
            let nodes = described.nodes.len();
            let producers = |node: usize| {
                let edges = described.edges.iter().filter(move |edge| edge.consumer == node);
                edges.map(|edge| edge.producer)
            };
            let releasers = |node: usize| match described.replicas {
                Replicas::None => producers(node).collect(),
                Replicas::Count(_) | Replicas::Auto => (0..nodes).collect(),
            };
            if let Ok(rates) = rates(&graph) {
                let phases: Vec<Rational> = described.nodes.iter().map(|node| whole(node.phase.0)).collect();
                // A source that waits for tokens keeps its period from then on, and so waits once they are there.
                let waits = graph.edges.iter().any(|edge| graph.sources[edge.consumer].is_some());
                let uneven = unevenness(&graph, &rates, &phases).filter(|_| !waits);
                let uneven = uneven.map_or_else(|| vec![UNBOUNDED; nodes], |times| times.iter().map(ticks).collect());
                let releasers = (0..nodes).map(releasers).collect();
                flows.push(Flow { first, graph, rates, phases, uneven, releasers });
            }
            first += nodes;
        }
        flows
    }

    /// Its tokens.
    pub fn graph(&self) -> &TokenGraph {
        &self.graph
    }

    /// Its nodes among the tasks.
    pub fn nodes(&self) -> Range<usize> {
        self.first..self.first + self.rates.len()
    }

    /// Writes how unevenly the tokens of its nodes come, if jobs take no time.
    pub fn write_unevenness(&self, of_tasks: &mut [u64]) {
        of_tasks[self.nodes()].copy_from_slice(&self.uneven);
    }

    /// How early each node's jobs may be, if tasks respond within `known` and all `together` ([`Solution::together`]).
    fn early(&self, known: &[Option<u64>], together: &[Option<u64>]) -> Vec<u64> {
        let responses: Vec<Option<Rational>> = known[self.nodes()].iter().map(|time| time.map(whole)).collect();
        let early = earliness(&self.graph, &self.rates, &responses, &self.phases);
        let least = |(early, &uneven): (&Option<Rational>, &u64)| {
            let other = together[self.first].map(|together| together.saturating_add(uneven));
            early.as_ref().map(ticks).into_iter().chain(other).min().unwrap_or(UNBOUNDED).min(UNBOUNDED)
        };
        early.iter().zip(&self.uneven).map(least).collect()
    }

    /// What a node has to do with nodes of other clusters, whose CPUs may keep interrupts waiting for so long.
    fn tokens(&self, analysis: &Analysis<'_>, node: usize, cluster_of: &[usize], lags: &[u64]) -> Tokens {
        let cluster = |node: usize| cluster_of[self.first + node];
        let elsewhere = |other: &&usize| cluster(**other) != cluster(node);
        let releases = |other: &usize| self.releasers[*other].contains(&node);
        let is_sending = (0..self.rates.len()).filter(releases).any(|other| elsewhere(&&other));
        let from = self.releasers[node].iter().filter(elsewhere).map(|&other| lags[cluster(other)]);
        Tokens {
            // Beside a CPU for interrupts of timers, those for jobs of its own cluster, too.
            sent: u64::from(is_sending || analysis.machine.is_dedicated),
            is_sent: from.clone().next().is_some(),
            held: from.max().unwrap_or(0),
        }
    }
}

fn ticks(time: &Rational) -> u64 {
    ceil_ticks(time).min(UNBOUNDED)
}

impl Analysis<'_> {
    /// Whether a verdict rests on bounds of other tasks: on tokens, on replicas of data, or on chains.
    pub fn is_coupled(&self) -> bool {
        let depends = |graph: &Graph| !graph.edges.is_empty() || graph.replicas != Replicas::None;
        self.workload.graphs.iter().any(depends) || !self.workload.chains.is_empty()
    }

    /// Whether what is found of a cluster depends on what is found of no other, and not on tokens or replicas of its own.
    pub fn is_apart(&self) -> bool {
        !self.is_coupled() && self.flows.is_empty()
    }

    /// What `tasks` are to their clusters where each is [apart](Analysis::is_apart).
    pub fn apart(&self, tasks: &[AnalysedTask]) -> Apart<'_> {
        let (analysed, clusters) = with_budgets(&self.machine, &self.clusters, tasks);
        Apart { analysis: self, analysed, clusters, busy: self.busy_periods(tasks) }
    }

    /// What there is to be found. See the head of this file. Without `with_bounds` proven deadlines stand for the bounds of jobs that
    /// meet them, which is the same to all verdicts if these are not [coupled](Analysis::is_coupled).
    pub fn solve(&self, permille: u64, limits: &Limits, with_bounds: bool) -> Solution {
        let mut tasks = self.scaled(permille);
        let mut known: Vec<Option<u64>> = tasks.iter().map(|task| Some(task.wcet)).collect();
        let mut busy = self.busy_periods(&tasks);
        let mut together = self.of_tasks(&busy);
        let mut lags = vec![0; self.clusters.len()];
        let mut waits = vec![false; self.workload.graphs.len()];
        let mut found: Vec<Option<Found>> = self.clusters.iter().map(|_| None).collect();
        // Those that were members when it was found.
        let mut members = vec![Vec::new(); self.clusters.len()];
        let mut round = 0;
        loop {
            let is_changed = self.pass_on(&mut tasks, &known, &together, &lags);
            let (analysed, clusters) = with_budgets(&self.machine, &self.clusters, &tasks);
            clusters.iter().flat_map(|cluster| &cluster.isolated).for_each(|&isolated| known[isolated] = None);
            for ((context, found), members) in self.contexts(&analysed, &clusters).zip(&mut found).zip(&mut members) {
                let is_new = self.clusters[context.index].members.iter().any(|&member| is_changed[member]);
                // What is not proven stays so if jobs are earlier.
                if let Some(found) = found.as_mut().filter(|found| found.bounds.is_none() || !is_new) {
                    // It was of other members, where servers are left out now or no longer.
                    found.inflation = found.inflation.take().filter(|_| *members == context.cluster.members);
                    continue;
                }
                members.clone_from(&context.cluster.members);
                let mut now = unbounded(&context).unwrap_or_else(|| find(&context, limits, with_bounds));
                now.busy = busy[context.index];
                self.learn(&context, &now, &mut known, &mut lags);
                *found = Some(now);
            }
            round += 1;
            if round > ROUNDS_MAX {
                // Ever later and earlier: taken to be without bound.
                let is_unsettled = |cluster: &&Cluster| cluster.members.iter().any(|&member| is_changed[member]);
                let unsettled = self.clusters.iter().filter(is_unsettled).flat_map(|cluster| &cluster.members);
                unsettled.for_each(|&member| known[member] = tasks[member].within_busy(together[member]));
            }
            if self.pass_on(&mut tasks.clone(), &known, &together, &lags).iter().any(|&changed| changed) {
                continue;
            }
            let mut found_so_far: Vec<&mut Found> = found.iter_mut().flatten().collect();
            if withdraw(self.workload, &analysed, &clusters, &mut found_so_far, &mut waits) {
                self.refute_busy_periods(&waits, &mut busy);
                together = self.of_tasks(&busy);
                for ((context, found), &busy) in self.contexts(&analysed, &clusters).zip(found_so_far).zip(&busy) {
                    found.busy = busy;
                    self.learn(&context, found, &mut known, &mut lags);
                }
                continue;
            }
            for (context, found) in self.contexts(&analysed, &clusters).zip(found_so_far) {
                found.conclude(&context);
            }
            return Solution { analysed, clusters, found: found.into_iter().flatten().collect(), together };
        }
    }

    /// Later than what was `known`, if at all, and with longer `lags`, is what was found about a cluster.
    fn learn(&self, context: &Context<'_>, found: &Found, known: &mut [Option<u64>], lags: &mut [u64]) {
        let time = |(member, task)| found.time(member, task);
        let times: Vec<Option<u64>> = context.members().enumerate().map(time).collect();
        for (&index, &time) in context.cluster.members.iter().zip(&times) {
            known[index] = known[index].zip(time).map(|(known, time)| known.max(time));
        }
        lags[context.index] = self.lag(context, times).max(lags[context.index]);
    }

    /// Of each task: what there is of its cluster.
    fn of_tasks(&self, of_clusters: &[Option<u64>]) -> Vec<Option<u64>> {
        let mut of_tasks = vec![None; self.tasks.len()];
        for (cluster, &value) in self.clusters.iter().zip(of_clusters) {
            cluster.members.iter().for_each(|&member| of_tasks[member] = value);
        }
        of_tasks
    }

    /// Writes into `tasks` what follows for nodes if jobs respond within `known`; for which of them something changed.
    fn pass_on(
        &self,
        tasks: &mut [AnalysedTask],
        known: &[Option<u64>],
        together: &[Option<u64>],
        lags: &[u64],
    ) -> Vec<bool> {
        let mut is_changed = vec![false; tasks.len()];
        let mut cluster_of = vec![0; tasks.len()];
        for (index, cluster) in self.clusters.iter().enumerate() {
            cluster.members.iter().for_each(|&member| cluster_of[member] = index);
        }
        for flow in &self.flows {
            for (node, early) in flow.early(known, together).into_iter().enumerate() {
                let tokens = Some(flow.tokens(self, node, &cluster_of, lags));
                let task = &mut tasks[flow.first + node];
                is_changed[flow.first + node] = (task.early, task.node) != (early, tokens);
                (task.early, task.node) = (early, tokens);
            }
        }
        is_changed
    }

    /// How long interrupts may wait on the cluster's CPUs, if its jobs are pending for up to `times`.
    fn lag(&self, context: &Context<'_>, times: Vec<Option<u64>>) -> u64 {
        if self.flows.is_empty() || self.clusters.len() < 2 || self.machine.accounting != Accounting::Safe {
            return 0;
        }
        let pending: Option<Vec<u64>> = times.into_iter().collect();
        pending.and_then(|pending| safe::lag(context, &pending).ok()).unwrap_or(UNBOUNDED)
    }

    /// What was found about each task.
    pub fn task_reports(&self, solution: &Solution) -> Vec<TaskReport> {
        let mut tasks: Vec<Option<TaskReport>> = vec![None; solution.analysed.len()];
        let contexts = self.contexts(&solution.analysed, &solution.clusters);
        for (context, found) in contexts.zip(&solution.found) {
            let Context { cluster, .. } = context;
            for (member, &index) in cluster.members.iter().enumerate() {
                tasks[index] = Some(task_report(&context, found, index, Some(member)));
            }
            for &index in &cluster.isolated {
                tasks[index] = Some(task_report(&context, found, index, None));
            }
        }
        tasks.into_iter().map(|task| task.expect("every task is in a cluster")).collect()
    }
}

/// Clusters whose verdicts do not depend on one another, so that one may be found without the others.
pub(super) struct Apart<'a> {
    analysis: &'a Analysis<'a>,
    analysed: Vec<AnalysedTask>,
    clusters: Vec<Cluster>,
    busy: Vec<Option<u64>>,
}

impl Apart<'_> {
    /// The same as [`Analysis::solve`] finds of the cluster.
    pub fn find(&self, cluster: usize, limits: &Limits, with_bounds: bool) -> Found {
        let (machine, index) = (&self.analysis.machine, cluster);
        let context = Context { machine, index, cluster: &self.clusters[index], analysed: &self.analysed };
        let mut found = unbounded(&context).unwrap_or_else(|| find(&context, limits, with_bounds));
        found.busy = self.busy[index];
        found.conclude(&context);
        found
    }
}

/// What is found where nothing bounds what nodes of other clusters, or of none that is proven, do to nodes of this one; or nothing
/// but busy periods what else delays its jobs.
fn unbounded(context: &Context<'_>) -> Option<Found> {
    let of = |(&index, task): (&usize, &AnalysedTask)| {
        task.unbounded().map(|message| explain::of_task(context, index, message.to_owned()))
    };
    let failure =
        context.cluster.members.iter().zip(context.members()).find_map(of).or_else(|| beyond_tests(context))?;
    let hard = match infeasible(context) {
        Some(infeasible) => Finding::failed(Status::Infeasible, vec![infeasible]),
        None => Finding::failed(Status::NotProven, vec![failure.clone()]),
    };
    let soft = match overload(context) {
        Some(overload) => Finding::failed(Status::Infeasible, vec![overload]),
        None => Finding::failed(Status::NotProven, vec![failure]),
    };
    Some(Found { hard, soft, inflation: None, bounds: None, busy: None })
}

/// Takes back what was found about clusters whose nodes may wait for replicas of data; whether there are more of them than
/// those of graphs that were known to (`waits`).
fn withdraw(
    workload: &Workload,
    analysed: &[AnalysedTask],
    clusters: &[Cluster],
    found: &mut [&mut Found],
    waits: &mut [bool],
) -> bool {
    let mut first = workload.tasks.len();
    let mut are_more = false;
    for (graph, waits) in workload.graphs.iter().zip(waits) {
        let nodes = first..first + graph.nodes.len();
        first = nodes.end;
        if *waits {
            continue;
        }
        let bounds: Vec<Option<Nanos>> = nodes.clone().map(|node| response(analysed, clusters, found, node)).collect();
        let together = found.iter().zip(clusters).find(|(_, cluster)| cluster.members.contains(&nodes.start));
        let together = together.and_then(|(found, _)| found.busy).map(Nanos);
        let Some(message) = reason(graph, &bounds, together) else { continue };
        (*waits, are_more) = (true, true);
        for (index, cluster) in clusters.iter().enumerate() {
            if cluster.members.iter().any(|member| nodes.contains(member)) {
                let (message, cluster) = (message.clone(), cluster.parts[0].number);
                found[index].refute(Failure { cluster, test: None, task: None, interval: None, message });
            }
        }
    }
    are_more
}

/// The bound on the response time of a task.
fn response(analysed: &[AnalysedTask], clusters: &[Cluster], found: &[&mut Found], task: usize) -> Option<Nanos> {
    let of = |(cluster, found): (&Cluster, &&mut Found)| {
        let member = cluster.members.binary_search(&task).ok()?;
        found.time(member, &analysed[task])
    };
    clusters.iter().zip(found).find_map(of).map(Nanos)
}

/// Why jobs of `graph` may wait for replicas, if its nodes respond within `bounds` and all `together`.
fn reason(graph: &Graph, bounds: &[Option<Nanos>], together: Option<Nanos>) -> Option<String> {
    let is_shared = !graph.edges.is_empty() || graph.objects.iter().any(|object| object.accessors.len() > 1);
    if graph.replicas == Replicas::None || !is_shared {
        return None;
    }
    let known: Option<Vec<Nanos>> = bounds.iter().copied().collect();
    let needed = match known {
        Some(bounds) => replicas_needed_within(graph, &bounds, together).map_err(|error| error.to_string()),
        None => {
            let unknown = bounds.iter().zip(&graph.nodes).find(|(bound, _)| bound.is_none());
            let name = unknown.map_or("", |(_, node)| node.name.as_str());
            Err(format!("node \"{name}\" has no response-time bound"))
        }
    };
    let name = &graph.name;
    match (graph.replicas, needed) {
        (Replicas::Count(count), Ok(needed)) if needed > count => Some(format!(
            "graph \"{name}\": its jobs may wait for one of {count} replicas of its data, and nothing bounds how long that \
             delays them and others; {needed} replicas are enough"
        )),
        (_, Ok(_)) => None,
        (_, Err(reason)) => Some(format!("graph \"{name}\": its jobs may wait for replicas of its data, as {reason}")),
    }
}

impl Found {
    /// Nothing is known of the cluster, for this reason.
    fn refute(&mut self, failure: Failure) {
        self.bounds = None;
        for finding in [&mut self.hard, &mut self.soft] {
            match finding.status {
                Status::Schedulable => *finding = Finding::failed(Status::NotProven, vec![failure.clone()]),
                Status::NotProven | Status::Infeasible | Status::Refused => finding.failures.push(failure.clone()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::{Edge, Node, Platform};

    use super::*;

    #[test]
    fn nodes_are_early_by_the_sum_of_responses_or_by_what_is_complete_together() {
        let nodes = ["a", "b", "c"].map(|name| Node::new(name, (name == "a").then_some(Nanos(10))));
        let edges = vec![Edge::rated(0, 1, 1, 1), Edge::rated(1, 2, 1, 1)];
        let mut workload = Workload::new("w", Platform::identical(1), Vec::new());
        workload.graphs.push(Graph::new("g", nodes.to_vec(), edges));
        let flow = &Flow::all(&workload)[0];
        assert_eq!(flow.early(&[Some(6); 3], &[None; 3]), [0, 6, 12]);
        assert_eq!(flow.early(&[Some(6); 3], &[Some(8); 3]), [0, 6, 8]);
        assert_eq!(flow.early(&[None; 3], &[Some(8); 3]), [0, 8, 8]);
        assert_eq!(flow.early(&[None; 3], &[None; 3]), [0, UNBOUNDED, UNBOUNDED]);
    }
}
