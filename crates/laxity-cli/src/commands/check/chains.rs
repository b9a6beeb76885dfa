//! Bounds on chains.

use laxity_analysis::check::{ChainReport, Report};
use laxity_model::{Nanos, SignedNanos};

use crate::quantity::TimeUnit;
use crate::style;
use crate::table::{Cell, Table, cut};

/// Names longer than this are cut.
const NAME_WIDTH_MAX: usize = 24;

/// A row for each chain.
pub fn table(report: &Report) -> Table {
    let unit = unit(&report.chains);
    let mut table = headings(Table::of("chain"), unit);
    for chain in &report.chains {
        let mut cells = vec![cut(&chain.name, NAME_WIDTH_MAX).into()];
        cells.extend(row(chain, unit));
        table.row(cells);
    }
    table
}

/// A row for each chain in each configuration, if there are any.
pub fn comparison(reports: &[Report], name: impl Fn(&Report) -> String) -> Option<Table> {
    let chains: Vec<&ChainReport> = reports.iter().flat_map(|report| &report.chains).collect();
    let most = reports.iter().map(|report| report.chains.len()).max().filter(|&chains| chains > 0)?;
    let unit = unit(chains);
    let mut table = headings(Table::of("chain").text("scheduler"), unit);
    for index in 0..most {
        for report in reports {
            let Some(chain) = report.chains.get(index) else { continue };
            let mut cells: Vec<Cell> = vec![cut(&chain.name, NAME_WIDTH_MAX).into(), name(report).into()];
            cells.extend(row(chain, unit));
            table.row(cells);
        }
    }
    Some(table)
}

/// Why chains have no bounds, where they have none.
pub fn reasons(report: &Report) -> String {
    let reasons = report.chains.iter().filter_map(|chain| Some((&chain.name, chain.bounds.as_ref().err()?)));
    let line = |(name, reason)| {
        format!("{}chain{} {name}: {}no bound{}: {reason}\n", style::STRONG, style::RESET, style::BAD, style::RESET)
    };
    reasons.map(line).collect()
}

fn headings(table: Table, unit: TimeUnit) -> Table {
    let columns = ["max", "deadline", "laxity"];
    table.group(&format!("data age, {}", unit.name), &columns).group(&format!("reaction time, {}", unit.name), &columns)
}

fn row(chain: &ChainReport, unit: TimeUnit) -> Vec<Cell> {
    let bounds = chain.bounds.as_ref().ok();
    let times = [
        (bounds.map(|bounds| bounds.data_age), chain.data_age_max),
        (bounds.map(|bounds| bounds.reaction_time), chain.reaction_time_max),
    ];
    let none = || Cell::faint("-");
    let mut cells = Vec::new();
    for (bound, limit) in times {
        cells.push(bound.map_or_else(none, |bound| unit.show(bound).into()));
        cells.push(limit.map_or_else(none, |limit| unit.show(limit).into()));
        cells.push(bound.zip(limit).map_or_else(none, |(bound, limit)| {
            let laxity = i128::from(limit.0) - i128::from(bound.0);
            let laxity = SignedNanos(i64::try_from(laxity).unwrap_or(i64::MIN));
            let shown = unit.show_signed(laxity);
            if laxity.0 < 0 { Cell::bad(shown) } else { shown.into() }
        }));
    }
    cells
}

fn unit<'a>(chains: impl IntoIterator<Item = &'a ChainReport>) -> TimeUnit {
    let of = |chain: &'a ChainReport| {
        let bounds = chain.bounds.as_ref().ok();
        [bounds.map(|bounds| bounds.data_age), bounds.map(|bounds| bounds.reaction_time), chain.data_age_max]
    };
    let longest = chains.into_iter().flat_map(of).flatten().max();
    TimeUnit::for_longest(longest.unwrap_or(Nanos::ZERO))
}
