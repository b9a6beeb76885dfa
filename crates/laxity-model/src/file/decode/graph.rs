//! PGM graphs: nodes, edges and data objects by name.

use super::body::body;
use super::own_code::own_code;
use super::task::server;
use super::{Names, fields, look_up, refer};
use crate::error::{ErrorKind, Findings};
use crate::file::AUTOMATIC;
use crate::file::reader::{Fields, Item};
use crate::file::tree::Value;
use crate::{DataObject, Edge, Graph, LatestEdge, Nanos, Node, Replicas};

/// An element of `[[graph]]`.
pub(super) fn graph(item: &Item<'_>, names: &Names, findings: &mut Findings) -> Graph {
    let Some(fields) = item.table(fields::GRAPH, "a table with `name`, `node` and `edge`", findings) else {
        return Graph::new("", Vec::new(), Vec::new());
    };
    let name = fields.name(findings);
    let nodes: Vec<Node> = fields.tables("node", findings).iter().map(|item| node(item, names, findings)).collect();
    let node_names: Vec<String> = nodes.iter().map(|node| node.name.clone()).collect();
    let edges = fields.tables("edge", findings);
    let edges = edges.iter().filter_map(|item| edge(item, &node_names, findings)).collect();
    let latest = fields.tables("latest", findings);
    let latest = latest.iter().filter_map(|item| latest_edge(item, &node_names, findings)).collect();
    let objects = fields.tables("object", findings);
    let objects = objects.iter().filter_map(|item| object(item, &node_names, findings)).collect();
    let replicas = fields.get("replicas").and_then(|item| replicas(&item, findings)).unwrap_or_default();
    Graph { name, nodes, edges, latest, objects, replicas }
}

fn object(item: &Item<'_>, nodes: &[String], findings: &mut Findings) -> Option<DataObject> {
    let expected = "a table, as in `{ name = \"frame\", nodes = [\"A\", \"B\"] }`";
    let fields = item.table(fields::OBJECT, expected, findings)?;
    let name = fields.name(findings);
    let accessors = fields.require("nodes", "`nodes = [\"A\", \"B\"]`, in the order of access", findings);
    let accessors = accessors?.list("the names of nodes, as in `[\"A\", \"B\"]`", findings)?;
    let accessors = accessors.iter().filter_map(|item| refer(item, nodes, "node", findings)).collect();
    Some(DataObject { name, accessors, delay: tokens(&fields, "delay", 0, findings) })
}

fn replicas(item: &Item<'_>, findings: &mut Findings) -> Option<Replicas> {
    if matches!(item.node.value, Value::Text(_)) {
        return item.choice(&[(AUTOMATIC, Replicas::Auto)], findings);
    }
    if !matches!(item.node.value, Value::Integer(_)) {
        let message = format!("is {}; write their number, as in 3, or \"{AUTOMATIC}\"", item.node.value);
        item.report(ErrorKind::WrongType, message, findings);
        return None;
    }
    item.integer_u32(findings).map(Replicas::Count)
}

fn node(item: &Item<'_>, names: &Names, findings: &mut Findings) -> Node {
    let mut node = Node::new(String::new(), None);
    let Some(fields) = item.table(fields::NODE, "a table with `name` and `wcet`", findings) else { return node };
    node.name = fields.name(findings);
    node.period = fields.get("period").and_then(|item| item.span(findings));
    node.phase = fields.get("phase").and_then(|item| item.span(findings)).unwrap_or(Nanos::ZERO);
    node.deadline = fields.get("deadline").and_then(|item| item.span(findings));
    node.priority = fields.get("priority").and_then(|item| item.integer_u32(findings));
    node.cluster = fields.get("cluster").and_then(|item| item.integer_u32(findings)).map(|index| index as usize);
    node.server = server(&fields, findings);
    node.body = body(&fields, names, findings);
    node.run = own_code(&fields, findings);
    node
}

/// An edge as a table, or `"A -> B"` for one with a token in and a token out.
fn edge(item: &Item<'_>, nodes: &[String], findings: &mut Findings) -> Option<Edge> {
    let mut edge = Edge::new(0, 0);
    if let Value::Text(text) = &item.node.value {
        (edge.producer, edge.consumer) = ends(text, item, nodes, findings)?;
        return Some(edge);
    }
    let expected = "an edge, as in \"A -> B\" or `{ from = \"A\", to = \"B\", produce = 4, consume = 7 }`";
    let fields = item.table(fields::EDGE, expected, findings)?;
    let producer = fields.require("from", "`from = \"...\"`", findings);
    let producer = producer.and_then(|item| refer(&item, nodes, "node", findings));
    let consumer = fields.require("to", "`to = \"...\"`", findings);
    let consumer = consumer.and_then(|item| refer(&item, nodes, "node", findings));
    edge.produce = tokens(&fields, "produce", 1, findings);
    edge.consume = tokens(&fields, "consume", 1, findings);
    edge.threshold = tokens(&fields, "threshold", edge.consume, findings);
    edge.initial = tokens(&fields, "initial", 0, findings);
    edge.delay = tokens(&fields, "delay", 0, findings);
    edge.message = message(&fields, findings);
    edge.back_edge = fields.get("back_edge").and_then(|item| item.boolean(findings)).unwrap_or(false);
    edge.producer = producer?;
    edge.consumer = consumer?;
    Some(edge)
}

/// A latest-value edge, as a table or `"A -> B"`.
fn latest_edge(item: &Item<'_>, nodes: &[String], findings: &mut Findings) -> Option<LatestEdge> {
    if let Value::Text(text) = &item.node.value {
        let (producer, consumer) = ends(text, item, nodes, findings)?;
        return Some(LatestEdge { producer, consumer });
    }
    let expected = "a latest-value edge, as in \"A -> B\" or `{ from = \"A\", to = \"B\" }`";
    let fields = item.table(fields::LATEST, expected, findings)?;
    let producer = fields.require("from", "`from = \"...\"`", findings);
    let producer = producer.and_then(|item| refer(&item, nodes, "node", findings));
    let consumer = fields.require("to", "`to = \"...\"`", findings);
    let consumer = consumer.and_then(|item| refer(&item, nodes, "node", findings));
    Some(LatestEdge { producer: producer?, consumer: consumer? })
}

/// `"A -> B"`, the text of `item`, as its two nodes.
fn ends(text: &str, item: &Item<'_>, nodes: &[String], findings: &mut Findings) -> Option<(usize, usize)> {
    let Some((from, to)) = text.split_once("->") else {
        let message = format!("\"{text}\" is no edge; write it like \"A -> B\"");
        item.report(ErrorKind::BadValue, message, findings);
        return None;
    };
    let producer = look_up(from.trim(), item, nodes, "node", findings)?;
    Some((producer, look_up(to.trim(), item, nodes, "node", findings)?))
}

/// The longest message of a token, which has 32 bits.
fn message(fields: &Fields<'_>, findings: &mut Findings) -> u32 {
    let Some(item) = fields.get("message") else { return 0 };
    let Some(bytes) = item.size(findings) else { return 0 };
    u32::try_from(bytes).unwrap_or_else(|_| {
        let message = format!("is {bytes} bytes, and a message has at most {}; send it in pieces", u32::MAX);
        item.report(ErrorKind::BadValue, message, findings);
        0
    })
}

fn tokens(fields: &Fields<'_>, key: &'static str, default: u32, findings: &mut Findings) -> u32 {
    fields.get(key).and_then(|item| item.integer_u32(findings)).unwrap_or(default)
}
