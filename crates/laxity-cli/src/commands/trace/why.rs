//! `laxity trace FILE why`: what a job spent its time with.

use std::path::Path;

use clap::Args;
use laxity_model::{JobId, Nanos, text::printable};
use laxity_trace::why::{
    self, Account, AccountRow, Blame, Line, Part, Wanted, explain, job_name, wanted, worth_explaining,
};
use laxity_trace::{Origin, Record, TraceHeader};
use serde::Serialize;

use super::read::Source;
use crate::error::CliError;
use crate::input;
use crate::output::Output;
use crate::quantity::{TimeUnit, counted, parse_count, percent, short};
use crate::style::{BAD, FAINT, GOOD, RESET, STRONG};
use crate::table::{Cell, Table};

/// Lines are this wide where there is no terminal.
const WIDTH: usize = 120;
/// Longer lists of pieces are cut, unless --pieces asks for all.
const NAME_WIDTH_MAX: usize = 64;

/// Say why a job took as long as it took.
///
/// Accounts for every nanosecond from a job's arrival to its completion: its own execution, the jobs that had its CPU, the
/// locks it waited for and their holders, GPU operations, interrupts and scheduler code, suspension, budgets, tokens. The
/// parts sum to its response time exactly. Where a job may run on several CPUs and other jobs have all of them, each of
/// those gets an equal share.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity trace car.lxt why                     the latest job
  laxity trace car.lxt why camera              the latest job of camera
  laxity trace car.lxt why camera#17           job 17 of camera; the first is 0
  laxity trace car.lxt why --worst 5           the five latest jobs
  laxity trace car.lxt why --worst 3 --by response --json

In a trace of `laxity run --watch-threads`, other threads of the machine and interrupts are named as Linux recorded them. In
other live traces that Linux scheduled, only jobs of the trace can be named: where none of them had the CPU, another thread or
the hypervisor had it; while a job executes, the time that such threads took from it counts as its own.")]
pub struct Arguments {
    /// The job, as in camera#17, or a task: then its latest job [default: the latest of all]
    job: Option<String>,
    /// Explain so many jobs, the latest first
    #[arg(long, value_name = "NUMBER", value_parser = parse_count, num_args = 0..=1, default_missing_value = "5")]
    worst: Option<usize>,
    /// Which jobs are the worst
    #[arg(long, value_name = "WHAT", default_value = "lateness")]
    by: By,
    /// List the pieces of the job's life in order, too
    #[arg(long, conflicts_with = "json")]
    pieces: bool,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
}

/// What makes a job bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum By {
    /// Completion minus deadline.
    Lateness,
    /// Completion minus arrival.
    Response,
}

#[derive(Serialize)]
struct Answer<'a> {
    workload: &'a str,
    origin: &'static str,
    jobs: Vec<AccountRow<'a>>,
}

/// Explains the job, or the worst ones.
pub fn run(file: &Path, arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let source = Source::open(file)?;
    let header = source.header().clone();
    let chosen = arguments.job.as_deref().map(|text| wanted(&header, text)).transpose();
    let chosen = chosen.map_err(|error| CliError::Argument { message: format!("{}: {error}", input::name(file)) })?;
    let (header, records, ending) = source.collect();
    let jobs = jobs(&header, &records, chosen, arguments);
    if jobs.is_empty() {
        return Err(ending.fail("no such job completed, so there is nothing to explain", "; record for longer"));
    }
    let failed = |reason: String| CliError::Convert { path: file.to_owned(), reason };
    let mut accounts =
        explain(&header, &records, |job| jobs.contains(&job)).map_err(|error| failed(error.to_string()))?;
    accounts.sort_by_key(|account| jobs.iter().position(|&job| job == account.job));
    if accounts.is_empty() {
        let name = job_name(&header, jobs[0]);
        return Err(ending.fail(
            &format!("{name} is not released in this trace"),
            "; `laxity trace FILE info` says how much it has",
        ));
    }
    if arguments.json {
        let jobs = accounts.iter().map(|account| why::row(&header, account)).collect();
        let answer = Answer { workload: &header.workload, origin: header.origin.name(), jobs };
        output.line(serde_json::to_string_pretty(&answer).expect("numbers and names"))?;
        return ending.whole();
    }
    for (number, account) in accounts.iter().enumerate() {
        if number > 0 {
            output.line("")?;
        }
        print(&header, account, arguments.pieces, output)?;
    }
    ending.whole()
}

