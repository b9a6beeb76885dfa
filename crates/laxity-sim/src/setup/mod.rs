//! From a workload and a scheduler to what the simulator runs: flat arrays, and a refusal by name of what it cannot run.

mod assign;
mod callbacks;
mod devices;
mod fair;
mod flatten;
mod graphs;
mod management;
mod servers;
mod uses;

use std::fmt;

use laxity_model::{
    Arrival, CpuId, Distribution, ExecutionTime, GpuArbitration, GpuId, InterruptHandling, Invocation, Nanos,
    OverheadCosts, ReleaseInterrupts, Scheduler, Task, TaskId, Workload,
};
use laxity_policy::cpu::Ranking;
use laxity_policy::server;
use laxity_trace::{DeviceInfo, GpuInfo, Origin, Sink, TaskInfo, TaskKind, TraceHeader};

use crate::Simulator;
use crate::steps::Op;
use assign::{assign, cluster_plans};
use callbacks::Callbacks;
use flatten::{Context, flatten};
pub use graphs::GraphPlan;
use management::{Locks, reachable_gpus, threads};

/// A simulation that is ready to start.
#[derive(Clone, Debug)]
pub struct Setup {
    pub(crate) header: TraceHeader,
    pub(crate) tasks: Vec<TaskPlan>,
    pub(crate) clusters: Vec<ClusterPlan>,
    pub(crate) costs: OverheadCosts,
    /// Period of the tick interrupt.
    pub(crate) tick: Nanos,
    /// The CPU that takes all interrupts and runs no job.
    pub(crate) dedicated: Option<CpuId>,
    pub(crate) seed: u64,
    pub(crate) locks: Locks,
    pub(crate) gpus: Vec<GpuPlan>,
    pub(crate) devices: Vec<DevicePlan>,
    pub(crate) handling: InterruptHandling,
    /// Jobs spin, rather than suspend, until their GPU operations are complete.
    pub(crate) spins: bool,
    /// The number of the first thread that handles interrupts: they come after all other tasks.
    pub(crate) first_thread: usize,
    /// The first of them that is a callback thread, counted from `first_thread`.
    pub(crate) first_callback: usize,
    pub(crate) callbacks: Callbacks,
    /// The thread of each device, counted from `first_thread`; empty where bottom halves have no threads.
    pub(crate) threads: Vec<usize>,
    pub(crate) graphs: Vec<GraphPlan>,
}

/// A GPU as the simulator runs it.
#[derive(Clone, Debug)]
pub(crate) struct GpuPlan {
    pub copy_engines: u8,
    /// The model's, for the time of copies.
    pub model: laxity_model::Gpu,
}

/// A device that raises interrupts.
#[derive(Clone, Debug)]
pub(crate) struct DevicePlan {
    /// The CPUs that its interrupts may be routed to.
    pub cpus: Vec<CpuId>,
    pub top_half: ExecutionTime,
    pub bottom_half: ExecutionTime,
    /// How its interrupts arrive; those of GPUs follow from the operations of jobs.
    pub arrivals: Option<Arrivals>,
}

/// How the interrupts of a device arrive, the first at time 0.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    pub period: Nanos,
    /// Extra separation of sporadic ones.
    pub gap: Option<Distribution>,
}

/// A bandwidth server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerPlan {
    pub config: server::Config,
    pub level: ServerLevel,
}

/// The level at which a server competes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ServerLevel {
    /// Under fixed priorities.
    Fixed(u64),
    /// That of its deadline, which is a period after its budget began. A task whose relative deadline is another keeps
    /// that.
    Deadline { period: Nanos, relative: Nanos },
}

/// A task as the simulator runs it: one cache line, as tasks take turns.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct TaskPlan {
    pub period: Nanos,
    pub deadline: Nanos,
    pub phase: Nanos,
    /// `None`: its releases are periodic.
    pub irregular: Option<Box<Irregular>>,
    pub ops: Box<[Op]>,
    /// Whether time releases its jobs; tokens release those of nodes that are no sources, and work wakes threads.
    pub timed: bool,
    pub cluster: u16,
    /// Its number within the cluster.
    pub local: TaskId,
    /// What bounds the time that its jobs take.
    pub server: Option<Box<ServerPlan>>,
}

const _: () = assert!(size_of::<TaskPlan>() == 64);

