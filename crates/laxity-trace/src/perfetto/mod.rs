//! Traces for the Perfetto UI (<https://ui.perfetto.dev>).
//!
//! - Every CPU has its track of running threads (ftrace `sched_switch` and `sched_waking`): a task is a thread, named
//!   like the task, of one process named like the workload.
//! - Below each thread stands a track of its jobs: a slice from release to completion, with the job's number, deadline,
//!   response time, lateness and more. Suspensions and non-preemptive sections are slices within it.
//! - On the thread's own track are instants for releases, met and missed deadlines, and cache-related delay.
//! - Beside that stand a track of its waits for locks and one of the priorities that it inherits.
//! - Every CPU has a track of overheads, with an arrow from the sender of an inter-processor interrupt to its receiver.
//!   On it are also the interrupts of devices, top halves, bottom halves on the stack of the CPU's job, and spinning.
//!   Bottom halves in interrupt threads are jobs of those threads; an instant names the job that they serve.
//! - Every engine of a GPU has a track of its operations, and every replica of a lock one of its holders.
//! - Tokens are arrows from where they were produced to where they are consumed.
//!
//! Timestamps are those of the trace, in ns, on Perfetto's default clock.

mod exporter;
pub mod messages;
mod names;
mod sched;
mod writer;

use std::io;

pub use exporter::Exporter;
use thiserror::Error;

use crate::intervals::TrackError;
use crate::{Record, TraceHeader};

/// Writes the whole trace to `writer`; see [`Exporter`] for traces that do not fit into memory.
///
/// Same header and records: the same bytes. Errors: [`ExportError`]; what was written until then is a trace of the
/// time until then.
pub fn export<W: io::Write>(header: &TraceHeader, records: &[Record], writer: W) -> Result<(), ExportError> {
    let mut exporter = Exporter::new(header, writer)?;
    for record in records {
        exporter.record(record)?;
    }
    exporter.finish()?;
    Ok(())
}

/// The trace cannot be exported.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The records do not belong to the header.
    #[error("{0}")]
    Track(#[from] TrackError),
    /// The writer failed.
    #[error("cannot write the exported trace: {0}")]
    Write(#[from] io::Error),
}
