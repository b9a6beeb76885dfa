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
    /// Simulate a workload and measure its schedule
    Simulate(commands::simulate::Arguments),
    /// Is it schedulable, with which bounds, and how much laxity is left?
    Check(commands::check::Arguments),
    /// Measure, check, draw and convert a recorded trace
    Trace(commands::trace::Arguments),
    /// Generate random task sets as workload files
    Gen(commands::generate::Arguments),
    /// Say everything that is wrong with workload files
    Validate(commands::validate::Arguments),
    /// Print the JSON Schema of workload files
    Schema,
    /// List the schedulers that can be named
    Policies,
    /// List published overhead profiles, or show one
    Overheads(commands::overheads::Arguments),
    /// Run graphs of threads on this machine; list, show and end those that run
    #[cfg(target_os = "linux")]
    Graph(commands::graph::Arguments),
    /// Print completions for a shell
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
