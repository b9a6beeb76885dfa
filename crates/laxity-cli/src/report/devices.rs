//! What there is only with GPUs, other devices, locks and graphs.

use laxity_model::Nanos;
use laxity_trace::metrics::{DistributionSummary, InversionSummary, Summary, WaitCause, WaitSummary};

use super::{Report, chains};
use crate::quantity::{TimeUnit, counted, percent};
use crate::table::{Cell, Table, cut};

/// Names longer than this are cut.
const NAME_WIDTH_MAX: usize = 32;

/// The tables of what is there, in the order in which one asks: which inversions, which jobs waited for what, what threads and
/// engines did, how long graphs took from end to end.
pub fn tables(report: &Report) -> Vec<Table> {
    let summary = &report.summary;
    let mut tables = Vec::new();
    tables.extend(summary.inversions.as_ref().map(inversions));
    if summary.tasks.iter().any(|task| !task.waits.is_empty()) {
        tables.push(waits(summary));
    }
    if !summary.threads.is_empty() {
        tables.push(threads(summary));
    }
    if !summary.engines.is_empty() {
        tables.push(engines(report));
    }
    if !summary.graphs.is_empty() {
        tables.push(graphs(summary));
    }
    if !summary.chains.is_empty() {
        tables.push(chains::table(&summary.chains));
    }
    tables
}

/// `2 GPUs and 1 device: gpusync, klmirqd`.
pub fn describe(report: &Report) -> String {
    let header = &report.header;
    let gpus = header.gpus.len();
    // Every GPU is a device, too.
    let others = header.devices.len().saturating_sub(gpus);
    let mut what = Vec::new();
    if gpus > 0 {
        what.push(counted(gpus as u64, "GPU"));
    }
    if others > 0 {
        what.push(counted(others as u64, if gpus > 0 { "other device" } else { "device" }));
    }
    format!("{}: {}", what.join(" and "), report.management())
}

/// A row for each kind of priority inversion that bottom halves caused.
fn inversions(summary: &InversionSummary) -> Table {
    let unit = unit([summary.all.as_ref()]);
    let mut table = Table::of("priority inversions").group("count", &[""]);
    table = table.group(&format!("length, {}", unit.name), &["p90", "max", "cumulative"]);
    let kinds = [
        ("a bottom half waits", &summary.waiting_bottom_half),
        ("a stack is taken", &summary.blocked_stack),
        ("a bottom half overtakes", &summary.overtaken),
        ("a bottom half beside its owner", &summary.co_scheduled),
    ];
    for (name, lengths) in kinds {
        table.row(inversion_row(name, lengths.as_ref(), unit));
    }
    table.total(inversion_row("all", summary.all.as_ref(), unit));
    table
}

fn inversion_row(name: &str, lengths: Option<&DistributionSummary>, unit: TimeUnit) -> Vec<Cell> {
    let mut cells = vec![name.into()];
    cells.extend(inversion_cells(lengths, unit));
    cells
}

/// Count, 90th percentile, maximum and cumulative length.
pub fn inversion_cells(lengths: Option<&DistributionSummary>, unit: TimeUnit) -> [Cell; 4] {
    let Some(lengths) = lengths else { return ["0", "-", "-", "-"].map(Cell::faint) };
    let [p90, max, total] = [lengths.p90, lengths.max, lengths.total].map(|span| unit.show(span).into());
    [Cell::mishaps(lengths.count), p90, max, total]
}

/// A row for each cause for which jobs of a task waited.
fn waits(summary: &Summary) -> Table {
    let all = || summary.tasks.iter().flat_map(|task| task.waits.iter().map(move |wait| (task, wait)));
    let unit = TimeUnit::for_longest(all().map(|(_, wait)| wait.total).max().unwrap_or_default());
    let mut table = Table::of("task").text("waited for").group("count", &[""]);
    table = table.group(&format!("wait, {}", unit.name), &["mean", "max", "total"]);
    for (task, wait) in all() {
        let mean = Nanos(wait.total.0 / wait.count.max(1));
        table.row(vec![
            cut(&task.name, NAME_WIDTH_MAX).into(),
            waited_for(wait).into(),
            wait.count.to_string().into(),
            unit.show(mean).into(),
            unit.show(wait.max).into(),
            unit.show(wait.total).into(),
        ]);
    }
    table
}

