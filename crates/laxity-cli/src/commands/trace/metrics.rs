//! `laxity trace FILE metrics`: the same tables as those of a simulation.

use std::path::Path;

use clap::Args;
use laxity_trace::metrics::Metrics;

use super::read::Source;
use crate::error::CliError;
use crate::output::Output;
use crate::report::{self, Report};

/// Measure a trace, with the tables of `laxity simulate`.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity trace car.lxt metrics
  laxity trace car.lxt metrics --json")]
pub struct Arguments {
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Show each CPU, not only all of them together
    #[arg(long, conflicts_with = "json")]
    per_cpu: bool,
}

/// Measures up to the last record.
pub fn run(file: &Path, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let source = Source::open(file)?;
    let header = source.header().clone();
    let mut metrics = Metrics::new(&header);
    let ending = source.stream(&mut metrics);
    let report = Report { header, overheads: None, summary: metrics.finish(ending.reached), cut_short: None };
    match arguments.json {
        true => output.print(report::one(&report))?,
        false => output.print(report::text(&report, arguments.per_cpu, output.width()))?,
    }
    ending.whole()
}
