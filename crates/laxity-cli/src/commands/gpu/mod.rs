//! `laxity gpu`: GPUs that processes share live.

mod create;
mod exec;
mod follow;
mod gc;
pub(super) mod interrupts;
mod irq;
mod json;
mod layers;
mod list;
mod rules;
mod soft;
mod top;
mod trace;
mod view;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use laxity_gpu::{Registry, RegistryError};

pub use top::only;

use super::named;
use crate::error::CliError;
use crate::output::Output;

/// Share the GPUs of this machine among processes, and see which process holds them.
///
/// An arbitration has a name in shared memory. Threads of processes that know it wait for GPUs and engines by GPUSync's rules or the k-FMLP's; see docs/guides/gpu.md.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity gpu create car --gpus 2 --tokens 3
  laxity gpu create car --file car.toml    as its [gpu_management] says
  laxity gpu list
  laxity gpu top car
  laxity gpu exec --priority 50 -- ./detector    any CUDA or OpenCL program, under an arbitration
  laxity gpu irq                           its interrupts, and the threads that handle them
  laxity gpu gc                            remove what killed processes left

Exit codes: 0 it worked; 1 what was asked for failed; 2 bad usage, or no such arbitration.")]
pub struct Arguments {
    /// Where arbitrations have their names
    #[arg(long, global = true, value_name = "DIR", default_value = "/dev/shm")]
    folder: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    // The arguments of each command describe it: a comment here would hide the longer text of `--help`.
    Create(create::Arguments),
    List(list::Arguments),
    Top(top::Arguments),
    Exec(Box<exec::Arguments>),
    Irq(irq::Arguments),
    Trace(trace::Arguments),
    Gc(gc::Arguments),
}

/// Does one thing with arbitrations.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    let registry = Registry::at(arguments.folder);
    match arguments.command {
        Command::Create(arguments) => create::run(&registry, &arguments, output),
        Command::List(arguments) => list::run(&registry, &arguments, output),
        Command::Top(arguments) => top::run(&registry, &arguments, output),
        Command::Exec(arguments) => exec::run(&registry, &arguments),
        Command::Irq(arguments) => irq::run(&registry, &arguments, output),
        Command::Trace(arguments) => trace::run(&arguments, output),
        Command::Gc(arguments) => gc::run(&registry, &arguments, output),
    }
}

/// `error`, with the name that was meant if it is about one that does not exist. An impossible
/// value on the command line is bad usage.
pub fn refused(registry: &Registry, error: RegistryError) -> CliError {
    named::refused(error, registry.names())
}
