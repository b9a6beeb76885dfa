//! `laxity check`: is it schedulable, with which bounds, and how much laxity is left?

mod chains;
mod lines;
mod tables;
mod text;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use laxity_analysis::check::{Accounting, Criterion, JsonReport, Options, Report, check};

use crate::configuration::{Alternatives, Configuration, configurations};
use crate::error::CliError;
use crate::input;
use crate::output::{self, Output};
use crate::progress::Working;
use crate::quantity::counted;

/// Is it schedulable, with which bounds, and how much laxity is left?
///
/// Proves, for each scheduler asked for and with its overheads, that no deadline is ever missed (hard) or that
/// tardiness is bounded (soft), or says which test failed for which task. Features that the analysis cannot treat are
/// refused by name.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity check car.toml
  laxity check car.toml --explain                        what makes up each inflated execution time
  laxity check car.toml --policy CEm,CQm,P-RM            compare three schedulers
  laxity check car.toml --policy all --overheads brandenburg2009-worst
  laxity check car.toml --soft --json
  laxity gen uni-light/moderate cap=2 | laxity check -
  echo '{\"m\": 2, \"tasks\": [[1, 4, 4], [2, 5, 5], [3, 9, 9]]}' | laxity check --jsonl

Exit codes: 0 proven in every configuration asked for (hard, or soft with --soft);
1 not proven, infeasible or refused in some, or with --jsonl a malformed line;
2 bad usage or a bad workload.")]
pub struct Arguments {
    /// The workload, TOML or JSON; - reads standard input
    #[arg(required_unless_present = "jsonl")]
    file: Option<PathBuf>,
    #[command(flatten)]
    instead: Alternatives,
    /// How overheads become execution time: safe (whatever may delay a job), or as published
    #[arg(long, value_name = "HOW", default_value = "safe", hide_default_value = true, hide_possible_values = true)]
    accounting: AccountingName,
    /// Judge by bounded tardiness instead of deadlines
    #[arg(long)]
    soft: bool,
    /// Show what makes up each inflated execution time, and why each test failed
    #[arg(long, conflicts_with = "json")]
    explain: bool,
    /// Do not search by how much all execution times may grow
    #[arg(long)]
    no_scaling: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    /// Print nothing but errors and, with --json, the JSON
    #[arg(long, short)]
    quiet: bool,
    /// Read task sets from standard input, one JSON object a line, and answer each with a line of verdicts
    #[arg(
        long,
        conflicts_with_all = [
            "file", "policy", "overheads", "arbitration", "handling", "accounting", "soft", "explain", "no_scaling",
            "json", "quiet",
        ]
    )]
    jsonl: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AccountingName {
    Safe,
    Published,
}

/// Analyses each configuration in turn, then prints.
pub fn run(arguments: Arguments, output: &mut Output) -> Result<(), CliError> {
    let Some(path) = &arguments.file else { return lines::answer(output) };
    let workload = input::workload(path)?;
    let configurations = configurations(&arguments.instead, &workload)?;
    let options = options(&arguments);
    let quiet = arguments.quiet || arguments.json;
    if !quiet {
        let file = input::name(path);
        arguments.instead.without_effect(&workload).for_each(|what| output::warning(format_args!("{file}: {what}")));
    }
    let analyse = |configuration: &Configuration| {
        let tasks = counted(configuration.workload.tasks.len() as u64, "task");
        let _working = Working::new(&format!("analyses {tasks} under {}", configuration.name), quiet);
        check(&configuration.workload, &configuration.scheduler, &options)
    };
    let reports: Vec<Report> = configurations.iter().map(analyse).collect();
    print(&arguments, &configurations, &reports, options.criterion, output)?;
    conclude(&reports, options.criterion)
}

fn options(arguments: &Arguments) -> Options {
    Options {
        accounting: match arguments.accounting {
            AccountingName::Safe => Accounting::Safe,
            AccountingName::Published => Accounting::Published,
        },
        criterion: if arguments.soft { Criterion::Soft } else { Criterion::Hard },
        scaling: !arguments.no_scaling,
        ..Options::default()
    }
}

fn print(
    arguments: &Arguments,
    configurations: &[Configuration],
    reports: &[Report],
    criterion: Criterion,
    output: &mut Output,
) -> Result<(), CliError> {
    let Some(first) = configurations.first() else { return Ok(()) };
    if arguments.json {
        return output.print(json(&first.workload.name, reports));
    }
    if arguments.quiet {
        return Ok(());
    }
    let width = output.width();
    if let [report] = reports {
        output.print(text::single(&first.workload, report, criterion, arguments.explain, width))?;
    } else {
        if arguments.explain {
            for (configuration, report) in configurations.iter().zip(reports) {
                output.print(text::single(&configuration.workload, report, criterion, true, width))?;
                output.line("")?;
            }
        }
        output.print(text::comparison(&first.workload, reports, criterion, width))?;
    }
    output.finish()?;
    let best_effort = first.workload.best_effort.len() as u64;
    if best_effort > 0 {
        let tasks = counted(best_effort, "best-effort task");
        output::note(format_args!(
            "no bound for {tasks}, below all real-time jobs; memory traffic counts where it slows GPU operations down"
        ));
    }
    Ok(())
}

/// One object, or `{"laxity": ..., "checks": [...]}`.
fn json(workload: &str, reports: &[Report]) -> String {
    #[derive(serde::Serialize)]
    struct Checks<'a> {
        laxity: &'static str,
        checks: Vec<JsonReport<'a>>,
    }
    let text = match reports {
        [report] => serde_json::to_string_pretty(&JsonReport::new(workload, report)),
        _ => {
            let checks = reports.iter().map(|report| JsonReport::new(workload, report)).collect();
            serde_json::to_string_pretty(&Checks { laxity: env!("CARGO_PKG_VERSION"), checks })
        }
    };
    text.expect("numbers, texts and maps of text keys are JSON") + "\n"
}

/// A failure unless every configuration is proven.
fn conclude(reports: &[Report], criterion: Criterion) -> Result<(), CliError> {
    let unproven = reports.iter().filter(|report| !report.finding(criterion).is_schedulable()).count();
    if unproven == 0 {
        return Ok(());
    }
    let only = match reports {
        [report] => Some(report.scheduler.to_string()),
        _ => None,
    };
    Err(CliError::NotProven { unproven, of: reports.len(), only, criterion })
}
