//! The chart as SVG, for papers and reports.
//!
//! Conventions of paper 002, Fig. 1: small up-arrows are releases, down-arrows deadlines, T-shaped marks completions,
//! hatched boxes overheads. Colours are told apart by readers with any colour vision, and their lightness differs in
//! print. Misses, overheads and preemptions also have shapes of their own.
//!
//! Top halves, bottom halves on a CPU's stack or in an interrupt thread, and spinning are no execution of the job that
//! they are for: they have the colour of its task under a pattern. Time in which a CPU was stolen from all threads cuts the bars
//! of the jobs that were there.

mod canvas;
mod cpus;
mod dense;
mod engines;
mod interrupts;
mod join;
mod layout;
mod legend;
mod locks;
mod marks;
mod palette;
mod tasks;

use ::svg::Document;
use ::svg::node::element::Title;
use laxity_model::{JobId, Nanos};

use self::canvas::{Canvas, Layer, TextStyle, clean};
use self::layout::Layout;
use self::legend::Legend;
use self::locks::Held;
use super::engines::{EngineRow, engine_rows};
use super::stolen::Stolen;
use super::{GanttError, Rows, Window, caption, gpu_management};
use crate::intervals::{Activity, Interval, Timeline};
use crate::{Origin, Record, TraceHeader};

/// How to draw the chart as SVG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SvgOptions {
    /// The rows.
    pub rows: Rows,
    /// The part to draw.
    pub window: Window,
    /// Width of the picture in pixels, 320 to 20,000; its height follows from the rows.
    pub width: u32,
    /// Whether a line above the chart names workload, scheduler, origin and seed.
    pub caption: bool,
    /// Whether the signs used are explained below the chart.
    pub legend: bool,
}

impl Default for SvgOptions {
    fn default() -> Self {
        SvgOptions { rows: Rows::Both, window: Window::default(), width: 1_000, caption: true, legend: true }
    }
}

/// The chart as an SVG document.
///
/// Interruptions narrower than a pixel do not split a bar. Intervals narrower than a pixel are merged: a bar then shows
/// the task that used most of its pixel, and is as high as the share of the pixel that was used. With a row per task,
/// releases, deadlines and completions stand there; with CPUs alone, they stand on the CPU that handled the release,
/// executed the job last, and completed it. Below a task's row stand the locks that its jobs hold, above its bars the
/// priorities that they inherit.
///
/// Same header, records and options: the same bytes. Errors: [`GanttError`].
pub fn svg(header: &TraceHeader, records: &[Record], options: &SvgOptions) -> Result<String, GanttError> {
    let timeline = Timeline::of(header, records)?;
    let (from, to) = options.window.edges(&timeline)?;
    let engines = if options.rows.cpus() { engine_rows(header) } else { Vec::new() };
    let held = Held::of(&timeline, (from, to), header.tasks.len());
    let layout = Layout::new(header, options, (from, to), &engines, &held.lanes());
    let stolen = Stolen::of(&timeline, header.cpus);
    let chart = Chart { header, timeline: &timeline, layout, engines, held, stolen };
    let mut canvas = Canvas::new();
    let mut legend = Legend::default();
    layout::draw_frame(&mut canvas, &chart);
    if options.caption {
        draw_caption(&mut canvas, header, chart.layout.width);
    }
    cpus::draw(&mut canvas, &chart, &mut legend);
    interrupts::draw(&mut canvas, &chart, &mut legend);
    engines::draw(&mut canvas, &chart, &mut legend);
    locks::draw(&mut canvas, &chart, &mut legend);
    tasks::draw(&mut canvas, &chart, &mut legend);
    let mut bottom = chart.layout.bottom;
    if options.legend {
        bottom = legend.draw(&mut canvas, header, &chart.layout);
    }
    let size = (chart.layout.width, canvas::round(bottom + layout::MARGIN));
    let document = Document::new()
        .set("viewBox", format!("0 0 {} {}", size.0, size.1))
        .set("width", size.0)
        .set("height", size.1)
        .add(Title::new(format!("{}: {from} to {to}", clean(&caption(header)))));
    Ok(canvas.finish(document, size).to_string())
}

