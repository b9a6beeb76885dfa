//! The chart as text, for a terminal or a mail.

mod glyphs;
mod legend;
mod marks;

use std::fmt::Write as _;

use laxity_model::text::printable;
use laxity_model::{Instant, JobId, Nanos};
use unicode_width::UnicodeWidthStr;

use self::glyphs::Glyphs;
use self::legend::Legend;
use self::marks::Marks;
use super::axis::{Axis, round_up};
use super::cells::{Cells, Grid};
use super::engines::{EngineRow, engine_rows};
use super::{GanttError, Rows, Window, caption};
use crate::intervals::{JobHistory, Timeline};
use crate::{Record, TraceHeader};

/// How to draw the chart as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// The rows.
    pub rows: Rows,
    /// The part to draw.
    pub window: Window,
    /// Most characters on a line; names take some of them. At least 40 are used.
    pub width: usize,
    /// Which characters to draw with.
    pub characters: Characters,
}

/// The characters of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Characters {
    /// ASCII only.
    Ascii,
    /// Blocks and arrows.
    #[default]
    Unicode,
}

impl Default for TextOptions {
    fn default() -> Self {
        TextOptions { rows: Rows::Both, window: Window::default(), width: 120, characters: Characters::Unicode }
    }
}

/// Names longer than this are cut.
const NAME_WIDTH_MAX: usize = 20;
/// Missed deadlines named one by one below the chart.
const MISSES_NAMED_MAX: usize = 5;

/// The chart as text: caption, time axis, a row per CPU and engine and/or per task, legend, missed deadlines.
///
/// A column shows the activity that filled most of it, so activities shorter than half a column may not be seen: narrow
/// the window.
/// Below a task's row stand its releases and deadlines, and below those the locks it holds and priorities it inherits;
/// below a CPU's row stand the interrupts routed to it. These show however short they are. Columns last a round time (1, 2, 5, 10, ... ns).
///
/// Errors: [`GanttError`].
pub fn text(header: &TraceHeader, records: &[Record], options: &TextOptions) -> Result<String, GanttError> {
    let timeline = Timeline::of(header, records)?;
    let (from, to) = options.window.edges(&timeline)?;
    let engines = if options.rows.cpus() { engine_rows(header) } else { Vec::new() };
    let names = RowNames::of(header, options.rows, &engines);
    let columns = options.width.max(40).saturating_sub(names.width + 1).max(20) as u64;
    let span = to.saturating_since(from);
    let step = Nanos(round_up(span.0.div_ceil(columns)));
    let grid = Grid { from, step, columns: span.0.div_ceil(step.0) as usize };

    let glyphs = Glyphs::of(options.characters);
    let marks = Marks { grid: &grid, to, glyphs };
    let mut out = String::new();
    let _ = writeln!(out, "{}", caption(header));
    let ends = if options.window.to.is_some_and(|asked| asked > to) { ", where the trace ends" } else { "" };
    let _ = writeln!(out, "{from} to {to}{ends}, {step} a column\n");
    axis(&mut out, &grid, to, names.width, glyphs);
    let mut legend = Legend::default();
    if options.rows.cpus() {
        let interrupts = marks.interrupts(&timeline, header.cpus, &mut legend);
        for (index, cells) in grid.cpu_rows(&timeline, header.cpus).iter().enumerate() {
            push_line(&mut out, &format!("cpu{index}"), names.width, &cpu_line(cells, &grid, glyphs, &mut legend));
            push_marks(&mut out, names.width, &interrupts[index]);
        }
        for (name, cells) in names.engines.iter().zip(grid.engine_rows(&timeline, &engines)) {
            push_line(&mut out, name, names.width, &cpu_line(&cells, &grid, glyphs, &mut legend));
        }
    }
    if options.rows.tasks() {
        if options.rows.cpus() {
            out.push('\n');
        }
        let jobs = marks.jobs(&timeline, header);
        let locks = marks.locks(&timeline, header.tasks.len(), &mut legend);
        for (index, cells) in grid.task_rows(&timeline, header.tasks.len(), header.cpus).iter().enumerate() {
            let line: String = (0..grid.columns).map(|column| legend.task(cells.dominant(column), glyphs)).collect();
            push_line(&mut out, &names.tasks[index], names.width, &line);
            push_marks(&mut out, names.width, &jobs[index]);
            push_marks(&mut out, names.width, &locks[index]);
        }
    }
    out.push('\n');
    legend.write(&mut out, header, options.rows, glyphs);
    misses(&mut out, &timeline, header);
    if !timeline.complete {
        let _ = writeln!(out, "the trace was cut off at {}", timeline.end);
    }
    Ok(out)
}

