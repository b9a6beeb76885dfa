//! `laxity graph`: live graphs in shared memory.

pub(super) mod display;
mod drawing;
mod gc;
mod list;
mod order;
mod record;
mod recording;
mod run;
mod show;
mod terminate;
mod view;
mod watch;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use laxity_graph::{Graph, Registry, RegistryError};

use super::named::{live, parse_interval, pretty, refused, way_out};
use crate::error::CliError;
use crate::output::Output;

/// Run graphs on this machine; list, watch, record, show and end those that run.
///
/// A live graph has a name in shared memory. Processes that know it claim nodes and exchange tokens and data; see
/// docs/guides/live-graphs.md.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity graph run car.toml --for 10s      run the graph of a workload, a thread a node
  laxity graph run -g A:B --rate 100       run one that is written as edges
  laxity graph list
  laxity graph watch camera
  laxity graph record camera camera.lxt    write a trace of it, for laxity trace
  laxity graph show camera
  laxity graph show camera --dot | dot -Tsvg -o camera.svg
  laxity graph terminate camera
  laxity graph gc                          remove what killed processes left

Exit codes: 0 it worked; 1 what was asked for failed; 2 bad usage, or no such graph; 130 interrupted.")]
pub struct Arguments {
    /// Where graphs have their names
    #[arg(long, global = true, value_name = "DIR", default_value = "/dev/shm")]
    folder: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    // The arguments of each command describe it: a comment here would hide the longer text of `--help`.
    Run(Box<run::Arguments>),
    List(list::Arguments),
    Watch(watch::Arguments),
    Record(record::Arguments),
    Show(show::Arguments),
    Terminate(terminate::Arguments),
    Gc(gc::Arguments),
    #[command(hide = true)]
    Member(run::member::Arguments),
}

/// Does one thing with live graphs.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    let registry = Registry::at(arguments.folder);
    match arguments.command {
        Command::Run(arguments) => run::run(&registry, &arguments, output),
        Command::List(arguments) => list::run(&registry, &arguments, output),
        Command::Show(arguments) => show::run(&registry, &arguments, output),
        Command::Terminate(arguments) => terminate::run(&registry, &arguments, output),
        Command::Gc(arguments) => gc::run(&registry, &arguments, output),
        Command::Watch(arguments) => watch::run(&registry, &arguments, output),
        Command::Record(arguments) => record::run(&registry, &arguments, output),
        Command::Member(arguments) => run::member::run(&registry, &arguments),
    }
}

/// The graph called `name`, which someone uses. One that is left over is refused: to attach to it would remove it.
fn attach(registry: &Registry, name: &str) -> Result<Graph, CliError> {
    match registry.is_in_use(name) {
        Ok(true) => {}
        Ok(false) => {
            return Err(CliError::Live {
                message: format!("graph {name}: all its processes were killed; remove it with `laxity graph gc`"),
            });
        }
        Err(error) => return Err(not_found(registry, error)),
    }
    registry.attach(name).map_err(|error| not_found(registry, error))
}

/// `error`, with the name that was meant if it is about one that does not exist. A name that cannot be one is bad usage.
fn not_found(registry: &Registry, error: RegistryError) -> CliError {
    refused(error, registry.names())
}
