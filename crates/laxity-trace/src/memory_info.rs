//! The memory of a trace.

use laxity_model::Nanos;
use serde::{Deserialize, Serialize};

/// The memory of a trace: what causes traffic, and how that is regulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryInfo {
    /// The period of budgets.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// From the moment at which a budget is used up to the one at which the CPU stands still.
    #[serde(rename = "latency_ns")]
    pub latency: Nanos,
    /// The traffic of each task while it executes, in bytes a second, by `TaskId`.
    pub demands: Vec<u64>,
    /// The weight of each best-effort task, in the order of the tasks.
    pub weights: Vec<u64>,
    /// How many times the time in which it was throttled a best-effort task is charged, in millionths.
    pub punishment: u64,
}
