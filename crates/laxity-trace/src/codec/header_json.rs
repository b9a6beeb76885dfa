//! The header as JSON: readable without Laxity, and open to further fields within a format version.

use laxity_model::{
    CpuId, Engine, EngineOrder, GpuId, InterruptHandling, Nanos, OverheadCosts, Scheduler, TaskId, ThreadPriority,
};
use serde::{Deserialize, Serialize};

use super::HEADER_MAX;
use crate::{
    DeviceInfo, EdgeInfo, EdgeKind, GpuInfo, GraphInfo, LockInfo, LockKind, Origin, TaskInfo, TaskKind, TraceHeader,
};

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
    // What came later in this version of the format is absent from older files.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    arbitration: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handling: Option<HandlingJson>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gpus: Vec<GpuJson>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    devices: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    locks: Vec<LockJson>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    graphs: Vec<GraphJson>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    edges: Vec<EdgeJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum HandlingJson {
    Linux,
    PreemptRtLow,
    PreemptRtHigh,
    Pai,
    Klmirqd { threads: Option<u32> },
}

#[derive(Serialize, Deserialize)]
struct GpuJson {
    name: String,
    cluster: usize,
    copy_engines: u8,
}

#[derive(Serialize, Deserialize)]
struct LockJson {
    name: String,
    replicas: u16,
    #[serde(flatten)]
    kind: LockKindJson,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
enum LockKindJson {
    Resource { order: OrderJson },
    Semaphore { gpus: Vec<u16> },
    KFmlp { gpus: Vec<u16> },
    Tokens { gpus: Vec<u16> },
    Engine { gpu: u16, engine: u8, order: OrderJson },
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum OrderJson {
    Fifo,
    Priority,
}

#[derive(Serialize, Deserialize)]
struct GraphJson {
    name: String,
    nodes: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
struct EdgeJson {
    producer: u32,
    consumer: u32,
    produce: u32,
    consume: u32,
    threshold: u32,
    initial: u32,
    kind: EdgeKindJson,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum EdgeKindJson {
    Token,
    Back,
    Feedback,
}

#[derive(Serialize, Deserialize, Default, PartialEq)]
#[serde(rename_all = "snake_case")]
enum TaskKindJson {
    #[default]
    Task,
    Node {
        graph: usize,
        source: bool,
    },
    Thread,
    Callback,
}

impl TaskKindJson {
    fn is_task(&self) -> bool {
        *self == TaskKindJson::Task
    }
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
    #[serde(default)]
    top_half_ns: u64,
    #[serde(default)]
    bottom_half_ns: u64,
    #[serde(default)]
    thread_release_ns: u64,
    #[serde(default)]
    pai_enqueue_ns: u64,
    #[serde(default)]
    pai_check_ns: u64,
}

#[derive(Serialize, Deserialize)]
struct TaskJson {
    name: String,
    period_ns: u64,
    deadline_ns: u64,
    wcet_ns: u64,
    cluster: usize,
    rank: u32,
    #[serde(default, skip_serializing_if = "TaskKindJson::is_task")]
    kind: TaskKindJson,
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
        arbitration: header.arbitration.clone(),
        handling: Some(handling_to_json(header.handling)),
        gpus: header
            .gpus
            .iter()
            .map(|gpu| GpuJson { name: gpu.name.clone(), cluster: gpu.cluster, copy_engines: gpu.copy_engines })
            .collect(),
        devices: header.devices.iter().map(|device| device.name.clone()).collect(),
        locks: header.locks.iter().map(lock_to_json).collect(),
        graphs: header
            .graphs
            .iter()
            .map(|graph| GraphJson { name: graph.name.clone(), nodes: graph.nodes.iter().map(|task| task.0).collect() })
            .collect(),
        edges: header.edges.iter().map(edge_to_json).collect(),
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
        arbitration: json.arbitration,
        handling: json.handling.map_or_else(InterruptHandling::default, handling_from_json),
        gpus: json
            .gpus
            .into_iter()
            .map(|gpu| GpuInfo { name: gpu.name, cluster: gpu.cluster, copy_engines: gpu.copy_engines })
            .collect(),
        devices: json.devices.into_iter().map(|name| DeviceInfo { name }).collect(),
        locks: json.locks.into_iter().map(lock_from_json).collect::<Result<_, String>>()?,
        graphs: json
            .graphs
            .into_iter()
            .map(|graph| GraphInfo { name: graph.name, nodes: graph.nodes.into_iter().map(TaskId).collect() })
            .collect(),
        edges: json.edges.into_iter().map(edge_from_json).collect(),
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
        let graphs = header.graphs.len();
        if let TaskKind::Node { graph, .. } = task.kind
            && graph >= graphs
        {
            return Err(format!("task `{}` is a node of graph {graph} where there are {graphs}", task.name));
        }
    }
    let known_gpu = |gpu: GpuId| match header.gpus.get(gpu.index()) {
        Some(_) => Ok(()),
        None => Err(format!("a lock names {gpu} where there are {} GPUs", header.gpus.len())),
    };
    for lock in &header.locks {
        match &lock.kind {
            LockKind::Resource { .. } => {}
            LockKind::Semaphore { gpus } | LockKind::KFmlp { gpus } | LockKind::Tokens { gpus } => {
                gpus.iter().try_for_each(|&gpu| known_gpu(gpu))?;
            }
            LockKind::Engine { gpu, .. } => known_gpu(*gpu)?,
        }
    }
    let tasks = header.tasks.len();
    let named = header.graphs.iter().flat_map(|graph| graph.nodes.iter().copied());
    let named = named.chain(header.edges.iter().flat_map(|edge| [edge.producer, edge.consumer]));
    if let Some(task) = named.into_iter().find(|task| task.index() >= tasks) {
        return Err(format!("a graph names task {} where there are {tasks}", task.0));
    }
    Ok(())
}

fn handling_to_json(handling: InterruptHandling) -> HandlingJson {
    match handling {
        InterruptHandling::Linux => HandlingJson::Linux,
        InterruptHandling::PreemptRt(ThreadPriority::Low) => HandlingJson::PreemptRtLow,
        InterruptHandling::PreemptRt(ThreadPriority::High) => HandlingJson::PreemptRtHigh,
        InterruptHandling::ProcessAware => HandlingJson::Pai,
        InterruptHandling::Klmirqd { threads } => HandlingJson::Klmirqd { threads },
    }
}

fn handling_from_json(json: HandlingJson) -> InterruptHandling {
    match json {
        HandlingJson::Linux => InterruptHandling::Linux,
        HandlingJson::PreemptRtLow => InterruptHandling::PreemptRt(ThreadPriority::Low),
        HandlingJson::PreemptRtHigh => InterruptHandling::PreemptRt(ThreadPriority::High),
        HandlingJson::Pai => InterruptHandling::ProcessAware,
        HandlingJson::Klmirqd { threads } => InterruptHandling::Klmirqd { threads },
    }
}

fn lock_to_json(lock: &LockInfo) -> LockJson {
    let pool = |gpus: &[GpuId]| gpus.iter().map(|gpu| gpu.0).collect();
    let order = |order| match order {
        EngineOrder::Fifo => OrderJson::Fifo,
        EngineOrder::Priority => OrderJson::Priority,
    };
    let kind = match &lock.kind {
        LockKind::Resource { order: by } => LockKindJson::Resource { order: order(*by) },
        LockKind::Semaphore { gpus } => LockKindJson::Semaphore { gpus: pool(gpus) },
        LockKind::KFmlp { gpus } => LockKindJson::KFmlp { gpus: pool(gpus) },
        LockKind::Tokens { gpus } => LockKindJson::Tokens { gpus: pool(gpus) },
        LockKind::Engine { gpu, engine, order: by } => {
            LockKindJson::Engine { gpu: gpu.0, engine: engine.index() as u8, order: order(*by) }
        }
    };
    LockJson { name: lock.name.clone(), replicas: lock.replicas, kind }
}

fn lock_from_json(json: LockJson) -> Result<LockInfo, String> {
    let pool = |gpus: Vec<u16>| gpus.into_iter().map(GpuId).collect();
    let order = |order| match order {
        OrderJson::Fifo => EngineOrder::Fifo,
        OrderJson::Priority => EngineOrder::Priority,
    };
    let kind = match json.kind {
        LockKindJson::Resource { order: by } => LockKind::Resource { order: order(by) },
        LockKindJson::Semaphore { gpus } => LockKind::Semaphore { gpus: pool(gpus) },
        LockKindJson::KFmlp { gpus } => LockKind::KFmlp { gpus: pool(gpus) },
        LockKindJson::Tokens { gpus } => LockKind::Tokens { gpus: pool(gpus) },
        LockKindJson::Engine { gpu, engine, order: by } => {
            let engine = *Engine::ALL.get(usize::from(engine)).ok_or_else(|| format!("engine {engine} of 0 to 2"))?;
            LockKind::Engine { gpu: GpuId(gpu), engine, order: order(by) }
        }
    };
    Ok(LockInfo { name: json.name, replicas: json.replicas, kind })
}

fn edge_to_json(edge: &EdgeInfo) -> EdgeJson {
    EdgeJson {
        producer: edge.producer.0,
        consumer: edge.consumer.0,
        produce: edge.produce,
        consume: edge.consume,
        threshold: edge.threshold,
        initial: edge.initial,
        kind: match edge.kind {
            EdgeKind::Token => EdgeKindJson::Token,
            EdgeKind::Back => EdgeKindJson::Back,
            EdgeKind::Feedback => EdgeKindJson::Feedback,
        },
    }
}

fn edge_from_json(json: EdgeJson) -> EdgeInfo {
    EdgeInfo {
        producer: TaskId(json.producer),
        consumer: TaskId(json.consumer),
        produce: json.produce,
        consume: json.consume,
        threshold: json.threshold,
        initial: json.initial,
        kind: match json.kind {
            EdgeKindJson::Token => EdgeKind::Token,
            EdgeKindJson::Back => EdgeKind::Back,
            EdgeKindJson::Feedback => EdgeKind::Feedback,
        },
    }
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
        top_half_ns: costs.top_half.0,
        bottom_half_ns: costs.bottom_half.0,
        thread_release_ns: costs.thread_release.0,
        pai_enqueue_ns: costs.pai_enqueue.0,
        pai_check_ns: costs.pai_check.0,
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
        top_half: Nanos(json.top_half_ns),
        bottom_half: Nanos(json.bottom_half_ns),
        thread_release: Nanos(json.thread_release_ns),
        pai_enqueue: Nanos(json.pai_enqueue_ns),
        pai_check: Nanos(json.pai_check_ns),
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
        kind: match task.kind {
            TaskKind::Task => TaskKindJson::Task,
            TaskKind::Node { graph, source } => TaskKindJson::Node { graph, source },
            TaskKind::Thread => TaskKindJson::Thread,
            TaskKind::Callback => TaskKindJson::Callback,
        },
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
        kind: match json.kind {
            TaskKindJson::Task => TaskKind::Task,
            TaskKindJson::Node { graph, source } => TaskKind::Node { graph, source },
            TaskKindJson::Thread => TaskKind::Thread,
            TaskKindJson::Callback => TaskKind::Callback,
        },
    }
}