/// The data of the picture, for all its parts.
struct Chart<'a> {
    header: &'a TraceHeader,
    timeline: &'a Timeline,
    layout: Layout,
    engines: Vec<EngineRow>,
    held: Held,
    stolen: Stolen,
}

impl Chart<'_> {
    /// The text of a bar's tooltip: `camera job 3: 1 ms to 3 ms (2 ms)`; of a bar that is no execution with its kind.
    fn tooltip(&self, interval: &Interval, duration: Nanos) -> String {
        let activity = interval.activity;
        let job = activity.job().map(|job| job_name(self.header, job));
        let what = activity.name().replace('_', " ");
        let served = activity.job().and_then(|thread| self.timeline.served.get(&thread)).copied();
        let owner = activity.source().or(served).and_then(|source| source.owner);
        let whose = owner.map(|owner| format!(" for {}", job_name(self.header, owner))).unwrap_or_default();
        let subject = match (activity, job) {
            (Activity::Execution { .. }, Some(job)) => format!("{job}{whose}"),
            (Activity::AwaitingLock { lock, .. }, Some(job)) => {
                format!("{job} waits for {}", locks::lock_name(self, lock, None))
            }
            (Activity::CriticalSection { lock, replica, .. }, Some(job)) => {
                format!("{job} holds {}", locks::lock_name(self, lock, Some(replica)))
            }
            (Activity::Inheritance { of, .. }, Some(job)) => {
                format!("{job} inherits from {}", self.header.tasks[of.index()].name)
            }
            (Activity::Operation { name: Some(name), .. }, Some(job)) => {
                format!("{job}, {}", self.header.operation(name).unwrap_or_default())
            }
            (Activity::Outside { by, .. }, _) => {
                format!("{} {}", by.kind.name().replace('_', " "), self.header.outsider_name(by))
            }
            (_, Some(job)) => format!("{job}, {what}"),
            (_, None) => format!("{what}{whose}"),
        };
        format!("{subject}: {} to {} ({duration})", interval.from, interval.to)
    }
}

fn draw_caption(canvas: &mut Canvas, header: &TraceHeader, width: f64) {
    let origin = match header.origin {
        Origin::Simulated => format!("simulated, seed {}", header.seed),
        Origin::Live => "recorded live".to_owned(),
    };
    let style = TextStyle { size: 13.0, bold: true, ..TextStyle::default() };
    canvas.text(Layer::Text, layout::MARGIN, 20.0, &header.workload, style);
    let gpus = gpu_management(header).map(|management| format!(" · {management}")).unwrap_or_default();
    let details = format!("{} · {origin}{gpus}", header.scheduled_by());
    // Bold letters are wider than those that the estimate knows.
    let x = layout::MARGIN + canvas::text_width(&header.workload, 13.0) * 1.2 + 14.0;
    let style = TextStyle { size: 12.0, fill: canvas::GRAY, ..TextStyle::default() };
    canvas.text(Layer::Text, x, 20.0, &canvas::shorten(&details, 12.0, width - x - layout::MARGIN), style);
}

/// A job's label: a base and its subscript, `T` and `1,0`.
///
/// The base is the task's name where that is short, its number otherwise (and the row then says which that is); a
/// number at its end moves into the subscript.
fn job_label(header: &TraceHeader, job: JobId) -> (String, String) {
    let name = task_symbol(header, job.task.index());
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = &name[base.len()..];
    match (base.is_empty(), number.is_empty()) {
        (true, _) => (format!("T{name}"), job.index.to_string()),
        (false, true) => (base.to_owned(), job.index.to_string()),
        (false, false) => (base.to_owned(), format!("{number},{}", job.index)),
    }
}

/// A job in a tooltip: `camera job 3`.
fn job_name(header: &TraceHeader, job: JobId) -> String {
    let task = header.tasks.get(job.task.index()).map_or("", |task| task.name.as_str());
    format!("{task} job {}", job.index)
}

/// The label of a task: its name if that is short, otherwise `T` and its number.
fn task_symbol(header: &TraceHeader, task: usize) -> String {
    match header.tasks.get(task).map(|task| task.name.as_str()) {
        Some(name) if !name.is_empty() && name.chars().count() <= 4 => name.to_owned(),
        _ => format!("T{task}"),
    }
}