/// The jobs to explain; none if none of them completed.
fn jobs(header: &TraceHeader, records: &[Record], chosen: Option<Wanted>, arguments: &Arguments) -> Vec<JobId> {
    let task = match chosen {
        Some(Wanted::Job(job)) => return vec![job],
        Some(Wanted::Task(task)) => Some(task),
        None => None,
    };
    worth_explaining(header, records, task, arguments.by == By::Response, arguments.worst.unwrap_or(1))
}

fn print(header: &TraceHeader, account: &Account, pieces: bool, output: &mut Output) -> Result<(), CliError> {
    let width = output.width().unwrap_or(WIDTH);
    let unit = TimeUnit::for_longest(account.time());
    output.line(format_args!(
        "{STRONG}{}{RESET}  {}",
        printable(&job_name(header, account.job)),
        fate(header, account)
    ))?;
    let at = |nanos: u64| short(Nanos(nanos));
    let early = match account.arrival.0.saturating_sub(account.release.0) {
        0 => String::new(),
        early => format!(", released {} before", at(early)),
    };
    let due = match has_deadline(header, account) {
        true => format!("due at {}", at(account.deadline.0)),
        false => "best effort".to_owned(),
    };
    output.line(format_args!(
        "{FAINT}arrived at {}{early}, {due}, {} at {}{RESET}",
        at(account.arrival.0),
        if account.completed { "complete" } else { "still pending" },
        at(account.to.0)
    ))?;
    if account.pieces.is_empty() {
        return output.line("it completed before it arrived, so there is nothing to explain");
    }
    output.line("")?;
    let line = why::line(account, width.saturating_sub(2).min(WIDTH));
    life(&line, output)?;
    output.line("")?;
    output.print(table(header, account, &line, unit).render(output.width()))?;
    if pieces {
        output.line("")?;
        output.print(list(header, account, unit).render(output.width()))?;
    }
    notes(header, account, output)
}

/// Whether the job has a deadline, and not just a number in the trace where others have theirs.
fn has_deadline(header: &TraceHeader, account: &Account) -> bool {
    !header.has_made_up_deadlines(account.job.task)
}

/// `12.3 ms, 2.3 ms late`.
fn fate(header: &TraceHeader, account: &Account) -> String {
    let lateness = account.lateness().0;
    let away = short(Nanos(lateness.unsigned_abs()));
    let took = short(account.time());
    if !has_deadline(header, account) {
        return if account.completed { format!("took {took}") } else { format!("pending for {took}") };
    }
    match (account.completed, lateness > 0) {
        (true, true) => format!("took {took}, {BAD}{away} late{RESET}"),
        (true, false) => format!("took {took}, {GOOD}{away} before its deadline{RESET}"),
        (false, true) => format!("pending for {took}, {BAD}{away} late so far{RESET}"),
        (false, false) => format!("pending for {took}, due in {away}"),
    }
}

/// The life on one line, and the deadline below it.
fn life(line: &Line, output: &mut Output) -> Result<(), CliError> {
    output.line(&line.cells)?;
    let step = format!("{} a column", line.step);
    match line.deadline {
        None => output.line(format_args!("{FAINT}{step}{RESET}")),
        Some(column) => {
            let indent = column.max(step.len() + 1) - step.len();
            // The note stands left of the mark if there is room, else right of it.
            match column > step.len() {
                true => output.line(format_args!("{FAINT}{step}{RESET}{}↓ deadline", " ".repeat(indent))),
                false => output.line(format_args!("{}↓ deadline   {FAINT}{step}{RESET}", " ".repeat(column))),
            }
        }
    }
}

