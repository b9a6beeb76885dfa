//! What a check found. Serialized, it is the JSON that `docs/reference/json.md` describes.

use laxity_model::{CpuId, GpuArbitration, InterruptHandling, Nanos, OverheadCosts, Scheduler, SignedNanos};
use num_traits::ToPrimitive;
use serde::Serialize;

use super::{Accounting, Criterion, Terms, json};
use crate::{Rational, Test};

/// What was found about a workload under one scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The scheduler.
    #[serde(serialize_with = "json::text")]
    pub scheduler: Scheduler,
    /// Which job gets which GPU when; `None` on a platform without GPUs.
    #[serde(serialize_with = "json::arbitration")]
    pub arbitration: Option<GpuArbitration>,
    /// Where bottom halves of GPU interrupts run; `None` on a platform without GPUs.
    #[serde(serialize_with = "json::handling")]
    pub handling: Option<InterruptHandling>,
    /// The overheads that were charged.
    pub overheads: ChargedOverheads,
    /// How overheads became execution time.
    pub accounting: Accounting,
    /// What cannot be analysed, by name. If there is anything, nothing below says anything.
    #[serde(rename = "refused")]
    pub refusals: Vec<Refusal>,
    /// Whether no job ever misses its deadline.
    pub hard: Finding,
    /// Whether tardiness is bounded.
    pub soft: Finding,
    /// Utilization of all clusters together.
    #[serde(rename = "utilization")]
    pub load: Load,
    /// By how much all execution times may grow, if that was asked for.
    pub scaling: Option<Scaling>,
    /// The clusters, each analysed on its own.
    pub clusters: Vec<ClusterReport>,
    /// The tasks in the file's order, then the nodes of each graph.
    #[serde(serialize_with = "json::numbered")]
    pub tasks: Vec<TaskReport>,
    /// The graphs.
    pub graphs: Vec<GraphReport>,
    /// The chains.
    pub chains: Vec<ChainReport>,
}

/// The overheads that a check charges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChargedOverheads {
    /// Name of the profile.
    pub profile: String,
    /// What each source costs at this number of tasks.
    #[serde(rename = "costs_ns", serialize_with = "json::costs")]
    pub costs: OverheadCosts,
}

/// Something the analysis cannot treat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Whose: `task "camera"`.
    pub subject: String,
    /// What, why, and the way out.
    pub reason: String,
}

/// How a question was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is proven.
    Schedulable,
    /// No test could prove it.
    NotProven,
    /// It cannot be.
    Infeasible,
    /// The analysis cannot treat the workload.
    Refused,
}

/// An answer, and which test gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The answer; of several clusters, the worst.
    pub status: Status,
    /// The tests that decided, one a cluster, each once; empty where none was needed.
    pub tests: Vec<Test>,
    /// Where it is not proven: the first cluster's deciding failure, then that of every other test that was tried.
    pub failures: Vec<Failure>,
}

/// Why something is not proven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Index of the cluster.
    pub cluster: usize,
    /// The test, if one ran.
    pub test: Option<Test>,
    /// For which task, an index into [`Report::tasks`].
    pub task: Option<usize>,
    /// For which interval.
    #[serde(rename = "interval_ns")]
    pub interval: Option<Nanos>,
    /// What is wrong, in words.
    pub message: String,
}

/// CPUs that share a ready queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClusterReport {
    /// Those that run jobs.
    pub cpus: Vec<CpuId>,
    /// Indices into [`Report::tasks`].
    pub tasks: Vec<usize>,
    /// Its utilization.
    #[serde(rename = "utilization")]
    pub load: Load,
    /// Whether no job ever misses its deadline.
    pub hard: Finding,
    /// Whether tardiness is bounded.
    pub soft: Finding,
}

/// Utilization before and after overheads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The sum of wcet over period; rounded up to a multiple of 2^-64 where there are hundreds of different periods.
    pub before: Rational,
    /// The sum of inflated wcet over period; `None` if no accounting was possible.
    pub after: Option<Rational>,
}

/// What was found about a task or a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskReport {
    /// The task's name; of a node, `graph/node`.
    pub name: String,
    /// Index of the cluster it runs on.
    pub cluster: usize,
    /// Minimum separation of jobs.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// Relative deadline.
    #[serde(rename = "deadline_ns")]
    pub deadline: Nanos,
    /// Worst-case CPU time of a job.
    #[serde(rename = "wcet_ns")]
    pub wcet: Nanos,
    /// The same with overheads, blocking and suspensions; `None` if no accounting was possible.
    #[serde(rename = "inflated_wcet_ns")]
    pub inflated_wcet: Option<Nanos>,
    /// What makes it up.
    #[serde(rename = "terms_ns")]
    pub terms: Option<Terms>,
    /// A bound on the response time, counted from the arrival.
    #[serde(flatten, serialize_with = "json::bound")]
    pub response_time: Option<Bound>,
    /// A bound on the tardiness.
    #[serde(rename = "tardiness_ns")]
    pub tardiness: Option<Nanos>,
    /// Deadline minus response-time bound: what is left, or missing.
    #[serde(rename = "laxity_ns")]
    pub laxity: Option<SignedNanos>,
}

/// A bound on a response time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The bound.
    pub time: Nanos,
    /// Where it comes from.
    pub by: BoundSource,
}

/// Where a bound comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundSource {
    /// A response-time analysis.
    Test(Test),
    /// The test that accepted bounds no response times, but deadlines are met.
    Deadline,
    /// The analysis of bounded tardiness: deadline plus tardiness bound, or less where the deadline is far beyond the period.
    Tardiness,
}

