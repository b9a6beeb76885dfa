//! Locks in the rows of the tasks: waits as dashed boxes, critical sections as bars below the row, and inherited
//! priorities as strips above the bars in the colour of the task that they are inherited from.

use laxity_model::{Instant, JobId, LockId, ReplicaId, TaskId};

use super::canvas::{Area, Canvas, GRAY, INK, Layer, Stroke, TextStyle, shorten, text_width};
use super::dense::{Merged, Span, merge};
use super::layout::Row;
use super::legend::{Legend, Sign};
use super::palette::{darker, lock_colour, task_colour};
use super::{Chart, task_symbol};
use crate::intervals::{Activity, Interval, Timeline};

/// More locks than this, held by one task at once, are not shown: the rest of the chart would leave the page.
const LANES_MAX: usize = 4;
/// Labels below this size are not drawn.
const FONT_MIN: f64 = 6.0;

/// The critical sections of a window, and where they are drawn.
pub struct Held {
    /// Of every task, lane by lane.
    lanes: Vec<Vec<Vec<Section>>>,
}

/// A critical section. Those of a lane below a task's row do not overlap.
#[derive(Clone, Copy)]
struct Section {
    interval: Interval,
    lock: LockId,
    replica: ReplicaId,
}

impl Held {
    pub fn of(timeline: &Timeline, (from, to): (Instant, Instant), tasks: usize) -> Self {
        let mut lanes: Vec<Vec<Vec<Section>>> = vec![Vec::new(); tasks];
        for &interval in &timeline.intervals {
            let Activity::CriticalSection { job, lock, replica } = interval.activity else { continue };
            if interval.from >= to || interval.to <= from {
                continue;
            }
            let section = Section { interval, lock, replica };
            let lanes = &mut lanes[job.task.index()];
            // Intervals come ordered by their beginning.
            let is_free = |lane: &Vec<Section>| lane.last().is_none_or(|last| last.interval.to <= interval.from);
            match lanes.iter().position(is_free) {
                Some(lane) => lanes[lane].push(section),
                None if lanes.len() < LANES_MAX => lanes.push(vec![section]),
                None => {}
            }
        }
        Held { lanes }
    }

    /// How many lanes each task's row needs.
    pub fn lanes(&self) -> Vec<usize> {
        self.lanes.iter().map(Vec::len).collect()
    }
}

/// Draws waits, critical sections and inherited priorities.
pub fn draw(canvas: &mut Canvas, chart: &Chart<'_>, legend: &mut Legend) {
    for interval in &chart.timeline.intervals {
        let Some(row) = interval.activity.job().and_then(|job| chart.layout.tasks.get(job.task.index())) else {
            continue;
        };
        // Spans narrower than half a pixel would only make the file larger.
        let span = chart.layout.span(interval.from, interval.to).filter(|(x0, x1)| x1 - x0 >= 0.5);
        match (interval.activity, span) {
            (Activity::AwaitingLock { job, lock }, Some(span)) => {
                legend.signs.insert(Sign::AwaitingLock);
                draw_wait(canvas, chart, row, interval, (job, lock), span);
            }
            (Activity::Inheritance { job, of, .. }, Some(span)) => {
                legend.signs.insert(Sign::Inherits);
                draw_inheritance(canvas, chart, row, interval, (job, of), span);
            }
            _ => {}
        }
    }
    for (row, lanes) in chart.layout.tasks.iter().zip(&chart.held.lanes) {
        for (lane, sections) in lanes.iter().enumerate() {
            draw_lane(canvas, chart, (row, lane), sections, legend);
        }
    }
}

fn draw_wait(
    canvas: &mut Canvas,
    chart: &Chart<'_>,
    row: &Row,
    interval: &Interval,
    (job, lock): (JobId, LockId),
    (x0, x1): (f64, f64),
) {
    let area = row.area(x0, x1);
    let stroke = darker(&task_colour(job.task));
    canvas.outline(area, (lock_colour(lock), &stroke), &chart.tooltip(interval, interval.duration()));
    let (name, size) = (lock_name(chart, lock, None), row.font - 2.5);
    if size >= FONT_MIN && text_width(&name, size) + 8.0 <= area.width {
        let style = TextStyle { size, fill: GRAY, anchor: "middle", halo: true, ..TextStyle::default() };
        canvas.text(Layer::Text, (x0 + x1) / 2.0, row.text_line(size), &name, style);
    }
}

