//! `laxity sched`: the tasks that Laxity's own scheduler schedules live.

mod doctor;
mod gc;
mod irq;
mod list;
mod loader;
mod measure;
mod start;
mod status;
mod stop;
mod top;
mod top_kernel;
mod view;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use laxity_sched::{Registry, RegistryError};

use super::named;
use crate::error::CliError;
use crate::output::Output;

/// See the tasks that Laxity's own scheduler schedules: which have a CPU, wait for one, or sleep.
///
/// A system has a name in shared memory: its clusters of CPUs, the policy, and the tasks of all its processes. `laxity run --scheduler laxity` makes one for the time it runs.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity run car.toml --scheduler laxity &
  laxity sched list
  laxity sched top
  laxity sched gc                          remove what killed processes left
  laxity sched doctor                      what the scheduler in the kernel would need
  laxity sched start --policy P-RM         load it; laxity sched status, top --kernel, stop
  laxity sched measure --out overheads     what it costs, for check --overheads overheads/CEm.toml

Exit codes: 0 it worked; 1 what was asked for failed; 2 bad usage, or no such system.")]
pub struct Arguments {
    /// Where systems have their names
    #[arg(long, global = true, value_name = "DIR", default_value = "/dev/shm")]
    folder: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    // The arguments of each command describe it: a comment here would hide the longer text of `--help`.
    List(list::Arguments),
    Top(top::Arguments),
    Gc(gc::Arguments),
    Doctor(doctor::Arguments),
    Start(start::Arguments),
    Measure(measure::Arguments),
    Irq(irq::Arguments),
    Status(status::Arguments),
    Stop(stop::Arguments),
}

/// Does one thing with systems.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    let registry = Registry::at(arguments.folder);
    match arguments.command {
        Command::List(arguments) => list::run(&registry, &arguments, output),
        Command::Top(arguments) => top::run(&registry, &arguments, output),
        Command::Gc(arguments) => gc::run(&registry, &arguments, output),
        Command::Doctor(arguments) => doctor::run(&arguments, output),
        Command::Start(arguments) => start::run(arguments),
        Command::Measure(arguments) => measure::run(arguments, output),
        Command::Irq(arguments) => irq::run(&arguments, output),
        Command::Status(arguments) => status::run(&arguments, output),
        Command::Stop(arguments) => stop::run(&arguments),
    }
}

/// `error`, with the name that was meant if it is about one that does not exist.
pub fn refused(registry: &Registry, error: RegistryError) -> CliError {
    named::refused(error, registry.names())
}
