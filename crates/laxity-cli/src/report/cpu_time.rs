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
    table.row(vec!["jobs".into(), unit.show(machine.busy).into(), share(machine.busy).into()]);
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
    let mut table = Table::of("cpu").group("jobs", &["%"]).group("overheads, %", &names).group("lock wait", &["%"]);
    if spins {
        table = table.group("spinning", &["%"]);
    }
    let rest = if report.header.origin == Origin::Live { "no job" } else { "idle" };
    table = table.group(rest, &["%"]);
    let available = u128::from(report.summary.duration.0);
    for cpu in &report.summary.cpus {
        table.row(cpu_row(cpu.cpu.to_string(), &cpu.usage, &kinds, spins, available));
    }
    let all = available * report.summary.cpus.len() as u128;
    table.total(cpu_row("all".to_owned(), machine, &kinds, spins, all));
    table
}

fn cpu_row(
    name: String,
    usage: &MachineSummary,
    kinds: &[(OverheadKind, &str)],
    spins: bool,
    available: u128,
) -> Vec<Cell> {
    let share = |time: Nanos| match time {
        Nanos::ZERO => Cell::faint(percent(0, available)),
        time => percent(u128::from(time.0), available).into(),
    };
    let mut cells = vec![name.into(), share(usage.busy)];
    cells.extend(kinds.iter().map(|(kind, _)| share(usage.overheads.of(*kind).time)));
    cells.push(share(usage.lock_wait));
    cells.extend(spins.then(|| share(usage.spin)));
    cells.push(share(usage.idle));
    cells
}

/// All CPUs' time together.
fn available(report: &Report) -> u128 {
    u128::from(report.summary.duration.0) * report.summary.cpus.len() as u128
}
