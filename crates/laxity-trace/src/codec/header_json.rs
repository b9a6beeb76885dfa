//! The header as JSON: readable without Laxity, and open to further fields within a format version.

use laxity_model::{CpuId, Nanos, OverheadCosts, Scheduler};
use serde::{Deserialize, Serialize};

use super::HEADER_MAX;
use crate::{Origin, TaskInfo, TraceHeader};

/// CPUs are numbered with 16 bits.
const CPUS_MAX: usize = 1 << 16;

#[derive(Serialize, Deserialize)]
struct HeaderJson {
    origin: OriginJson,
    workload: String,
    cpus: usize,
    clusters: Vec<Vec<u16>>,
    /// As `Scheduler` writes it: `G-EDF/CEm`.
    scheduler: String,
    coarse_lock: bool,
    quantum_ns: u64,
    costs: CostsJson,
    seed: u64,
    tasks: Vec<TaskJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OriginJson {
    Simulated,
    Live,
}

#[derive(Serialize, Deserialize)]
struct CostsJson {
    release_ns: u64,
    scheduling_ns: u64,
    context_switch_ns: u64,
    ipi_latency_ns: u64,
    tick_ns: u64,
    timer_rearming_ns: u64,
    cache_preemption_ns: u64,
    cache_migration_ns: u64,
}

#[derive(Serialize, Deserialize)]
struct TaskJson {
    name: String,
    period_ns: u64,
    deadline_ns: u64,
    wcet_ns: u64,
    cluster: usize,
    rank: u32,
}

/// The header as JSON, or why it cannot be written.
pub(super) fn write(header: &TraceHeader) -> Result<Vec<u8>, String> {
    validate(header)?;
    let json = HeaderJson {
        origin: match header.origin {
            Origin::Simulated => OriginJson::Simulated,
            Origin::Live => OriginJson::Live,
        },
        workload: header.workload.clone(),
        cpus: header.cpus,
        clusters: header.clusters.iter().map(|cpus| cpus.iter().map(|cpu| cpu.0).collect()).collect(),
        scheduler: header.scheduler.to_string(),
        coarse_lock: header.scheduler.coarse_lock,
        quantum_ns: header.quantum.0,
        costs: costs_to_json(&header.costs),
        seed: header.seed,
        tasks: header.tasks.iter().map(task_to_json).collect(),
    };
    let bytes = serde_json::to_vec(&json).map_err(|error| error.to_string())?;
    if bytes.len() > HEADER_MAX as usize {
        return Err(format!("the header takes {} bytes where at most {HEADER_MAX} are possible", bytes.len()));
    }
    Ok(bytes)
}

/// The header that `bytes` describe, or why they describe none.
pub(super) fn read(bytes: &[u8]) -> Result<TraceHeader, String> {
    let json: HeaderJson = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let mut scheduler: Scheduler = json.scheduler.parse().map_err(|error| format!("{error}"))?;
    scheduler.coarse_lock = json.coarse_lock;
    let header = TraceHeader {
        origin: match json.origin {
            OriginJson::Simulated => Origin::Simulated,
            OriginJson::Live => Origin::Live,
        },
        workload: json.workload,
        cpus: json.cpus,
        clusters: json.clusters.into_iter().map(|cpus| cpus.into_iter().map(CpuId).collect()).collect(),
        scheduler,
        quantum: Nanos(json.quantum_ns),
        costs: costs_from_json(&json.costs),
        seed: json.seed,
        tasks: json.tasks.into_iter().map(task_from_json).collect(),
    };
    validate(&header)?;
    Ok(header)
}

/// What readers rely on when they size and index arrays by CPU, cluster and task.
fn validate(header: &TraceHeader) -> Result<(), String> {
    if header.cpus == 0 || header.cpus > CPUS_MAX {
        return Err(format!("{} CPUs where 1 to {CPUS_MAX} are possible", header.cpus));
    }
    for (index, cluster) in header.clusters.iter().enumerate() {
        if let Some(cpu) = cluster.iter().find(|cpu| cpu.index() >= header.cpus) {
            return Err(format!("cluster {index} has {cpu} where there are {} CPUs", header.cpus));
        }
    }
    for task in &header.tasks {
        if task.cluster >= header.clusters.len() {
            let clusters = header.clusters.len();
            return Err(format!("task `{}` is in cluster {} where there are {clusters}", task.name, task.cluster));
        }
    }
    Ok(())
}

fn costs_to_json(costs: &OverheadCosts) -> CostsJson {
    CostsJson {
        release_ns: costs.release.0,
        scheduling_ns: costs.scheduling.0,
        context_switch_ns: costs.context_switch.0,
        ipi_latency_ns: costs.ipi_latency.0,
        tick_ns: costs.tick.0,
        timer_rearming_ns: costs.timer_rearming.0,
        cache_preemption_ns: costs.cache_preemption.0,
        cache_migration_ns: costs.cache_migration.0,
    }
}

fn costs_from_json(json: &CostsJson) -> OverheadCosts {
    OverheadCosts {
        release: Nanos(json.release_ns),
        scheduling: Nanos(json.scheduling_ns),
        context_switch: Nanos(json.context_switch_ns),
        ipi_latency: Nanos(json.ipi_latency_ns),
        tick: Nanos(json.tick_ns),
        timer_rearming: Nanos(json.timer_rearming_ns),
        cache_preemption: Nanos(json.cache_preemption_ns),
        cache_migration: Nanos(json.cache_migration_ns),
    }
}

fn task_to_json(task: &TaskInfo) -> TaskJson {
    TaskJson {
        name: task.name.clone(),
        period_ns: task.period.0,
        deadline_ns: task.deadline.0,
        wcet_ns: task.wcet.0,
        cluster: task.cluster,
        rank: task.rank,
    }
}

fn task_from_json(json: TaskJson) -> TaskInfo {
    TaskInfo {
        name: json.name,
        period: Nanos(json.period_ns),
        deadline: Nanos(json.deadline_ns),
        wcet: Nanos(json.wcet_ns),
        cluster: json.cluster,
        rank: json.rank,
    }
}
