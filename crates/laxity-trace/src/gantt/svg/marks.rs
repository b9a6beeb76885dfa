//! Arrows of releases, deadlines and completions.

use laxity_model::TaskId;

use super::Chart;
use super::canvas::{Canvas, INK, Layer, Stroke, TextStyle, text_width};
use super::layout::Row;
use super::legend::{Legend, Sign};
use super::palette::{RED, darker, task_colour};
use crate::intervals::JobHistory;

/// Marks of the same kind closer than this many pixels are drawn once.
const CLOSEST: f64 = 2.5;
/// Room that a job's three marks need.
const ROOM: f64 = 14.0;

/// A small up-arrow on the row's baseline.
pub fn release(canvas: &mut Canvas, row: &Row, x: f64, colour: &str) {
    let tip = row.top + 3.0;
    canvas.arrow(Layer::Marks, (x, row.baseline), (x, tip), Stroke::solid(colour, 1.1), head(row));
}

/// A down-arrow on the row's baseline; red and crossed if the deadline was missed.
pub fn deadline(canvas: &mut Canvas, row: &Row, x: f64, colour: &str, missed: bool) {
    let tail = row.top + 3.0;
    let (colour, width) = if missed { (RED, 1.8) } else { (colour, 1.1) };
    // A release at the same time must not cover a miss.
    let layer = if missed { Layer::Misses } else { Layer::Marks };
    canvas.arrow(layer, (x, tail), (x, row.baseline), Stroke::solid(colour, width), head(row));
    if missed {
        cross(canvas, x, (tail + row.bar_top) / 2.0);
    }
}

/// A line with a cap: the job completed.
pub fn completion(canvas: &mut Canvas, row: &Row, x: f64, colour: &str) {
    let cap = row.top + (row.bar_top - row.top) * 0.55;
    let half = head(row) * 0.7;
    canvas.line(Layer::Marks, (x, row.baseline), (x, cap), Stroke::solid(colour, 1.1));
    canvas.line(Layer::Marks, (x - half, cap), (x + half, cap), Stroke::solid(colour, 1.8));
}

/// The red cross of a missed deadline.
fn cross(canvas: &mut Canvas, x: f64, y: f64) {
    for direction in [1.0, -1.0] {
        let (from, to) = ((x - 3.5, y - 3.5 * direction), (x + 3.5, y + 3.5 * direction));
        canvas.line(Layer::Misses, from, to, Stroke::solid(RED, 1.8));
    }
}

fn head(row: &Row) -> f64 {
    ((row.bar_top - row.top) * 0.35).clamp(4.0, 7.0)
}

/// Where the marks of a kind in a row were drawn last, to skip those that would cover them.
#[derive(Clone, Copy)]
struct Last {
    release: f64,
    deadline: f64,
    completion: f64,
    missed: f64,
}

impl Last {
    const NONE: Last = {
        let never = f64::NEG_INFINITY;
        Last { release: never, deadline: never, completion: never, missed: never }
    };
}

fn is_apart(last: &mut f64, x: f64) -> bool {
    let apart = (x - *last).abs() >= CLOSEST;
    if apart {
        *last = x;
    }
    apart
}

/// The marks of all jobs, in the rows of their tasks. A row whose jobs stand too close shows missed deadlines only.
pub fn on_tasks(canvas: &mut Canvas, chart: &Chart<'_>, legend: &mut Legend) {
    let mut last = vec![Last::NONE; chart.layout.tasks.len()];
    let crowded: Vec<bool> = jobs_in_window(chart).iter().map(|&jobs| is_crowded(chart, jobs)).collect();
    for job in &chart.timeline.jobs {
        let task = job.job.task.index();
        if let (Some(&row), Some(last)) = (chart.layout.tasks.get(task), last.get_mut(task)) {
            let marks = MarkRow { row, colour: INK.to_owned(), crowded: crowded[task] };
            draw_release(canvas, chart, &marks, job, last, legend);
            draw_completion(canvas, chart, &marks, job, last, legend);
            draw_deadline(canvas, chart, &marks, job, last, legend);
        }
    }
}

