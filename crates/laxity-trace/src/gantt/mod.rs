//! Gantt charts: as text for a terminal ([`text`]), as a drawing for tests ([`drawing`]), and as SVG for a paper
//! ([`svg`](svg())).

mod axis;
mod cells;
mod drawing;
mod engines;
mod stolen;
mod svg;
mod text;

use laxity_model::{Instant, Nanos};
use thiserror::Error;

pub use drawing::drawing;
pub use svg::{SvgOptions, svg};
pub use text::{Characters, TextOptions, text};

use crate::intervals::{Timeline, TrackError};
use crate::{Origin, TraceHeader};

/// The rows of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Rows {
    /// A row per CPU, and below them a row per engine of every GPU.
    Cpus,
    /// A row per task.
    Tasks,
    /// A row per CPU, below them a row per engine, and below those a row per task.
    #[default]
    Both,
}

impl Rows {
    const fn cpus(self) -> bool {
        matches!(self, Rows::Cpus | Rows::Both)
    }

    const fn tasks(self) -> bool {
        matches!(self, Rows::Tasks | Rows::Both)
    }
}

/// The part of the trace to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Window {
    /// Left edge.
    pub from: Instant,
    /// Right edge; `None`: the end of the trace. Nothing is known of the time after that, so it ends the chart, too.
    pub to: Option<Instant>,
}

impl Window {
    /// The window from `from` to `to`.
    pub const fn between(from: Instant, to: Instant) -> Self {
        Window { from, to: Some(to) }
    }

    /// Both edges of the window on `timeline`.
    fn edges(self, timeline: &Timeline) -> Result<(Instant, Instant), GanttError> {
        let end = timeline.end;
        let is_empty = self.to.is_some_and(|to| to <= self.from);
        if self.from >= end && end > Instant::ZERO && !is_empty {
            return Err(GanttError::NotRecorded { from: self.from, end });
        }
        let to = self.to.unwrap_or(end).min(end);
        if self.from < to { Ok((self.from, to)) } else { Err(GanttError::EmptyWindow { from: self.from, to }) }
    }
}

/// No chart can be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum GanttError {
    /// The records do not belong to the header.
    #[error("{0}")]
    Track(#[from] TrackError),
    /// The window shows no time.
    #[error("window from {from} to {to} shows no time; choose a right edge later than {from}")]
    EmptyWindow {
        /// Its left edge.
        from: Instant,
        /// Its right edge.
        to: Instant,
    },
    /// The window begins where the trace ends, or later.
    #[error("the trace ends at {end}, so that it has nothing from {from} on; choose a left edge before {end}")]
    NotRecorded {
        /// The left edge of the window.
        from: Instant,
        /// The end of the trace.
        end: Instant,
    },
    /// The drawing would have more columns than people can read.
    #[error(
        "{span} at {step} per column would need more than {limit} columns; choose a longer step or a shorter window"
    )]
    TooManyColumns {
        /// Time it would show.
        span: Nanos,
        /// Time per column.
        step: Nanos,
        /// The most columns it may have.
        limit: usize,
    },
}

/// The caption: `engine, G-EDF/CEm, simulated (seed 7)`.
fn caption(header: &TraceHeader) -> String {
    let origin = match header.origin {
        Origin::Simulated => format!("simulated (seed {})", header.seed),
        Origin::Live => "recorded live".to_owned(),
    };
    let gpus = gpu_management(header).map(|management| format!(", {management}")).unwrap_or_default();
    format!("{}, {}{gpus}, {origin}", header.workload, header.scheduled_by())
}

/// How GPUs are arbitrated and where bottom halves run, if there are GPUs.
fn gpu_management(header: &TraceHeader) -> Option<String> {
    (!header.gpus.is_empty()).then(|| format!("GPUs: {}, interrupts: {}", header.arbitration, header.handling.name()))
}
