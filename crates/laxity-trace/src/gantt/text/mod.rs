//! The chart as text, for a terminal or a mail.

use std::fmt::Write as _;

use laxity_model::{Instant, JobId, Nanos, TaskId};

use super::axis::{Axis, round_up};
use super::cells::{Cells, Fill, Grid};
use super::{GanttError, Rows, Window, caption};
use crate::intervals::{JobHistory, Timeline};
use crate::{Record, TraceHeader};

/// How to draw the chart as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextOptions {
    /// What has a row.
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

/// The chart as text: caption, time axis, a row per CPU and/or task, legend, missed deadlines.
///
/// A column shows what filled most of it, so what is shorter than half a column may not be seen: narrow the window.
/// Below a task's row stand its releases and deadlines. Columns last a round time (1, 2, 5, 10, ... ns).
///
/// Errors: [`GanttError`].
pub fn text(header: &TraceHeader, records: &[Record], options: &TextOptions) -> Result<String, GanttError> {
    let timeline = Timeline::of(header, records)?;
    let (from, to) = options.window.edges(&timeline)?;
    let names = Names::of(header, options.rows);
    let columns = options.width.max(40).saturating_sub(names.width + 1).max(20) as u64;
    let span = to.saturating_since(from);
    let step = Nanos(round_up(span.0.div_ceil(columns)));
    let grid = Grid { from, step, columns: span.0.div_ceil(step.0) as usize };

    let glyphs = Glyphs::of(options.characters);
    let mut out = String::new();
    let _ = writeln!(out, "{}", caption(header));
    let _ = writeln!(out, "{from} to {to}, {step} a column\n");
    axis(&mut out, &grid, to, names.width, glyphs);
    let mut legend = Legend::default();
    if options.rows.cpus() {
        for (index, cells) in grid.cpu_rows(&timeline, header.cpus).iter().enumerate() {
            let line = cpu_line(cells, grid.columns, glyphs, &mut legend);
            push_line(&mut out, &format!("cpu{index}"), names.width, &line);
        }
    }
    if options.rows.tasks() {
        if options.rows.cpus() {
            out.push('\n');
        }
        let marks = marks(&grid, to, &timeline, header.tasks.len(), glyphs);
        for (index, cells) in grid.task_rows(&timeline, header.tasks.len()).iter().enumerate() {
            let line: String = (0..grid.columns).map(|column| glyphs.task(cells.dominant(column))).collect();
            push_line(&mut out, &names.tasks[index], names.width, &line);
            push_line(&mut out, "", names.width, &marks[index].iter().collect::<String>());
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
struct Names {
    tasks: Vec<String>,
    width: usize,
}

impl Names {
    fn of(header: &TraceHeader, rows: Rows) -> Self {
        let tasks: Vec<String> = header.tasks.iter().map(|task| cut(&task.name, NAME_WIDTH_MAX)).collect();
        let cpus = if rows.cpus() { format!("cpu{}", header.cpus.saturating_sub(1)).len() } else { 0 };
        let shown = tasks.iter().filter(|_| rows.tasks()).map(|name| name.chars().count()).max();
        Names { width: shown.unwrap_or(0).max(cpus), tasks }
    }
}

/// `name`, with its end replaced by `..` if it has more than `most` characters.
fn cut(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_owned();
    }
    name.chars().take(most.saturating_sub(2)).chain("..".chars()).collect()
}

fn push_line(out: &mut String, name: &str, width: usize, line: &str) {
    let full = format!("{name:width$} {line}");
    let full = full.trim_end();
    // A row without a name and without marks would be a blank line in the middle of the chart.
    if !full.is_empty() {
        let _ = writeln!(out, "{full}");
    }
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

fn cpu_line(cells: &Cells, columns: usize, glyphs: &Glyphs, legend: &mut Legend) -> String {
    (0..columns)
        .map(|column| match cells.dominant(column) {
            Fill::Executing(task) => {
                legend.tasks.insert(task);
                task_letter(task)
            }
            Fill::Overhead => glyphs.overhead,
            Fill::LockWait => glyphs.lock_wait,
            Fill::Suspended | Fill::Waiting | Fill::Idle => glyphs.idle,
        })
        .collect()
}

/// The letter that stands for a task in a CPU's row: A to Z, a to z, 0 to 9, then `*` for all others.
fn task_letter(task: TaskId) -> char {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    LETTERS.get(task.index()).map_or('*', |&letter| char::from(letter))
}

/// Releases and deadlines of every task, one column more than the chart for those at the right edge.
fn marks(grid: &Grid, to: Instant, timeline: &Timeline, tasks: usize, glyphs: &Glyphs) -> Vec<Vec<char>> {
    let mut rows = vec![vec![' '; grid.columns + 1]; tasks];
    let column = |at: Instant| if at <= to { grid.column(at) } else { None };
    for job in &timeline.jobs {
        let Some(released) = job.released else { continue };
        let row = &mut rows[job.job.task.index()];
        if let Some(column) = column(released.release) {
            row[column] = glyphs.add_release(row[column]);
        }
        if let Some(column) = column(released.deadline) {
            row[column] = glyphs.add_deadline(row[column], job.is_missed(timeline.end));
        }
    }
    rows
}

/// What to draw with.
struct Glyphs {
    executing: char,
    waiting: char,
    suspended: char,
    overhead: char,
    lock_wait: char,
    idle: char,
    release: char,
    deadline: char,
    both: char,
    missed: char,
    tick: char,
}

impl Glyphs {
    const ASCII: Glyphs = Glyphs {
        executing: '#',
        waiting: '.',
        suspended: '-',
        overhead: '%',
        lock_wait: '=',
        idle: '.',
        release: '^',
        deadline: 'v',
        both: 'x',
        missed: '!',
        tick: '|',
    };
    const UNICODE: Glyphs = Glyphs {
        executing: '█',
        waiting: '░',
        suspended: '┄',
        overhead: '▒',
        lock_wait: '≡',
        idle: '·',
        release: '↑',
        deadline: '↓',
        both: '↕',
        missed: '✗',
        tick: '│',
    };

    fn of(characters: Characters) -> &'static Glyphs {
        match characters {
            Characters::Ascii => &Glyphs::ASCII,
            Characters::Unicode => &Glyphs::UNICODE,
        }
    }

    fn task(&self, fill: Fill) -> char {
        match fill {
            Fill::Executing(_) => self.executing,
            Fill::Suspended => self.suspended,
            Fill::Waiting => self.waiting,
            Fill::Overhead | Fill::LockWait | Fill::Idle => ' ',
        }
    }

    /// The mark in a column that showed `mark` and in which a job is released; a miss is never covered.
    fn add_release(&self, mark: char) -> char {
        match mark {
            mark if mark == self.missed => mark,
            mark if mark == self.deadline || mark == self.both => self.both,
            _ => self.release,
        }
    }

    fn add_deadline(&self, mark: char, missed: bool) -> char {
        match mark {
            _ if missed => self.missed,
            mark if mark == self.missed => mark,
            mark if mark == self.release || mark == self.both => self.both,
            _ => self.deadline,
        }
    }
}

/// Explains the characters that were used.
#[derive(Default)]
struct Legend {
    tasks: std::collections::BTreeSet<TaskId>,
}

impl Legend {
    fn write(&self, out: &mut String, header: &TraceHeader, rows: Rows, glyphs: &Glyphs) {
        if rows.cpus() {
            for &task in self.tasks.iter().filter(|&&task| task_letter(task) != '*') {
                let _ = write!(out, "{} {}  ", task_letter(task), header.tasks[task.index()].name);
            }
            if self.tasks.iter().any(|&task| task_letter(task) == '*') {
                out.push_str("* other tasks  ");
            }
            let Glyphs { overhead, lock_wait, idle, .. } = glyphs;
            let _ = writeln!(out, "{overhead} overhead  {lock_wait} waits for the lock  {idle} idle");
        }
        if rows.tasks() {
            let Glyphs { executing, waiting, suspended, release, deadline, both, missed, .. } = glyphs;
            let _ = writeln!(
                out,
                "{executing} executes  {waiting} waits  {suspended} suspended  {release} release  {deadline} deadline  \
                 {both} both  {missed} missed deadline"
            );
        }
    }
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