/// The marks of all jobs, in the rows of the CPUs and in the tasks' colours; missed deadlines only, if the jobs stand
/// too close.
pub fn on_cpus(canvas: &mut Canvas, chart: &Chart<'_>, legend: &mut Legend) {
    let rows = &chart.layout.cpus;
    let crowded = is_crowded(chart, jobs_in_window(chart).iter().sum::<usize>() / rows.len().max(1));
    let mut last = vec![Last::NONE; rows.len()];
    let mut arrows: Vec<Vec<(f64, Option<TaskId>)>> = vec![Vec::new(); rows.len()];
    for job in &chart.timeline.jobs {
        let colour = darker(&task_colour(job.job.task));
        let ended_on = job.completed.map(|(cpu, _)| cpu).or(job.last_cpu);
        let begin = job.ready_on.or(ended_on).unwrap_or_default().index();
        let end = ended_on.or(job.ready_on).unwrap_or_default().index();
        if let Some(row) = rows.get(begin).map(above_bars) {
            let marks = MarkRow { row, colour: colour.clone(), crowded };
            let x = draw_release(canvas, chart, &marks, job, &mut last[begin], legend);
            arrows[begin].extend(x.map(|x| (x, Some(job.job.task))));
        }
        if let Some(row) = rows.get(end).map(above_bars) {
            let marks = MarkRow { row, colour, crowded };
            let x = draw_completion(canvas, chart, &marks, job, &mut last[end], legend);
            arrows[end].extend(x.map(|x| (x, None)));
            let x = draw_deadline(canvas, chart, &marks, job, &mut last[end], legend);
            arrows[end].extend(x.map(|x| (x, Some(job.job.task))));
        }
    }
    for (row, arrows) in rows.iter().zip(arrows) {
        label_arrows(canvas, chart, row, arrows);
    }
}

/// The part of a CPU's row above its bars: marks there are of any job, and must not cut through the bars of others.
fn above_bars(row: &Row) -> Row {
    Row { baseline: row.bar_top, ..*row }
}

/// Names the tasks of a row's arrows, where no other mark is in the way.
fn label_arrows(canvas: &mut Canvas, chart: &Chart<'_>, row: &Row, mut arrows: Vec<(f64, Option<TaskId>)>) {
    if row.font < 9.0 {
        return;
    }
    arrows.sort_by(|one, other| one.0.total_cmp(&other.0));
    let size = row.font - 2.5;
    for (position, &(x, task)) in arrows.iter().enumerate() {
        let Some(task) = task else { continue };
        let text = super::task_symbol(chart.header, task.index());
        let end = x + 5.0 + text_width(&text, size);
        let next = arrows.get(position + 1).map_or(chart.layout.width, |&(next, _)| next - 4.0);
        if end <= next {
            let style = TextStyle { size, ..TextStyle::default() };
            canvas.text(Layer::Text, x + 5.0, row.top + 2.0 + size * 0.8, &text, style);
        }
    }
}

/// How many jobs of each task have their release or deadline in the window.
fn jobs_in_window(chart: &Chart<'_>) -> Vec<usize> {
    let mut jobs = vec![0; chart.header.tasks.len()];
    for job in &chart.timeline.jobs {
        if job.released.is_some_and(|released| chart.layout.span(released.release, released.deadline).is_some()) {
            jobs[job.job.task.index()] += 1;
        }
    }
    jobs
}

/// Whether a row with so many jobs has no room for their marks.
fn is_crowded(chart: &Chart<'_>, jobs: usize) -> bool {
    jobs as f64 * ROOM > chart.layout.right - chart.layout.left
}

/// A row, and the colour of its marks.
struct MarkRow {
    row: Row,
    colour: String,
    /// No room but for missed deadlines.
    crowded: bool,
}

/// Draws the release, unless it is outside the window or there is no room; returns where.
fn draw_release(
    canvas: &mut Canvas,
    chart: &Chart<'_>,
    marks: &MarkRow,
    job: &JobHistory,
    last: &mut Last,
    legend: &mut Legend,
) -> Option<f64> {
    let x = chart.layout.mark(job.released?.release)?;
    if marks.crowded || !is_apart(&mut last.release, x) {
        return None;
    }
    legend.signs.insert(Sign::Release);
    release(canvas, &marks.row, x, &marks.colour);
    Some(x)
}

/// Draws the deadline, unless it is outside the window, was met and there is no room, or is that of a thread's job, which
/// has its owner's; returns where.
fn draw_deadline(
    canvas: &mut Canvas,
    chart: &Chart<'_>,
    marks: &MarkRow,
    job: &JobHistory,
    last: &mut Last,
    legend: &mut Legend,
) -> Option<f64> {
    if chart.header.lacks_deadlines(job.job.task) {
        return None;
    }
    let x = chart.layout.mark(job.released?.deadline)?;
    let missed = job.is_missed(chart.timeline.end);
    if !missed && (marks.crowded || !is_apart(&mut last.deadline, x)) {
        return None;
    }
    if missed && !is_apart(&mut last.missed, x) {
        return None;
    }
    legend.signs.insert(if missed { Sign::Missed } else { Sign::Deadline });
    deadline(canvas, &marks.row, x, &marks.colour, missed);
    Some(x)
}

/// Draws the completion, unless it is outside the window or there is no room; returns where.
fn draw_completion(
    canvas: &mut Canvas,
    chart: &Chart<'_>,
    marks: &MarkRow,
    job: &JobHistory,
    last: &mut Last,
    legend: &mut Legend,
) -> Option<f64> {
    let x = chart.layout.mark(job.completion()?)?;
    if marks.crowded || !is_apart(&mut last.completion, x) {
        return None;
    }
    legend.signs.insert(Sign::Completion);
    completion(canvas, &marks.row, x, &marks.colour);
    Some(x)
}
