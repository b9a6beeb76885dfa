//! Is a workload schedulable under a scheduler, overheads included, with which bounds, and how much laxity is left?
//!
//! ```text
//!   workload --analysed_tasks--> tasks and nodes --assign--> clusters --accounting--> inflated tasks
//!                                                                                 |        |
//!                                                              hard: any of the tests    soft: fixed point of
//!                                                                                 |        |   tardiness and inflation
//!                                                                                 v        v
//!                                        bounds per task --coupled--> do nodes wait for replicas?
//!                                                        --graphs--> end-to-end bounds
//! ```
//!
//! Every answer is sufficient, never more: "schedulable" is proven, "not proven" may still be schedulable, and
//! "infeasible" is said only where no overheads are needed to see it. The analysis refuses features that it cannot
//! treat by name, and then nothing else is said about that configuration.

mod accounting;
mod analysed_task;
mod analysis;
mod assign;
mod branches;
mod busy_period;
mod chains;
mod classes;
mod context;
mod counted_once;
mod counts;
mod coupled;
mod devices;
mod edf;
mod explain;
mod gpu_use;
mod graphs;
mod halves;
mod hard;
mod interrupts;
mod json;
mod levels;
mod lock_groups;
mod memory;
mod occupancy;
#[cfg(test)]
mod plain_sums;
mod preemptions;
mod published;
mod published_gpu;
mod regions;
mod report;
mod safe;
mod scaling;
mod sections;
mod served;
mod settle;
mod settled;
mod sharing;
mod soft;
mod staircases;
mod terms;
mod tokens;
mod unsupported;
mod uses;
mod verdicts;
mod waiting;

pub use json::JsonReport;
pub use report::{
    Bound, BoundSource, ChainBounds, ChainReport, ChargedOverheads, ClusterReport, Failure, Finding, GraphReport, Load,
    NodeBound, Refusal, Report, Scaling, Status, TaskReport,
};
pub use settle::{Settled, settle};
pub use terms::{Term, Terms};
pub use verdicts::SetVerdicts;

use laxity_model::{Scheduler, Workload};
use serde::Serialize;

use crate::Limits;

/// How overheads become execution time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Accounting {
    /// Every delay that the simulator can show is charged. The default: what it accepts misses no deadline there.
    #[default]
    Safe,
    /// As published (paper 002; [`overheads`](crate::overheads)): task-centric for hard deadlines, preemption-centric
    /// or quantum-centric for soft ones; for clusters that use GPUs paper 000 ([`klmirqd`](crate::klmirqd)). It leaves
    /// out that scheduler code holds off interrupts and dispatches, and how
    /// often a job may be displaced under staggered quanta.
    Published,
}

/// By what a configuration is judged, and how far it may be scaled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Criterion {
    /// No job ever misses its deadline.
    #[default]
    Hard,
    /// Tardiness is bounded.
    Soft,
}

/// What [`check`] is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How overheads become execution time.
    pub accounting: Accounting,
    /// By what the scaling factor is judged.
    pub criterion: Criterion,
    /// Whether the scaling factor is wanted; it takes some twenty times the work of the rest.
    pub scaling: bool,
    /// How much work a test may do.
    pub limits: Limits,
}

impl Accounting {
    /// The name on command lines and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Accounting::Safe => "safe",
            Accounting::Published => "published",
        }
    }
}

impl Criterion {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Criterion::Hard => "hard",
            Criterion::Soft => "soft",
        }
    }
}

impl Default for Options {
    /// Safe accounting, hard deadlines, with the scaling factor; a second or so of work per test at most.
    fn default() -> Self {
        let limits = Limits { points: 300_000, rounds: 10_000, steps: 1_000_000 };
        Options { accounting: Accounting::Safe, criterion: Criterion::Hard, scaling: true, limits }
    }
}

/// Analyses `workload`, which must be valid, under `scheduler` and the overheads of its platform.
///
/// Self-suspensions, GPU operations, waits for resources and GPUs, and release jitter count as execution
/// (suspension-oblivious), or are kept apart from it ([`suspension`](crate::suspension)). Ways to share resources and GPUs that
/// have no bound are refused, and so are waits beside a dedicated interrupt CPU. Graphs become sporadic tasks
/// ([`pgm`](crate::pgm)). Best-effort tasks run only where no real-time job wants the CPU: what is left of them is the memory
/// traffic by which they slow GPU operations down ([`bwlock`](crate::bwlock)).
pub fn check(workload: &Workload, scheduler: &Scheduler, options: &Options) -> Report {
    analysis::check(workload, scheduler, options)
}
