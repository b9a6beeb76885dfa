//! Best-effort tasks, and what memory traffic and its regulation did.

use laxity_model::Nanos;
use laxity_trace::metrics::MemorySummary;

use super::Report;
use crate::quantity::TimeUnit;
use crate::table::{Table, cut};

/// Names longer than this are cut.
const NAME_WIDTH_MAX: usize = 32;

/// A table of best-effort tasks, and one of the GPU operations that traffic could slow down, as far as there are any.
pub fn tables(report: &Report) -> Vec<Table> {
    let Some(memory) = &report.summary.memory else { return Vec::new() };
    let mut tables = Vec::new();
    if !memory.best_effort.is_empty() {
        tables.push(best_effort(memory));
    }
    if memory.operations.iter().any(|operations| operations.time > operations.solo) {
        tables.push(operations(report, memory));
    }
    tables
}

/// A row for each best-effort task.
fn best_effort(memory: &MemorySummary) -> Table {
    let times = || memory.best_effort.iter().flat_map(|task| [task.execution, task.throttled, task.lost_virtual_time]);
    let unit = TimeUnit::for_longest(times().max().unwrap_or_default());
    let mut table = Table::of("best-effort task").group(&format!("time, {}", unit.name), &["executed", "throttled"]);
    table = table.group("regulated periods", &["used", "throttled"]);
    for task in &memory.best_effort {
        table.row(vec![
            cut(&task.name, NAME_WIDTH_MAX).into(),
            unit.show(task.execution).into(),
            unit.show(task.throttled).into(),
            task.periods_used.to_string().into(),
            task.throttled_periods.to_string().into(),
        ]);
    }
    table
}

/// A row for each engine.
fn operations(report: &Report, memory: &MemorySummary) -> Table {
    let longest = memory.operations.iter().map(|operations| operations.time).max();
    let unit = TimeUnit::for_longest(longest.unwrap_or(Nanos::ZERO));
    let mut table = Table::of("beside memory traffic").group("operations", &[""]);
    table = table.group(&format!("time, {}", unit.name), &["taken", "without traffic"]).group("slowdown", &["max"]);
    for operations in &memory.operations {
        let gpu = report.header.gpus.get(operations.gpu.index()).map_or("", |gpu| gpu.name.as_str());
        table.row(vec![
            cut(&format!("{gpu} {}", operations.engine.name()), NAME_WIDTH_MAX).into(),
            operations.count.to_string().into(),
            unit.show(operations.time).into(),
            unit.show(operations.solo).into(),
            format!("{:.2}", operations.slowdown_max).into(),
        ]);
    }
    table
}
