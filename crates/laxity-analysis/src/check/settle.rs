//! How many replicas a graph gets whose file says `replicas = "auto"`.

use laxity_model::{Graph, Nanos, Replicas, Scheduler, Workload};

use super::{Options, Report, TaskReport, check};
use crate::pgm::replicas_needed_within;

/// What a graph's `replicas = "auto"` became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The graph.
    pub graph: String,
    /// Its replicas.
    pub replicas: u32,
    /// Why it is the rule of thumb, the depth of the graph (paper 003, section 5.4.1), and jobs may wait for a replica.
    /// `None`: it follows from bounds on response times, and none ever waits.
    pub unbounded: Option<String>,
}

/// Writes into `workload`, which must be valid, how many replicas those graphs have that leave it to the analysis: the
/// least number with which no job waits for one under `scheduler`, or where there is no bound the depth of the graph.
/// Returns what it wrote.
pub fn settle(workload: &mut Workload, scheduler: &Scheduler) -> Vec<Settled> {
    if workload.graphs.iter().all(|graph| graph.replicas != Replicas::Auto) {
        return Vec::new();
    }
    let report = check(workload, scheduler, &Options { scaling: false, ..Options::default() });
    let mut settled = Vec::new();
    for (index, graph) in workload.graphs.iter_mut().enumerate().filter(|(_, graph)| graph.replicas == Replicas::Auto) {
        let (replicas, unbounded) = match bound(&report, index) {
            Ok(replicas) => (replicas, None),
            Err(reason) => (depth(graph), Some(reason)),
        };
        graph.replicas = Replicas::Count(replicas);
        settled.push(Settled { graph: graph.name.clone(), replicas, unbounded });
    }
    settled
}

fn bound(report: &Report, graph: usize) -> Result<u32, String> {
    match (report.graphs.get(graph).and_then(|graph| graph.replicas.clone()), report.refusals.first()) {
        (Some(found), _) => found,
        (None, Some(refusal)) => Err(format!("{} is not analysed", refusal.subject)),
        (None, None) => Err("its response times are not bounded".to_owned()),
    }
}

/// The replicas that `graph` needs if its nodes respond as `tasks` say, and all `together`; or why that is not known. `None`: it does not ask.
pub(super) fn needed(graph: &Graph, tasks: &[TaskReport], together: Option<Nanos>) -> Option<Result<u32, String>> {
    if graph.replicas != Replicas::Auto {
        return None;
    }
    let bound = |task: &TaskReport| {
        let unbounded = || format!("node \"{}\" has no response-time bound", task.name);
        task.response_time.map(|bound| bound.time).ok_or_else(unbounded)
    };
    let responses: Result<Vec<_>, String> = tasks.iter().map(bound).collect();
    Some(
        responses.and_then(|responses| {
            replicas_needed_within(graph, &responses, together).map_err(|error| error.to_string())
        }),
    )
}

/// The nodes on the longest path of forward edges.
fn depth(graph: &Graph) -> u32 {
    let mut depths = vec![1; graph.nodes.len()];
    // Forward edges make no circle, so that no path is longer than there are nodes.
    for _ in 1..graph.nodes.len() {
        for edge in graph.edges.iter().filter(|edge| !edge.back_edge) {
            depths[edge.consumer] = depths[edge.consumer].max(depths[edge.producer] + 1);
        }
    }
    depths.into_iter().max().unwrap_or(1)
}
