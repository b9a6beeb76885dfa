//! `laxity gpu list`: the arbitrations that there are, and the soft GPUs.

use clap::Args;
use laxity_gpu::{Registry, Snapshot};
use serde::Serialize;

use super::soft::{self, SoftGpu};
use super::view;
use crate::commands::named::{Row, live, pretty, rows};
use crate::error::CliError;
use crate::output::{self, Output};
use crate::style::{FAINT, RESET};
use crate::table::{Cell, Table};

/// List the arbitrations that are used, those that killed processes left, and the soft GPUs that run.
///
/// Of a soft GPU it says how much of its memory is in use: only that is taken from this machine.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity gpu list
  laxity gpu list --json | jq '.arbitrations[] | select(.in_use).name'
  laxity gpu list --json | jq '.soft_gpus[] | {name, memory_used}'

Exit codes: 0 it worked; 1 the folder cannot be read; 2 bad usage.")]
pub struct Arguments {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// What is known of an arbitration that is in use.
#[derive(Serialize)]
struct Summary {
    gpus: u16,
    cpus: u16,
    rules: &'static str,
    /// Of all GPUs together.
    tokens: usize,
    tokens_held: usize,
    clients: usize,
    clients_max: u16,
    waiting: usize,
    /// Threads that work on behalf of holders.
    followers: usize,
    /// Processes that have clients.
    pids: Vec<u32>,
}

/// Prints a row for each arbitration and each soft GPU; those that cannot be read are warned about.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let names = registry.names().map_err(live)?;
    let rows = rows(names, |name| registry.is_in_use(name), |name| Ok(summary(&registry.look(name)?)));
    let soft_gpus = soft::all()?;
    if arguments.json {
        return output.print(json(&rows, &soft_gpus));
    }
    if rows.is_empty() {
        output.line(format_args!("{FAINT}no shared GPUs in {}{RESET}", registry.directory().display()))?;
    } else {
        output.print(table(&rows).render(output.width()))?;
    }
    if !soft_gpus.is_empty() {
        output.line(format_args!(""))?;
        output.print(soft::table(&soft_gpus).render(output.width()))?;
    }
    if rows.iter().any(|row| !row.in_use) {
        output.finish()?;
        output::note("left over: all processes were killed; remove these arbitrations with `laxity gpu gc`");
    }
    Ok(())
}

fn summary(look: &Snapshot) -> Summary {
    let mut pids: Vec<u32> = look.clients.iter().map(|client| client.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    Summary {
        gpus: look.config.gpus,
        cpus: look.config.cpus,
        rules: look.config.arbitration.name(),
        tokens: look.tokens.holders.len(),
        tokens_held: look.tokens.holders.iter().flatten().count(),
        clients: look.clients.len(),
        clients_max: look.config.clients,
        waiting: view::waiting(look),
        followers: look.followers.len(),
        pids,
    }
}

fn table(rows: &[Row<Summary>]) -> Table {
    let mut table = Table::of("arbitration")
        .text("rules")
        .group("GPUs", &[""])
        .group("tokens", &["all", "held"])
        .group("clients", &["all", "waiting"])
        .group("followers", &[""])
        .text("processes");
    for row in rows {
        let name = Cell::from(row.name.clone());
        let Some(summary) = &row.summary else {
            table.row(vec![name, Cell::bad("left over")]);
            continue;
        };
        let pids: Vec<String> = summary.pids.iter().map(u32::to_string).collect();
        let Summary { gpus, tokens, tokens_held, clients, waiting, followers, .. } = *summary;
        let numbers = [usize::from(gpus), tokens, tokens_held, clients, waiting, followers];
        let mut cells = vec![name, summary.rules.into()];
        cells.extend(numbers.map(|number| Cell::from(number.to_string())));
        cells.push(pids.join(" ").into());
        table.row(cells);
    }
    table
}

fn json(rows: &[Row<Summary>], soft_gpus: &[SoftGpu]) -> String {
    #[derive(Serialize)]
    struct List<'a> {
        laxity: &'static str,
        arbitrations: &'a [Row<Summary>],
        soft_gpus: &'a [SoftGpu],
    }
    pretty(&List { laxity: env!("CARGO_PKG_VERSION"), arbitrations: rows, soft_gpus })
}
