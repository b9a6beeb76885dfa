//! Interrupts of devices: where they arrive, and how their halves look.

use laxity_model::TaskId;

use super::canvas::{Area, Canvas, INK, Layer, TextStyle, subscripted_width};
use super::layout::Row;
use super::legend::{Legend, Sign};
use super::palette::{darker, owner_colour};
use super::{Chart, job_label};
use crate::intervals::Source;

/// Flashes closer than this many pixels are drawn once.
const CLOSEST: f64 = 3.0;

/// A flash above the row of the CPU that each interrupt is routed to, in the colour of its owner.
pub fn draw(canvas: &mut Canvas, chart: &Chart<'_>, legend: &mut Legend) {
    let mut last = vec![f64::NEG_INFINITY; chart.layout.cpus.len()];
    for interrupt in &chart.timeline.interrupts {
        let cpu = interrupt.cpu.index();
        let (Some(row), Some(x)) = (chart.layout.cpus.get(cpu), chart.layout.mark(interrupt.at)) else { continue };
        if x - last[cpu] >= CLOSEST {
            last[cpu] = x;
            legend.signs.insert(Sign::Interrupt);
            flash(canvas, row, x, interrupt.source.owner.map(|owner| owner.task));
        }
    }
}

/// A flash whose tip is on the upper edge of the row's bars.
pub fn flash(canvas: &mut Canvas, row: &Row, x: f64, owner: Option<TaskId>) {
    let unit = (row.bar_top - row.top).min(12.0) / 12.0;
    let corners = [(0.0, 0.0), (4.2, -6.5), (1.2, -6.5), (3.4, -12.0), (-2.8, -4.6), (0.4, -4.6)];
    let corners = corners.map(|(dx, dy)| (x + dx * unit, row.bar_top + dy * unit));
    let colour = owner.map_or(INK.to_owned(), |owner| darker(&owner_colour(Some(owner))));
    canvas.polygon(Layer::Marks, &corners, &colour);
}

/// `BH` and its owner's label as subscript in the middle of a bottom half, if it fits (paper 000, Fig. 1).
pub fn label_bottom_half(canvas: &mut Canvas, chart: &Chart<'_>, row: &Row, area: Area, source: Source) {
    let owner = source.owner.map(|owner| job_label(chart.header, owner));
    let owner = owner.map_or(String::new(), |(base, subscript)| format!("{base}{subscript}"));
    let label = ("BH", owner.as_str());
    if subscripted_width(label, row.font) + 6.0 <= area.width {
        let style = TextStyle { size: row.font, anchor: "middle", halo: true, ..TextStyle::default() };
        canvas.subscripted(area.x + area.width / 2.0, row.text_line(row.font) - 0.8, label, style);
    }
}
