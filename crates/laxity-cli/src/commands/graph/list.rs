//! `laxity graph list`: the graphs that there are.

use clap::Args;
use laxity_graph::{Graph, Ownership, Registry};
use serde::Serialize;

use crate::commands::named::{Row, live, pretty, rows};
use crate::error::CliError;
use crate::output::{self, Output};
use crate::quantity;
use crate::style::{FAINT, RESET};
use crate::table::{Cell, Table};

/// List the graphs that run, and those that killed processes left.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity graph list
  laxity graph list --json | jq '.graphs[] | select(.in_use).name'

Exit codes: 0 it worked; 1 a graph cannot be read; 2 bad usage.")]
pub struct Arguments {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// What is known of a graph that is in use.
#[derive(Serialize)]
struct Summary {
    nodes: usize,
    claimed: usize,
    lost: usize,
    terminated: usize,
    /// Processes that have nodes.
    pids: Vec<u32>,
    completed: u64,
    memory_bytes: usize,
}

/// Prints a row for each graph; those that cannot be read are warned about.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let names = registry.names().map_err(live)?;
    let rows = rows(names, |name| registry.is_in_use(name), |name| Ok(summary(&registry.attach(name)?)));
    if arguments.json {
        return output.print(json(&rows));
    }
    if rows.is_empty() {
        return output.line(format_args!("{FAINT}no live graphs in {}{RESET}", registry.directory().display()));
    }
    output.print(table(&rows).render(output.width()))?;
    if rows.iter().any(|row| !row.in_use) {
        output.finish()?;
        output::note("left over: all processes were killed; remove these graphs with `laxity graph gc`");
    }
    Ok(())
}

fn summary(graph: &Graph) -> Summary {
    let nodes: Vec<_> = (0..graph.spec().graph().nodes.len()).map(|node| graph.status(node)).collect();
    let mut pids: Vec<u32> = nodes.iter().filter_map(|node| node.ownership.pid()).collect();
    let claimed = pids.len();
    pids.sort_unstable();
    pids.dedup();
    Summary {
        nodes: nodes.len(),
        claimed,
        lost: nodes.iter().filter(|node| node.ownership == Ownership::Lost).count(),
        terminated: nodes.iter().filter(|node| node.has_terminated).count(),
        pids,
        completed: nodes.iter().map(|node| node.completed).sum(),
        memory_bytes: graph.memory(),
    }
}

fn table(rows: &[Row<Summary>]) -> Table {
    let mut table = Table::of("graph")
        .group("nodes", &["all", "claimed", "lost", "ended"])
        .group("jobs", &["completed"])
        .group("memory", &[""])
        .text("processes");
    for row in rows {
        let name = Cell::from(row.name.clone());
        let Some(summary) = &row.summary else {
            let mut cells = vec![name];
            cells.resize_with(7, Cell::default);
            cells.push(Cell::bad("left over"));
            table.row(cells);
            continue;
        };
        let pids: Vec<String> = summary.pids.iter().map(u32::to_string).collect();
        table.row(vec![
            name,
            summary.nodes.to_string().into(),
            summary.claimed.to_string().into(),
            Cell::mishaps(summary.lost as u64),
            summary.terminated.to_string().into(),
            summary.completed.to_string().into(),
            quantity::bytes(summary.memory_bytes as u64).into(),
            pids.join(" ").into(),
        ]);
    }
    table
}

fn json(rows: &[Row<Summary>]) -> String {
    #[derive(Serialize)]
    struct List<'a> {
        laxity: &'static str,
        graphs: &'a [Row<Summary>],
    }
    pretty(&List { laxity: env!("CARGO_PKG_VERSION"), graphs: rows })
}
