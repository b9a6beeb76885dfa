//! `laxity sched doctor`: whether the scheduler can run in this machine's kernel.

use std::path::{Path, PathBuf};

use clap::Args;
use laxity_scx::{Check, Report, probe};
use serde::Serialize;

use crate::commands::named::pretty;
use crate::commands::sched::loader;
use crate::error::CliError;
use crate::output::Output;
use crate::style::{BAD, FAINT, GOOD, RESET};

/// Say what this machine lacks for the scheduler in its kernel, and what to do.
///
/// The scheduler in the kernel is a program that Linux loads through sched_ext, in Linux 6.12 or newer. Everything else that Laxity does, `laxity run --scheduler laxity` among it, needs none of this. Only reads files.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity sched doctor
  laxity sched doctor --json | jq -r '.checks[] | select(.holds | not).remedy'

Exit codes: 0 nothing is missing; 1 something is; 2 bad usage.")]
pub struct Arguments {
    /// Print JSON instead of lines
    #[arg(long)]
    json: bool,
    /// Read sys and proc below this folder
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

/// Prints a line for each need, and what to do where it is not met.
pub fn run(arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let mut report = probe(&arguments.root);
    let has = |name| report.checks.iter().any(|check| check.name == name && check.holds);
    if arguments.root == Path::new("/") && has("sched_ext") && has("btf") {
        report.checks.extend(loader::checks());
    }
    if arguments.json {
        output.print(json(&report))?;
    } else {
        for Check { name, holds, found, remedy } in &report.checks {
            let (style, word) = if *holds { (GOOD, "has  ") } else { (BAD, "lacks") };
            output.line(format_args!("{style}{word}{RESET} {name:<10} {found}"))?;
            if let Some(remedy) = remedy {
                output.line(format_args!("                 {FAINT}{remedy}{RESET}"))?;
            }
        }
    }
    output.finish()?;
    let missing = report.checks.iter().filter(|check| !check.holds).count();
    if missing == 0 {
        return Ok(());
    }
    let of = report.checks.len();
    Err(CliError::Live {
        message: format!(
            "{missing} of {of} things that the scheduler in the kernel needs are missing; until then use the one in user \
             space: laxity run --scheduler laxity"
        ),
    })
}

fn json(report: &Report) -> String {
    #[derive(Serialize)]
    struct Need<'a> {
        name: &'a str,
        holds: bool,
        found: &'a str,
        remedy: Option<&'a str>,
    }
    #[derive(Serialize)]
    struct Needs<'a> {
        laxity: &'static str,
        ready: bool,
        checks: Vec<Need<'a>>,
    }
    let checks = report.checks.iter();
    let checks =
        checks.map(|check| Need { name: check.name, holds: check.holds, found: &check.found, remedy: check.remedy });
    pretty(&Needs { laxity: env!("CARGO_PKG_VERSION"), ready: report.is_ready(), checks: checks.collect() })
}
