//! The command line: verbs, and what they share.

use std::error::Error;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};

use clap::error::{ContextKind, ErrorKind};
use clap::{Arg, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

use crate::commands;

/// Real-time scheduling for Linux with GPUs: simulate, measure, check and draw schedules.
#[derive(Parser)]
#[command(
    name = "laxity",
    version,
    propagate_version = true,
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Exit codes: 0 it worked; 1 what was asked for failed; 2 bad usage or bad input; 130 interrupted.\n\n\
                  Start with: laxity simulate examples/workloads/quickstart.toml"
)]
pub struct Cli {
    /// Colour: auto (on a terminal, unless NO_COLOR is set), always or never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub color: When,
    #[command(subcommand)]
    pub command: Command,
}

/// Reads the command line.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let matches = with_signs(Cli::command()).try_get_matches_from(words).map_err(explained)?;
    Cli::from_arg_matches(&matches)
}

/// What quantities are called in the help.
const QUANTITIES: [&str; 11] =
    ["DURATION", "TIME", "NUMBER", "N", "COUNT", "RATE", "SIZE", "BYTES", "FACTOR", "PRIORITY", "PERCENT"];

/// `command`, whose options take a quantity with a sign as their value: their own parsers say then what is wrong with it. To the
/// parser of words `-1s` would be an option.
fn with_signs(command: clap::Command) -> clap::Command {
    let is_quantity = |argument: &Arg| {
        let names = argument.get_value_names().unwrap_or_default();
        let is_optional = argument.get_num_args().is_some_and(|count| count.min_values() == 0);
        argument.get_action().takes_values()
            && !is_optional
            && names.iter().any(|name| QUANTITIES.contains(&name.as_str()))
    };
    let signed = move |argument: Arg| {
        let is_signed = is_quantity(&argument) && !argument.is_positional();
        if is_signed { argument.allow_hyphen_values(true) } else { argument }
    };
    command.mut_args(signed).mut_subcommands(with_signs)
}

/// `error`, in the words of this command where the standard library has found no number.
fn explained(error: clap::Error) -> clap::Error {
    let number = error.source().and_then(|source| source.downcast_ref::<ParseIntError>());
    let is_none = number.is_some_and(|error| matches!(error.kind(), IntErrorKind::InvalidDigit | IntErrorKind::Empty));
    match (error.get(ContextKind::InvalidValue), error.get(ContextKind::InvalidArg)) {
        (Some(value), Some(option)) if is_none => {
            let message =
                format!("invalid value '{value}' for '{option}': write a whole number, without a sign, as in 7");
            clap::Error::raw(ErrorKind::ValueValidation, message + "\n\nFor more information, try '--help'.\n")
        }
        _ => error,
    }
}

/// The verbs.
#[derive(Subcommand)]
pub enum Command {
    // The arguments of each command describe it: a comment here would hide the longer text of `--help`.
    Simulate(commands::simulate::Arguments),
    #[cfg(target_os = "linux")]
    Run(commands::run::Arguments),
    Check(commands::check::Arguments),
    Trace(commands::trace::Arguments),
    Report(commands::report::Arguments),
    Tune(commands::tune::Arguments),
    Gen(commands::generate::Arguments),
    Validate(commands::validate::Arguments),
    /// Print the JSON Schema of workload files
    Schema,
    /// List the schedulers that can be named
    Policies,
    #[cfg(target_os = "linux")]
    Measure(commands::measure::Arguments),
    Overheads(commands::overheads::Arguments),
    #[cfg(target_os = "linux")]
    Gpu(commands::gpu::Arguments),
    #[cfg(target_os = "linux")]
    Bandwidth(commands::bandwidth::Arguments),
    #[cfg(target_os = "linux")]
    Graph(commands::graph::Arguments),
    #[cfg(target_os = "linux")]
    Sched(commands::sched::Arguments),
    #[cfg(target_os = "linux")]
    Exec(commands::exec::Arguments),
    Completions(commands::completions::Arguments),
}

/// When to do something that only some outputs want.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum When {
    /// Where it fits.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl When {
    /// Decides about colour for the rest of the run.
    pub fn apply(self) {
        match self {
            When::Auto => anstream::ColorChoice::Auto,
            When::Always => anstream::ColorChoice::Always,
            When::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}