/// What keeps releases from being periodic.
#[derive(Clone, Debug)]
pub(crate) struct Irregular {
    /// The longest time from an arrival to the release.
    pub jitter: Nanos,
    /// Extra separation of a sporadic task.
    pub gap: Option<Distribution>,
}

/// CPUs that share a ready queue, and their tasks.
#[derive(Clone, Debug)]
pub(crate) struct ClusterPlan {
    pub cpus: Vec<CpuId>,
    pub tasks: Vec<TaskId>,
    pub ranking: Ranking,
}

/// What the simulator cannot run, each thing by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    reasons: Vec<String>,
}

impl Setup {
    /// Prepares `workload` under `scheduler`; `seed` decides random execution times, gaps and jitter. Draws depend on
    /// seed, task, job and step alone, so two schedulers see the same jobs.
    ///
    /// The workload must be valid; what it asks for and the simulator cannot do yet is refused by name.
    pub fn new(workload: &Workload, scheduler: &Scheduler, seed: u64) -> Result<Setup, Refusal> {
        let mut reasons = Vec::new();
        let dedicated = (scheduler.interrupts == ReleaseInterrupts::Dedicated).then_some(CpuId(0));
        let graphs = graphs::plans(workload, &mut reasons);
        if !reasons.is_empty() {
            return Err(Refusal::of(reasons));
        }
        let mut models = workload.tasks.clone();
        models.extend(graphs::nodes(workload, &graphs));
        let models = &models[..];
        let (cpus, mut cluster_of) = assign(workload, models, scheduler, dedicated, &mut reasons);
        refuse(workload, models, scheduler, &mut reasons);
        if !reasons.is_empty() {
            return Err(Refusal::of(reasons));
        }
        let ranking = Ranking::new(scheduler.rule, models.iter().chain(&servers::as_tasks(workload)));
        let locks = Locks::new(workload, scheduler, models, &ranking, &cpus);
        let first_thread = models.len();
        let devices = devices::plans(workload, first_thread);
        let bodies = bodies(workload, scheduler, models, &cluster_of, &locks, &devices, &cpus);
        let handling = workload.gpu_management.handling;
        let threads = threads(handling, workload.platform.gpus.len(), workload.platform.devices.len());
        let callbacks = Callbacks::new(workload, models, &graphs);
        let callback_clusters = callbacks.clusters(&cluster_of);
        cluster_of.extend(thread_clusters(&threads, &devices, &cpus));
        let first_callback = cluster_of.len() - first_thread;
        cluster_of.extend(&callback_clusters);
        let clusters = cluster_plans(&ranking, cpus, &cluster_of, first_thread);
        let mut tasks = Vec::with_capacity(cluster_of.len());
        let mut next_local = vec![0; clusters.len()];
        let mut place = |cluster: usize| {
            next_local[cluster] += 1;
            (cluster, TaskId(next_local[cluster] - 1))
        };
        for (index, ((task, ops), &cluster)) in models.iter().zip(bodies).zip(&cluster_of).enumerate() {
            let timed = !matches!(graphs::kind(index, &graphs), Some(TaskKind::Node { source: false, .. }));
            let server = servers::of_task(index, task, &ranking).map(Box::new);
            tasks.push(TaskPlan { server, ..TaskPlan::new(task, ops, timed, place(cluster)) });
        }
        let thread_servers = servers::of_threads(workload, &threads, &ranking, first_thread);
        let none = std::iter::repeat(&None);
        for (&cluster, &server) in cluster_of[first_thread..].iter().zip(thread_servers.iter().chain(none)) {
            let server = server.map(Box::new);
            tasks.push(TaskPlan { server, ..TaskPlan::thread(place(cluster)) });
        }
        let costs = workload.platform.overheads.at(first_thread);
        let rank = |task: usize| (cluster_of[task], ranking.rank(TaskId(task as u32)));
        let mut infos = TaskInfo::of(models, rank);
        for (index, info) in infos.iter_mut().enumerate() {
            info.kind = graphs::kind(index, &graphs).unwrap_or(info.kind);
        }
        let (graph_infos, edges) = graphs::infos(workload, &graphs);
        let first = first_thread + first_callback;
        infos.extend(thread_infos(workload, &threads, &devices, &cluster_of[first_thread..first], first_thread));
        infos.extend(callbacks.infos(&callback_clusters, first));
        for (info, plan) in infos.iter_mut().zip(&tasks).skip(first_thread) {
            info.rank = plan.server.as_ref().and_then(|server| server.rank()).unwrap_or(info.rank);
        }
        let gpus = &workload.platform.gpus;
        let header = TraceHeader {
            clusters: clusters.iter().map(|cluster| cluster.cpus.clone()).collect(),
            quantum: workload.platform.quantum,
            costs,
            seed,
            tasks: infos,
            arbitration: workload.gpu_management.arbitration.name().to_owned(),
            handling,
            gpus: gpus.iter().map(|gpu| gpu_info(gpu, &clusters)).collect(),
            devices: devices::names(workload).map(|name| DeviceInfo { name: name.to_owned() }).collect(),
            locks: locks.infos.clone(),
            graphs: graph_infos,
            edges,
            ..TraceHeader::new(Origin::Simulated, &workload.name, workload.platform.cpus, *scheduler)
        };
        let spins = workload.gpu_management.arbitration == GpuArbitration::DriverSpinning;
        let gpus = gpus.iter().map(|gpu| GpuPlan { copy_engines: gpu.copy_engines, model: gpu.clone() }).collect();
        let tick = workload.platform.tick;
        Ok(Setup {
            header,
            tasks,
            clusters,
            costs,
            tick,
            dedicated,
            seed,
            locks,
            gpus,
            devices,
            handling,
            spins,
            first_thread,
            first_callback,
            callbacks,
            threads,
            graphs,
        })
    }

