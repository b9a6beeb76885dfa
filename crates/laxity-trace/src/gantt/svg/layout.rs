//! Where everything stands: rows, scale, frame and axis.

use laxity_model::Instant;

use super::canvas::{Area, Canvas, GRAY, INK, Layer, Stroke, TextStyle, shorten, text_width};
use super::{Chart, SvgOptions, task_symbol};
use crate::TraceHeader;
use crate::gantt::axis::Axis;
use crate::gantt::engines::EngineRow;

/// Room around the picture.
pub const MARGIN: f64 = 12.0;
/// Names take at most this much room, and never more than a third of the picture: enough for a process and its node,
/// such as `T10 stabilizer-12345/display_stabilized_image`.
const NAMES_MAX: f64 = 290.0;
/// Room for the caption.
const CAPTION: f64 = 22.0;
/// Room between the last CPU and the first task.
const GAP: f64 = 14.0;
/// Room for ticks, their labels and the axis title.
const AXIS: f64 = 40.0;

/// The geometry of the picture.
pub struct Layout {
    /// Left edge of the window in time.
    pub from: Instant,
    /// Right edge of the window in time.
    pub to: Instant,
    /// Width of the picture.
    pub width: f64,
    /// Left edge of the rows.
    pub left: f64,
    /// Right edge of the rows.
    pub right: f64,
    /// Rows of the CPUs; empty if they are not drawn.
    pub cpus: Vec<Row>,
    /// Rows of the engines; empty if they are not drawn.
    pub engines: Vec<Row>,
    /// Rows of the tasks; empty if they are not drawn.
    pub tasks: Vec<Row>,
    /// Lower edge of the axis.
    pub bottom: f64,
}

/// Where a row stands.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Upper edge, room for arrows included.
    pub top: f64,
    /// Upper edge of bars.
    pub bar_top: f64,
    /// Lower edge of bars: the row's baseline.
    pub baseline: f64,
    /// Font size of labels in bars.
    pub font: f64,
}

impl Row {
    /// Height of a bar.
    pub fn bar(&self) -> f64 {
        self.baseline - self.bar_top
    }

    /// The middle of bars.
    pub fn middle(&self) -> f64 {
        (self.bar_top + self.baseline) / 2.0
    }

    /// Where a text of `size` must stand to be in the middle of bars.
    pub fn text_line(&self, size: f64) -> f64 {
        self.middle() + size * 0.35
    }

    /// A bar in a lane below the baseline, where locks that a task holds are shown; the uppermost lane is 0.
    pub fn lane(&self, lane: usize, x0: f64, x1: f64) -> Area {
        let height = lane_height(self.font);
        let y = self.baseline + 1.5 + lane as f64 * height;
        Area { x: x0, y, width: x1 - x0, height: height - 1.5 }
    }

    /// A bar between two horizontal positions.
    pub fn area(&self, x0: f64, x1: f64) -> Area {
        Area { x: x0, y: self.bar_top, width: x1 - x0, height: self.bar() }
    }
}

impl Layout {
    /// The geometry for these engines' rows, and for tasks of which each needs so many lanes below its row.
    pub fn new(
        header: &TraceHeader,
        options: &SvgOptions,
        (from, to): (Instant, Instant),
        engines: &[EngineRow],
        lanes: &[usize],
    ) -> Self {
        let width = f64::from(options.width.clamp(320, 20_000));
        let mut y = MARGIN + if options.caption { CAPTION } else { 0.0 };
        let cpu_count = if options.rows.cpus() { header.cpus.min(usize::from(u16::MAX) + 1) } else { 0 };
        let lanes = if options.rows.tasks() { lanes } else { &[] };
        let total = cpu_count + engines.len() + lanes.len();
        // Arrows stand in the rows of the tasks, or of the CPUs if there are no others.
        let cpus = stack(&mut y, &vec![0; cpu_count], total, lanes.is_empty());
        if cpu_count > 0 && !engines.is_empty() {
            y += GAP / 2.0;
        }
        let engine_rows = stack(&mut y, &vec![0; engines.len()], total, false);
        if cpu_count > 0 && !lanes.is_empty() {
            y += GAP;
        }
        let tasks = stack(&mut y, lanes, total, true);
        let names = names_width(header, cpu_count, engines, lanes.len());
        let left = MARGIN + names.min(NAMES_MAX.min(width / 3.0)) + 8.0;
        let right = width - MARGIN - 8.0;
        Layout { from, to, width, left, right, cpus, engines: engine_rows, tasks, bottom: y + AXIS }
    }

    /// The horizontal position of an instant in the window; outside it, that of the nearer edge.
    pub fn x(&self, at: Instant) -> f64 {
        let share = at.saturating_since(self.from).0 as f64 / self.to.saturating_since(self.from).0 as f64;
        self.left + share.min(1.0) * (self.right - self.left)
    }

    /// The positions of both ends of a span, or `None` if the window shows nothing of it.
    pub fn span(&self, from: Instant, to: Instant) -> Option<(f64, f64)> {
        (from < self.to && self.from < to).then(|| (self.x(from), self.x(to)))
    }

