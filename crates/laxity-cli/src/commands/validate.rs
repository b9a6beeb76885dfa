//! `laxity validate`: everything that is wrong with workload files.

use std::path::PathBuf;

use clap::Args;
use laxity_model::Workload;

use crate::error::CliError;
use crate::input;
use crate::output::{self, Output};
use crate::quantity::counted;

/// Say everything that is wrong with workload files.
///
/// Errors name file, line and column, as compilers do. Warnings say what is legal but probably not meant.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity validate car.toml
  laxity validate workloads/*.toml

Exit codes: 0 all are valid, perhaps with warnings; 2 otherwise.")]
pub struct Arguments {
    /// The workloads, TOML or JSON; - reads standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

/// Reads each file; errors come after everything else.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    let mut errors = Vec::new();
    for path in &arguments.files {
        match input::workload(path) {
            Ok(workload) => {
                output.line(summary(&input::name(path), &workload))?;
                output.finish()?;
                for warning in workload.warnings() {
                    output::warning(format_args!("{}: {warning}", input::name(path)));
                }
            }
            Err(error) => errors.push(error),
        }
    }
    let wrong = errors.len();
    match (errors.pop(), arguments.files.len()) {
        (None, _) => Ok(()),
        (Some(only), 1) => Err(only),
        (Some(last), files) => {
            errors.iter().chain([&last]).for_each(output::error);
            Err(CliError::Invalid { wrong, files })
        }
    }
}

fn summary(file: &str, workload: &Workload) -> String {
    let mut parts = vec![counted(workload.tasks.len() as u64, "task")];
    let mut also = |count: usize, noun: &str| {
        if count > 0 {
            parts.push(counted(count as u64, noun));
        }
    };
    also(workload.best_effort.len(), "best-effort task");
    also(workload.graphs.len(), "graph");
    also(workload.resources.len(), "resource");
    also(workload.platform.gpus.len(), "GPU");
    let cpus = counted(workload.platform.cpus as u64, "CPU");
    // The sum of no floats is a negative zero.
    let (parts, utilization) = (parts.join(", "), workload.utilization_f64() + 0.0);
    format!("{file}: valid: \"{}\", {parts}, utilization {utilization:.2} on {cpus}", workload.name)
}
