//! `laxity graph terminate`: the end of a graph, from outside.

use clap::Args;
use laxity_graph::{Graph, Registry};
use serde::Serialize;

use crate::error::CliError;
use crate::output::Output;
use crate::quantity::counted;

/// End a graph: its sources now, all else when what they produced is used up.
///
/// The owner of a node that ended learns of it when it waits for the next job; the job it is in is not disturbed.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity graph terminate camera                     end the sources; what they produced is still used
  laxity graph terminate camera --node detector     end one node, and in time those behind it
  laxity graph terminate camera --now               end all nodes; tokens that are there are lost

Exit codes: 0 they were ended; 1 the graph is left over or cannot be read; 2 bad usage, or no such graph or node.")]
pub struct Arguments {
    /// The graph
    name: String,
    /// End this node only; can be repeated
    #[arg(long, value_name = "NODE", conflicts_with = "now")]
    node: Vec<String>,
    /// End all nodes at once
    #[arg(long)]
    now: bool,
    /// Print JSON instead of a line
    #[arg(long)]
    json: bool,
}

/// Ends nodes and says how many.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let graph = super::attach(registry, &arguments.name)?;
    let nodes = nodes(&graph, arguments)?;
    nodes.iter().for_each(|&node| graph.terminate(node));
    let all = graph.spec().graph().nodes.len();
    if arguments.json {
        return output.print(json(&graph, &nodes));
    }
    output.line(format_args!("{}: ended {} of {all}", arguments.name, counted(nodes.len() as u64, "node")))
}

fn nodes(graph: &Graph, arguments: &Arguments) -> Result<Vec<usize>, CliError> {
    let count = graph.spec().graph().nodes.len();
    if arguments.now {
        return Ok((0..count).collect());
    }
    if arguments.node.is_empty() {
        let plan = graph.spec().plan().nodes();
        return Ok((0..count).filter(|&node| plan[node].is_source).collect());
    }
    let unknown = |name: &String| {
        let names: Vec<String> = graph.spec().graph().nodes.iter().map(|node| node.name.clone()).collect();
        let way_out = super::way_out(name, &names, "node");
        CliError::Argument { message: format!("graph {}: no node is called {name}; {way_out}", arguments.name) }
    };
    arguments.node.iter().map(|name| graph.node(name).ok_or_else(|| unknown(name))).collect()
}

/// The fields are described in `docs/reference/json.md` and are stable.
fn json(graph: &Graph, ended: &[usize]) -> String {
    #[derive(Serialize)]
    struct JsonEnded<'a> {
        laxity: &'static str,
        graph: &'a str,
        ended: Vec<&'a str>,
        nodes: usize,
    }
    let model = graph.spec().graph();
    super::pretty(&JsonEnded {
        laxity: env!("CARGO_PKG_VERSION"),
        graph: &model.name,
        ended: ended.iter().map(|&node| model.nodes[node].name.as_str()).collect(),
        nodes: model.nodes.len(),
    })
}
