//! `laxity sched status`: what the scheduler in the kernel does.

use clap::Args;
use laxity_model::Nanos;
use laxity_scx::Membership;
use laxity_scx::protocol::{InterruptStatus, OthersStatus, Status, TaskStatus};
use serde::Serialize;

use crate::commands::named::pretty;
use crate::error::CliError;
use crate::output::Output;
use crate::quantity::{TimeUnit, counted};
use crate::style::{FAINT, RESET, STRONG};
use crate::table::{Cell, Table};

/// Show the scheduler in the kernel: its policy, its tasks, and which of them have a CPU.
#[derive(Args)]
#[command(after_help = "Examples:
  laxity sched status
  laxity sched status --json | jq '.status.tasks[] | select(.late > 0).name'

Exit codes: 0 it is there; 1 it is not; 2 bad usage.")]
pub struct Arguments {
    /// Print JSON instead of a table; times are in ns
    #[arg(long)]
    json: bool,
}

/// Prints a row for each task.
pub fn run(arguments: &Arguments, output: &mut Output) -> Result<(), CliError> {
    let live = |error: laxity_scx::ClientError| CliError::Live { message: error.to_string() };
    let status = Membership::join().and_then(|member| member.status()).map_err(live)?;
    if arguments.json {
        return output.print(json(&status));
    }
    print(&status, output)
}

/// Prints what it does, and a row for each task.
pub fn print(status: &Status, output: &mut Output) -> Result<(), CliError> {
    let cpus = |cpus: &Vec<usize>| cpus.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let clusters: Vec<String> = status.clusters.iter().map(cpus).collect();
    let running = TimeUnit::SECONDS.show(status.running);
    let dedicated = status.dedicated.map_or(String::new(), |cpu| format!(", CPU {cpu} for releases alone"));
    output.line(format_args!("{} on CPUs {}{dedicated}", status.policy, clusters.join(" | ")))?;
    output.line(format_args!("{FAINT}for {running} s, by process {}{RESET}", status.pid))?;
    if let Some(lost) = status.lost {
        output.line(format_args!("{FAINT}a trace is written; {lost} records are lost{RESET}"))?;
    }
    if status.tasks.is_empty() {
        output.line(format_args!("{FAINT}no tasks{RESET}"))?;
    } else {
        output.print(table(&status.tasks, usize::MAX).render(output.width()))?;
    }
    if !status.interrupts.is_empty() {
        output.line("")?;
        print_interrupts(&status.interrupts, output)?;
    }
    if status.others.is_empty() {
        return Ok(());
    }
    output.line("")?;
    output.print(others(&status.others).render(output.width()))
}

/// A row for each CPU on which threads that are no tasks had anything.
fn others(others: &[OthersStatus]) -> Table {
    let longest = others.iter().map(|it| it.executed.max(it.throttled).max(it.punished)).max();
    let unit = TimeUnit::for_longest(longest.unwrap_or(Nanos::ZERO));
    let times = format!("other threads, {}", unit.name);
    let mut table = Table::of("CPU").group(&times, &["executed", "throttled", "punished"]).group("", &["throttles"]);
    for it in others {
        table.row(vec![
            it.cpu.to_string().into(),
            unit.show(it.executed).into(),
            unit.show(it.throttled).into(),
            unit.show(it.punished).into(),
            it.throttles.to_string().into(),
        ]);
    }
    table
}

/// Prints a row for each thread that handles interrupts for tasks.
pub fn print_interrupts(interrupts: &[InterruptStatus], output: &mut Output) -> Result<(), CliError> {
    if interrupts.is_empty() {
        return output.line(format_args!("{FAINT}no thread handles interrupts for tasks{RESET}"));
    }
    let longest = interrupts.iter().map(|it| it.response_max).max().unwrap_or(Nanos::ZERO);
    let unit = TimeUnit::for_longest(longest);
    let response = format!("response, {}", unit.name);
    let mut table = Table::of("interrupts")
        .group("", &["thread", "cluster", "CPU"])
        .text("own class")
        .text("works for")
        .group("handled", &["in all", "for tasks"])
        .group("", &[&response, "throttled"]);
    for it in interrupts {
        let own = it.own_priority.map_or_else(|| "ordinary".to_owned(), |priority| format!("FIFO {priority}"));
        table.row(vec![
            it.name.clone().into(),
            it.thread.to_string().into(),
            it.cluster.to_string().into(),
            it.linked.map_or_else(|| Cell::faint("-"), |cpu| Cell::good(cpu.to_string())),
            own.into(),
            it.owner.clone().map_or_else(|| Cell::faint("no task"), Cell::from),
            it.handled.to_string().into(),
            it.owned.to_string().into(),
            unit.show(it.response_max).into(),
            it.throttled.to_string().into(),
        ]);
    }
    output.print(table.render(output.width()))
}

/// What it does in a line.
pub fn summary(status: &Status) -> String {
    let has_cpu = status.tasks.iter().filter(|task| task.linked.is_some()).count();
    format!(
        "{STRONG}{}{RESET} in the kernel, for {} s: {} on {}; {has_cpu} with a CPU",
        status.policy,
        TimeUnit::SECONDS.show(status.running),
        counted(status.tasks.len() as u64, "task"),
        counted(status.clusters.iter().map(Vec::len).sum::<usize>() as u64, "CPU"),
    )
}

/// A row for each task, but for those beyond `rows`.
pub fn table(tasks: &[TaskStatus], rows: usize) -> Table {
    let longest = tasks.iter().flat_map(|task| [task.period, task.deadline, task.response_max, task.tardiness_max]);
    let unit = TimeUnit::for_longest(longest.max().unwrap_or(Nanos::ZERO));
    let times = format!("times, {}", unit.name);
    let mut table = Table::of("task")
        .group("", &["thread", "cluster", "CPU"])
        .group(&times, &["period", "deadline", "response", "tardiness"])
        .group("jobs", &["released", "completed", "late"]);
    for task in tasks.iter().take(rows) {
        table.row(vec![
            task.name.clone().into(),
            task.thread.to_string().into(),
            task.cluster.to_string().into(),
            task.linked.map_or_else(|| Cell::faint("-"), |cpu| Cell::good(cpu.to_string())),
            unit.show(task.period).into(),
            unit.show(task.deadline).into(),
            unit.show(task.response_max).into(),
            unit.show(task.tardiness_max).into(),
            task.released.to_string().into(),
            task.completed.to_string().into(),
            Cell::mishaps(task.late.into()),
        ]);
    }
    table
}

#[derive(Serialize)]
struct Answer<'a> {
    laxity: &'static str,
    status: &'a Status,
}

fn json(status: &Status) -> String {
    pretty(&Answer { laxity: env!("CARGO_PKG_VERSION"), status })
}

/// The same in a line.
pub fn json_line(status: &Status) -> String {
    let answer = Answer { laxity: env!("CARGO_PKG_VERSION"), status };
    serde_json::to_string(&answer).expect("numbers, texts and lists are JSON")
}
