//! The rows of the engines of GPUs: the operations that ran there.

use laxity_model::TaskId;

use super::Chart;
use super::canvas::{Canvas, Layer};
use super::cpus::draw_job_label;
use super::dense::{Merged, Span, merge};
use super::layout::Row;
use super::legend::{Legend, Sign};
use crate::intervals::{Activity, Interval};

/// Draws every engine's row.
pub fn draw(canvas: &mut Canvas, chart: &Chart<'_>, legend: &mut Legend) {
    for (engine, row) in chart.engines.iter().zip(&chart.layout.engines) {
        let operations = chart.timeline.intervals.iter().filter(|interval| match interval.activity {
            Activity::Operation { gpu, engine: other, .. } => engine.is(gpu, other),
            _ => false,
        });
        draw_row(canvas, chart, row, operations, legend);
    }
}

fn draw_row<'a>(
    canvas: &mut Canvas,
    chart: &Chart<'_>,
    row: &Row,
    operations: impl Iterator<Item = &'a Interval>,
    legend: &mut Legend,
) {
    let bars: Vec<(&Interval, Span<TaskId>)> = operations
        .filter_map(|interval| {
            let (x0, x1) = chart.layout.span(interval.from, interval.to)?;
            Some((interval, Span { x0, x1, fill: interval.activity.job()?.task }))
        })
        .collect();
    let spans: Vec<Span<TaskId>> = bars.iter().map(|&(_, span)| span).collect();
    let Merged { wide, strips } = merge(&spans);
    for strip in strips {
        legend.signs.insert(Sign::Merged);
        canvas.fill(Layer::Bars, strip.area(row), &legend.task_fill(strip.fill));
    }
    for position in wide {
        let (interval, span) = bars[position];
        let Some(job) = interval.activity.job() else { continue };
        let (area, colour) = (row.area(span.x0, span.x1), legend.task_fill(span.fill));
        canvas.bar(area, &colour, &chart.tooltip(interval, interval.duration()));
        draw_job_label(canvas, chart, row, job, area, &colour);
    }
}
