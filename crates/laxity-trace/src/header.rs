//! The header of a trace: its origin, and the workload it shows.

mod written;

use laxity_model::{
    CpuId, EdgeId, EdgeKind, Engine, EngineOrder, GpuId, GpuManagement, Instant, InterruptHandling, Nanos,
    OverheadCosts, Scheduler, Task, TaskId,
};
use serde::{Deserialize, Serialize};

use crate::{LinuxClass, MemoryInfo, OutsiderInfo, ServerInfo};

/// Everything a reader of a trace must know besides its records.
///
/// Serialized as it is in files: fields that came later in this version of the format are absent from older ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceHeader {
    /// Where it comes from.
    pub origin: Origin,
    /// The workload's name.
    pub workload: String,
    /// Number of CPUs.
    pub cpus: usize,
    /// How many CPUs the workload is for, where it was run live on fewer: each stands for several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folded_from: Option<usize>,
    /// The CPUs that share a ready queue, one list per queue; a dedicated interrupt CPU is in none.
    pub clusters: Vec<Vec<CpuId>>,
    /// The scheduler.
    #[serde(flatten, with = "written::scheduler")]
    pub scheduler: Scheduler,
    /// The scheduling quantum.
    #[serde(rename = "quantum_ns")]
    pub quantum: Nanos,
    /// The overheads in force, zero where they are measured rather than modelled.
    pub costs: OverheadCosts,
    /// The seed of random execution times, gaps and jitter.
    pub seed: u64,
    /// Whether the links of a live trace are there: Laxity's scheduler decided, by the policy that the header names. All
    /// simulated traces have links.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_linked: bool,
    /// The class of Linux that scheduled a live run, where Laxity's scheduler did not; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linux_class: Option<LinuxClass>,
    /// The tasks; a `TaskId` indexes this list. First the workload's tasks, then the nodes of its graphs, then the
    /// interrupt threads.
    pub tasks: Vec<TaskInfo>,
    /// How GPUs are arbitrated, by name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub arbitration: String,
    /// Where bottom halves run.
    #[serde(default, with = "written::handling")]
    pub handling: InterruptHandling,
    /// The GPUs; a `GpuId` indexes this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuInfo>,
    /// Names of operations on engines, kernels and copies: [`Event::EngineOperation`](crate::Event::EngineOperation) names
    /// them by their index.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<String>,
    /// What has CPUs and is no task; records tell it, from which readers [`learn`](TraceHeader::learn) it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outsiders: Vec<OutsiderInfo>,
    /// The devices that raise interrupts: the GPUs, then others. A `DeviceId` indexes this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceInfo>,
    /// The locks; a `LockId` indexes this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockInfo>,
    /// The graphs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graphs: Vec<GraphInfo>,
    /// The edges of all graphs; an `EdgeId` indexes this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeInfo>,
    /// The latest-value edges of all graphs; an `EdgeId` from the number of [`TraceHeader::edges`] on indexes this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latest: Vec<LatestInfo>,
    /// The chains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chains: Vec<ChainInfo>,
    /// The tasks that are bandwidth servers, threads of devices among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerInfo>,
    /// Memory, where its traffic slows something down or is regulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryInfo>,
}

/// A device that raises interrupts: its index in [`TraceHeader::devices`]. A GPU's is that of its `GpuId`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct DeviceId(pub u16);

/// A GPU of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuInfo {
    /// Its name.
    pub name: String,
    /// Index into [`TraceHeader::clusters`].
    pub cluster: usize,
    /// 1 or 2.
    pub copy_engines: u8,
}

/// A device of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeviceInfo {
    /// Its name.
    pub name: String,
}

/// A lock of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockInfo {
    /// Its name.
    pub name: String,
    /// How many jobs may hold it at once.
    pub replicas: u16,
    /// The thing that it protects, and the order in which it is granted.
    #[serde(flatten)]
    pub kind: LockKind,
}

/// The thing that a lock protects, and the order in which it is granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum LockKind {
    /// A resource of the workload.
    Resource {
        /// The order of grants; under a ceiling protocol that of priority.
        order: EngineOrder,
    },
    /// A counting semaphore for the GPUs listed: replica `r` is GPU `gpus[r]`. FIFO, without inheritance.
    Semaphore {
        /// The pool.
        gpus: Vec<GpuId>,
    },
    /// A k-FMLP for the GPUs listed: replica `r` is GPU `gpus[r]`.
    KFmlp {
        /// The pool.
        gpus: Vec<GpuId>,
    },
    /// GPUSync's tokens for the GPUs listed, g of them: replica `r` is a token of GPU `gpus[r % g]`.
    Tokens {
        /// The pool.
        gpus: Vec<GpuId>,
    },
    /// GPUSync's lock for an engine.
    Engine {
        /// The GPU.
        gpu: GpuId,
        /// Its engine.
        #[serde(with = "written::engine")]
        engine: Engine,
        /// The order of grants.
        order: EngineOrder,
    },
    /// The bandwidth lock: any number of jobs may hold it, each at the ceiling priority.
    Bandwidth,
}

