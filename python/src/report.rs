//! Everything measured, as users see it: the JSON that `docs/reference/json.md` describes, which the `laxity` command
//! prints too.

use laxity_model::OverheadKind;
use laxity_trace::metrics::{CpuSummary, JobSummary, MachineSummary, Summary, TaskSummary};
use laxity_trace::{Origin, TraceHeader};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// One schedule.
#[derive(Serialize)]
pub struct Report<'a> {
    laxity: &'static str,
    workload: &'a str,
    scheduler: String,
    origin: &'static str,
    overheads: Value,
    seed: u64,
    simulated_ns: u64,
    interrupted: bool,
    tasks: Vec<Task<'a>>,
    total: &'a JobSummary,
    cpus: &'a [CpuSummary],
    machine: &'a MachineSummary,
}

/// A task's parameters and what was measured of its jobs.
#[derive(Serialize)]
struct Task<'a> {
    #[serde(flatten)]
    summary: &'a TaskSummary,
    period_ns: u64,
    deadline_ns: u64,
    wcet_ns: u64,
}

impl<'a> Report<'a> {
    /// What `summary` measured; `profile` names the overheads where they are known.
    pub fn new(header: &'a TraceHeader, summary: &'a Summary, profile: Option<&str>) -> Self {
        let task = |(info, summary): (&laxity_trace::TaskInfo, &'a TaskSummary)| Task {
            summary,
            period_ns: info.period.0,
            deadline_ns: info.deadline.0,
            wcet_ns: info.wcet.0,
        };
        let cost = |kind: OverheadKind| (kind.name().to_owned(), header.costs.of(kind).0.into());
        let costs: Map<String, Value> = OverheadKind::ALL.into_iter().map(cost).collect();
        Report {
            laxity: env!("CARGO_PKG_VERSION"),
            workload: &header.workload,
            scheduler: header.scheduler.to_string(),
            origin: origin(header),
            overheads: json!({ "profile": profile, "costs_ns": costs }),
            seed: header.seed,
            simulated_ns: summary.duration.0,
            // One that was interrupted raises an exception.
            interrupted: false,
            tasks: header.tasks.iter().zip(&summary.tasks).map(task).collect(),
            total: &summary.total,
            cpus: &summary.cpus,
            machine: &summary.machine,
        }
    }
}

/// Who wrote a trace.
pub fn origin(header: &TraceHeader) -> &'static str {
    match header.origin {
        Origin::Simulated => "simulated",
        Origin::Live => "live",
    }
}