/// A cause in words, and which resource.
fn waited_for(wait: &WaitSummary) -> String {
    match &wait.resource {
        Some(name) => format!("resource {}", cut(name, NAME_WIDTH_MAX)),
        None => cause(wait.cause).to_owned(),
    }
}

/// A cause in words.
const fn cause(cause: WaitCause) -> &'static str {
    match cause {
        WaitCause::Resource => "resource",
        WaitCause::Semaphore => "GPU of the semaphore",
        WaitCause::KFmlp => "GPU of the k-FMLP",
        WaitCause::Token => "GPU token",
        WaitCause::Engine => "engine lock",
        WaitCause::GpuOperation => "own GPU operation",
        WaitCause::Suspension => "suspension",
        WaitCause::Budget => "budget",
    }
}

/// A row for each thread that handles interrupts.
fn threads(summary: &Summary) -> Table {
    let longest = summary.threads.iter().filter_map(|thread| thread.jobs.response_time).map(|times| times.max).max();
    let unit = TimeUnit::for_longest(longest.unwrap_or_default());
    let mut table = Table::of("thread").group("bottom halves or calls", &["released", "completed"]);
    table = table.group(&format!("response time, {}", unit.name), &["mean", "p99", "max"]);
    for thread in &summary.threads {
        let jobs = &thread.jobs;
        let mut cells: Vec<Cell> = vec![cut(&thread.name, NAME_WIDTH_MAX).into()];
        cells.extend([jobs.released, jobs.completed].map(|count| count.to_string().into()));
        cells.extend(match jobs.response_time {
            Some(times) => [times.mean, times.p99, times.max].map(|time| unit.show(time).into()),
            None => ["-"; 3].map(Cell::faint),
        });
        table.row(cells);
    }
    table
}

/// A row for each engine.
fn engines(report: &Report) -> Table {
    let summary = &report.summary;
    let mut table = Table::of("engine").group("operations", &[""]).group("busy", &["%"]);
    for engine in &summary.engines {
        let gpu = report.header.gpus.get(engine.gpu.index()).map_or_else(String::new, |gpu| gpu.name.clone());
        let busy = percent(u128::from(engine.busy.0), u128::from(summary.duration.0));
        table.row(vec![
            format!("{} {}", cut(&gpu, NAME_WIDTH_MAX), engine.engine.name()).into(),
            engine.operations.to_string().into(),
            busy.into(),
        ]);
    }
    table
}

/// A row for each graph: from the arrival at its source to the completion of its sink.
fn graphs(summary: &Summary) -> Table {
    let unit = unit(summary.graphs.iter().map(|graph| graph.end_to_end.as_ref()));
    let mut table = Table::of("graph").group("runs", &[""]);
    table = table.group(&format!("end-to-end latency, {}", unit.name), &["mean", "p50", "p90", "p99", "max"]);
    for graph in &summary.graphs {
        let latency = graph.end_to_end.as_ref();
        let mut cells: Vec<Cell> = vec![cut(&graph.name, NAME_WIDTH_MAX).into()];
        cells.push(latency.map_or(0, |latency| latency.count).to_string().into());
        cells.extend(match latency {
            Some(it) => [it.mean, it.p50, it.p90, it.p99, it.max].map(|span| unit.show(span).into()),
            None => ["-"; 5].map(Cell::faint),
        });
        table.row(cells);
    }
    table
}

/// The unit for the longest of what is there.
fn unit<'a>(all: impl IntoIterator<Item = Option<&'a DistributionSummary>>) -> TimeUnit {
    TimeUnit::for_longest(all.into_iter().flatten().map(|lengths| lengths.max).max().unwrap_or_default())
}