    /// What a trace of this simulation begins with.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// What jobs do, for each task of the header that is one of the workload or a node of a graph; interrupt threads,
    /// which come after them, do what they are told.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = &[Op]> {
        self.tasks[..self.first_thread].iter().map(|task| &*task.ops)
    }

    /// How each lock of the header is configured.
    pub fn locks(&self) -> &[laxity_policy::lock::Config] {
        &self.locks.configs
    }

    /// The graphs, as they are carried out.
    pub fn graphs(&self) -> &[GraphPlan] {
        &self.graphs
    }

    /// The tasks of `workload`, from which this was made, and the nodes of its graphs as the tasks that they amount to: as
    /// many as [`Setup::steps`].
    pub fn models(&self, workload: &Workload) -> Vec<Task> {
        let mut models = workload.tasks.clone();
        models.extend(graphs::nodes(workload, &self.graphs));
        models
    }

    /// A simulator at time 0 that writes to `sink`.
    pub fn start<S: Sink>(&self, sink: S) -> Simulator<S> {
        Simulator::new(self.clone(), sink)
    }
}

impl TaskPlan {
    fn new(task: &Task, ops: Vec<Op>, timed: bool, (cluster, local): (usize, TaskId)) -> TaskPlan {
        let gap = match &task.arrival {
            Arrival::Periodic => None,
            Arrival::Sporadic { gap } => Some(gap.clone()),
        };
        let is_regular = gap.is_none() && task.jitter.is_zero();
        let irregular = (!is_regular).then(|| Box::new(Irregular { jitter: task.jitter, gap }));
        let (period, deadline, phase) = (task.period, task.deadline, task.phase);
        let (ops, cluster) = (ops.into_boxed_slice(), cluster as u16);
        TaskPlan { period, deadline, phase, irregular, ops, timed, cluster, local, server: None }
    }

    /// An interrupt thread: not released by time, and told how long to run whenever it is woken.
    fn thread((cluster, local): (usize, TaskId)) -> TaskPlan {
        let never = Nanos::ZERO;
        TaskPlan {
            period: never,
            deadline: never,
            phase: never,
            irregular: None,
            ops: Box::new([Op::Dispatch]),
            timed: false,
            cluster: cluster as u16,
            local,
            server: None,
        }
    }
}

