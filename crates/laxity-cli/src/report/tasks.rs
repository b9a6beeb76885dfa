//! The table of tasks.

use laxity_model::{Instant, Nanos};
use laxity_trace::metrics::JobSummary;
use laxity_trace::{Origin, TaskInfo, is_no_deadline};

use super::Report;
use crate::quantity::{TimeUnit, percent};
use crate::table::{Cell, Table, cut};

/// Task names longer than this are cut.
const NAME_WIDTH_MAX: usize = 24;

/// A row for each task, and all of them together.
pub fn table(report: &Report) -> Table {
    let unit = unit(report);
    let tardiness = format!("max, {}", unit.name);
    let laxity = format!("least, {}", unit.name);
    let mut table = Table::of("task")
        .group("period", &[unit.name])
        .group("wcet", &[unit.name])
        .group("util.", &["%"])
        .group("jobs", &["released", "completed", "missed"])
        .group(&format!("response time, {}", unit.name), &["mean", "p99", "max"])
        .group("tardiness", &[&tardiness])
        .group("laxity", &[&laxity])
        .group("switches", &["preemptions", "migrations"]);
    for (info, task) in report.tasks().zip(&report.summary.tasks) {
        let mut cells = vec![cut(&info.name, NAME_WIDTH_MAX).into()];
        cells.extend(parameters(info, unit));
        cells.extend(jobs(&task.jobs, unit));
        table.row(cells);
    }
    let mut cells = vec!["total".into(), Cell::default(), Cell::default()];
    cells.push(match report.header.origin {
        Origin::Simulated => percent(utilization(report), ONE).into(),
        Origin::Live => Cell::default(),
    });
    cells.extend(jobs(&report.summary.total, unit));
    table.total(cells);
    table
}

/// The unit that suits the longest period and the longest response time.
fn unit(report: &Report) -> TimeUnit {
    let periods = report.tasks().map(|task| task.period);
    let response = report.summary.total.response_time.map_or(Nanos::ZERO, |times| times.max);
    TimeUnit::for_longest(periods.max().unwrap_or(Nanos::ZERO).max(response))
}

fn parameters(task: &TaskInfo, unit: TimeUnit) -> [Cell; 3] {
    if task.wcet.is_zero() {
        // A live task need not declare it, and a program's stream has no period unless its jobs are said to.
        let is_sporadic =
            task.period == Nanos(1) && is_no_deadline(Instant::ZERO, Instant::ZERO.saturating_add(task.deadline));
        let period = if is_sporadic { Cell::faint("-") } else { unit.show(task.period).into() };
        return [period, Cell::faint("-"), Cell::faint("-")];
    }
    let utilization = percent(u128::from(task.wcet.0), u128::from(task.period.0));
    [unit.show(task.period).into(), unit.show(task.wcet).into(), utilization.into()]
}

/// A whole CPU, as [`utilization`] counts.
pub const ONE: u128 = 1_000_000_000_000;

/// Of all tasks, in parts of [`ONE`].
pub fn utilization(report: &Report) -> u128 {
    // At most 2^64 ns in each of 1 ns, times 2^40; each term is too small by less than 10^-12.
    report.tasks().map(|task| u128::from(task.wcet.0) * ONE / u128::from(task.period.0.max(1))).sum()
}

/// The cells from `released` on.
pub fn jobs(jobs: &JobSummary, unit: TimeUnit) -> Vec<Cell> {
    let mut cells =
        vec![jobs.released.to_string().into(), jobs.completed.to_string().into(), Cell::mishaps(jobs.missed)];
    match jobs.response_time {
        Some(times) => cells.extend([times.mean, times.p99, times.max].map(|time| unit.show(time).into())),
        None => cells.extend(["-"; 3].map(Cell::faint)),
    }
    cells.push(match jobs.tardiness {
        Some(tardiness) if tardiness.max.is_zero() => Cell::faint(unit.show(tardiness.max)),
        Some(tardiness) => Cell::bad(unit.show(tardiness.max)),
        None => Cell::faint("-"),
    });
    cells.push(match jobs.laxity_min {
        Some(laxity) if laxity.0 < 0 => Cell::bad(unit.show_signed(laxity)),
        Some(laxity) => unit.show_signed(laxity).into(),
        None => Cell::faint("-"),
    });
    cells.extend([jobs.preemptions, jobs.migrations].map(|count| match count {
        0 => Cell::faint("0"),
        count => count.to_string().into(),
    }));
    cells
}
