//! The tables of a check.

use laxity_analysis::check::{Bound, BoundSource, Finding, Report, Status, TaskReport, Term};
use laxity_model::Nanos;

use crate::quantity::{TimeUnit, cpus_needed, percent};
use crate::table::{Cell, Table, cut};

/// Task names longer than this are cut.
const NAME_WIDTH_MAX: usize = 24;

/// A row for each task: parameters, inflation, bounds, and what is left.
pub fn tasks(report: &Report) -> Table {
    let unit = unit(report);
    let several = report.clusters.len() > 1;
    let mut table = Table::of("task");
    if several {
        table = table.group("cluster", &[""]);
    }
    table = table
        .group("period", &[unit.name])
        .group("deadline", &[unit.name])
        .group(&format!("wcet, {}", unit.name), &["own", "inflated"])
        .group("util., %", &["own", "inflated"])
        .group("response", &[&format!("max, {}", unit.name)])
        .group("tardiness", &[&format!("max, {}", unit.name)])
        .group("laxity", &[&format!("least, {}", unit.name)])
        .text("bound by");
    for task in &report.tasks {
        let mut cells: Vec<Cell> = vec![cut(&task.name, NAME_WIDTH_MAX).into()];
        if several {
            cells.push(task.cluster.to_string().into());
        }
        cells.extend(parameters(task, unit));
        cells.extend(bounds(task, unit));
        table.row(cells);
    }
    table
}

fn parameters(task: &TaskReport, unit: TimeUnit) -> [Cell; 6] {
    let share = |wcet: Nanos| percent(u128::from(wcet.0), u128::from(task.period.0));
    let missing = || Cell::faint("-");
    [
        unit.show(task.period).into(),
        unit.show(task.deadline).into(),
        unit.show(task.wcet).into(),
        task.inflated_wcet.map_or_else(missing, |wcet| unit.show(wcet).into()),
        share(task.wcet).into(),
        task.inflated_wcet.map_or_else(missing, |wcet| share(wcet).into()),
    ]
}

fn bounds(task: &TaskReport, unit: TimeUnit) -> [Cell; 4] {
    let (Some(bound), Some(tardiness), Some(laxity)) = (task.response_time, task.tardiness, task.laxity) else {
        return ["-"; 4].map(Cell::faint);
    };
    let is_tardy = !tardiness.is_zero();
    [
        unit.show(bound.time).into(),
        if is_tardy { Cell::bad(unit.show(tardiness)) } else { Cell::faint(unit.show(tardiness)) },
        if laxity.0 < 0 { Cell::bad(unit.show_signed(laxity)) } else { unit.show_signed(laxity).into() },
        Cell::faint(source(bound)),
    ]
}

fn source(bound: Bound) -> &'static str {
    match bound.by {
        BoundSource::Test(test) => test.name(),
        BoundSource::Deadline => "deadline met",
        BoundSource::Tardiness => "tardiness",
    }
}

/// A row for each cluster.
pub fn clusters(report: &Report) -> Table {
    let mut table = Table::of("cluster")
        .text("CPUs")
        .group("tasks", &[""])
        .group("utilization", &["own", "inflated"])
        .text("hard")
        .text("by")
        .text("soft");
    for (index, cluster) in report.clusters.iter().enumerate() {
        let cpus: Vec<String> = cluster.cpus.iter().map(|cpu| cpu.0.to_string()).collect();
        table.row(vec![
            index.to_string().into(),
            cut(&cpus.join(","), NAME_WIDTH_MAX).into(),
            cluster.tasks.len().to_string().into(),
            cpus_needed(cluster.load.before_f64()).into(),
            utilization(cluster.load.after_f64()),
            status(cluster.hard.status),
            Cell::faint(tests(&cluster.hard)),
            status(cluster.soft.status),
        ]);
    }
    table
}

/// A column for each term that any task has.
pub fn terms(report: &Report) -> Table {
    let has = |term: &Term| report.tasks.iter().any(|task| task.terms.is_some_and(|terms| !terms.get(*term).is_zero()));
    let used: Vec<Term> = Term::ALL.into_iter().filter(has).collect();
    let titles: Vec<String> = used.iter().map(|term| term.name().replace('_', " ")).collect();
    let mut table = Table::of("inflated wcet, us");
    for title in &titles {
        table = table.group(title, &[""]);
    }
    table = table.group("sum", &[""]);
    for task in &report.tasks {
        let mut cells: Vec<Cell> = vec![cut(&task.name, NAME_WIDTH_MAX).into()];
        for term in &used {
            cells.push(match task.terms.map(|terms| terms.get(*term)) {
                Some(time) if !time.is_zero() => TimeUnit::MICROS.show(time).into(),
                _ => Cell::faint("-"),
            });
        }
        cells.push(task.inflated_wcet.map_or_else(|| Cell::faint("-"), |wcet| TimeUnit::MICROS.show(wcet).into()));
        table.row(cells);
    }
    table
}

