//! `laxity bandwidth lock`: the bandwidth lock for as long as a program runs.

use clap::Args;
use laxity_gpu::{Base, Registry};

use super::{attach_or_create, parse_budget, program};
use crate::commands::named::live;
use crate::error::CliError;
use crate::interrupt::Interrupt;

/// Hold the bandwidth lock while a program runs.
///
/// Regulated CPUs may have BUDGET of memory traffic each, meanwhile. This process holds the lock, whether or not the program runs at a moment; it is free when the program ends, or when this process ends, however that is. Any number of processes may hold it, and the least budget counts. Without a regulator (`laxity bandwidth regulate`) nothing is throttled. An arbitration that does not exist is created.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity bandwidth lock car --budget '64 MB/s' -- ./detect frames/
  laxity bandwidth lock car --budget '1 GB/s' -- sleep 10

Exit codes: 0 the program succeeded; 1 it failed, or Linux refuses; 2 bad usage; 130 interrupted.")]
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
    let interrupt = Interrupt::watch();
    let arbitration = attach_or_create(registry, &arguments.name)?;
    let client = arbitration.register("laxity bandwidth lock", Base::Background).map_err(live)?;
    let section = client.lock_bandwidth(arguments.budget).map_err(live)?;
    let status = program::run(&mut program::command(&arguments.program), &interrupt, || {})?;
    drop(section);
    program::check(&arguments.program, status, &interrupt)
}
