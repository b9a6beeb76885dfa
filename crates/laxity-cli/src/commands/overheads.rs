//! `laxity overheads`: published overhead profiles.

use clap::Args;
use laxity_model::text::printable;
use laxity_model::{OverheadCosts, OverheadKind, OverheadProfile, OverheadTable};

use crate::error::CliError;
use crate::output::Output;
use crate::overheads::Overheads;
use crate::quantity::TimeUnit;
use crate::style::{FAINT, RESET};
use crate::table::{Cell, Table};

/// List published overhead profiles, or show one, or that of a file of `laxity measure`.
///
/// A workload names one in [platform] overheads, a simulation in --overheads. A family, such as
/// brandenburg2009-worst or brandenburg2009-average, stands for the profile of whatever realization is scheduled.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity overheads                                       all profiles, at 100 tasks
  laxity overheads -n 50                                 at 50 tasks
  laxity overheads brandenburg2009-CEm-worst-aligned     what was measured, for every number of tasks
  laxity overheads brandenburg2009-worst -n 50           a family: each of its profiles at 50 tasks
  laxity overheads profile.toml                          what laxity measure found")]
pub struct Arguments {
    /// Show what was measured for this profile or family, or in this FILE (its average as FILE:average)
    #[arg(value_name = "PROFILE|FILE")]
    profile: Option<String>,
    /// Show what profiles cost with so many tasks [default: each number that was measured; of several profiles 100]
    #[arg(short = 'n', long = "tasks", value_name = "TASKS")]
    tasks: Option<u32>,
}

/// So many tasks where the command line does not say.
const TASKS: u32 = 100;

/// Prints a row a profile, or a row a measured point.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    let width = output.width();
    let tasks = arguments.tasks.unwrap_or(TASKS);
    let Some(name) = &arguments.profile else {
        output.print(profiles(OverheadProfile::published_names(), tasks).render(width))?;
        return output.line(format_args!(
            "\n{FAINT}at {tasks} tasks; brandenburg2009-...: paper 002, Tables 2 to 13; elliott2012-klmirqd: paper 000{RESET}"
        ));
    };
    let profile = match Overheads::read(name)? {
        Overheads::Measured(profile) => *profile,
        Overheads::Published(name) => match OverheadProfile::family(&name) {
            // Which of it is meant only a scheduler says.
            Some(members) => {
                output.print(profiles(members, tasks).render(width))?;
                return output.line(format_args!("\n{FAINT}at {tasks} tasks; a scheduler is charged its own{RESET}"));
            }
            None if name == OverheadProfile::zero().name => OverheadProfile::zero(),
            None => OverheadProfile::published(&name)?,
        },
    };
    match points(&profile, arguments.tasks) {
        Some(table) => output.print(table.render(width)),
        None => output.line(format_args!("{} costs nothing", printable(&profile.name))),
    }
}

/// A row for each of the published profiles called `names`.
fn profiles(names: Vec<String>, tasks: u32) -> Table {
    let published = |name: String| OverheadProfile::published(&name).ok().map(|profile| (name, profile, tasks));
    table("profile", names.into_iter().filter_map(published).collect())
}

/// A row for the number of tasks that was asked for, else for each that was measured; `None` if nothing costs anything.
fn points(profile: &OverheadProfile, tasks: Option<u32>) -> Option<Table> {
    let measured = || {
        profile.tables.iter().find_map(|table| match table {
            OverheadTable::Points(points) => Some(points.iter().map(|&(tasks, _)| tasks).collect::<Vec<_>>()),
            OverheadTable::Constant(_) => None,
        })
    };
    let numbers = tasks.map(|tasks| vec![tasks]).or_else(measured).unwrap_or(vec![TASKS]);
    let is_free = |&tasks: &u32| profile.at(tasks as usize) == OverheadCosts::default();
    if numbers.iter().all(is_free) {
        return None;
    }
    Some(table("tasks", numbers.into_iter().map(|tasks| (tasks.to_string(), profile.clone(), tasks)).collect()))
}

/// A row for each name and profile at its number of tasks, a column for each source that costs any of them anything.
fn table(title: &str, rows: Vec<(String, OverheadProfile, u32)>) -> Table {
    let rows: Vec<_> = rows.into_iter().map(|(name, profile, tasks)| (name, profile.at(tasks as usize))).collect();
    let charged = |kind: &OverheadKind| rows.iter().any(|(_, costs)| !costs.of(*kind).is_zero());
    let kinds: Vec<OverheadKind> = OverheadKind::ALL.into_iter().filter(charged).collect();
    let titles: Vec<String> = kinds.iter().map(|kind| kind.name().replace('_', " ")).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut table = Table::of(title).group("overhead, us", &titles);
    for (name, costs) in rows {
        let cost = |kind: &OverheadKind| match costs.of(*kind) {
            cost if cost.is_zero() => Cell::faint("-"),
            cost => TimeUnit::MICROS.show(cost).into(),
        };
        table.row(std::iter::once(name.into()).chain(kinds.iter().map(cost)).collect());
    }
    table
}
