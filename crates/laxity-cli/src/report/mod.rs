//! What was measured, for people and for programs.

mod comparison;
mod cpu_time;
mod json;
mod tasks;
mod text;

use laxity_model::Nanos;
use laxity_trace::TraceHeader;
use laxity_trace::metrics::Summary;

pub use comparison::comparison;
pub use json::{many, one};
pub use text::{describe, text};

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
