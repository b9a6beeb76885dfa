//! The rows of the CPUs: the jobs that executed there, and what took the CPU from them.

use std::collections::BTreeMap;

use laxity_model::{CpuId, Instant, JobId, OverheadKind, TaskId};

use super::canvas::{Area, Canvas, GRAY, INK, Layer, Stroke, TextStyle, subscripted_width};
use super::dense::{Merged, Span, merge};
use super::join::{Joined, join};
use super::layout::{Layout, Row};
use super::legend::{Legend, Sign};
use super::palette::{
    BOTTOM_HALF_PATTERN, LOCK_FILL, OUTSIDE, OUTSIDE_PATTERN, RED, SPINNING_PATTERN, STOLEN, STOLEN_FILL,
    STOLEN_PATTERN, TOP_HALF_PATTERN, overhead_fill, text_on,
};
use super::{Chart, interrupts, job_label, marks};
use crate::intervals::{Activity, Begin, Interval, Source, Stop};

/// Above this many, arrows between rows would cover the chart and are left out.
const ARROWS_MAX: usize = 80;
/// Above this many bars in the window, tooltips would make the file large and are left out.
const TOOLTIPS_MAX: usize = 2_000;

/// The fill of a bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fill {
    Task(TaskId),
    /// On a stack or in a thread, for this owner.
    BottomHalf(Option<TaskId>),
    Spinning(TaskId),
    TopHalf(Option<TaskId>),
    Overhead(OverheadKind),
    LockWait,
    Stolen,
    Outside,
}

/// Draws every CPU's row, migrations and inter-processor interrupts; and the jobs' marks, if there are no task rows.
pub fn draw(canvas: &mut Canvas, chart: &Chart<'_>, legend: &mut Legend) {
    if chart.layout.cpus.is_empty() {
        return;
    }
    let mut rows: Vec<Vec<&Interval>> = vec![Vec::new(); chart.layout.cpus.len()];
    for interval in &chart.timeline.intervals {
        let row = interval.activity.cpu().and_then(|cpu| rows.get_mut(cpu.index()));
        if let (Some(row), Some(_)) = (row, chart.layout.span(interval.from, interval.to)) {
            row.push(interval);
        }
    }
    let tooltips = rows.iter().map(Vec::len).sum::<usize>() <= TOOLTIPS_MAX;
    for (row, intervals) in chart.layout.cpus.iter().zip(&rows) {
        draw_row(canvas, chart, row, intervals, tooltips, legend);
    }
    draw_migrations(canvas, chart, legend);
    draw_ipis(canvas, chart, legend);
    if chart.layout.tasks.is_empty() {
        marks::on_cpus(canvas, chart, legend);
    }
}

fn draw_row(
    canvas: &mut Canvas,
    chart: &Chart<'_>,
    row: &Row,
    intervals: &[&Interval],
    tooltips: bool,
    legend: &mut Legend,
) {
    let pieces: Vec<Interval> = intervals.iter().flat_map(|interval| chart.stolen.outside(interval)).collect();
    let bars: Vec<(Joined, Span<Fill>)> = join(&chart.layout, &pieces)
        .into_iter()
        .filter_map(|joined| Some((joined, span(chart, &joined.interval)?)))
        .collect();
    let spans: Vec<Span<Fill>> = bars.iter().map(|&(_, span)| span).collect();
    let Merged { wide, strips } = merge(&spans);
    for position in wide {
        let (joined, span) = bars[position];
        let tooltip = if tooltips { chart.tooltip(&joined.interval, joined.duration) } else { String::new() };
        draw_bar(canvas, chart, row, &joined.interval, span, &tooltip, legend);
    }
    // After the bars: overhead too short to split a bar shows at its foot.
    for strip in strips {
        let area = strip.area(row);
        // Patterns need room to be seen; merged overhead is dark.
        let fill = match strip.fill {
            Fill::Task(task) => {
                legend.signs.insert(Sign::Merged);
                legend.task_fill(task)
            }
            Fill::Stolen => {
                legend.signs.insert(Sign::Stolen);
                STOLEN.to_owned()
            }
            Fill::Outside => {
                legend.signs.insert(Sign::Outside);
                OUTSIDE.to_owned()
            }
            _ => {
                legend.signs.insert(Sign::MergedOverhead);
                INK.to_owned()
            }
        };
        canvas.fill(Layer::Bars, area, &fill);
    }
    for interval in intervals {
        if let (Activity::NonPreemptive { .. }, Some((x0, x1))) =
            (interval.activity, chart.layout.span(interval.from, interval.to))
        {
            legend.signs.insert(Sign::NonPreemptive);
            let y = row.bar_top - 1.5;
            canvas.line(Layer::Marks, (x0, y), (x1, y), Stroke::solid(INK, 2.4));
        }
        if let (Activity::Throttled { .. }, Some((x0, x1))) =
            (interval.activity, chart.layout.span(interval.from, interval.to))
        {
            legend.signs.insert(Sign::Throttled);
            let y = row.baseline - 1.2;
            canvas.line(Layer::Marks, (x0, y), (x1, y), Stroke::solid(RED, 2.4));
        }
    }
}