/// A graph of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphInfo {
    /// Its name.
    pub name: String,
    /// Its nodes, as tasks.
    pub nodes: Vec<TaskId>,
}

/// An edge of a trace's graphs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeInfo {
    /// The task that writes tokens.
    pub producer: TaskId,
    /// The task that reads them.
    pub consumer: TaskId,
    /// Tokens added by each job of the producer.
    pub produce: u32,
    /// Tokens removed by each job of the consumer.
    pub consume: u32,
    /// Tokens that must be there before the consumer may start.
    pub threshold: u32,
    /// Tokens on the edge at the start.
    pub initial: u32,
    /// What it is for.
    pub kind: EdgeKind,
}

/// A latest-value edge of a trace's graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatestInfo {
    /// The task that writes the value.
    pub producer: TaskId,
    /// The task that reads it.
    pub consumer: TaskId,
}

/// A chain of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainInfo {
    /// Its name.
    pub name: String,
    /// Its nodes, as tasks.
    pub path: Vec<TaskId>,
    /// How old the data may be that an output uses.
    #[serde(rename = "data_age_max_ns", default, skip_serializing_if = "Option::is_none")]
    pub data_age_max: Option<Nanos>,
    /// How long an event may take to show in an output.
    #[serde(rename = "reaction_time_max_ns", default, skip_serializing_if = "Option::is_none")]
    pub reaction_time_max: Option<Nanos>,
}

/// What a task of a trace is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskKind {
    /// A task of the workload.
    #[default]
    Task,
    /// A node of a graph.
    Node {
        /// Index into [`TraceHeader::graphs`].
        graph: usize,
        /// Whether its jobs are released by time; the others' are released by tokens.
        source: bool,
    },
    /// An interrupt thread; a job of it is one bottom half, or under a bandwidth server one burst of them.
    Thread,
    /// A thread of a GPU run-time library. It tells jobs of its process that their operations are complete; each of its
    /// own jobs is one such call.
    Callback,
    /// A task of which each job is released by an event, perhaps before its arrival: where events come faster than its period
    /// allows, deadlines are those of arrivals a period apart.
    Event,
    /// A best-effort task: one job, which no deadline ends, where no other wants a CPU.
    BestEffort,
}

/// Whether a job that arrived then and is due then has no deadline in truth: every job of a trace has one, and a log of a
/// program whose jobs have none says ten years. No task has one so long that it is of any use.
#[inline]
pub fn is_no_deadline(arrival: Instant, deadline: Instant) -> bool {
    deadline.saturating_since(arrival) >= Nanos(Nanos::LONGEST.0 / 2)
}

impl TaskKind {
    fn is_task(&self) -> bool {
        *self == TaskKind::Task
    }

    /// Whether its jobs have deadlines of their own.
    pub const fn has_deadlines(self) -> bool {
        matches!(self, TaskKind::Task | TaskKind::Event | TaskKind::Node { .. })
    }

    /// Whether its jobs work for jobs of other tasks, and have the deadlines of those.
    pub const fn is_thread(self) -> bool {
        matches!(self, TaskKind::Thread | TaskKind::Callback)
    }
}

/// Where a trace comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Written by the simulator.
    Simulated,
    /// Recorded on a real machine.
    Live,
}

impl Origin {
    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Simulated => "simulated",
            Origin::Live => "live",
        }
    }
}

/// A task of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskInfo {
    /// The task's name.
    pub name: String,
    /// Its period or minimum separation.
    #[serde(rename = "period_ns")]
    pub period: Nanos,
    /// Its relative deadline.
    #[serde(rename = "deadline_ns")]
    pub deadline: Nanos,
    /// Its worst-case CPU time.
    #[serde(rename = "wcet_ns")]
    pub wcet: Nanos,
    /// Index into [`TraceHeader::clusters`].
    pub cluster: usize,
    /// Its rank under fixed priorities, 0 the highest. Under EDF its position in the list, which breaks ties.
    pub rank: u32,
    /// What it is.
    #[serde(default, skip_serializing_if = "TaskKind::is_task")]
    pub kind: TaskKind,
}

impl DeviceId {
    /// The position in arrays with one entry a device.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl TraceHeader {
    /// Whether the scheduler that the header names decided which job runs where. If not, Linux did: the trace is live and
    /// has no links, and the header names a scheduler only because its jobs have that scheduler's deadlines.
    pub fn follows_scheduler(&self) -> bool {
        self.origin == Origin::Simulated || self.is_linked
    }

    /// What decided which job runs where, in a word: the scheduler, or Linux; see [`TraceHeader::follows_scheduler`].
    pub fn scheduled_by(&self) -> String {
        match self.follows_scheduler() {
            true => self.scheduler.to_string(),
            false => format!("scheduled by {}", self.linux_class.map_or("Linux", LinuxClass::name)),
        }
    }

