//! The drawing that tests compare schedules with.

use std::fmt::Write as _;

use laxity_model::Nanos;

use super::cells::{Cells, Fill, Grid};
use super::engines::engine_rows;
use super::{GanttError, Rows};
use crate::intervals::Timeline;
use crate::{Record, TraceHeader};

/// More columns than this are an error: the drawing is for people.
const COLUMNS_MAX: usize = 1_000;

/// The trace from time 0 to its end as a drawing, one column for each `step`, for tests to compare with.
///
/// ```text
///     p0 0 0 1 1 0 0          the task that executes (0-9, a-z, then *), . idle, ! overhead, = waiting for the lock,
///                             " top half, _ bottom half on the CPU's stack, @ a job that spins, / stolen
///     e0 . . . 0 . .          the task whose operation runs on the execution engine of GPU 0; c and d: copy engines
///     t0 # # . . # #          # executes, @ spins, / its CPU is stolen, . pending and waiting, - suspended, ? waiting for a lock,
///     t1     # #              blank: no job is pending
/// ```
///
/// Exact: a column that nothing fills alone shows as `~`. A step that divides every event time leaves none. Lines have no
/// trailing blanks and each ends in a newline; CPUs (`p`) come before engines (`e`, `c`,
/// `d`), and those before tasks (`t`).
///
/// Errors: [`GanttError`]; a `step` of zero, or one that makes more than 1,000 columns, is
/// [`TooManyColumns`](GanttError::TooManyColumns).
pub fn drawing(header: &TraceHeader, records: &[Record], step: Nanos, rows: Rows) -> Result<String, GanttError> {
    let timeline = Timeline::of(header, records)?;
    let span = Nanos(timeline.end.0);
    let too_many = GanttError::TooManyColumns { span, step, limit: COLUMNS_MAX };
    if step.is_zero() {
        return Err(too_many);
    }
    let columns = usize::try_from(span.0.div_ceil(step.0)).ok().filter(|&columns| columns <= COLUMNS_MAX);
    let grid = Grid { from: laxity_model::Instant::ZERO, step, columns: columns.ok_or(too_many)? };
    let mut out = String::new();
    if rows.cpus() {
        for (index, cells) in grid.cpu_rows(&timeline, header.cpus).iter().enumerate() {
            row(&mut out, 'p', index, cells, grid.columns, cpu_symbol);
        }
    }
    if rows.cpus() {
        let engines = engine_rows(header);
        for (engine, cells) in engines.iter().zip(grid.engine_rows(&timeline, &engines)) {
            let letter = ['e', 'c', 'd'][engine.engine.index().min(2)];
            row(&mut out, letter, engine.gpu.index(), &cells, grid.columns, cpu_symbol);
        }
    }
    if rows.tasks() {
        for (index, cells) in grid.task_rows(&timeline, header.tasks.len(), header.cpus).iter().enumerate() {
            row(&mut out, 't', index, cells, grid.columns, task_symbol);
        }
    }
    Ok(out)
}

fn row(out: &mut String, letter: char, index: usize, cells: &Cells, columns: usize, symbol: fn(Fill) -> char) {
    let mut line = format!("{letter}{index}");
    for column in 0..columns {
        line.push(' ');
        line.push(cells.whole(column).map_or('~', symbol));
    }
    let _ = writeln!(out, "{}", line.trim_end());
}

fn cpu_symbol(fill: Fill) -> char {
    match fill {
        Fill::Executing(task) => char::from_digit(task.0, 36).unwrap_or('*'),
        Fill::Overhead => '!',
        Fill::LockWait => '=',
        Fill::TopHalf => '"',
        Fill::BottomHalf => '_',
        Fill::Spinning => '@',
        Fill::Throttled => 'x',
        Fill::Stolen => '/',
        Fill::Outside => '\\',
        Fill::AwaitingLock | Fill::Suspended | Fill::Waiting | Fill::Idle => '.',
    }
}

fn task_symbol(fill: Fill) -> char {
    match fill {
        Fill::Executing(_) => '#',
        Fill::Spinning => '@',
        Fill::Throttled => 'x',
        Fill::Stolen => '/',
        Fill::AwaitingLock => '?',
        Fill::Suspended => '-',
        Fill::Waiting => '.',
        Fill::BottomHalf | Fill::TopHalf | Fill::Overhead | Fill::LockWait | Fill::Outside | Fill::Idle => ' ',
    }
}