/// What was found about a graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GraphReport {
    /// Its name.
    pub name: String,
    /// The greatest latency of a sink: from the arrival of the oldest of the sources' jobs whose tokens its job takes, directly
    /// or through others, to its completion. That is what simulations and live runs measure.
    #[serde(rename = "end_to_end_ns")]
    pub end_to_end: Option<Nanos>,
    /// If the number of its replicas is left to the analysis: how many it takes that no job ever waits for one, or why
    /// that is not known.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "json::replicas")]
    pub replicas: Option<Result<u32, String>>,
    /// For each node what is bounded; or why nothing is.
    #[serde(flatten, serialize_with = "json::nodes")]
    pub nodes: Result<Vec<NodeBound>, String>,
}

/// A node's bounds: relative to the n-th period of the node, as the first source of its graph arrives; and relative to its sources' jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct NodeBound {
    /// Index into [`Report::tasks`].
    pub task: usize,
    /// By when it is released.
    #[serde(rename = "offset_ns")]
    pub offset: Nanos,
    /// By when it completes.
    #[serde(rename = "completion_ns")]
    pub completion: Nanos,
    /// The same as `offset`, from the arrival of the oldest of the sources' jobs whose tokens it takes, directly or through others;
    /// `None` where no source leads to it.
    #[serde(rename = "released_after_source_ns")]
    pub released_after_source: Option<Nanos>,
    /// The same of its completion: of sinks no more than [`GraphReport::end_to_end`].
    #[serde(rename = "complete_after_source_ns")]
    pub complete_after_source: Option<Nanos>,
    /// Whether it feeds no other node.
    pub is_sink: bool,
}

/// What was found about a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainReport {
    /// Its name.
    pub name: String,
    /// Its nodes: indices into [`Report::tasks`].
    pub path: Vec<usize>,
    /// How old the data may be that an output uses.
    #[serde(rename = "data_age_max_ns")]
    pub data_age_max: Option<Nanos>,
    /// How long an event may take to show in an output.
    #[serde(rename = "reaction_time_max_ns")]
    pub reaction_time_max: Option<Nanos>,
    /// What is bounded; or why nothing is.
    #[serde(flatten, serialize_with = "json::chain")]
    pub bounds: Result<ChainBounds, String>,
}

/// A chain's bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainBounds {
    /// No output uses data that is older (last-to-last).
    pub data_age: Nanos,
    /// No event takes longer to show in an output (first-to-first).
    pub reaction_time: Nanos,
}

/// By how much all execution times may grow before the criterion is no longer proven, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Scaling {
    /// The criterion.
    pub criterion: Criterion,
    /// The largest factor for which it was proven; it then holds for all smaller ones. `None`: not even for 1/1000.
    pub permille: Option<u64>,
    /// Whether the search ended at its limit: the true factor is at least this.
    pub is_capped: bool,
}

impl Report {
    /// The answer to the question that `criterion` asks.
    pub fn finding(&self, criterion: Criterion) -> &Finding {
        match criterion {
            Criterion::Hard => &self.hard,
            Criterion::Soft => &self.soft,
        }
    }
}

impl Load {
    /// Utilization before overheads, for tables and plots; decisions compare exactly.
    pub fn before_f64(&self) -> f64 {
        self.before.to_f64().unwrap_or(f64::MAX)
    }

    /// Utilization after overheads, for tables and plots.
    pub fn after_f64(&self) -> Option<f64> {
        self.after.as_ref().map(|after| after.to_f64().unwrap_or(f64::MAX))
    }
}

impl Status {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Status::Schedulable => "schedulable",
            Status::NotProven => "not_proven",
            Status::Infeasible => "infeasible",
            Status::Refused => "refused",
        }
    }
}

impl BoundSource {
    /// The name in files: a test's, `deadline` or `tardiness`.
    pub const fn name(self) -> &'static str {
        match self {
            BoundSource::Test(test) => test.name(),
            BoundSource::Deadline => "deadline",
            BoundSource::Tardiness => "tardiness",
        }
    }
}

impl Finding {
    /// Nothing was analysed.
    pub(super) fn refused() -> Self {
        Finding { status: Status::Refused, tests: Vec::new(), failures: Vec::new() }
    }

    /// `test` proves it.
    pub(super) fn proven(test: Test) -> Self {
        Finding { status: Status::Schedulable, tests: vec![test], failures: Vec::new() }
    }

    /// It is not proven, or worse.
    pub(super) fn failed(status: Status, failures: Vec<Failure>) -> Self {
        let tests = failures.first().and_then(|failure| failure.test).into_iter().collect();
        Finding { status, tests, failures }
    }

    /// Whether it is proven.
    pub fn is_schedulable(&self) -> bool {
        self.status == Status::Schedulable
    }

    /// The answer for all clusters together: the worst status, the tests of the clusters that have it.
    pub(super) fn of_all<'f>(findings: impl Iterator<Item = &'f Finding> + Clone) -> Finding {
        let status = findings.clone().map(|finding| finding.status).max().unwrap_or(Status::Schedulable);
        let mut tests = Vec::new();
        let mut failures = Vec::new();
        for finding in findings.filter(|finding| finding.status == status) {
            tests.extend(finding.tests.iter().filter(|test| !tests.contains(*test)).copied().collect::<Vec<_>>());
            failures.extend(finding.failures.iter().cloned());
        }
        Finding { status, tests, failures }
    }
}
