//! Several schedulers side by side.

use laxity_model::Nanos;

use super::{Report, tasks};
use crate::quantity::{TimeUnit, counted, percent};
use crate::style;
use crate::table::{Cell, Table};

/// A row for each report. They are of the same workload.
pub fn comparison(reports: &[Report], width: Option<usize>) -> String {
    let Some(first) = reports.first() else { return String::new() };
    let longest = reports.iter().filter_map(|report| report.summary.total.response_time).map(|times| times.max).max();
    let unit = TimeUnit::for_longest(longest.unwrap_or(Nanos::ZERO));
    let mut table = Table::of("scheduler")
        .group("jobs", &["released", "completed", "missed"])
        .group(&format!("response time, {}", unit.name), &["mean", "p99", "max"])
        .group("tardiness", &[&format!("max, {}", unit.name)])
        .group("laxity", &[&format!("least, {}", unit.name)])
        .group("switches", &["preemptions", "migrations"])
        .group("CPU time, %", &["jobs", "overheads"])
        .text("overhead profile");
    for report in reports {
        let mut cells = vec![report.header.scheduler.to_string().into()];
        cells.extend(tasks::jobs(&report.summary.total, unit));
        cells.extend(cpu_time(report));
        cells.push(Cell::faint(report.overheads.as_deref().unwrap_or("none")));
        table.row(cells);
    }
    let header = &first.header;
    format!(
        "{}{}{}\n{}, {}, seed {}, {} simulated\n\n{}",
        style::STRONG,
        header.workload,
        style::RESET,
        counted(header.tasks.len() as u64, "task"),
        counted(header.cpus as u64, "CPU"),
        header.seed,
        first.summary.duration,
        table.render(width)
    )
}

/// Time for jobs, and for what keeps CPUs from them.
fn cpu_time(report: &Report) -> [Cell; 2] {
    let machine = &report.summary.machine;
    let available = u128::from(report.summary.duration.0) * report.summary.cpus.len() as u128;
    let overheads = u128::from(machine.overheads.cpu_time().0) + u128::from(machine.lock_wait.0);
    [percent(u128::from(machine.busy.0), available).into(), percent(overheads, available).into()]
}
