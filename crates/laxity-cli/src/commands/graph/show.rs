//! `laxity graph show`: what a graph is doing now.

use clap::Args;
use laxity_graph::{Channel, Graph, Registry, Topology};
use laxity_model::{Edge, Nanos};
use serde::Serialize;

use super::drawing;
use super::view::{Look, NodeLook, State};
use crate::error::CliError;
use crate::output::Output;
use crate::quantity::{bytes, counted};
use crate::style::{RESET, STRONG};
use crate::table::{Cell, Table};

/// Show what the nodes and edges of a graph are doing, or draw it.
///
/// Numbers are read while the graph runs: those of different nodes may be of slightly different times.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity graph show camera
  laxity graph show camera --json
  laxity graph show camera --svg > camera.svg
  laxity graph show camera --dot | dot -Tsvg -o camera.svg

Exit codes: 0 it worked; 1 a graph cannot be read; 2 bad usage, or no such graph.")]
pub struct Arguments {
    /// The graph
    name: String,
    /// Draw it in the language of Graphviz
    #[arg(long, conflicts_with = "json")]
    dot: bool,
    /// Draw it as SVG, with what its nodes are doing
    #[arg(long, conflicts_with_all = ["json", "dot"])]
    svg: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// Prints one graph.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let graph = super::attach(registry, &arguments.name)?;
    if arguments.dot {
        return output.print(Topology::of(graph.spec().graph()).dot());
    }
    if arguments.svg {
        return output.print(drawing::svg(graph.spec(), &Look::at(&graph)));
    }
    if arguments.json {
        return output.print(json(&graph));
    }
    let width = output.width();
    let model = graph.spec().graph();
    let (nodes, edges) = (counted(model.nodes.len() as u64, "node"), counted(model.edges.len() as u64, "edge"));
    let memory = bytes(graph.memory() as u64);
    output.line(format_args!("{STRONG}{}{RESET}: {nodes}, {edges}, {memory} of shared memory\n", arguments.name))?;
    output.print(node_table(&graph).render(width))?;
    if !model.edges.is_empty() {
        output.line("")?;
        output.print(edge_table(&graph).render(width))?;
    }
    Ok(())
}

fn node_table(graph: &Graph) -> Table {
    let mut table = Table::of("node").group("jobs", &["begun", "completed"]).group("process", &[""]).text("state");
    let sizes = graph.spec().node_data();
    let has_data = sizes.iter().any(|&size| size > 0);
    if has_data {
        table = table.text("user data");
    }
    for (position, node) in graph.spec().graph().nodes.iter().enumerate() {
        let status = graph.status(position);
        let process = status.ownership.pid().map_or(Cell::faint("-"), |pid| pid.to_string().into());
        let state = State::of(&status).cell();
        let begun = status.started.to_string();
        let mut row = vec![node.name.clone().into(), begun.into(), status.completed.to_string().into(), process, state];
        row.extend(has_data.then(|| data_cell(sizes[position])));
        table.row(row);
    }
    table
}

/// The size of user data, if there is any.
fn data_cell(size: u32) -> Cell {
    if size == 0 { Cell::faint("-") } else { bytes(size.into()).into() }
}

/// What an edge carries, and whether it may be handed on without a copy.
fn carried(graph: &Graph, position: usize, channel: Channel) -> String {
    if channel == Channel::Counter {
        return "events".to_owned();
    }
    let (capacity, message) = (channel.capacity().unwrap_or(0), channel.message().unwrap_or(0));
    let swapped = if is_swapping(graph, position) { ", swapped" } else { "" };
    format!("{} of {}{swapped}", counted(capacity.into(), "message"), bytes(message.into()))
}

fn is_swapping(graph: &Graph, edge: usize) -> bool {
    graph.spec().swapping().iter().flatten().any(|&swapped| swapped == edge)
}

fn edge_table(graph: &Graph) -> Table {
    let mut table = Table::of("edge").group("tokens", &["there", "produce", "consume", "threshold"]).text("carries");
    let sizes = graph.spec().edge_data();
    let has_data = sizes.iter().any(|&size| size > 0);
    if has_data {
        table = table.text("user data");
    }
    for (position, (edge, channel)) in edges(graph) {
        let name = format!("{} -> {}", node_name(graph, edge.producer), node_name(graph, edge.consumer));
        let mut row = vec![
            name.into(),
            graph.tokens(position).to_string().into(),
            edge.produce.to_string().into(),
            edge.consume.to_string().into(),
            edge.threshold.to_string().into(),
            carried(graph, position, channel).into(),
        ];
        row.extend(has_data.then(|| data_cell(sizes[position])));
        table.row(row);
    }
    table
}

fn edges(graph: &Graph) -> impl Iterator<Item = (usize, (&Edge, Channel))> {
    graph.spec().graph().edges.iter().zip(graph.spec().channels().iter().copied()).enumerate()
}

fn node_name(graph: &Graph, node: usize) -> &str {
    &graph.spec().graph().nodes[node].name
}

/// The fields are described in `docs/reference/json.md` and are stable.
fn json(graph: &Graph) -> String {
    #[derive(Serialize)]
    struct JsonGraph<'a> {
        laxity: &'static str,
        name: &'a str,
        memory_bytes: usize,
        nodes: Vec<JsonNode<'a>>,
        edges: Vec<JsonEdge<'a>>,
    }
    #[derive(Serialize)]
    struct JsonNode<'a> {
        #[serde(flatten)]
        look: NodeLook<'a>,
        period_ns: Option<Nanos>,
        user_data_bytes: u32,
    }
    #[derive(Serialize)]
    struct JsonEdge<'a> {
        from: &'a str,
        to: &'a str,
        produce: u32,
        consume: u32,
        threshold: u32,
        initial: u32,
        back_edge: bool,
        tokens: u64,
        message_bytes: Option<u32>,
        capacity: Option<u32>,
        swapping: bool,
        user_data_bytes: u32,
    }
    let model = graph.spec().graph();
    let nodes = model.nodes.iter().enumerate().map(|(position, node)| {
        let look = NodeLook::new(&node.name, &graph.status(position));
        JsonNode { look, period_ns: node.period, user_data_bytes: graph.spec().node_data()[position] }
    });
    let edges = edges(graph).map(|(position, (edge, channel))| {
        let (message_bytes, capacity) = (channel.message(), channel.capacity());
        JsonEdge {
            from: node_name(graph, edge.producer),
            to: node_name(graph, edge.consumer),
            produce: edge.produce,
            consume: edge.consume,
            threshold: edge.threshold,
            initial: edge.initial,
            back_edge: edge.back_edge,
            tokens: graph.tokens(position),
            message_bytes,
            capacity,
            swapping: is_swapping(graph, position),
            user_data_bytes: graph.spec().edge_data()[position],
        }
    });
    super::pretty(&JsonGraph {
        laxity: env!("CARGO_PKG_VERSION"),
        name: &model.name,
        memory_bytes: graph.memory(),
        nodes: nodes.collect(),
        edges: edges.collect(),
    })
}
