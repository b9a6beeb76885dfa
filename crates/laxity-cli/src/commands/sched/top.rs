//! `laxity sched top`: the tasks of a system, until it ends.

use std::thread;
use std::time::Duration;

use clap::Args;
use laxity_model::Nanos;
use laxity_sched::{Registry, RegistryError, Snapshot, TaskState};
use laxity_sys::clock;

use super::{refused, top_kernel, view};
use crate::commands::graph::display::Display;
use crate::commands::named::{live, parse_interval};
use crate::error::CliError;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::quantity::counted;
use crate::style::{RESET, STRONG};

/// Watch which tasks have a CPU, wait for one or sleep, and how late they are, until the system ends.
///
/// On a terminal a table is drawn again and again in its place; elsewhere a line goes to standard error every 5 s. In the end the last table is printed. Ctrl-C ends the watch, and nothing else: looking delays no task.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity sched top
  laxity sched top car --once
  laxity sched top car --json --every 1s | jq -c '[.tasks[] | select(.state == \"runs\").name]'
  laxity sched top --kernel                          the scheduler in the kernel

Exit codes: 0 it ended, or Ctrl-C; 1 its processes were killed, or no scheduler is in the kernel; 2 bad usage, or no such system.")]
pub struct Arguments {
    /// The system; if there is only one, that
    name: Option<String>,
    /// The scheduler in the kernel, instead of a system
    #[arg(long, conflicts_with = "name")]
    kernel: bool,
    /// Print one table, or one line of JSON, and end
    #[arg(long)]
    pub once: bool,
    /// Look every DURATION [default: 250ms on a terminal, else 5s; 1s with --json]
    #[arg(long, value_name = "DURATION", value_parser = parse_interval)]
    every: Option<Nanos>,
    /// Print a line of JSON for each look
    #[arg(long)]
    pub json: bool,
}

/// How often to look whether it ended.
pub const LOOK: Duration = Duration::from_millis(20);

/// How often lines of JSON come, unless the command line says.
const JSON_EVERY: Nanos = Nanos::from_secs(1);

impl Arguments {
    /// Shows as often as the command line says.
    pub fn display(&self) -> Display {
        let every = self.every.or(self.json.then_some(JSON_EVERY));
        Display::new(every.map(|every| Duration::from_nanos(every.0)), false)
    }
}

/// Shows one system until it ends.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    if arguments.kernel {
        return top_kernel::run(arguments, output);
    }
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => only(registry)?,
    };
    let killed =
        || live(format_args!("system {name}: all its processes were killed; remove it with `laxity sched gc`"));
    // In this order: one whose last process leaves in between has ended and was not killed.
    let first = registry.look(&name).map_err(|error| refused(registry, error))?;
    if !registry.is_in_use(&name).map_err(|error| refused(registry, error))? {
        return Err(killed());
    }
    if arguments.once {
        return print(&name, &first, arguments.json, output);
    }
    let interrupt = Interrupt::watch();
    let mut display = arguments.display();
    let (mut last, mut is_first) = (first, true);
    let was_killed = loop {
        if is_first || display.is_due() {
            is_first = false;
            match arguments.json {
                true => {
                    print(&name, &last, true, output)?;
                    display.wait_again();
                }
                false => show(&name, &last, &mut display),
            }
        }
        if interrupt.is_requested() || output.is_closed() {
            break false;
        }
        thread::sleep(LOOK);
        match registry.look(&name).and_then(|look| Ok((look, registry.is_in_use(&name)?))) {
            Ok((look, true)) => last = look,
            Ok((_, false)) => break true,
            Err(RegistryError::NotFound { .. }) => break false,
            Err(error) => return Err(refused(registry, error)),
        }
    };
    if !arguments.json {
        print(&name, &last, false, output)?;
    }
    if was_killed { Err(killed()) } else { Ok(()) }
}

/// The name of the only system.
fn only(registry: &Registry) -> Result<String, CliError> {
    let mut names = registry.names().map_err(live)?;
    let message = match names.len() {
        1 => return Ok(names.remove(0)),
        0 => format!(
            "no system in {}; start one, as with `laxity run --scheduler laxity`",
            registry.directory().display()
        ),
        _ => format!("which system? write one of {}", names.join(", ")),
    };
    Err(CliError::Argument { message })
}

fn show(name: &str, look: &Snapshot, display: &mut Display) {
    let count = |state| look.tasks.iter().filter(|task| task.state == state).count();
    let line = format!(
        "{STRONG}{name}{RESET}: {} on {}; {} run, {} ready",
        counted(look.tasks.len() as u64, "task"),
        counted(look.config.clusters.iter().map(Vec::len).sum::<usize>() as u64, "CPU"),
        count(TaskState::Linked),
        count(TaskState::Ready),
    );
    let rows = display.rows();
    display.show(&line, |width| view::table(look, clock::now(), rows).render(width));
}

fn print(name: &str, look: &Snapshot, as_json: bool, output: &mut Output) -> Result<(), CliError> {
    if as_json {
        output.line(view::json(name, look, clock::now()))?;
        return output.finish();
    }
    output.print(view::table(look, clock::now(), usize::MAX).render(output.width()))
}
