//! `laxity bandwidth`: memory bandwidth that best-effort programs leave to protected ones.

mod hog;
mod json;
mod lock;
mod picture;
mod regulate;
mod status;
mod threshold;
mod top;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use laxity_bandwidth::BandwidthError;
use laxity_gpu::{Arbitration, Config, Registry, RegistryError};
use laxity_model::{parse_cpus, parse_rate};
use laxity_sys::scheduling;

use super::gpu::refused;
use super::named::live;
use crate::error::CliError;
use crate::output::Output;

/// Protect GPU work and other memory-bound programs from the memory traffic of best-effort programs.
///
/// While a thread holds the bandwidth lock of an arbitration, every regulated CPU may have only so much memory traffic; a CPU that exceeds its budget is throttled until the period ends. The lock is taken by hand, by `laxity bandwidth lock`, or around every GPU operation of a job; see docs/guides/bandwidth.md.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity bandwidth status                                          what this machine offers
  laxity bandwidth regulate car --cpus 3 --counter software -- laxity bandwidth hog --name car
  laxity bandwidth lock car --budget '64 MB/s' -- ./detect frames/
  laxity bandwidth top car
  laxity bandwidth threshold -- ./detect frames/                   the largest budget that protects it

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
    // What each does is said by its arguments: a comment here would hide the longer text of `--help`.
    Status(status::Arguments),
    Top(top::Arguments),
    Lock(lock::Arguments),
    Regulate(regulate::Arguments),
    Threshold(threshold::Arguments),
    Hog(hog::Arguments),
}

/// Does one thing with memory bandwidth.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    let registry = Registry::at(arguments.folder);
    match arguments.command {
        Command::Status(arguments) => status::run(&registry, &arguments, output),
        Command::Top(arguments) => top::run(&registry, &arguments, output),
        Command::Lock(arguments) => lock::run(&registry, &arguments),
        Command::Regulate(arguments) => regulate::run(&registry, &arguments, output),
        Command::Threshold(arguments) => threshold::run(&registry, &arguments, output),
        Command::Hog(arguments) => hog::run(&registry, &arguments, output),
    }
}

/// The arbitration called `name`. Where there is none, one of one GPU is created, which lasts as long as its processes.
fn attach_or_create(registry: &Registry, name: &str) -> Result<Arbitration, CliError> {
    // Another process may create or end it in between.
    for _ in 0..16 {
        match registry.attach(name) {
            Err(RegistryError::NotFound { .. }) => {}
            found => return found.map_err(|error| refused(registry, error)),
        }
        let cpus = u16::try_from(scheduling::cpus()).unwrap_or(u16::MAX);
        match registry.create(name, &Config::new(cpus, 1)) {
            Err(RegistryError::Exists { .. }) => {}
            created => return created.map_err(|error| refused(registry, error)),
        }
    }
    Err(CliError::Live { message: format!("arbitration {name}: others create and end it all the time; try again") })
}

/// Why something is not regulated: as bad usage where it is.
fn not_regulated(error: BandwidthError) -> CliError {
    let message = error.to_string();
    match error {
        BandwidthError::NoCpu
        | BandwidthError::Cpu { .. }
        | BandwidthError::Period { .. }
        | BandwidthError::Punishment { .. }
        | BandwidthError::FreezerOfMany { .. } => CliError::Argument { message },
        error => live(error),
    }
}

/// A budget: more than nothing.
fn parse_budget(text: &str) -> Result<u64, String> {
    match parse_rate(text)? {
        0 => Err("a budget of nothing stops a CPU for ever; write at least 1 B/s".to_owned()),
        budget => Ok(budget),
    }
}

/// CPUs as Linux lists them: one value of an option.
#[derive(Clone, Debug)]
struct CpuList(Vec<usize>);

fn parse_cpu_list(text: &str) -> Result<CpuList, String> {
    Ok(CpuList(parse_cpus(text)?.into_iter().map(|cpu| cpu.index()).collect()))
}

/// `1.2 GB/s`.
fn rate(bytes_per_second: u64) -> String {
    format!("{}/s", crate::quantity::bytes(bytes_per_second))
}