/// The row names, cut to a width they all share.
struct RowNames {
    tasks: Vec<String>,
    engines: Vec<String>,
    width: usize,
}

impl RowNames {
    fn of(header: &TraceHeader, rows: Rows, engines: &[EngineRow]) -> Self {
        let tasks: Vec<String> = header.tasks.iter().map(|task| cut(&printable(&task.name), NAME_WIDTH_MAX)).collect();
        let engines: Vec<String> = engines.iter().map(|engine| cut(&printable(&engine.name), NAME_WIDTH_MAX)).collect();
        let cpus = if rows.cpus() { format!("cpu{}", header.cpus.saturating_sub(1)).len() } else { 0 };
        let shown = tasks.iter().filter(|_| rows.tasks()).chain(&engines).map(|name| name.width()).max();
        RowNames { width: shown.unwrap_or(0).max(cpus), tasks, engines }
    }
}

/// `name`, with its end replaced by `..` if it is wider than `most` columns of a terminal.
fn cut(name: &str, most: usize) -> String {
    if name.width() <= most {
        return name.to_owned();
    }
    let mut kept = String::new();
    for letter in name.chars() {
        kept.push(letter);
        if kept.width() + 2 > most {
            kept.pop();
            break;
        }
    }
    kept + ".."
}

fn push_line(out: &mut String, name: &str, width: usize, line: &str) {
    // Letters of East Asian scripts are two columns wide, and accents none.
    let room = " ".repeat(width.saturating_sub(name.width()));
    let full = format!("{name}{room} {line}");
    let full = full.trim_end();
    // A row without a name and without marks would be a blank line in the middle of the chart.
    if !full.is_empty() {
        let _ = writeln!(out, "{full}");
    }
}

/// A line of marks below a row, unless it has none.
fn push_marks(out: &mut String, indent: usize, marks: &[char]) {
    push_line(out, "", indent, &marks.iter().collect::<String>());
}

fn cpu_line(cells: &Cells, grid: &Grid, glyphs: &Glyphs, legend: &mut Legend) -> String {
    (0..grid.columns).map(|column| legend.cpu(cells.dominant(column), glyphs)).collect()
}

/// Two lines: labels, and a tick below the first character of each.
fn axis(out: &mut String, grid: &Grid, to: Instant, indent: usize, glyphs: &Glyphs) {
    // Labels of up to seven characters and some room between them.
    let axis = Axis::new(grid.from, to, (grid.columns as u64 / 10).max(1));
    let mut labels = vec![' '; grid.columns + 1];
    let mut ticks = labels.clone();
    for (at, mut label) in axis.ticks() {
        let Some(column) = grid.column(at) else { continue };
        if labels[..=column].iter().all(|&c| c == ' ') {
            let _ = write!(label, " {}", axis.unit());
        }
        let end = column + label.chars().count();
        if end + 1 > labels.len() {
            labels.resize(end + 1, ' ');
        }
        if labels[column.saturating_sub(1)..end].iter().all(|&c| c == ' ') {
            labels.splice(column..end, label.chars());
            ticks[column] = glyphs.tick;
        }
    }
    push_line(out, "", indent, &labels.iter().collect::<String>());
    push_line(out, "", indent, &ticks.iter().collect::<String>());
}

/// One line that names the first missed deadlines, if there are any.
fn misses(out: &mut String, timeline: &Timeline, header: &TraceHeader) {
    let missed: Vec<&JobHistory> = timeline.missed().collect();
    if missed.is_empty() {
        return;
    }
    let job_name = |job: JobId| format!("{} job {}", header.tasks[job.task.index()].name, job.index);
    let mut named: Vec<String> = missed
        .iter()
        .take(MISSES_NAMED_MAX)
        .map(|job| match job.tardiness() {
            Some(tardiness) => format!("{} by {tardiness}", job_name(job.job)),
            None => format!("{} (still pending at {})", job_name(job.job), timeline.end),
        })
        .collect();
    if missed.len() > MISSES_NAMED_MAX {
        named.push(format!("{} more", missed.len() - MISSES_NAMED_MAX));
    }
    let _ = writeln!(out, "missed deadlines, whole trace: {}", named.join(", "));
}
