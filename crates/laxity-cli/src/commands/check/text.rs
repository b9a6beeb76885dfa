//! A check for people.

use laxity_analysis::check::{Criterion, Failure, Finding, Report, Scaling, Term};
use laxity_model::{Nanos, OverheadCosts, Workload};

use super::chains;
use super::tables::{self, tests, word};
use crate::quantity::{counted, short};
use crate::report::describe;
use crate::style;

/// One configuration: what was checked, tables, and the sentences people look for.
pub fn single(
    workload: &Workload,
    report: &Report,
    criterion: Criterion,
    explain: bool,
    width: Option<usize>,
) -> String {
    let mut out = heading(workload, report);
    if !report.refusals.is_empty() {
        out.push('\n');
        out.push_str(&refusals(report));
        return out;
    }
    if !report.tasks.is_empty() {
        out.push('\n');
        out.push_str(&tables::tasks(report).render(width));
    }
    if report.clusters.len() > 1 {
        out.push('\n');
        out.push_str(&tables::clusters(report).render(width));
    }
    if report.graphs.iter().any(|graph| graph.nodes.is_ok()) {
        out.push('\n');
        out.push_str(&tables::nodes(report).render(width));
    }
    if !report.chains.is_empty() {
        out.push('\n');
        out.push_str(&chains::table(report).render(width));
    }
    if explain && !report.tasks.is_empty() {
        out.push('\n');
        out.push_str(&tables::terms(report).render(width));
    }
    out.push('\n');
    out.push_str(&verdict("hard", &report.hard, hard_bound(report), explain, report));
    out.push_str(&verdict("soft", &report.soft, soft_bound(report), explain, report));
    out.push_str(&graphs(report));
    out.push_str(&chains::reasons(report));
    out.push_str(&growth(report, criterion));
    out
}

/// Several configurations side by side, and why the criterion is not proven where it is not.
pub fn comparison(workload: &Workload, reports: &[Report], criterion: Criterion, width: Option<usize>) -> String {
    let mut out = format!("{}{}{}\n", style::STRONG, workload.name, style::RESET);
    if let Some(first) = reports.first() {
        out.push_str(&format!("{}, {}\n\n", tasks_and_graphs(workload), cpus(workload)));
        out.push_str(&tables::comparison(reports).render(width));
        let name = |report: &Report| tables::configuration(report, tables::ways(reports));
        if let Some(table) = chains::comparison(reports, name) {
            out.push_str(&format!("\n{}", table.render(width)));
        }
        if let Some(scaling) = first.scaling {
            let what =
                if scaling.criterion == Criterion::Hard { "no deadline is missed" } else { "tardiness is bounded" };
            let faint = (style::FAINT, style::RESET);
            out.push_str(&format!(
                "{}growth: {what} while all execution times are so many times as long{}\n",
                faint.0, faint.1
            ));
        }
    }
    let mut reasons = String::new();
    for report in reports.iter().filter(|report| !report.finding(criterion).is_schedulable()) {
        let why = report.refusals.first().map(|refusal| format!("{}: {}", refusal.subject, refusal.reason));
        let why = why.or_else(|| report.finding(criterion).failures.first().map(|failure| failed(failure, report)));
        let why = why.unwrap_or_default();
        let (bad, reset) = (style::BAD, style::RESET);
        let status = word(report.finding(criterion).status);
        let name = tables::configuration(report, tables::ways(reports));
        reasons.push_str(&format!("{name}: {bad}{status}{reset}: {why}\n"));
    }
    if !reasons.is_empty() {
        out.push('\n');
        out.push_str(&reasons);
    }
    out
}

