//! The command line: verbs, and what they share.

use clap::{Parser, Subcommand, ValueEnum};

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
