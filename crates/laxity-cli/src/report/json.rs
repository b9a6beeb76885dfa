//! A report for programs. The fields are described in `docs/reference/json.md` and are stable.

use laxity_model::{OverheadCosts, OverheadKind};
use laxity_trace::metrics::{CpuSummary, JobSummary, MachineSummary, TaskSummary};
use laxity_trace::{Origin, TaskInfo};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::Report;

/// One schedule.
#[derive(Serialize)]
struct Run<'a> {
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

/// One report as one JSON object.
pub fn one(report: &Report) -> String {
    pretty(&run(report))
}

/// Several reports as one JSON object: `{"laxity": ..., "runs": [...]}`.
pub fn many(reports: &[Report]) -> String {
    #[derive(Serialize)]
    struct Runs<'a> {
        laxity: &'static str,
        runs: Vec<Run<'a>>,
    }
    pretty(&Runs { laxity: env!("CARGO_PKG_VERSION"), runs: reports.iter().map(run).collect() })
}

fn pretty(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("numbers, texts and maps of text keys are JSON");
    text.push('\n');
    text
}

fn run(report: &Report) -> Run<'_> {
    let header = &report.header;
    let summary = &report.summary;
    Run {
        laxity: env!("CARGO_PKG_VERSION"),
        workload: &header.workload,
        scheduler: header.scheduler.to_string(),
        origin: match header.origin {
            Origin::Simulated => "simulated",
            Origin::Live => "live",
        },
        overheads: overheads(report.overheads.as_deref(), &header.costs),
        seed: header.seed,
        simulated_ns: summary.duration.0,
        interrupted: report.cut_short.is_some(),
        tasks: header.tasks.iter().zip(&summary.tasks).map(|(info, summary)| task(info, summary)).collect(),
        total: &summary.total,
        cpus: &summary.cpus,
        machine: &summary.machine,
    }
}

fn task<'a>(info: &TaskInfo, summary: &'a TaskSummary) -> Task<'a> {
    Task { summary, period_ns: info.period.0, deadline_ns: info.deadline.0, wcet_ns: info.wcet.0 }
}

/// The profile's name and what each source costs at this number of tasks.
fn overheads(name: Option<&str>, costs: &OverheadCosts) -> Value {
    let costs: Map<String, Value> =
        OverheadKind::ALL.iter().map(|&kind| (kind.name().to_owned(), costs.of(kind).0.into())).collect();
    json!({ "profile": name, "costs_ns": costs })
}
