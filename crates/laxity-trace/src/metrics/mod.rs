//! Measurements of a schedule, simulated or live: one fold over its records.
//!
//! [`Metrics`] is a [`Sink`]: it runs beside a simulation without a trace being kept, in memory that
//! depends on the numbers of tasks, CPUs and pending jobs but not on the length of the run.

mod chains;
mod cpu;
mod devices;
mod distribution;
mod extras;
mod fold;
mod graphs;
mod histogram;
mod inversion;
mod job;
mod memory;
mod node_jobs;
mod origins;
mod report;
mod summary;
mod waits;

pub use chains::{ChainDeadline, ChainSummary};
pub(crate) use chains::{Chains, LateOutput};
pub use devices::{EngineSummary, InterruptSummary};
pub use distribution::{Distribution, DistributionSummary};
pub use fold::Metrics;
pub use graphs::{CompletionDelays, GraphSummary, NodeSummary};
pub use inversion::{Collect, Inversion, InversionKind, InversionSummary, Inversions, Lengths};
pub use memory::{BestEffortSummary, BudgetUse, MemorySummary, OperationSummary};
pub use node_jobs::{NodeJobs, NodeSpans, Spans};
pub use origins::{EndToEnd, EndToEndLatencies};
pub use report::Report;
pub use summary::{
    CpuSummary, JobSummary, LatenessSummary, MachineSummary, OutsideSummary, OutsideUse, OverheadSummary, OverheadUse,
    ResponseTimeSummary, StolenSummary, Summary, TardinessSummary, TaskSummary,
};
pub use waits::{WaitCause, WaitSummary};

use laxity_model::Instant;

use crate::{Record, Sink, TraceHeader};

/// Measures `records` up to `end`.
pub fn measure(header: &TraceHeader, records: &[Record], end: Instant) -> Summary {
    let mut metrics = Metrics::new(header);
    for record in records {
        metrics.record(record.at, record.event);
    }
    metrics.finish(end)
}