fn span(chart: &Chart<'_>, interval: &Interval) -> Option<Span<Fill>> {
    let owner = |source: Option<Source>| source.and_then(|source| source.owner).map(|owner| owner.task);
    let fill = match interval.activity {
        Activity::Execution { job, .. } => match chart.timeline.served.get(&job) {
            Some(&source) => Fill::BottomHalf(owner(Some(source))),
            None => Fill::Task(job.task),
        },
        Activity::BottomHalf { source, .. } => Fill::BottomHalf(owner(Some(source))),
        Activity::Spinning { job, .. } => Fill::Spinning(job.task),
        Activity::Overhead { kind: OverheadKind::TopHalf, source, .. } => Fill::TopHalf(owner(source)),
        Activity::Overhead { kind, .. } => Fill::Overhead(kind),
        Activity::LockWait { .. } => Fill::LockWait,
        Activity::Stolen { .. } => Fill::Stolen,
        Activity::Outside { .. } => Fill::Outside,
        Activity::Operation { .. }
        | Activity::Throttled { .. }
        | Activity::Suspension { .. }
        | Activity::NonPreemptive { .. }
        | Activity::AwaitingLock { .. }
        | Activity::CriticalSection { .. }
        | Activity::Inheritance { .. } => return None,
    };
    let (x0, x1) = chart.layout.span(interval.from, interval.to)?;
    Some(Span { x0, x1, fill })
}

fn draw_bar(
    canvas: &mut Canvas,
    chart: &Chart<'_>,
    row: &Row,
    interval: &Interval,
    span: Span<Fill>,
    tooltip: &str,
    legend: &mut Legend,
) {
    let area = row.area(span.x0, span.x1);
    match span.fill {
        Fill::Task(task) => {
            let colour = legend.task_fill(task);
            if is_torn(chart, interval, area) {
                legend.signs.insert(Sign::Preempted);
                canvas.torn_bar(area, &colour, tooltip);
            } else {
                canvas.bar(area, &colour, tooltip);
            }
            if let Some(job) = interval.activity.job() {
                draw_job_label(canvas, chart, row, job, area, &colour);
            }
        }
        Fill::BottomHalf(owner) => {
            legend.signs.insert(Sign::BottomHalf);
            canvas.hatched_bar(area, (&legend.owner_fill(owner), BOTTOM_HALF_PATTERN), tooltip);
            let served = interval.activity.job().and_then(|thread| chart.timeline.served.get(&thread)).copied();
            if let Some(source) = interval.activity.source().or(served) {
                interrupts::label_bottom_half(canvas, chart, row, area, source);
            }
        }
        Fill::Spinning(task) => {
            legend.signs.insert(Sign::Spinning);
            canvas.hatched_bar(area, (&legend.task_fill(task), SPINNING_PATTERN), tooltip);
        }
        Fill::TopHalf(owner) => {
            legend.signs.insert(Sign::TopHalf);
            canvas.hatched_bar(area, (&legend.owner_fill(owner), TOP_HALF_PATTERN), tooltip);
        }
        Fill::Overhead(kind) => {
            legend.signs.insert(Sign::Overhead(kind));
            canvas.bar(area, overhead_fill(kind), tooltip);
        }
        Fill::LockWait => {
            legend.signs.insert(Sign::LockWait);
            canvas.bar(area, LOCK_FILL, tooltip);
        }
        Fill::Stolen => {
            legend.signs.insert(Sign::Stolen);
            canvas.hatched_bar(area, (STOLEN_FILL, STOLEN_PATTERN), tooltip);
        }
        Fill::Outside => {
            legend.signs.insert(Sign::Outside);
            canvas.hatched_bar(area, (STOLEN_FILL, OUTSIDE_PATTERN), tooltip);
        }
    }
}