fn table(header: &TraceHeader, account: &Account, line: &Line, unit: TimeUnit) -> Table {
    let mut table = Table::of("")
        .text("what it did")
        .text("by")
        .group("time", &[unit.name])
        .group("share", &["%"])
        .group("pieces", &["count", &format!("longest, {}", unit.name)]);
    let whole = u128::from(account.time().0);
    for (Part { blame, time, pieces, longest }, symbol, which) in rows(header, line) {
        table.row(vec![
            symbol.to_string().into(),
            blame.what(header.origin).into(),
            crate::table::cut(&which, NAME_WIDTH_MAX).into(),
            unit.show(time).into(),
            percent(u128::from(time.0), whole).into(),
            pieces.to_string().into(),
            unit.show(longest).into(),
        ]);
    }
    let total = if account.completed { "response time" } else { "so far" };
    table.total(vec!["".into(), total.into(), "".into(), unit.show(account.time()).into(), "100.00".into()]);
    table
}

/// The parts, their symbols and names, the largest first; threads of the machine that have no letter of their own together:
/// there may be hundreds. JSON and `--pieces` have each.
fn rows(header: &TraceHeader, line: &Line) -> Vec<(Part, char, String)> {
    let is_rest = |&&(part, symbol): &&(Part, char)| symbol == '*' && matches!(part.blame, Blame::Outside(_));
    let rest: Vec<Part> = line.symbols.iter().filter(is_rest).map(|&(part, _)| part).collect();
    let mut rows: Vec<(Part, char, String)> = Vec::new();
    for &(part, symbol) in line.symbols.iter().filter(|named| rest.len() < 2 || !is_rest(named)) {
        rows.push((part, symbol, part.blame.which(header)));
    }
    if let [first, _, ..] = rest[..] {
        let together = Part {
            blame: first.blame,
            time: Nanos(rest.iter().map(|part| part.time.0).sum()),
            pieces: rest.iter().map(|part| part.pieces).sum(),
            longest: rest.iter().map(|part| part.longest).max().unwrap_or_default(),
        };
        rows.push((together, '*', format!("{} have it", counted(rest.len() as u64, "other thread"))));
        rows.sort_by_key(|(part, ..)| std::cmp::Reverse(part.time));
    }
    rows
}

fn list(header: &TraceHeader, account: &Account, unit: TimeUnit) -> Table {
    let mut table = Table::of("from").group("time", &[unit.name]).text("CPU").text("what it did").text("job");
    for piece in &account.pieces {
        for (cause, share) in piece.shares() {
            table.row(vec![
                short(Nanos(piece.from.0.saturating_sub(account.arrival.0))).into(),
                unit.show(share).into(),
                cause.cpu().map_or(Cell::default(), |cpu| cpu.to_string().into()),
                crate::table::cut(&cause.blame().describe(header), NAME_WIDTH_MAX).into(),
                cause.other_job().map_or(Cell::default(), |job| job_name(header, job).into()),
            ]);
        }
    }
    table
}

/// What a reader might take the table for, and it is not.
fn notes(header: &TraceHeader, account: &Account, output: &mut Output) -> Result<(), CliError> {
    let shared = account.pieces.iter().filter(|piece| piece.causes.len() > 1).count();
    if shared > 0 {
        let pieces = counted(shared as u64, "piece");
        output.line(format_args!(
            "{FAINT}of {pieces}, several have an equal share: the jobs on the CPUs that it might have had{RESET}"
        ))?;
    }
    if header.origin == Origin::Live && header.outsiders.is_empty() {
        output.line(format_args!(
            "{FAINT}threads outside the trace are not seen: what they took while the job executed counts as its own; `laxity run \
             --watch-threads` has Linux record them{RESET}"
        ))?;
    }
    Ok(())
}
