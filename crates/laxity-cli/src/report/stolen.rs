//! CPUs that were stolen from all threads while a run was measured.

use super::Report;
use crate::quantity::TimeUnit;
use crate::table::Table;

/// A row for each CPU that was, if any.
pub fn table(report: &Report) -> Option<Table> {
    let stolen = &report.summary.stolen;
    let unit = TimeUnit::for_longest(stolen.iter().map(|cpu| cpu.total).max()?);
    let time = format!("by hypervisor, firmware or interrupts, {}", unit.name);
    let mut table = Table::of("stolen CPU").group("times", &[""]).group(&time, &["in all", "longest"]);
    for cpu in stolen {
        table.row(vec![
            format!("cpu{}", cpu.cpu.0).into(),
            cpu.count.to_string().into(),
            unit.show(cpu.total).into(),
            unit.show(cpu.longest).into(),
        ]);
    }
    Some(table)
}
