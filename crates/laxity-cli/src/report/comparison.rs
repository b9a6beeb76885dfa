//! Several schedulers, or ways to manage GPUs, side by side.

use laxity_model::Nanos;
use laxity_trace::metrics::DistributionSummary;

use super::{Report, chains, devices, tasks};
use crate::quantity::{TimeUnit, counted, percent};
use crate::style;
use crate::table::{Cell, Table};

/// A row for each report. They are of the same workload.
pub fn comparison(reports: &[Report], width: Option<usize>) -> String {
    let Some(first) = reports.first() else { return String::new() };
    let longest = reports.iter().filter_map(|report| report.summary.total.response_time).map(|times| times.max).max();
    let unit = TimeUnit::for_longest(longest.unwrap_or(Nanos::ZERO));
    // How GPUs are managed is told only where that is compared.
    let with_devices = first.has_devices();
    let unit_of_inversions =
        inversions(reports).map(|lengths| lengths.max).max().map_or(TimeUnit::MICROS, TimeUnit::for_longest);
    let mut table = Table::of("scheduler");
    if with_devices {
        table = table.text(if first.header.gpus.is_empty() { "handling" } else { "arbitration, handling" });
    }
    table = table
        .group("jobs", &["released", "completed", "missed"])
        .group(&format!("response time, {}", unit.name), &["mean", "p99", "max"])
        .group("tardiness", &[&format!("max, {}", unit.name)])
        .group("laxity", &[&format!("least, {}", unit.name)])
        .group("switches", &["preemptions", "migrations"]);
    if with_devices {
        let lengths = format!("inversions, {}", unit_of_inversions.name);
        table = table.group(&lengths, &["count", "p90", "max", "cumulative"]);
    }
    table = table.group("CPU time, %", &["jobs", "overheads"]).text("overhead profile");
    for report in reports {
        let mut cells = vec![report.header.scheduler.to_string().into()];
        if with_devices {
            cells.push(report.management().into());
        }
        cells.extend(tasks::jobs(&report.summary.total, unit));
        if with_devices {
            cells.extend(devices::inversion_cells(inversions([report]).next(), unit_of_inversions));
        }
        cells.extend(cpu_time(report));
        cells.push(Cell::faint(report.overheads.as_deref().unwrap_or("none")));
        table.row(cells);
    }
    let header = &first.header;
    let name = |report: &Report| match with_devices {
        true => format!("{}, {}", report.header.scheduler, report.management()),
        false => report.header.scheduler.to_string(),
    };
    let chains = chains::comparison(reports, name).map_or(String::new(), |table| format!("\n{}", table.render(width)));
    format!(
        "{}{}{}\n{}, {}, seed {}, {} simulated\n\n{}{chains}",
        style::STRONG,
        header.workload,
        style::RESET,
        counted(first.tasks().count() as u64, "task"),
        counted(header.cpus as u64, "CPU"),
        header.seed,
        first.summary.duration,
        table.render(width)
    )
}

/// The inversions of those that have any.
fn inversions<'a>(reports: impl IntoIterator<Item = &'a Report>) -> impl Iterator<Item = &'a DistributionSummary> {
    reports.into_iter().filter_map(|report| report.summary.inversions.as_ref()?.all.as_ref())
}

/// Time for jobs, and for what keeps CPUs from them.
fn cpu_time(report: &Report) -> [Cell; 2] {
    let machine = &report.summary.machine;
    let available = u128::from(report.summary.duration.0) * report.summary.cpus.len() as u128;
    let overheads = u128::from(machine.overheads.cpu_time().0) + u128::from(machine.lock_wait.0);
    [percent(u128::from(machine.of_jobs().0), available).into(), percent(overheads, available).into()]
}
