//! `laxity graph member`: the process of one node, started by `laxity graph run --processes`.

use std::io::{self, BufRead};
use std::thread;
use std::time::Duration;

use clap::Args;
use laxity_graph::Registry;
use laxity_model::Instant;
use laxity_runtime::Member;
use laxity_sys::process;

use super::super::live;
use crate::error::CliError;
use crate::interrupt::Interrupt;

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// Carry out one node for the process that started this one.
#[derive(Args)]
pub struct Arguments {
    /// The graph
    #[arg(long)]
    graph: String,
    /// The node
    #[arg(long)]
    node: String,
    /// The process that started this one, without which it ends
    #[arg(long)]
    parent: u32,
}

/// Claims the node, waits for the start, and carries it out.
pub fn run(registry: &Registry, arguments: &Arguments) -> Result<(), CliError> {
    let interrupt = Interrupt::watch_patiently();
    // From here on its death is an interruption of this process.
    if !process::end_with(arguments.parent).map_err(live)? {
        return Err(live("the process that started this one has ended"));
    }
    let mut lines = io::stdin().lock().lines();
    let Some(orders) = lines.next() else { return Ok(()) };
    let graph = registry.attach(&arguments.graph).map_err(live)?;
    let unknown = || live(format_args!("the graph has no node {}", arguments.node));
    let node = graph.node(&arguments.node).ok_or_else(unknown)?;
    let member = Member::start(&graph, node, &orders.map_err(live)?).map_err(live)?;
    // Nothing comes if the run ends before it begins.
    if let Some(Ok(start)) = lines.next() {
        member.begin(Instant(start.trim().parse().map_err(live)?));
        while !member.is_over() {
            if interrupt.is_requested() {
                member.stop();
            }
            thread::sleep(LOOK);
        }
    }
    member.join().map_err(live)
}