    /// The position of a mark, or `None` outside the window.
    pub fn mark(&self, at: Instant) -> Option<f64> {
        (self.from <= at && at <= self.to).then(|| self.x(at))
    }
}

/// Rows below one another, each with so many lanes below it; lower if the picture has many rows (`total`).
fn stack(y: &mut f64, lanes: &[usize], total: usize, arrows: bool) -> Vec<Row> {
    let (bar, arrow, gap, font) = match total {
        0..=16 => (20.0, 13.0, 7.0, 11.0),
        17..=32 => (14.0, 9.0, 4.0, 9.0),
        _ => (10.0, 6.0, 3.0, 7.5),
    };
    // Without arrows of their own, rows still need room for those between CPUs.
    let room = if arrows { arrow + gap } else { gap * 1.8 };
    let rows = lanes.iter().map(|&lanes| {
        let top = *y;
        let bar_top = top + room;
        let baseline = bar_top + bar;
        *y = baseline + lanes as f64 * lane_height(font);
        Row { top, bar_top, baseline, font }
    });
    rows.collect()
}

/// Height of a lane below a row, in which a label of this size is just legible.
fn lane_height(font: f64) -> f64 {
    font.clamp(7.0, 10.0)
}

fn names_width(header: &TraceHeader, cpus: usize, engines: &[EngineRow], tasks: usize) -> f64 {
    let cpu = if cpus > 0 { text_width(&format!("cpu{}", cpus - 1), 11.0) } else { 0.0 };
    let engines = engines.iter().map(|engine| text_width(&engine.name, 11.0));
    let tasks = (0..tasks).map(|task| text_width(&task_name(header, task), 11.0));
    engines.chain(tasks).fold(cpu, f64::max)
}

/// A task's name as its row shows it: led by its symbol where labels use that instead of the name.
pub fn task_name(header: &TraceHeader, task: usize) -> String {
    let (name, symbol) = (&header.tasks[task].name, task_symbol(header, task));
    if *name == symbol { symbol } else { format!("{symbol} {name}") }
}

/// Draws names, baselines, grid and axis.
pub fn draw_frame(canvas: &mut Canvas, chart: &Chart<'_>) {
    let layout = &chart.layout;
    for (index, row) in layout.cpus.iter().enumerate() {
        draw_name(canvas, layout, row, &format!("cpu{index}"));
    }
    for (engine, row) in chart.engines.iter().zip(&layout.engines) {
        draw_name(canvas, layout, row, &engine.name);
    }
    for (index, row) in layout.tasks.iter().enumerate() {
        draw_name(canvas, layout, row, &task_name(chart.header, index));
    }
    let rows = || layout.cpus.iter().chain(&layout.engines).chain(&layout.tasks);
    let top = rows().next().map_or(MARGIN, |row| row.top + 2.0);
    let baseline = layout.bottom - AXIS + 8.0;
    draw_axis(canvas, layout, top, baseline);
    for row in rows() {
        let (from, to) = ((layout.left, row.baseline), (layout.right, row.baseline));
        canvas.line(Layer::Grid, from, to, Stroke::solid("#9A9A9A", 0.7));
    }
}

fn draw_name(canvas: &mut Canvas, layout: &Layout, row: &Row, name: &str) {
    let size = row.font.clamp(9.0, 11.0);
    // Rounding must not cut the longest name, which the room was made for.
    let room = layout.left - MARGIN - 7.5;
    let shown = shorten(name, size, room);
    let style = TextStyle { size, anchor: "end", ..TextStyle::default() };
    canvas.text(Layer::Text, layout.left - 8.0, row.text_line(size), &shown, style);
}

fn draw_axis(canvas: &mut Canvas, layout: &Layout, top: f64, baseline: f64) {
    let most = ((layout.right - layout.left) / 70.0).max(2.0) as u64;
    let axis = Axis::new(layout.from, layout.to, most);
    let style = TextStyle { size: 10.0, anchor: "middle", ..TextStyle::default() };
    let mut free_from = 0.0;
    for (at, label) in axis.ticks() {
        let x = layout.x(at);
        canvas.line(Layer::Grid, (x, top), (x, baseline), Stroke::solid("#E4E4E4", 0.7));
        canvas.line(Layer::Marks, (x, baseline), (x, baseline + 4.0), Stroke::solid(INK, 0.8));
        let half = text_width(&label, 10.0) / 2.0;
        if x - half > free_from && x + half < layout.width - 2.0 {
            canvas.text(Layer::Text, x, baseline + 15.0, &label, style);
            free_from = x + half + 6.0;
        }
    }
    canvas.line(Layer::Marks, (layout.left, baseline), (layout.right, baseline), Stroke::solid(INK, 0.8));
    let unit = if axis.unit() == "us" { "µs" } else { axis.unit() };
    let middle = (layout.left + layout.right) / 2.0;
    let style = TextStyle { size: 11.0, anchor: "middle", fill: GRAY, ..TextStyle::default() };
    canvas.text(Layer::Text, middle, baseline + 29.0, &format!("time ({unit})"), style);
}
