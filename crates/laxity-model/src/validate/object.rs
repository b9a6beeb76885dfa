//! Rules of the data objects of a graph.

use super::Names;
use crate::error::{ErrorKind, FieldPath, Findings};
use crate::{DataObject, Graph, Replicas};

/// Checks the objects of `graph`; `consumers` are those of its forward edges, by node, where the edges are sound.
pub(super) fn objects(graph: &Graph, consumers: Option<&[Vec<usize>]>, at: &FieldPath, findings: &mut Findings) {
    let mut names = Names::new("object");
    for (index, object) in graph.objects.iter().enumerate() {
        let at = at.key("object").index(index);
        names.add(&object.name, &at, findings);
        let before = findings.list.len();
        accessors(object, graph, &at.key("nodes"), findings);
        if let Some(consumers) = consumers.filter(|_| findings.list.len() == before) {
            order(object, graph, consumers, &at.key("nodes"), findings);
        }
    }
    let at = at.key("replicas");
    if graph.replicas == Replicas::Count(0) {
        let message = "`replicas` is 0; write at least 1, or leave it out for objects without feedback graph";
        findings.report(at, ErrorKind::BadValue, message);
    } else if graph.replicas != Replicas::None && graph.objects.is_empty() {
        let message = "`replicas` is there but no object to replicate; list what nodes share as `object = [...]`, or \
                       remove it";
        findings.report(at, ErrorKind::Contradiction, message);
    }
}

fn accessors(object: &DataObject, graph: &Graph, at: &FieldPath, findings: &mut Findings) {
    if object.accessors.is_empty() {
        findings.report(at.clone(), ErrorKind::BadValue, "`nodes` is empty; list the nodes that touch the object");
    }
    for (index, &node) in object.accessors.iter().enumerate() {
        let at = at.index(index);
        match graph.nodes.get(node) {
            None => {
                let count = graph.nodes.len();
                let message = format!("there is no node {node}: the graph has {count}, counted from 0");
                findings.report(at, ErrorKind::UnknownName, message);
            }
            Some(known) if object.accessors[..index].contains(&node) => {
                let message = format!("node \"{}\" is listed twice; one entry stands for all its accesses", known.name);
                findings.report(at, ErrorKind::Duplicate, message);
            }
            Some(_) => {}
        }
    }
}

/// Along a path of edges the producer's job comes first, so that no other order is possible.
fn order(object: &DataObject, graph: &Graph, consumers: &[Vec<usize>], at: &FieldPath, findings: &mut Findings) {
    for (index, &later) in object.accessors.iter().enumerate() {
        let is_reached = super::graph::reached_from(consumers, later);
        if let Some(&earlier) = object.accessors[..index].iter().find(|&&earlier| is_reached[earlier]) {
            let message = format!(
                "node \"{}\" is listed after \"{}\", which waits for its tokens; list them in the order of the edges",
                graph.nodes[later].name, graph.nodes[earlier].name
            );
            findings.report(at.index(index), ErrorKind::Contradiction, message);
        }
    }
}