    /// The CPUs of all clusters that the header has, and the cluster of each.
    pub(crate) fn clusters_of_cpus(&self) -> impl Iterator<Item = (CpuId, usize)> + '_ {
        let clusters = self.clusters.iter().enumerate();
        let cpus = clusters.flat_map(|(index, cpus)| cpus.iter().map(move |&cpu| (cpu, index)));
        cpus.filter(|(cpu, _)| cpu.index() < self.cpus)
    }

    /// The edges at each task, as positions in [`TraceHeader::edges`]: those whose `end` it is.
    pub(crate) fn edges_by(&self, end: impl Fn(&EdgeInfo) -> TaskId) -> Vec<Vec<usize>> {
        let mut edges = vec![Vec::new(); self.tasks.len()];
        for (index, edge) in self.edges.iter().enumerate() {
            if let Some(task) = edges.get_mut(end(edge).index()) {
                task.push(index);
            }
        }
        edges
    }

    /// Whether each task has no outbound edge that carries tokens downstream or a latest value, as the sinks of graphs do
    /// not.
    pub(crate) fn lead_nowhere(&self) -> Vec<bool> {
        let carries_tokens = |&edge: &usize| self.edges[edge].kind == EdgeKind::Token;
        let mut lead_nowhere: Vec<bool> =
            self.edges_by(|edge| edge.producer).iter().map(|edges| !edges.iter().any(carries_tokens)).collect();
        for edge in &self.latest {
            if let Some(producer) = lead_nowhere.get_mut(edge.producer.index()) {
                *producer = false;
            }
        }
        lead_nowhere
    }

    /// The name of the operations that [`Event::EngineOperation`](crate::Event::EngineOperation) calls by that number.
    pub(crate) fn operation(&self, name: u32) -> Option<&str> {
        self.operations.get(name as usize).map(String::as_str)
    }

    /// The latest-value edge of that number.
    pub(crate) fn latest_edge(&self, edge: EdgeId) -> Option<LatestInfo> {
        self.latest.get(edge.index().checked_sub(self.edges.len())?).copied()
    }

    /// Whether `task` is a thread whose jobs have the deadlines of those they serve.
    pub(crate) fn is_thread(&self, task: TaskId) -> bool {
        self.tasks.get(task.index()).is_some_and(|info| info.kind.is_thread())
    }

    /// Whether jobs of `task` have no deadlines of their own.
    pub fn lacks_deadlines(&self, task: TaskId) -> bool {
        self.has_made_up_deadlines(task) || self.tasks.get(task.index()).is_some_and(|info| !info.kind.has_deadlines())
    }

    /// Whether the deadlines of jobs of `task` are numbers that nothing means, as every job of a trace has one: those of best-effort
    /// tasks, and of programs whose jobs have none.
    pub fn has_made_up_deadlines(&self, task: TaskId) -> bool {
        let relative = self.tasks.get(task.index()).map(|info| Instant::ZERO.saturating_add(info.deadline));
        self.is_best_effort(task) || relative.is_some_and(|deadline| is_no_deadline(Instant::ZERO, deadline))
    }

    /// Whether `task` is a best-effort task.
    pub(crate) fn is_best_effort(&self, task: TaskId) -> bool {
        self.tasks.get(task.index()).is_some_and(|info| info.kind == TaskKind::BestEffort)
    }

    /// A header without tasks, GPUs, locks and graphs, for what is filled in later and for tests.
    pub fn new(origin: Origin, workload: &str, cpus: usize, scheduler: Scheduler) -> Self {
        let management = GpuManagement::default();
        TraceHeader {
            origin,
            workload: workload.to_owned(),
            cpus,
            folded_from: None,
            clusters: vec![(0..cpus).map(|cpu| CpuId(cpu as u16)).collect()],
            scheduler,
            quantum: Nanos::from_millis(1),
            costs: OverheadCosts::default(),
            seed: 0,
            is_linked: false,
            linux_class: None,
            tasks: Vec::new(),
            arbitration: management.arbitration.name().to_owned(),
            handling: management.handling,
            gpus: Vec::new(),
            operations: Vec::new(),
            outsiders: Vec::new(),
            devices: Vec::new(),
            locks: Vec::new(),
            graphs: Vec::new(),
            edges: Vec::new(),
            latest: Vec::new(),
            chains: Vec::new(),
            servers: Vec::new(),
            memory: None,
        }
    }
}

impl TaskInfo {
    /// The entries of `tasks`; `assignment` gives the cluster and the rank of each.
    pub fn of(tasks: &[Task], assignment: impl Fn(usize) -> (usize, u32)) -> Vec<TaskInfo> {
        tasks
            .iter()
            .enumerate()
            .map(|(index, task)| {
                let (cluster, rank) = assignment(index);
                TaskInfo {
                    name: task.name.clone(),
                    period: task.period,
                    deadline: task.deadline,
                    wcet: task.wcet(),
                    cluster,
                    rank,
                    kind: TaskKind::Task,
                }
            })
            .collect()
    }
}