/// The critical sections of a lane, those narrower than a pixel merged.
fn draw_lane(
    canvas: &mut Canvas,
    chart: &Chart<'_>,
    (row, lane): (&Row, usize),
    sections: &[Section],
    legend: &mut Legend,
) {
    let bars: Vec<(&Section, Span<LockId>)> = sections
        .iter()
        .filter_map(|section| {
            let (x0, x1) = chart.layout.span(section.interval.from, section.interval.to)?;
            Some((section, Span { x0, x1, fill: section.lock }))
        })
        .collect();
    let spans: Vec<Span<LockId>> = bars.iter().map(|&(_, span)| span).collect();
    let Merged { wide, strips } = merge(&spans);
    for strip in strips {
        legend.locks.insert(strip.fill);
        canvas.fill(Layer::Bars, row.lane(lane, strip.x, strip.x + strip.width), &darker(lock_colour(strip.fill)));
    }
    for position in wide {
        let (section, span) = bars[position];
        legend.locks.insert(section.lock);
        let area = row.lane(lane, span.x0, span.x1);
        let tooltip = chart.tooltip(&section.interval, section.interval.duration());
        canvas.bar(area, lock_colour(section.lock), &tooltip);
        label_section(canvas, chart, area, section);
    }
}

fn label_section(canvas: &mut Canvas, chart: &Chart<'_>, area: Area, section: &Section) {
    let size = area.height - 1.0;
    let name = lock_name(chart, section.lock, Some(section.replica));
    let shown = shorten(&name, size, area.width - 4.0);
    if size >= FONT_MIN && shown.chars().count() > name.chars().count().min(3) {
        let style = TextStyle { size, anchor: "middle", ..TextStyle::default() };
        canvas.text(Layer::Text, area.x + area.width / 2.0, area.y + area.height * 0.86, &shown, style);
    }
}

/// A strip above the bars, with the name of the task that the priority is inherited from where no mark of a job is in
/// the way.
fn draw_inheritance(
    canvas: &mut Canvas,
    chart: &Chart<'_>,
    row: &Row,
    interval: &Interval,
    (job, of): (JobId, TaskId),
    (x0, x1): (f64, f64),
) {
    let area = Area { x: x0, y: row.bar_top - 4.5, width: x1 - x0, height: 3.0 };
    canvas.bar(area, &task_colour(of), &chart.tooltip(interval, interval.duration()));
    tip(canvas, row, x0);
    let (text, size) = (format!("as {}", task_symbol(chart.header, of.index())), row.font - 3.0);
    let (left, right) = (x0 + 5.0, x0 + 7.0 + text_width(&text, size));
    if size >= FONT_MIN && right <= x1 && !is_marked(chart, job.task, left - 2.0, right + 2.0) {
        let style = TextStyle { size, fill: GRAY, ..TextStyle::default() };
        canvas.text(Layer::Text, left, row.bar_top - 6.0, &text, style);
    }
}

/// The small triangle at the beginning of an inherited priority.
fn tip(canvas: &mut Canvas, row: &Row, x: f64) {
    let y = row.bar_top - 1.5;
    canvas.polygon(Layer::Marks, &[(x, y - 7.0), (x + 3.0, y - 3.0), (x, y - 3.0)], INK);
    canvas.line(Layer::Marks, (x, y), (x, y - 7.0), Stroke::solid(INK, 0.8));
}

/// Draws the sign of an inherited priority for the legend.
pub fn inheritance_sign(canvas: &mut Canvas, row: &Row, x0: f64, x1: f64) {
    canvas.bar(Area { x: x0, y: row.bar_top - 4.5, width: x1 - x0, height: 3.0 }, "#D8D8D8", "");
    tip(canvas, row, x0);
}

/// Whether an arrow of a job of the task stands between two horizontal positions.
fn is_marked(chart: &Chart<'_>, task: TaskId, left: f64, right: f64) -> bool {
    let jobs = chart.timeline.jobs.iter().filter(|job| job.job.task == task);
    let marks = jobs.flat_map(|job| {
        let released = job.released.map(|released| [released.release, released.deadline]);
        released.into_iter().flatten().chain(job.completion())
    });
    marks.filter_map(|at| chart.layout.mark(at)).any(|x| left <= x && x <= right)
}

/// A lock's name, and the replica where it has several: `gpus[1]`.
pub fn lock_name(chart: &Chart<'_>, lock: LockId, replica: Option<ReplicaId>) -> String {
    let Some(info) = chart.header.locks.get(lock.index()) else { return String::new() };
    match replica {
        Some(replica) if info.replicas > 1 => format!("{}[{}]", info.name, replica.0),
        _ => info.name.clone(),
    }
}
