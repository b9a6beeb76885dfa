//! `laxity trace FILE check`: can this schedule be trusted?

use std::path::{Path, PathBuf};

use clap::Args;
use laxity_trace::TraceHeader;
use laxity_trace::check::{DeadlineCheck, LegalityCheck, PolicyCheck, Report};

use super::read::Source;
use crate::error::CliError;
use crate::input;
use crate::output::Output;
use crate::quantity::counted;
use crate::style::{BAD, GOOD, RESET};

/// Judge a trace.
///
/// Checks that it is a legal schedule at all (one job a CPU, one CPU a job, nothing before its release, jobs of a task
/// in order, no more execution than the worst case; each lock, engine and stack with one holder, grants in the lock's
/// order, no interrupt thread beside its owner under klmirqd, no token of a graph lost), that it follows the scheduler it
/// names (the most urgent jobs run, no CPU idles while one waits; in simulations no job has a priority that nothing gives
/// it, and holders of locks inherit) unless Linux scheduled it live, and that deadlines were met.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity trace car.lxt check
  laxity trace car.lxt check --limit 100

Exit codes: 0 nothing was found; 1 violations or missed deadlines, or the trace is cut off;
2 it is no trace.")]
pub struct Arguments {
    /// Print at most so many violations of each kind
    #[arg(long, value_name = "NUMBER", default_value_t = 10)]
    limit: usize,
    /// Do not judge deadlines
    #[arg(long)]
    ignore_deadlines: bool,
}

/// Runs every checker over the trace at once.
pub fn run(file: &Path, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let source = Source::open(file)?;
    let header = source.header().clone();
    let mut legality = LegalityCheck::new(&header);
    let mut policy = header.follows_scheduler().then(|| PolicyCheck::new(&header));
    let mut deadlines = (!arguments.ignore_deadlines).then(|| DeadlineCheck::new(&header));
    let ending = source.stream(&mut (&mut legality, (&mut policy, &mut deadlines)));
    output.line(format_args!(
        "{}: {} up to {}, {}",
        input::name(file),
        counted(ending.records, "record"),
        ending.reached,
        header.scheduled_by()
    ))?;
    let mut checks = vec![("a legal schedule".to_owned(), legality.finish())];
    checks.extend(policy.map(|check| (format!("follows {}", header.scheduler), check.finish())));
    let deadlines = deadlines.filter(|check| !check.is_void());
    checks.extend(deadlines.map(|check| ("deadlines met".to_owned(), check.finish())));
    for (claim, report) in &checks {
        print(&header, claim, report, arguments.limit, output)?;
    }
    ending.whole()?;
    let count: u64 = checks.iter().map(|(_, report)| report.count()).sum();
    match count {
        0 => Ok(()),
        count => Err(CliError::Violations { path: PathBuf::from(input::name(file)), count }),
    }
}

fn print(
    header: &TraceHeader,
    claim: &str,
    report: &Report,
    limit: usize,
    output: &mut Output,
) -> Result<(), CliError> {
    if report.is_clean() {
        return output.line(format_args!("  {GOOD}yes{RESET}  {claim}"));
    }
    let count = report.count();
    output.line(format_args!("  {BAD}no{RESET}   {claim}: {}", counted(count, "violation")))?;
    for violation in report.violations.iter().take(limit) {
        output.line(format_args!("         {}", violation.in_words(header)))?;
    }
    match count.saturating_sub(limit as u64) {
        0 => Ok(()),
        more => output.line(format_args!("         and {more} more")),
    }
}
