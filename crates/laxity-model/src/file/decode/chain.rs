//! Chains: nodes of a graph by `graph/node`.

use super::fields;
use crate::error::{ErrorKind, Findings};
use crate::file::reader::Item;
use crate::suggest;
use crate::{Chain, Graph};

/// An element of `[[chain]]`.
pub(super) fn chain(item: &Item<'_>, graphs: &[Graph], findings: &mut Findings) -> Chain {
    let mut chain =
        Chain { name: String::new(), graph: 0, path: Vec::new(), data_age_max: None, reaction_time_max: None };
    let Some(fields) = item.table(fields::CHAIN, "a table with `name` and `path`", findings) else { return chain };
    chain.name = fields.name(findings);
    chain.data_age_max = fields.get("data_age_max").and_then(|item| item.span(findings));
    chain.reaction_time_max = fields.get("reaction_time_max").and_then(|item| item.span(findings));
    let path = fields.require("path", "`path = [\"graph/A\", \"graph/B\"]`, from sensor to actuator", findings);
    let path = path.and_then(|path| path.list("nodes, as in `[\"graph/A\", \"graph/B\"]`", findings));
    let mut known: Option<usize> = None;
    for item in path.into_iter().flatten() {
        let Some((graph, node)) = node(&item, graphs, findings) else { continue };
        let first = *known.get_or_insert(graph);
        if graph != first {
            let message = format!(
                "leaves graph \"{}\", where the chain begins; a chain keeps to one graph, so put the nodes into one and \
                 join them by `latest` edges",
                graphs[first].name
            );
            item.report(ErrorKind::Contradiction, message, findings);
        }
        chain.path.push(node);
    }
    chain.graph = known.unwrap_or(0);
    chain
}

/// The graph and the node that `item` names.
fn node(item: &Item<'_>, graphs: &[Graph], findings: &mut Findings) -> Option<(usize, usize)> {
    let name = item.text("a node, as in `\"graph/node\"`", findings)?;
    let is_it = |graph: &Graph, node: &str| {
        name.strip_prefix(graph.name.as_str()).and_then(|rest| rest.strip_prefix('/')) == Some(node)
    };
    for (index, graph) in graphs.iter().enumerate() {
        if let Some(node) = graph.nodes.iter().position(|node| is_it(graph, &node.name)) {
            return Some((index, node));
        }
    }
    let all =
        |graph: &Graph| graph.nodes.iter().map(|node| format!("{}/{}", graph.name, node.name)).collect::<Vec<_>>();
    let all: Vec<String> = graphs.iter().flat_map(all).collect();
    let way_out = match all.is_empty() {
        true => "a chain is a path of nodes, and the file defines no graph".to_owned(),
        false => suggest::way_out(name, all.iter().map(String::as_str)),
    };
    item.report(ErrorKind::UnknownName, format_args!("names the unknown node \"{name}\"; {way_out}"), findings);
    None
}
