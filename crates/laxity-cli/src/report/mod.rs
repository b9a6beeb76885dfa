//! What was measured, for people and for programs.

pub mod chains;
mod comparison;
mod cpu_time;
mod devices;
mod json;
mod memory;
mod outside;
mod stolen;
mod tasks;
mod text;

use laxity_model::Nanos;
use laxity_trace::metrics::Summary;
use laxity_trace::{TaskInfo, TraceHeader};

pub use comparison::comparison;
pub use json::{many, one};
pub use text::{describe, live_scheduler, text};

/// One schedule and what was measured from it.
#[derive(Clone, Debug)]
pub struct Report {
    /// What was scheduled and how.
    pub header: TraceHeader,
    /// The overhead profile's name; unknown where the schedule comes from a trace.
    pub overheads: Option<String>,
    /// What was measured.
    pub summary: Summary,
    /// How long it was meant to be, if it was ended before that.
    pub cut_short: Option<Nanos>,
}

impl Report {
    /// The tasks and nodes of graphs, in the order of [`Summary::tasks`]: interrupt threads and best-effort tasks apart.
    pub fn tasks(&self) -> impl Iterator<Item = &TaskInfo> {
        self.header.tasks.iter().filter(|task| task.kind.has_deadlines())
    }

    /// Whether there is anything that interrupts.
    pub fn has_devices(&self) -> bool {
        !self.header.gpus.is_empty() || !self.header.devices.is_empty()
    }

    /// How GPUs were shared, where there are any, and how interrupts were handled: `gpusync, klmirqd`.
    pub fn management(&self) -> String {
        let handling = self.header.handling.name();
        if self.header.gpus.is_empty() {
            handling.to_owned()
        } else {
            format!("{}, {handling}", self.header.arbitration)
        }
    }
}
