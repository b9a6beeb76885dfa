//! What had CPUs besides the tasks while a run was measured.

use laxity_trace::metrics::OutsideUse;

use super::Report;
use crate::quantity::TimeUnit;
use crate::table::{Cell, Table};

/// A row for each CPU that other threads or interrupts had, if any.
pub fn table(report: &Report) -> Option<Table> {
    let outside = &report.summary.outside;
    let unit = TimeUnit::for_longest(outside.iter().map(|cpu| cpu.threads.total.max(cpu.interrupts.total)).max()?);
    let columns = ["times", &format!("in all, {}", unit.name), &format!("longest, {}", unit.name)];
    let mut table = Table::of("beside the tasks").group("other threads", &columns).group("interrupts", &columns);
    let cells = |used: OutsideUse| -> [Cell; 3] {
        [used.count.to_string().into(), unit.show(used.total).into(), unit.show(used.longest).into()]
    };
    for cpu in outside {
        let row = [format!("cpu{}", cpu.cpu.0).into()];
        table.row(row.into_iter().chain(cells(cpu.threads)).chain(cells(cpu.interrupts)).collect());
    }
    Some(table)
}