/// What was analysed, where, and with which overheads.
fn heading(workload: &Workload, report: &Report) -> String {
    let mut out = format!("{}{}{}\n", style::STRONG, workload.name, style::RESET);
    let mut line = |label: &str, value: String| {
        out.push_str(&format!("{}{label:<11}{}{value}\n", style::FAINT, style::RESET));
    };
    let after = match report.load.after_f64() {
        Some(after) if report.load.after.as_ref() != Some(&report.load.before) => {
            format!(", inflated {:.3}", after)
        }
        _ => String::new(),
    };
    let own = report.load.before_f64() + 0.0;
    line("tasks", format!("{}, utilization {own:.3}{after}", tasks_and_graphs(workload)));
    line("platform", cpus(workload));
    line("scheduler", format!("{} ({})", report.scheduler, describe(&report.scheduler)));
    if let (Some(arbitration), Some(handling)) = (report.arbitration, report.handling) {
        line("GPUs", format!("arbitration {}, interrupts {}", arbitration.name(), handling.name()));
    }
    let none = report.overheads.costs == OverheadCosts::default();
    let accounting = report.accounting.name();
    line(
        "overheads",
        match none {
            true => "none".to_owned(),
            false => format!(
                "{}, at {}, {accounting} accounting",
                report.overheads.profile,
                tasks_and_nodes(report, workload)
            ),
        },
    );
    out
}

fn tasks_and_nodes(report: &Report, workload: &Workload) -> String {
    let nodes: usize = workload.graphs.iter().map(|graph| graph.nodes.len()).sum();
    counted(report.tasks.len().max(workload.tasks.len() + nodes) as u64, "task")
}

fn tasks_and_graphs(workload: &Workload) -> String {
    let mut parts = Vec::new();
    let mut add = |count: usize, noun: &str| {
        if count > 0 {
            parts.push(counted(count as u64, noun));
        }
    };
    add(workload.tasks.len(), "task");
    add(workload.graphs.len(), "graph");
    if parts.is_empty() { "no tasks".to_owned() } else { parts.join(", ") }
}

fn cpus(workload: &Workload) -> String {
    let clusters = match workload.platform.clusters.len() {
        1 => String::new(),
        count => format!(" in {count} clusters"),
    };
    format!("{}{clusters}, quantum {}", counted(workload.platform.cpus as u64, "CPU"), workload.platform.quantum)
}

fn refusals(report: &Report) -> String {
    let mut out = format!("{}refused{}: the analysis cannot treat\n", style::BAD, style::RESET);
    for refusal in &report.refusals {
        out.push_str(&format!("  {}: {}\n", refusal.subject, refusal.reason));
    }
    out
}

/// `hard: schedulable (gfb); least laxity 2 ms (camera)`, or why not.
fn verdict(label: &str, finding: &Finding, bound: String, explain: bool, report: &Report) -> String {
    let (label, word) = (format!("{}{label}{}", style::STRONG, style::RESET), word(finding.status));
    if finding.is_schedulable() {
        let tests = if finding.tests.is_empty() { String::new() } else { format!(" ({})", tests(finding)) };
        return format!("{label}: {}{word}{}{tests}{bound}\n", style::GOOD, style::RESET);
    }
    let mut out = format!("{label}: {}{word}{}\n", style::BAD, style::RESET);
    let mut known: Vec<usize> = Vec::new();
    for failure in &finding.failures {
        // One reason a cluster is enough, unless all are asked for.
        if explain || !known.contains(&failure.cluster) {
            known.push(failure.cluster);
            out.push_str(&format!("  {}\n", failed(failure, report)));
        }
    }
    let more = finding.failures.len() - if explain { finding.failures.len() } else { known.len() };
    if more > 0 {
        let tests = counted(more as u64, "more reason");
        out.push_str(&format!("  {}{tests}: --explain{}\n", style::FAINT, style::RESET));
    }
    out
}

fn failed(failure: &Failure, report: &Report) -> String {
    let cluster = if report.clusters.len() > 1 { format!("cluster {}: ", failure.cluster) } else { String::new() };
    let test = failure.test.map_or(String::new(), |test| format!("{test}: "));
    format!("{cluster}{test}{}", failure.message)
}

