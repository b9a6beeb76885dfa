//! Bounds on the data age and the reaction time of chains.

use laxity_model::{Chain, Graph, Nanos, Workload};

use super::report::ChainReport;
use super::{ChainBounds, Failure, Finding, Status, TaskReport};
use crate::exact::{ceil_ticks, whole};
use crate::pgm::{ChainPath, Hop, Responses, TokenGraph, chain_bounds, rates};

/// A report for each chain; `tasks` are the workload's tasks, then the nodes of each graph, and `together` as in
/// [`Solution`](super::coupled::Solution).
pub(super) fn chains(workload: &Workload, tasks: &[TaskReport], together: &[Option<u64>]) -> Vec<ChainReport> {
    let report = |chain: &Chain| {
        let before = workload.graphs[..chain.graph].iter().map(|graph| graph.nodes.len()).sum::<usize>();
        let (graph, first) = (&workload.graphs[chain.graph], workload.tasks.len() + before);
        ChainReport {
            name: chain.name.clone(),
            path: chain.path.iter().map(|node| first + node).collect(),
            data_age_max: chain.data_age_max,
            reaction_time_max: chain.reaction_time_max,
            bounds: bounds(chain, graph, &tasks[first..first + graph.nodes.len()], together[first]),
        }
    };
    workload.chains.iter().map(report).collect()
}

/// Deadlines of chains are deadlines: where one is not proven, `hard` is not.
pub(super) fn judge(chains: &[ChainReport], tasks: &[TaskReport], hard: &mut Finding) {
    for chain in chains {
        for message in chain.failures() {
            let cluster = chain.path.last().map_or(0, |&task| tasks[task].cluster);
            hard.status = hard.status.max(Status::NotProven);
            hard.failures.push(Failure { cluster, test: None, task: None, interval: None, message });
        }
    }
}

/// Whether all deadlines of `chain` are proven to be met.
pub(super) fn is_in_time(chain: &ChainReport) -> bool {
    chain.failures().is_empty()
}

/// Jobs that may wait for a replica of their graph's data have no response-time bounds.
fn bounds(chain: &Chain, graph: &Graph, tasks: &[TaskReport], together: Option<u64>) -> Result<ChainBounds, String> {
    let mut responses = Vec::with_capacity(tasks.len());
    for task in tasks {
        let bound = task.response_time.ok_or_else(|| format!("node \"{}\" has no response-time bound", task.name))?;
        responses.push(bound.time);
    }
    let tokens = TokenGraph::from(graph);
    let rates = rates(&tokens).map_err(|error| error.to_string())?;
    let responses: Vec<_> = responses.iter().map(|time| whole(time.0)).collect();
    let phases: Vec<_> = graph.nodes.iter().map(|node| whole(node.phase.0)).collect();
    let together = together.map(whole);
    let responses = Responses { nodes: &responses, together: together.as_ref() };
    let found = chain_bounds(&tokens, &rates, responses, &phases, &path(chain, graph));
    let found = found.map_err(|error| error.to_string())?;
    Ok(ChainBounds {
        data_age: Nanos(ceil_ticks(&found.data_age)),
        reaction_time: Nanos(ceil_ticks(&found.reaction_time)),
    })
}

/// The one edge between each two nodes of a valid chain.
fn path(chain: &Chain, graph: &Graph) -> ChainPath {
    let hop = |pair: &[usize]| {
        let joins = |edge: &laxity_model::Edge| !edge.back_edge && [edge.producer, edge.consumer] == pair;
        graph.edges.iter().position(joins).map_or(Hop::Latest, Hop::Tokens)
    };
    ChainPath { nodes: chain.path.clone(), hops: chain.path.windows(2).map(hop).collect() }
}

impl ChainReport {
    /// Why a deadline of it is not proven, for each that is not.
    fn failures(&self) -> Vec<String> {
        let name = &self.name;
        let limits = [("data age", self.data_age_max), ("reaction time", self.reaction_time_max)];
        let given = limits.into_iter().filter_map(|(what, limit)| Some((what, limit?)));
        match &self.bounds {
            Err(reason) => {
                given.map(|(what, _)| format!("chain \"{name}\": no bound on the {what}: {reason}")).collect()
            }
            Ok(bounds) => {
                let of = |what| if what == "data age" { bounds.data_age } else { bounds.reaction_time };
                let exceeded = given.filter(|&(what, limit)| of(what) > limit);
                let failure =
                    |(what, limit)| format!("chain \"{name}\": the bound on its {what}, {}, exceeds {limit}", of(what));
                exceeded.map(failure).collect()
            }
        }
    }
}
