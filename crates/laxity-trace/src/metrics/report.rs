//! A summary together with its workload: the JSON that `docs/reference/json.md` describes. The command prints it,
//! the Python package returns it.

use laxity_model::{Nanos, OverheadKind};
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::devices::has_devices;
use super::{
    ChainSummary, CpuSummary, EngineSummary, GraphSummary, InterruptSummary, InversionSummary, JobSummary,
    MachineSummary, MemorySummary, OutsideSummary, StolenSummary, Summary, TaskSummary,
};
use crate::{TaskInfo, TraceHeader};

/// One schedule as users see it. Field names are stable.
#[derive(Serialize)]
pub struct Report<'a> {
    laxity: &'static str,
    workload: &'a str,
    scheduler: String,
    origin: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    gpu_management: Option<Management<'a>>,
    overheads: Overheads<'a>,
    seed: u64,
    #[serde(rename = "simulated_ns")]
    simulated: Nanos,
    interrupted: bool,
    tasks: Vec<Task<'a>>,
    total: &'a JobSummary,
    cpus: &'a [CpuSummary],
    machine: &'a MachineSummary,
    #[serde(skip_serializing_if = "slice_is_empty")]
    threads: &'a [TaskSummary],
    #[serde(skip_serializing_if = "slice_is_empty")]
    engines: &'a [EngineSummary],
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupts: Option<&'a InterruptSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inversions: Option<&'a InversionSummary>,
    #[serde(skip_serializing_if = "slice_is_empty")]
    graphs: &'a [GraphSummary],
    #[serde(skip_serializing_if = "slice_is_empty")]
    chains: &'a [ChainSummary],
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<&'a MemorySummary>,
    #[serde(skip_serializing_if = "slice_is_empty")]
    stolen: &'a [StolenSummary],
    #[serde(skip_serializing_if = "slice_is_empty")]
    outside: &'a [OutsideSummary],
}

/// How GPUs are shared and where bottom halves run; only where something interrupts.
#[derive(Serialize)]
struct Management<'a> {
    arbitration: &'a str,
    handling: &'static str,
}

/// A task's parameters and what was measured of its jobs.
#[derive(Serialize)]
struct Task<'a> {
    #[serde(flatten)]
    summary: &'a TaskSummary,
    #[serde(rename = "period_ns")]
    period: Nanos,
    #[serde(rename = "deadline_ns")]
    deadline: Nanos,
    #[serde(rename = "wcet_ns")]
    wcet: Nanos,
}

/// The profile's name, where it is known, and what each source costs at this number of tasks.
#[derive(Serialize)]
struct Overheads<'a> {
    profile: Option<&'a str>,
    #[serde(rename = "costs_ns")]
    costs: Costs<'a>,
}

struct Costs<'a>(&'a TraceHeader);

impl<'a> Report<'a> {
    /// The measurements in `summary` of the schedule that `header` describes. `profile` names the overheads where they are
    /// known; `interrupted` says that the run ended before its time.
    pub fn new(header: &'a TraceHeader, summary: &'a Summary, profile: Option<&'a str>, interrupted: bool) -> Self {
        let task = |(info, summary): (&TaskInfo, &'a TaskSummary)| Task {
            summary,
            period: info.period,
            deadline: info.deadline,
            wcet: info.wcet,
        };
        Report {
            laxity: env!("CARGO_PKG_VERSION"),
            workload: &header.workload,
            scheduler: header.scheduler.to_string(),
            origin: header.origin.name(),
            gpu_management: has_devices(header)
                .then(|| Management { arbitration: &header.arbitration, handling: header.handling.name() }),
            overheads: Overheads { profile, costs: Costs(header) },
            seed: header.seed,
            simulated: summary.duration,
            interrupted,
            tasks: header.tasks.iter().zip(&summary.tasks).map(task).collect(),
            total: &summary.total,
            cpus: &summary.cpus,
            machine: &summary.machine,
            threads: &summary.threads,
            engines: &summary.engines,
            interrupts: summary.interrupts.as_ref(),
            inversions: summary.inversions.as_ref(),
            graphs: &summary.graphs,
            chains: &summary.chains,
            memory: summary.memory.as_ref(),
            stolen: &summary.stolen,
            outside: &summary.outside,
        }
    }
}

impl Serialize for Costs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(OverheadKind::ALL.len()))?;
        for kind in OverheadKind::ALL {
            map.serialize_entry(kind.name(), &self.0.costs.of(kind).as_nanos())?;
        }
        map.end()
    }
}

fn slice_is_empty<T>(slice: &&[T]) -> bool {
    slice.is_empty()
}