/// `; least laxity 2 ms (camera)`.
fn hard_bound(report: &Report) -> String {
    let tightest = report.tasks.iter().filter_map(|task| Some((task.laxity?, task))).min_by_key(|(laxity, _)| *laxity);
    match tightest {
        Some((laxity, task)) if report.hard.is_schedulable() => {
            format!("; least laxity {} ({})", short(Nanos(laxity.0.unsigned_abs())), task.name)
        }
        _ => String::new(),
    }
}

/// `; tardy by at most 2 ms (camera)`.
fn soft_bound(report: &Report) -> String {
    let latest = report.tasks.iter().filter_map(|task| Some((task.tardiness?, task))).max_by_key(|(late, _)| *late);
    match latest {
        Some((late, task)) if !late.is_zero() => format!("; tardy by at most {} ({})", short(late), task.name),
        _ => "; never tardy".to_owned(),
    }
}

fn graphs(report: &Report) -> String {
    let mut out = String::new();
    for graph in &report.graphs {
        let label = format!("{}graph{} {}", style::STRONG, style::RESET, graph.name);
        out.push_str(&match (&graph.nodes, graph.end_to_end) {
            (Err(reason), _) => format!("{label}: {}no end-to-end bound{}: {reason}\n", style::BAD, style::RESET),
            (Ok(_), Some(time)) => format!("{label}: complete at most {} after its sources' release\n", short(time)),
            (Ok(_), None) => format!("{label}: no node is a sink, so it has no end-to-end bound\n"),
        });
        match &graph.replicas {
            None => {}
            Some(Ok(count)) => out.push_str(&format!("{label}: no job waits for data with {count} replicas\n")),
            Some(Err(reason)) => {
                out.push_str(&format!("{label}: no number of replicas is known to suffice: {reason}\n"))
            }
        }
    }
    out
}

/// `growth: all execution times may be 1.234 times as long`.
fn growth(report: &Report, criterion: Criterion) -> String {
    let Some(scaling) = report.scaling else { return String::new() };
    let label = format!("{}growth{}", style::STRONG, style::RESET);
    let goal = match criterion {
        Criterion::Hard => "hard schedulability is proven",
        Criterion::Soft => "bounded tardiness is proven",
    };
    match scaling.permille {
        None => format!("{label}: {goal} for no execution times, however short{}\n", what_does_not_shrink(report)),
        Some(_) => format!("{label}: {goal} up to {} times all execution times\n", factor(scaling)),
    }
}

/// `: overheads and release jitter do not shrink with them`: what is there of that, if anything.
fn what_does_not_shrink(report: &Report) -> String {
    let has = |term: Term| report.tasks.iter().any(|task| task.terms.is_some_and(|terms| !terms.get(term).is_zero()));
    let is_accounted = report.tasks.iter().all(|task| task.terms.is_some());
    let all = [
        (report.overheads.costs != OverheadCosts::default(), "overheads"),
        (has(Term::Jitter), "release jitter"),
        (has(Term::Suspension), "self-suspensions"),
        (has(Term::Gpu), "GPU operations"),
    ];
    let names: Vec<&str> = all.into_iter().filter(|(is_there, _)| *is_there).map(|(_, name)| name).collect();
    match &names[..] {
        [] => String::new(),
        ["overheads"] if is_accounted => ": overheads alone are too much".to_owned(),
        [one] => format!(": {one} may be too much alone"),
        [first @ .., last] => format!(": {} and {last} do not shrink with them", first.join(", ")),
    }
}

/// `1.234`, `>= 100`, `-`.
pub fn factor(scaling: Scaling) -> String {
    match scaling.permille {
        None => "-".to_owned(),
        Some(permille) => {
            let bound = if scaling.is_capped { ">=" } else { "" };
            format!("{bound}{}.{:03}", permille / 1_000, permille % 1_000)
        }
    }
}
