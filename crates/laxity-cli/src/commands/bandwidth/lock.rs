//! `laxity bandwidth lock`: the bandwidth lock for as long as a program runs.

use clap::Args;
use laxity_gpu::{Base, Registry};
use laxity_sys::signals::Signals;

use super::{attach_or_create, parse_budget};
use crate::commands::named::live;
use crate::commands::program;
use crate::error::CliError;

/// Hold the bandwidth lock while a program runs.
///
/// Regulated CPUs may have BUDGET of memory traffic each, meanwhile. This process holds the lock, whether or not the program runs at a moment; it is free when the program ends, or when this process ends, however that is. Any number of processes may hold it, and the least budget counts. Without a regulator (`laxity bandwidth regulate`) nothing is throttled. An arbitration that does not exist is created.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity bandwidth lock car --budget '64 MB/s' -- ./detect frames/
  laxity bandwidth lock car --budget '1 GB/s' -- sleep 10

Exit codes: that of the program, 128 and the signal that ended it; 1 Linux refuses; 2 bad usage.")]
pub struct Arguments {
    /// The arbitration
    name: String,
    /// What each regulated CPU may have meanwhile
    #[arg(long, value_name = "RATE", value_parser = parse_budget)]
    budget: u64,
    /// The program, and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

/// Locks, runs, unlocks.
pub fn run(registry: &Registry, arguments: &Arguments) -> Result<(), CliError> {
    // Before any other thread: they are to keep the signals from this process, too.
    let signals = Signals::requests().map_err(live)?;
    let arbitration = attach_or_create(registry, &arguments.name)?;
    let client = arbitration.register("laxity bandwidth lock", Base::Background).map_err(live)?;
    let section = client.lock_bandwidth(arguments.budget).map_err(live)?;
    let mut command = program::command(&arguments.program);
    let status = program::run(&mut command, &signals)?;
    drop(section);
    program::ended(program::shown(&command), status)
}
