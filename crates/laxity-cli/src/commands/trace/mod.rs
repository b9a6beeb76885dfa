//! `laxity trace`: what happened, from a recording.

mod check;
mod export;
mod gantt;
mod info;
mod metrics;
mod read;
mod why;

use std::path::PathBuf;

use clap::{Args, Subcommand};

pub use self::read::Source;
use crate::error::CliError;
use crate::output::Output;

/// Measure, check, explain, draw and convert a recorded trace.
///
/// A trace that was cut off or damaged is used up to where it broke; the command then says so and exits with 1.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity trace car.lxt info
  laxity trace car.lxt metrics --per-cpu
  laxity trace car.lxt check
  laxity trace car.lxt gantt --from 100ms --to 150ms
  laxity trace car.lxt why camera#17
  laxity trace car.lxt export -o car.perfetto")]
pub struct Arguments {
    /// The trace, as `laxity simulate --trace` or `laxity graph run --trace` writes it; - reads standard input
    file: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    // The arguments of each command describe it: a comment here would hide the longer text of `--help`.
    /// Say what the trace is about and how much of it there is
    Info,
    Metrics(metrics::Arguments),
    Check(check::Arguments),
    Gantt(gantt::Arguments),
    Why(why::Arguments),
    Export(export::Arguments),
}

/// Reads the trace and does one thing with it.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    let file = arguments.file.as_path();
    match arguments.command {
        Command::Info => info::run(file, output),
        Command::Metrics(arguments) => metrics::run(file, &arguments, output),
        Command::Check(arguments) => check::run(file, &arguments, output),
        Command::Gantt(arguments) => gantt::run(file, &arguments, output),
        Command::Why(arguments) => why::run(file, &arguments, output),
        Command::Export(arguments) => export::run(file, &arguments, output),
    }
}
