//! What is found about all clusters together, where nodes of graphs wait for one another.
//!
//! The bounds of a cluster suppose that a released job has all that it needs. With too few replicas of the data of its graph it
//! may wait for one beyond its arrival, while jobs elsewhere use them: then its response takes longer, and those of its
//! node that pile up meanwhile delay others more. So the bounds hold for clusters that have nodes of such a graph only if its
//! replicas suffice under these bounds ([`replicas_needed`]). That is no circle: let some job be the first that waits for
//! a replica or responds late. Until then none did, so that all bounds held; then neither does this one.

use laxity_model::{Graph, Nanos, Replicas, Workload};

use super::analysed_task::AnalysedTask;
use super::analysis::{Analysis, Found, find, task_report};
use super::assign::Cluster;
use super::context::Context;
use super::{Failure, Finding, Status, TaskReport};
use crate::Limits;
use crate::pgm::replicas_needed;

/// What was found with execution times of some thousandths.
pub(super) struct Solution {
    /// What was analysed, budgets in place of jobs that use them up, and the clusters.
    pub analysed: Vec<AnalysedTask>,
    pub clusters: Vec<Cluster>,
    /// About each cluster.
    pub found: Vec<Found>,
}

impl Analysis<'_> {
    /// What there is to be found.
    pub fn solve(&self, permille: u64, limits: &Limits) -> Solution {
        let (analysed, clusters) = self.scaled(permille);
        let mut found: Vec<Found> = self.contexts(&analysed, &clusters).map(|context| find(&context, limits)).collect();
        withdraw(self.workload, &clusters, &mut found);
        Solution { analysed, clusters, found }
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

/// Whether a cluster's verdict may depend on what is found about others, or about chains.
pub(super) fn is_coupled(workload: &Workload) -> bool {
    workload.graphs.iter().any(|graph| graph.replicas != Replicas::None) || !workload.chains.is_empty()
}

/// Takes back what was found about clusters whose nodes may wait for replicas of data.
fn withdraw(workload: &Workload, clusters: &[Cluster], found: &mut [Found]) {
    let mut waits = vec![false; workload.graphs.len()];
    loop {
        let mut first = workload.tasks.len();
        let mut is_settled = true;
        for (graph, waits) in workload.graphs.iter().zip(&mut waits) {
            let nodes = first..first + graph.nodes.len();
            first = nodes.end;
            if *waits {
                continue;
            }
            let bounds: Vec<Option<Nanos>> = nodes.clone().map(|node| response(clusters, found, node)).collect();
            let Some(message) = reason(graph, &bounds) else { continue };
            (*waits, is_settled) = (true, false);
            for (index, cluster) in clusters.iter().enumerate() {
                if cluster.members.iter().any(|member| nodes.contains(member)) {
                    let failure =
                        Failure { cluster: index, test: None, task: None, interval: None, message: message.clone() };
                    found[index].refute(failure);
                }
            }
        }
        if is_settled {
            return;
        }
    }
}

/// The bound on the response time of a task.
fn response(clusters: &[Cluster], found: &[Found], task: usize) -> Option<Nanos> {
    let of = |(cluster, found): (&Cluster, &Found)| {
        let member = cluster.members.binary_search(&task).ok()?;
        found.bounds.as_ref().and_then(|(times, _)| times[member])
    };
    clusters.iter().zip(found).find_map(of).map(Nanos)
}

/// Why jobs of `graph` may wait for replicas, if its nodes respond within `bounds`.
fn reason(graph: &Graph, bounds: &[Option<Nanos>]) -> Option<String> {
    let is_shared = !graph.edges.is_empty() || graph.objects.iter().any(|object| object.accessors.len() > 1);
    if graph.replicas == Replicas::None || !is_shared {
        return None;
    }
    let known: Option<Vec<Nanos>> = bounds.iter().copied().collect();
    let needed = match known {
        Some(bounds) => replicas_needed(graph, &bounds).map_err(|error| error.to_string()),
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
