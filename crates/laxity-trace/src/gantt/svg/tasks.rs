//! The rows of the tasks: when each job was pending, where it executed, and whether it was in time.

use laxity_model::TaskId;

use super::canvas::{Area, Canvas, GRAY, INK, Layer, Stroke, TextStyle, text_width};
use super::cpus::is_torn;
use super::dense::{Merged, Span, merge};
use super::join::{Joined, join};
use super::layout::Row;
use super::legend::{Legend, Sign};
use super::palette::{
    BOTTOM_HALF_PATTERN, RED, SPINNING_PATTERN, STOLEN_FILL, STOLEN_PATTERN, owner_colour, task_colour, text_on,
};
use super::{Chart, marks};
use crate::intervals::{Activity, Interval};

/// Height of the strip that shows a pending job.
const STRIP: f64 = 3.0;

/// Draws every task's row.
pub fn draw(canvas: &mut Canvas, chart: &Chart<'_>, legend: &mut Legend) {
    if chart.layout.tasks.is_empty() {
        return;
    }
    draw_pending(canvas, chart, legend);
    let mut rows: Vec<Vec<&Interval>> = vec![Vec::new(); chart.layout.tasks.len()];
    for interval in &chart.timeline.intervals {
        let Some(job) = interval.activity.job() else { continue };
        let Some((x0, x1)) = chart.layout.span(interval.from, interval.to) else { continue };
        match (interval.activity, rows.get_mut(job.task.index())) {
            (Activity::Execution { .. } | Activity::Spinning { .. }, Some(row)) => row.push(interval),
            (Activity::Suspension { .. }, Some(_)) => {
                legend.signs.insert(Sign::Suspended);
                let y = chart.layout.tasks[job.task.index()].middle();
                canvas.line(Layer::Bars, (x0, y), (x1, y), Stroke { colour: GRAY, width: 1.2, dashes: "4,3" });
            }
            _ => {}
        }
    }
    for (index, (row, intervals)) in chart.layout.tasks.iter().zip(&rows).enumerate() {
        draw_row(canvas, chart, row, TaskId(index as u32), intervals, legend);
    }
    marks::on_tasks(canvas, chart, legend);
}

/// A light strip from release to completion, red from the deadline on.
fn draw_pending(canvas: &mut Canvas, chart: &Chart<'_>, legend: &mut Legend) {
    for job in &chart.timeline.jobs {
        let (Some(row), Some(released)) = (chart.layout.tasks.get(job.job.task.index()), job.released) else {
            continue;
        };
        let end = job.completion().unwrap_or(chart.timeline.end);
        let parts = [
            (released.release, end.min(released.deadline), "#C4C4C4", Sign::Pending),
            (released.deadline.max(released.release), end, RED, Sign::Tardy),
        ];
        for (from, to, fill, sign) in parts {
            // Strips below half a pixel would only make the file larger.
            let span = if from < to { chart.layout.span(from, to) } else { None };
            if let Some((x0, x1)) = span.filter(|(x0, x1)| x1 - x0 >= 0.5) {
                legend.signs.insert(sign);
                let area = Area { x: x0, y: row.baseline - STRIP, width: x1 - x0, height: STRIP };
                canvas.fill(if sign == Sign::Tardy { Layer::Marks } else { Layer::Bars }, area, fill);
            }
        }
    }
}

fn draw_row(
    canvas: &mut Canvas,
    chart: &Chart<'_>,
    row: &Row,
    task: TaskId,
    intervals: &[&Interval],
    legend: &mut Legend,
) {
    let colour = task_colour(task);
    let pieces: Vec<Interval> = intervals.iter().flat_map(|interval| chart.stolen.outside(interval)).collect();
    let bars: Vec<(Interval, Span<TaskId>)> = join(&chart.layout, &pieces)
        .into_iter()
        .filter_map(|Joined { interval, .. }| Some((interval, chart.layout.span(interval.from, interval.to)?)))
        .map(|(interval, (x0, x1))| (interval, Span { x0, x1, fill: task }))
        .collect();
    let spans: Vec<Span<TaskId>> = bars.iter().map(|&(_, span)| span).collect();
    let Merged { wide, strips } = merge(&spans);
    for strip in strips {
        legend.signs.insert(Sign::Merged);
        canvas.fill(Layer::Bars, strip.area(row), &colour);
    }
    draw_stolen(canvas, chart, row, intervals, legend);
    for position in wide {
        let (interval, span) = bars[position];
        let Some(cpu) = interval.activity.cpu() else { continue };
        let area = row.area(span.x0, span.x1);
        let hatched = hatching(chart, &interval);
        if let Some((fill, pattern, sign)) = &hatched {
            legend.signs.insert(*sign);
            canvas.hatched_bar(area, (fill, pattern), "");
        } else if is_torn(chart, &interval, area) {
            legend.signs.insert(Sign::Preempted);
            canvas.torn_bar(area, &colour, "");
        } else {
            canvas.bar(area, &colour, "");
        }
        let (label, size) = (cpu.to_string(), row.font - 2.0);
        if text_width(&label, size) + 6.0 <= area.width {
            let (fill, halo) = if hatched.is_some() { (INK, true) } else { (text_on(&colour), false) };
            let style = TextStyle { size, fill, anchor: "middle", halo, ..TextStyle::default() };
            canvas.text(Layer::Text, area.x + area.width / 2.0, row.text_line(size) - 0.8, &label, style);
        }
    }
}

/// The time in which a job had a CPU that carried out no thread, where that can be seen.
fn draw_stolen(canvas: &mut Canvas, chart: &Chart<'_>, row: &Row, intervals: &[&Interval], legend: &mut Legend) {
    for (from, to) in intervals.iter().flat_map(|interval| chart.stolen.during(interval)) {
        if let Some((x0, x1)) = chart.layout.span(from, to).filter(|(x0, x1)| x1 - x0 >= 1.0) {
            legend.signs.insert(Sign::Stolen);
            canvas.hatched_bar(row.area(x0, x1), (STOLEN_FILL, STOLEN_PATTERN), "");
        }
    }
}

/// Colour, pattern and sign of bars that are not plain execution: spinning, and bottom halves in interrupt threads.
fn hatching(chart: &Chart<'_>, interval: &Interval) -> Option<(String, &'static str, Sign)> {
    match interval.activity {
        Activity::Spinning { job, .. } => Some((task_colour(job.task), SPINNING_PATTERN, Sign::Spinning)),
        Activity::Execution { job, .. } => {
            let owner = chart.timeline.served.get(&job)?.owner.map(|owner| owner.task);
            Some((owner_colour(owner), BOTTOM_HALF_PATTERN, Sign::BottomHalf))
        }
        _ => None,
    }
}
