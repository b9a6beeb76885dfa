//! A job's life on one line.
//!
//! ```text
//!   66 ms AAAAAAAAAAAAA██████████████AAAAAAAAAA██████▒ 125.72 ms
//!                                              ↓
//! ```

use std::collections::BTreeMap;

use laxity_model::{Instant, Nanos};

use super::{Account, Blame, Part};
use crate::OutsiderKind;

/// A life of so many columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// A character for each column: the symbol of the part that fills most of it.
    pub cells: String,
    /// The time that a column stands for; the last may stand for less.
    pub step: Nanos,
    /// The column of the deadline, if it lies before the end.
    pub deadline: Option<usize>,
    /// The character of each part, in the order of [`Account::parts`].
    pub symbols: Vec<(Part, char)>,
}

/// So many other threads of the machine are told apart, those that took the most: there may be hundreds.
const THREADS: usize = 8;

/// Draws the life of a job in at most `columns` columns, at least 1. The largest parts that stand for other jobs get
/// letters, what is the same for every job a sign of its own; `*` stands for all the rest.
pub fn line(account: &Account, columns: usize) -> Line {
    let symbols = symbols(&account.parts());
    let by_blame: BTreeMap<Blame, char> = symbols.iter().map(|&(part, symbol)| (part.blame, symbol)).collect();
    let step = account.time().0.div_ceil(columns.max(1) as u64).max(1);
    let column_of = |at: Instant| (at.saturating_since(account.arrival).0 / step) as usize;
    let mut cells: Vec<BTreeMap<Blame, u64>> = vec![BTreeMap::new(); account.time().0.div_ceil(step) as usize];
    for piece in &account.pieces {
        let last = Instant(piece.to.0 - 1);
        let first = column_of(piece.from);
        for (column, cell) in (first..).zip(&mut cells[first..=column_of(last)]) {
            let left = account.arrival.0 + column as u64 * step;
            let overlap = piece.to.0.min(left.saturating_add(step)) - piece.from.0.max(left);
            for cause in &piece.causes {
                *cell.entry(cause.blame()).or_default() += overlap / piece.causes.len() as u64 + 1;
            }
        }
    }
    let symbol = |cell: &BTreeMap<Blame, u64>| {
        let most = cell.iter().max_by_key(|&(&blame, &time)| (time, std::cmp::Reverse(blame)));
        most.map_or(' ', |(blame, _)| by_blame[blame])
    };
    let deadline = Some(account.deadline).filter(|&deadline| account.arrival <= deadline && deadline < account.to);
    Line { cells: cells.iter().map(symbol).collect(), step: Nanos(step), deadline: deadline.map(column_of), symbols }
}

/// A character for each part.
fn symbols(parts: &[Part]) -> Vec<(Part, char)> {
    let mut letters = ('A'..='Z').chain('a'..='z');
    let mut threads = 0;
    let mut symbol = |part: &Part| {
        let symbol = match part.blame {
            Blame::Execution => '█',
            Blame::CacheRefill(_) => '▓',
            Blame::Operation(..) => '◆',
            Blame::Suspension => '┄',
            Blame::Overhead(_) | Blame::SchedulerLock | Blame::BottomHalf(_) => '▒',
            Blame::Unoccupied | Blame::WakeUp(_) | Blame::Release | Blame::Jitter => '·',
            Blame::Throttled => '×',
            Blame::Stolen => '▚',
            Blame::Predecessor | Blame::Tokens(_) => '░',
            Blame::Outside(by) if by.kind != OutsiderKind::Thread => '▒',
            Blame::Outside(_) if threads == THREADS => '*',
            Blame::Outside(_) => {
                threads += 1;
                letters.next().unwrap_or('*')
            }
            Blame::Task(..) | Blame::Lock(..) | Blame::Engine(..) => letters.next().unwrap_or('*'),
        };
        (*part, symbol)
    };
    parts.iter().map(&mut symbol).collect()
}
