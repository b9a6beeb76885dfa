//! `laxity sched list`: the systems that there are.

use clap::Args;
use laxity_sched::{Registry, Snapshot, TaskState};
use serde::Serialize;

use crate::commands::named::{Row, live, pretty, rows};
use crate::error::CliError;
use crate::output::{self, Output};
use crate::style::{FAINT, RESET};
use crate::table::{Cell, Table};

/// List the systems that are used, and those that killed processes left.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity sched list
  laxity sched list --json | jq '.systems[] | select(.in_use).name'

Exit codes: 0 it worked; 1 the folder cannot be read; 2 bad usage.")]
pub struct Arguments {
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// What is known of a system that is in use.
#[derive(Serialize)]
struct Summary {
    rule: String,
    /// For each cluster its CPUs, numbered as Linux does.
    clusters: Vec<Vec<u16>>,
    tasks: usize,
    tasks_max: u16,
    /// Tasks that have a CPU.
    linked: usize,
    /// Tasks that wait for one.
    ready: usize,
    /// Jobs that completed after their deadlines, of the present tasks.
    late: u64,
    /// Processes that have tasks.
    pids: Vec<u32>,
}

/// Prints a row for each system; those that cannot be read are warned about.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let names = registry.names().map_err(live)?;
    let rows = rows(names, |name| registry.is_in_use(name), |name| Ok(summary(&registry.look(name)?)));
    if arguments.json {
        return output.print(json(&rows));
    }
    if rows.is_empty() {
        return output.line(format_args!("{FAINT}no systems in {}{RESET}", registry.directory().display()));
    }
    output.print(table(&rows).render(output.width()))?;
    if rows.iter().any(|row| !row.in_use) {
        output.finish()?;
        output::note("left over: all processes were killed; remove these systems with `laxity sched gc`");
    }
    Ok(())
}

fn summary(look: &Snapshot) -> Summary {
    let mut pids: Vec<u32> = look.tasks.iter().map(|task| task.pid).collect();
    pids.sort_unstable();
    pids.dedup();
    let count = |state| look.tasks.iter().filter(|task| task.state == state).count();
    Summary {
        rule: look.config.rule.to_string(),
        clusters: look.config.clusters.clone(),
        tasks: look.tasks.len(),
        tasks_max: look.config.tasks,
        linked: count(TaskState::Linked),
        ready: count(TaskState::Ready),
        late: look.tasks.iter().map(|task| task.late).sum(),
        pids,
    }
}

fn table(rows: &[Row<Summary>]) -> Table {
    let mut table = Table::of("system")
        .text("rule")
        .text("clusters")
        .group("tasks", &["all", "linked", "ready"])
        .group("late jobs", &[""])
        .text("processes");
    for row in rows {
        let name = Cell::from(row.name.clone());
        let Some(summary) = &row.summary else {
            table.row(vec![name, Cell::bad("left over")]);
            continue;
        };
        let clusters: Vec<String> = summary.clusters.iter().map(|cpus| list(cpus)).collect();
        let mut cells = vec![name, summary.rule.clone().into(), clusters.join(" | ").into()];
        cells.extend([summary.tasks, summary.linked, summary.ready].map(|number| Cell::from(number.to_string())));
        cells.push(summary.late.to_string().into());
        cells.push(list(&summary.pids).into());
        table.row(cells);
    }
    table
}

/// Numbers with spaces between them.
fn list<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}

fn json(rows: &[Row<Summary>]) -> String {
    #[derive(Serialize)]
    struct List<'a> {
        laxity: &'static str,
        systems: &'a [Row<Summary>],
    }
    pretty(&List { laxity: env!("CARGO_PKG_VERSION"), systems: rows })
}