/// The steps of every task's jobs.
fn bodies(
    workload: &Workload,
    scheduler: &Scheduler,
    tasks: &[Task],
    cluster_of: &[usize],
    locks: &Locks,
    devices: &[DevicePlan],
    cpus: &[Vec<CpuId>],
) -> Vec<Vec<Op>> {
    let reachable = reachable_gpus(workload, scheduler, cpus);
    // All GPUs have the same halves.
    let callback = workload.gpu_management.callback.as_ref().map_or(0, |time| time.wcet.0);
    let halves = devices.first().map_or(Nanos::ZERO, |gpu| {
        Nanos(gpu.top_half.wcet.0.saturating_add(gpu.bottom_half.wcet.0).saturating_add(callback))
    });
    let mut using = vec![0; cpus.len()];
    let mut body = |(task, &cluster): (&Task, &usize)| {
        let gpus: &[GpuId] = &reachable[cluster];
        // Round robin among the tasks that use a GPU.
        let uses = task.body.iter().any(flatten::uses_gpu);
        let default_gpu = gpus.get(using[cluster] % gpus.len().max(1)).copied();
        using[cluster] += usize::from(uses);
        let context = Context {
            arbitration: workload.gpu_management.arbitration,
            gpus: &workload.platform.gpus,
            pool: locks.pools[cluster].as_ref(),
            default_gpu,
            halves,
        };
        flatten(&task.body, &context)
    };
    tasks.iter().zip(cluster_of).map(&mut body).collect()
}

/// The cluster of each thread: that of the first CPU its first device may interrupt.
fn thread_clusters(threads: &[usize], devices: &[DevicePlan], cpus: &[Vec<CpuId>]) -> Vec<usize> {
    let count = threads.iter().max().map_or(0, |last| last + 1);
    (0..count)
        .map(|thread| {
            let device = threads.iter().position(|&serves| serves == thread).unwrap_or(0);
            let within = |cpu: &CpuId| cpus.iter().position(|cluster| cluster.contains(cpu));
            devices[device].cpus.iter().find_map(within).unwrap_or(0)
        })
        .collect()
}

fn thread_infos(
    workload: &Workload,
    threads: &[usize],
    plans: &[DevicePlan],
    clusters: &[usize],
    first: usize,
) -> Vec<TaskInfo> {
    let one = |(thread, &cluster): (usize, &usize)| {
        let served: Vec<usize> = (0..threads.len()).filter(|&device| threads[device] == thread).collect();
        let names: Vec<&str> = served.iter().filter_map(|&device| devices::names(workload).nth(device)).collect();
        TaskInfo {
            name: format!("{}/{}", workload.gpu_management.handling.thread_name(), names.join("+")),
            period: Nanos::ZERO,
            deadline: Nanos::ZERO,
            wcet: served.iter().map(|&device| plans[device].bottom_half.wcet).max().unwrap_or_default(),
            cluster,
            rank: (first + thread) as u32,
            kind: TaskKind::Thread,
        }
    };
    clusters.iter().enumerate().map(one).collect()
}

fn gpu_info(gpu: &laxity_model::Gpu, clusters: &[ClusterPlan]) -> GpuInfo {
    let within = |cpu: &CpuId| clusters.iter().position(|cluster| cluster.cpus.contains(cpu));
    let cluster = gpu.interrupt_cpus.iter().find_map(within).unwrap_or(0);
    GpuInfo { name: gpu.name.clone(), cluster, copy_engines: gpu.copy_engines }
}

fn refuse(workload: &Workload, tasks: &[Task], scheduler: &Scheduler, reasons: &mut Vec<String>) {
    for task in &workload.best_effort {
        reasons.push(format!("best-effort task \"{}\": best-effort tasks are not simulated yet", task.name));
    }
    uses::refuse_circles(workload, tasks, reasons);
    fair::refuse(workload, scheduler, reasons);
    let threads = matches!(workload.gpu_management.handling, InterruptHandling::Klmirqd { .. });
    if threads && !workload.platform.gpus.is_empty() && scheduler.invocation == Invocation::QuantumDriven {
        reasons.push(format!(
            "klmirqd under {scheduler}: an interrupt thread takes over its owner's CPU within a quantum; choose an \
             event-driven scheduler (E instead of Q) or another interrupt handling"
        ));
    }
}

impl Refusal {
    /// One reason a name is enough.
    fn of(mut reasons: Vec<String>) -> Refusal {
        let mut seen = 0;
        while seen < reasons.len() {
            if reasons[..seen].contains(&reasons[seen]) {
                reasons.remove(seen);
            } else {
                seen += 1;
            }
        }
        Refusal { reasons }
    }

    /// The reasons, one a thing that cannot be simulated.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reasons.join("\n"))
    }
}

impl std::error::Error for Refusal {}
