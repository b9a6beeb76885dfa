//! `laxity sched gc`: an end to what killed processes left.

use clap::Args;
use laxity_sched::Registry;

use crate::commands::named::{live, print_removed};
use crate::error::CliError;
use crate::output::Output;

/// Remove the systems that killed processes left.
///
/// Prints their names, a line each. Those that a process uses, those of other versions and files of other programs are left alone.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity sched gc
  laxity sched gc --json | jq '.removed | length'

Exit codes: 0 nothing is left over; 1 something cannot be removed; 2 bad usage.")]
pub struct Arguments {
    /// Print JSON instead of lines
    #[arg(long)]
    json: bool,
}

/// Removes systems that no process uses, and prints their names.
pub fn run(registry: &Registry, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    print_removed(registry.gc().map_err(live)?, arguments.json, output)
}
