//! Rules of chains.

use super::positive_span;
use crate::error::{ErrorKind, FieldPath, Findings};
use crate::{Chain, Graph, Workload};

pub(super) fn chain(chain: &Chain, workload: &Workload, at: &FieldPath, findings: &mut Findings) {
    for (key, limit) in [("data_age_max", chain.data_age_max), ("reaction_time_max", chain.reaction_time_max)] {
        if let Some(limit) = limit {
            positive_span(key, limit, at, findings);
        }
    }
    let at = at.key("path");
    let Some(graph) = workload.graphs.get(chain.graph) else {
        let message = format!("there is no graph {}; a chain is a path through a graph", chain.graph);
        return findings.report(at, ErrorKind::UnknownName, message);
    };
    if let Some(&node) = chain.path.iter().find(|&&node| node >= graph.nodes.len()) {
        let message = format!("there is no node {node}: the graph has {}, counted from 0", graph.nodes.len());
        return findings.report(at, ErrorKind::UnknownName, message);
    }
    if chain.path.len() < 2 {
        let message = "`path` is shorter than two nodes; write where data is sampled, and where it is used";
        return findings.report(at, ErrorKind::BadValue, message);
    }
    path(chain, graph, &at, findings);
}

fn path(chain: &Chain, graph: &Graph, at: &FieldPath, findings: &mut Findings) {
    let name = |node: usize| graph.nodes[node].name.as_str();
    if !graph.sources()[chain.path[0]] {
        let message = format!(
            "begins at \"{}\", which tokens start; a chain begins where data is sampled, at a node with a period",
            name(chain.path[0])
        );
        findings.report(at.index(0), ErrorKind::Contradiction, message);
    }
    for (index, pair) in chain.path.windows(2).enumerate() {
        let (from, to, at) = (pair[0], pair[1], at.index(index + 1));
        if chain.path[..=index].contains(&to) {
            let message = format!("comes to \"{}\" again; a chain passes each node once", name(to));
            findings.report(at.clone(), ErrorKind::Contradiction, message);
        }
        let tokens = graph.edges.iter().filter(|edge| !edge.back_edge && (edge.producer, edge.consumer) == (from, to));
        let latest = graph.latest.iter().filter(|edge| (edge.producer, edge.consumer) == (from, to));
        match tokens.count() + latest.count() {
            1 => {}
            0 => {
                let message = format!(
                    "follows \"{}\", but no edge leads from there to \"{}\"; add it, or write the nodes between",
                    name(from),
                    name(to)
                );
                findings.report(at, ErrorKind::Contradiction, message);
            }
            count => {
                let message = format!(
                    "{count} edges lead from \"{}\" to \"{}\", so it is not clear which one the chain follows; leave one",
                    name(from),
                    name(to)
                );
                findings.report(at, ErrorKind::Contradiction, message);
            }
        }
    }
}