/// A row for each node of a graph.
pub fn nodes(report: &Report) -> Table {
    let bounds = report.graphs.iter().flat_map(|graph| graph.nodes.iter().flatten());
    let longest = bounds.clone().filter_map(|node| node.complete_after_source).max().unwrap_or(Nanos::ZERO);
    let unit = TimeUnit::for_longest(longest);
    let heading = format!("after the sources, {}", unit.name);
    let mut table = Table::of("node").group(&heading, &["released by", "complete by"]).text("");
    let show = |time: Option<Nanos>| time.map_or_else(|| Cell::faint("-"), |time| unit.show(time).into());
    for node in bounds {
        table.row(vec![
            cut(&report.tasks[node.task].name, NAME_WIDTH_MAX).into(),
            show(node.released_after_source),
            show(node.complete_after_source),
            Cell::faint(if node.is_sink { "sink" } else { "" }),
        ]);
    }
    table
}

/// Which of arbitration and handling of GPUs differ between configurations.
pub fn ways(reports: &[Report]) -> (bool, bool) {
    let differ = |other: &dyn Fn(&Report, &Report) -> bool| reports.windows(2).any(|pair| other(&pair[0], &pair[1]));
    (differ(&|a, b| a.arbitration != b.arbitration), differ(&|a, b| a.handling != b.handling))
}

/// The scheduler, and what differs of the ways to manage GPUs.
pub fn configuration(report: &Report, (by_arbitration, by_handling): (bool, bool)) -> String {
    let arbitration = report.arbitration.filter(|_| by_arbitration).map(|arbitration| arbitration.name());
    let handling = report.handling.filter(|_| by_handling).map(|handling| handling.name());
    let ways = arbitration.into_iter().chain(handling);
    ways.fold(report.scheduler.to_string(), |name, way| format!("{name} {way}"))
}

/// A row for each configuration.
pub fn comparison(reports: &[Report]) -> Table {
    let longest = reports.iter().flat_map(|report| &report.tasks).map(|task| task.period).max();
    let unit = TimeUnit::for_longest(longest.unwrap_or(Nanos::ZERO));
    let mut table = Table::of("scheduler")
        .text("hard")
        .text("by")
        .text("soft")
        .group("utilization", &["own", "inflated"])
        .group("tardiness", &[&format!("max, {}", unit.name)])
        .group("laxity", &[&format!("least, {}", unit.name)])
        .group("growth", &["factor"])
        .text("overhead profile");
    let ways = ways(reports);
    for report in reports {
        let tardiness = report.tasks.iter().map(|task| task.tardiness).max().flatten().filter(|_| is_bounded(report));
        let laxity = report.tasks.iter().map(|task| task.laxity).min().flatten().filter(|_| is_bounded(report));
        table.row(vec![
            configuration(report, ways).into(),
            status(report.hard.status),
            Cell::faint(tests(&report.hard)),
            status(report.soft.status),
            cpus_needed(report.load.before_f64()).into(),
            utilization(report.load.after_f64()),
            match tardiness {
                Some(tardiness) if tardiness.is_zero() => Cell::faint(unit.show(tardiness)),
                Some(tardiness) => Cell::bad(unit.show(tardiness)),
                None => Cell::faint("-"),
            },
            match laxity {
                Some(laxity) if laxity.0 < 0 => Cell::bad(unit.show_signed(laxity)),
                Some(laxity) => unit.show_signed(laxity).into(),
                None => Cell::faint("-"),
            },
            report.scaling.map_or_else(|| Cell::faint("-"), |scaling| super::text::factor(scaling).into()),
            Cell::faint(&report.overheads.profile),
        ]);
    }
    table
}

/// Whether every task has bounds.
fn is_bounded(report: &Report) -> bool {
    report.tasks.iter().all(|task| task.tardiness.is_some())
}

fn utilization(after: Option<f64>) -> Cell {
    after.map_or_else(|| Cell::faint("-"), |after| cpus_needed(after).into())
}

/// A status in its colour.
fn status(status: Status) -> Cell {
    match status {
        Status::Schedulable => Cell::good(word(status)),
        _ => Cell::bad(word(status)),
    }
}

/// A status in words.
pub fn word(status: Status) -> &'static str {
    match status {
        Status::Schedulable => "schedulable",
        Status::NotProven => "not proven",
        Status::Infeasible => "infeasible",
        Status::Refused => "refused",
    }
}

/// The deciding tests; of a failure, no single one decides.
pub fn tests(finding: &Finding) -> String {
    if !finding.is_schedulable() {
        return "-".to_owned();
    }
    let names: Vec<&str> = finding.tests.iter().map(|test| test.name()).collect();
    names.join(", ")
}

/// The unit that suits the longest time of the tasks' table.
fn unit(report: &Report) -> TimeUnit {
    let times = report.tasks.iter().flat_map(|task| {
        let response = task.response_time.map_or(Nanos::ZERO, |bound| bound.time);
        [task.period, task.deadline, response]
    });
    TimeUnit::for_longest(times.max().unwrap_or(Nanos::ZERO))
}