/// Whether the bar of this execution is torn: it was preempted, and its end is in the window and wide enough to be
/// seen.
pub fn is_torn(chart: &Chart<'_>, interval: &Interval, area: Area) -> bool {
    let preempted = matches!(interval.activity, Activity::Execution { end: Stop::Preempted, .. });
    preempted && area.width >= 4.0 && interval.to <= chart.layout.to
}

/// `T_i,j` in the middle of a bar, if it fits.
pub fn draw_job_label(canvas: &mut Canvas, chart: &Chart<'_>, row: &Row, job: JobId, area: Area, colour: &str) {
    let (base, subscript) = job_label(chart.header, job);
    let label = (base.as_str(), subscript.as_str());
    if subscripted_width(label, row.font) + 6.0 <= area.width {
        let style = TextStyle { size: row.font, fill: text_on(colour), anchor: "middle", ..TextStyle::default() };
        canvas.subscripted(area.x + area.width / 2.0, row.text_line(row.font) - 0.8, label, style);
    }
}

/// A dashed arrow from where a job last executed to where it goes on.
fn draw_migrations(canvas: &mut Canvas, chart: &Chart<'_>, legend: &mut Legend) {
    let mut stopped: BTreeMap<JobId, Instant> = BTreeMap::new();
    let mut arrows = Vec::new();
    for interval in &chart.timeline.intervals {
        let Activity::Execution { cpu, job, begin, .. } = interval.activity else { continue };
        if let (Begin::Migrated { from }, Some(&since)) = (begin, stopped.get(&job)) {
            arrows.extend(
                chart
                    .layout
                    .span(since, interval.from.saturating_add(laxity_model::Nanos(1)))
                    .and_then(|_| Some((chart.layout.mark(since)?, from, chart.layout.mark(interval.from)?, cpu))),
            );
        }
        stopped.insert(job, interval.to);
    }
    if arrows.len() > ARROWS_MAX {
        return;
    }
    for (x0, from, x1, to) in arrows {
        legend.signs.insert(Sign::Migration);
        let stroke = Stroke { colour: INK, width: 1.0, dashes: "3,2" };
        between_rows(canvas, &chart.layout, (x0, from), (x1, to), stroke);
    }
}

/// A thin arrow from sender to receiver.
fn draw_ipis(canvas: &mut Canvas, chart: &Chart<'_>, legend: &mut Legend) {
    let shown: Vec<_> = chart
        .timeline
        .ipis
        .iter()
        .filter_map(|ipi| Some((chart.layout.mark(ipi.at)?, chart.layout.mark(ipi.arrives)?, ipi)))
        .take(ARROWS_MAX + 1)
        .collect();
    if shown.len() > ARROWS_MAX {
        return;
    }
    for (x0, x1, ipi) in shown {
        legend.signs.insert(Sign::Ipi);
        between_rows(canvas, &chart.layout, (x0, ipi.from), (x1, ipi.to), Stroke::solid(GRAY, 0.9));
    }
}

/// An arrow from the near edge of one row's bars to the near edge of the other's.
fn between_rows(canvas: &mut Canvas, layout: &Layout, from: (f64, CpuId), to: (f64, CpuId), stroke: Stroke<'_>) {
    let (Some(start), Some(end)) = (layout.cpus.get(from.1.index()), layout.cpus.get(to.1.index())) else { return };
    let (y0, y1) = match start.top < end.top {
        true => (start.baseline, end.bar_top),
        false => (start.bar_top, end.baseline),
    };
    canvas.arrow(Layer::Marks, (from.0, y0), (to.0, y1), stroke, 4.5);
}
