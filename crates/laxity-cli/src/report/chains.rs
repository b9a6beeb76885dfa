//! Data age and reaction time of chains.

use laxity_model::Nanos;
use laxity_trace::metrics::{ChainSummary, DistributionSummary, Summary};

use super::Report;
use crate::quantity::TimeUnit;
use crate::table::{Cell, Table, cut};

/// Names longer than this are cut.
const NAME_WIDTH_MAX: usize = 32;

/// A row for each chain.
pub fn table(chains: &[ChainSummary]) -> Table {
    let unit = unit(chains);
    let mut table = headings(Table::of("chain"), unit);
    for chain in chains {
        let mut cells: Vec<Cell> = vec![cut(&chain.name, NAME_WIDTH_MAX).into()];
        cells.extend(row(chain, unit));
        table.row(cells);
    }
    table
}

/// A row for each chain under each scheduler, if there are any.
pub fn comparison(reports: &[Report], name: impl Fn(&Report) -> String) -> Option<Table> {
    let all: Vec<&ChainSummary> = reports.iter().flat_map(|report| &report.summary.chains).collect();
    let unit = unit(all.iter().copied());
    let mut table = headings(Table::of("chain").text("scheduler"), unit);
    for index in 0..reports.first()?.summary.chains.len() {
        for report in reports {
            let Some(chain) = report.summary.chains.get(index) else { continue };
            let mut cells: Vec<Cell> = vec![cut(&chain.name, NAME_WIDTH_MAX).into(), name(report).into()];
            cells.extend(row(chain, unit));
            table.row(cells);
        }
    }
    (!all.is_empty()).then_some(table)
}

/// `; 3 of 20 outputs of chain "brake" missed its deadlines`, for each chain with misses.
pub fn verdict(summary: &Summary) -> String {
    let missed = summary.chains.iter().filter(|chain| chain.missed > 0);
    let words = |chain: &ChainSummary| {
        format!("; {} of {} outputs of chain \"{}\" missed its deadline", chain.missed, chain.outputs, chain.name)
    };
    missed.map(words).collect()
}

fn headings(table: Table, unit: TimeUnit) -> Table {
    let columns = ["mean", "p99", "max", "deadline"];
    table
        .group("outputs", &["all", "missed"])
        .group(&format!("data age, {}", unit.name), &columns)
        .group(&format!("reaction time, {}", unit.name), &columns)
}

fn row(chain: &ChainSummary, unit: TimeUnit) -> Vec<Cell> {
    let mut cells = vec![chain.outputs.to_string().into(), Cell::mishaps(chain.missed)];
    for (times, limit) in [(&chain.data_age, chain.data_age_max), (&chain.reaction_time, chain.reaction_time_max)] {
        cells.extend(match times {
            Some(times) => {
                let is_late = limit.is_some_and(|limit| times.max > limit);
                let max = if is_late { Cell::bad(unit.show(times.max)) } else { unit.show(times.max).into() };
                [unit.show(times.mean).into(), unit.show(times.p99).into(), max]
            }
            None => ["-"; 3].map(Cell::faint),
        });
        cells.push(limit.map_or_else(|| Cell::faint("-"), |limit| Cell::faint(unit.show(limit))));
    }
    cells
}

/// The unit for the longest of what is there.
fn unit<'a>(chains: impl IntoIterator<Item = &'a ChainSummary>) -> TimeUnit {
    let max = |times: &Option<DistributionSummary>| times.as_ref().map_or(Nanos::ZERO, |times| times.max);
    let longest = chains.into_iter().map(|chain| max(&chain.data_age).max(max(&chain.reaction_time)));
    TimeUnit::for_longest(longest.max().unwrap_or_default())
}
