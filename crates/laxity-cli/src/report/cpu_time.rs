//! Where the CPU time went.

use laxity_model::{Nanos, OverheadKind};
use laxity_trace::Origin;
use laxity_trace::metrics::MachineSummary;

use super::Report;
use crate::quantity::{TimeUnit, percent, short};
use crate::table::{Cell, Table};

/// The overheads during which a CPU runs no job, with their names in tables.
const ON_CPU: [(OverheadKind, &str); 10] = [
    (OverheadKind::Release, "release"),
    (OverheadKind::Scheduling, "scheduling"),
    (OverheadKind::ContextSwitch, "context switch"),
    (OverheadKind::Tick, "tick"),
    (OverheadKind::TimerRearming, "timer re-arming"),
    (OverheadKind::TopHalf, "top halves"),
    (OverheadKind::BottomHalf, "bottom halves"),
    (OverheadKind::ThreadRelease, "thread release"),
    (OverheadKind::PaiEnqueue, "PAI enqueue"),
    (OverheadKind::PaiCheck, "PAI check"),
];

/// So many of them have a column of the table of CPUs even where there was none.
const ALWAYS_SHOWN: usize = 5;

/// A row for each use of CPU time, over all CPUs.
pub fn sources(report: &Report) -> Table {
    let machine = &report.summary.machine;
    let available = available(report);
    let unit = TimeUnit::for_longest(Nanos(u64::try_from(available).unwrap_or(u64::MAX)));
    let share = |time: Nanos| percent(u128::from(time.0), available);
    let mut table = Table::of("CPU time")
        .group("total", &[unit.name])
        .group("share", &["%"])
        .group("count", &[""])
        .group("mean", &[""]);
    table.row(vec!["jobs".into(), unit.show(machine.of_jobs()).into(), share(machine.of_jobs()).into()]);
    if has_best_effort(report) {
        let time = machine.best_effort;
        table.row(vec!["best effort".into(), unit.show(time).into(), share(time).into()]);
    }
    for (kind, name) in ON_CPU {
        let usage = machine.overheads.of(kind);
        if usage.count > 0 && !usage.time.is_zero() {
            let mean = Nanos(usage.time.0 / usage.count);
            table.row(vec![
                name.into(),
                unit.show(usage.time).into(),
                share(usage.time).into(),
                usage.count.to_string().into(),
                short(mean).into(),
            ]);
        }
    }
    for (name, time) in [("lock wait", machine.lock_wait), ("spinning jobs", machine.spin)] {
        if !time.is_zero() {
            table.row(vec![name.into(), unit.show(time).into(), share(time).into()]);
        }
    }
    // What else Linux ran is not recorded.
    let rest = if report.header.origin == Origin::Live { "no job" } else { "idle" };
    table.row(vec![Cell::faint(rest), Cell::faint(unit.show(machine.idle)), Cell::faint(share(machine.idle))]);
    for (kind, name) in [
        (OverheadKind::CachePreemption, "cache, preempted"),
        (OverheadKind::CacheMigration, "cache, migrated"),
        (OverheadKind::IpiLatency, "IPI latency"),
    ] {
        let usage = machine.overheads.of(kind);
        if usage.count > 0 && !usage.time.is_zero() {
            // Not a use of its own: within the jobs' time, or no CPU's time at all.
            let mean = short(Nanos(usage.time.0 / usage.count));
            table.total(vec![
                name.into(),
                unit.show(usage.time).into(),
                Cell::default(),
                usage.count.to_string().into(),
                mean.into(),
            ]);
        }
    }
    table
}

/// A row for each CPU: its time in percent.
pub fn cpus(report: &Report) -> Table {
    let machine = &report.summary.machine;
    let kinds: Vec<(OverheadKind, &str)> = ON_CPU
        .into_iter()
        .enumerate()
        .filter(|&(index, (kind, _))| index < ALWAYS_SHOWN || !machine.overheads.of(kind).time.is_zero())
        .map(|(_, kind)| kind)
        .collect();
    let names: Vec<&str> = kinds.iter().map(|(_, name)| *name).collect();
    let spins = !machine.spin.is_zero();
    let mut table = Table::of("cpu").group("jobs", &["%"]);
    let shares = has_best_effort(report);
    if shares {
        table = table.group("best effort", &["%"]);
    }
    table = table.group("overheads, %", &names).group("lock wait", &["%"]);
    if spins {
        table = table.group("spinning", &["%"]);
    }
    let rest = if report.header.origin == Origin::Live { "no job" } else { "idle" };
    table = table.group(rest, &["%"]);
    let available = u128::from(report.summary.duration.0);
    let columns = Columns { kinds: &kinds, shares, spins };
    for cpu in &report.summary.cpus {
        table.row(cpu_row(cpu.cpu.to_string(), &cpu.usage, columns, available));
    }
    let all = available * report.summary.cpus.len() as u128;
    table.total(cpu_row("all".to_owned(), machine, columns, all));
    table
}

/// Which columns there are besides those that always are.
#[derive(Clone, Copy)]
struct Columns<'a> {
    kinds: &'a [(OverheadKind, &'a str)],
    shares: bool,
    spins: bool,
}

fn cpu_row(name: String, usage: &MachineSummary, columns: Columns<'_>, available: u128) -> Vec<Cell> {
    let Columns { kinds, shares, spins } = columns;
    let share = |time: Nanos| match time {
        Nanos::ZERO => Cell::faint(percent(0, available)),
        time => percent(u128::from(time.0), available).into(),
    };
    let mut cells = vec![name.into(), share(usage.of_jobs())];
    cells.extend(shares.then(|| share(usage.best_effort)));
    cells.extend(kinds.iter().map(|(kind, _)| share(usage.overheads.of(*kind).time)));
    cells.push(share(usage.lock_wait));
    cells.extend(spins.then(|| share(usage.spin)));
    cells.push(share(usage.idle));
    cells
}

/// Whether there are best-effort tasks, whose time is not that of jobs.
fn has_best_effort(report: &Report) -> bool {
    report.summary.memory.as_ref().is_some_and(|memory| !memory.best_effort.is_empty())
}

/// All CPUs' time together.
fn available(report: &Report) -> u128 {
    u128::from(report.summary.duration.0) * report.summary.cpus.len() as u128
}
