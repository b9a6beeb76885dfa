//! From a workload and a scheduler to what is carried out, phase by phase.
//!
//! ```text
//!   workload --number--> graphs --tasks--> tasks and nodes --assign--> clusters --check--> supported features
//!     --rank--> ranking --> locks, devices, threads --lower--> steps of each task --place--> numbers within clusters
//! ```

use laxity_model::{CpuId, Gpu, GpuArbitration, Nanos, ReleaseInterrupts, Scheduler, Task, TaskId, Workload};
use laxity_policy::cpu::Ranking;
use laxity_policy::graph::LatestEdge;
use laxity_trace::{DeviceInfo, Origin, TaskInfo, TraceHeader};

use crate::bandwidth::{self, MemoryPlan};
use crate::best_effort::{self, BestEffortPlan};
use crate::body;
use crate::clusters::{self, Assignment, ClusterPlan};
use crate::devices::{self, DevicePlan};
use crate::draws::TaskDraws;
use crate::graphs::{self, GraphPlan};
use crate::locks::Locks;
use crate::op::Op;
use crate::releases::ReleasePattern;
use crate::servers;
use crate::tasks::{TaskPlan, Unplaced};
use crate::threads::Threads;
use crate::unsupported::{self, UnsupportedFeatures};

/// The compiled form of a workload under a scheduler.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What a trace begins with: names, costs of overheads, the seed, and how interrupts are handled among them.
    pub header: TraceHeader,
    /// The tasks of the workload, the nodes of its graphs, and the threads of the system.
    pub tasks: Vec<TaskPlan>,
    /// The clusters.
    pub clusters: Vec<ClusterPlan>,
    /// Period of the tick interrupt.
    pub tick: Nanos,
    /// The CPU that takes all interrupts and runs no job.
    pub dedicated: Option<CpuId>,
    /// The locks.
    pub locks: Locks,
    /// The GPUs.
    pub gpus: Vec<Gpu>,
    /// The devices that raise interrupts: first the GPUs.
    pub devices: Vec<DevicePlan>,
    /// Jobs spin, rather than suspend, until their GPU operations are complete.
    pub spins: bool,
    /// The threads of the system.
    pub threads: Threads,
    /// The graphs.
    pub graphs: Vec<GraphPlan>,
    /// The latest-value edges of all graphs.
    pub latest: Vec<LatestEdge>,
    /// The best-effort tasks, which come after the threads of the system.
    pub best_effort: BestEffortPlan,
    /// Memory, where traffic slows something down or a lock is held.
    pub memory: Option<MemoryPlan>,
}

impl Plan {
    /// Prepares `workload` under `scheduler`; `seed` decides random execution times, gaps and jitter. Draws depend on
    /// seed, task, job and step alone, so two schedulers see the same jobs.
    ///
    /// # Errors
    /// What the workload, which must be valid, asks for and cannot have.
    pub fn new(workload: &Workload, scheduler: &Scheduler, seed: u64) -> Result<Plan, UnsupportedFeatures> {
        let plan = Plan::of_live_interrupts(workload, scheduler, seed)?;
        let mut unsupported = UnsupportedFeatures::default();
        unsupported::refuse_endless_spinning(workload, scheduler, &plan, &mut unsupported);
        unsupported.none().map(|()| plan)
    }

    /// As [`Plan::new`], for a run whose interrupts are those of the machine, and whose holders of the bandwidth lock are not raised.
    ///
    /// # Errors
    /// What the workload, which must be valid, asks for and cannot have.
    pub fn of_live_interrupts(
        workload: &Workload,
        scheduler: &Scheduler,
        seed: u64,
    ) -> Result<Plan, UnsupportedFeatures> {
        let graphs = graphs::number(workload)?;
        let models = tasks_and_nodes(workload, &graphs);
        let dedicated = (scheduler.interrupts == ReleaseInterrupts::Dedicated).then_some(CpuId(0));
        let mut unsupported = UnsupportedFeatures::default();
        let assignment = clusters::assign(workload, &models, scheduler, dedicated, &mut unsupported);
        unsupported::check(workload, &models, scheduler, &mut unsupported);
        best_effort::check(workload, scheduler, &assignment, &mut unsupported);
        body::refuse_out_of_reach(workload, scheduler, &models, &assignment, &mut unsupported);
        unsupported.none()?;

        let ranking = Ranking::new(scheduler.rule, models.iter().chain(&servers::as_tasks(workload)));
        let locks = Locks::new(workload, scheduler, &models, &ranking, &assignment.cpus);
        let devices = devices::plans(workload, models.len());
        let threads = Threads::new(workload, &models, &graphs);
        let bodies = body::lower(workload, scheduler, &models, &assignment, &locks, &devices);

        let calls = bodies.iter().map(|ops| bandwidth::cost_of_calls(workload, ops)).collect::<Vec<_>>();
        let mut unplaced = with_clusters(&models, bodies, &graphs, &assignment, &ranking);
        for (task, calls) in unplaced.iter_mut().zip(calls) {
            task.info.wcet = Nanos(task.info.wcet.0.saturating_add(calls.0));
        }
        let thread_servers = servers::of_threads(workload, &threads, &ranking);
        unplaced.extend(threads.as_tasks(workload, &devices, &assignment, thread_servers));
        let best_effort = BestEffortPlan::new(workload, &assignment, unplaced.len());
        let memory = MemoryPlan::new(workload, &models, &locks, &best_effort);
        let latest = graphs::latest(workload, &graphs);
        let header = header(workload, scheduler, seed, (&graphs, &latest), &assignment, &locks);
        let (mut infos, mut tasks, clusters) = clusters::place(unplaced, assignment.cpus, &ranking, models.len());
        let (more_infos, more_tasks) = best_effort.as_tasks(workload, &clusters);
        infos.extend(more_infos);
        tasks.extend(more_tasks);
        let memory_info = memory.as_ref().map(|memory| memory.info(&best_effort));
        Ok(Plan {
            header: TraceHeader {
                tasks: infos,
                servers: servers::infos(workload, &models, &threads),
                memory: memory_info,
                ..header
            },
            tasks,
            clusters,
            tick: workload.platform.tick,
            dedicated,
            locks,
            gpus: workload.platform.gpus.clone(),
            devices,
            spins: workload.gpu_management.arbitration == GpuArbitration::DriverSpinning,
            threads,
            graphs,
            latest,
            best_effort,
            memory,
        })
    }

    /// What jobs do, for each task of the workload and each node of a graph. Threads of the system, which come after
    /// these, do what they are told.
    pub fn bodies(&self) -> impl ExactSizeIterator<Item = &[Op]> {
        self.tasks[..self.threads.first_task].iter().map(|task| &*task.ops)
    }

    /// The tasks of `workload`, from which this was made, and the nodes of its graphs as the tasks that they amount to: as
    /// many as [`Plan::bodies`].
    pub fn models(&self, workload: &Workload) -> Vec<Task> {
        tasks_and_nodes(workload, &self.graphs)
    }

    /// The random quantities of `task`.
    #[inline]
    pub fn draws(&self, task: TaskId) -> TaskDraws {
        TaskDraws { seed: self.header.seed, task }
    }
}

/// The tasks of `workload` followed by the nodes of its `graphs` as tasks.
fn tasks_and_nodes(workload: &Workload, graphs: &[GraphPlan]) -> Vec<Task> {
    let mut tasks = workload.tasks.clone();
    tasks.extend(graphs::nodes(workload, graphs));
    tasks
}

/// Each task with its steps, its cluster and its rank.
fn with_clusters(
    models: &[Task],
    bodies: Vec<Vec<Op>>,
    graphs: &[GraphPlan],
    clusters: &Assignment,
    ranking: &Ranking,
) -> Vec<Unplaced> {
    let infos = TaskInfo::of(models, |task| (clusters.of_task[task], ranking.rank(TaskId(task as u32))));
    let unplaced = |(number, ((task, info), ops)): (usize, ((&Task, TaskInfo), Vec<Op>))| {
        let node = graphs::kind(number, graphs);
        Unplaced {
            info: TaskInfo { kind: node.unwrap_or(info.kind), ..info },
            ops,
            releases: ReleasePattern::new(task),
            released_by: graphs::released_by(node),
            server: servers::of_task(number, task, ranking),
        }
    };
    models.iter().zip(infos).zip(bodies).enumerate().map(unplaced).collect()
}

/// What a trace begins with, but for the tasks.
fn header(
    workload: &Workload,
    scheduler: &Scheduler,
    seed: u64,
    (graphs, latest): (&[GraphPlan], &[LatestEdge]),
    clusters: &Assignment,
    locks: &Locks,
) -> TraceHeader {
    let platform = &workload.platform;
    let tasks = clusters.of_task.len();
    let (latest, chains) = graphs::chain_infos(workload, graphs, latest);
    let (graphs, edges) = graphs::infos(workload, graphs);
    TraceHeader {
        clusters: clusters.cpus.clone(),
        quantum: platform.quantum,
        costs: platform.overheads.at(tasks),
        seed,
        arbitration: workload.gpu_management.arbitration.name().to_owned(),
        handling: workload.gpu_management.handling,
        gpus: devices::gpu_infos(&platform.gpus, clusters),
        devices: devices::names(workload).map(|name| DeviceInfo { name: name.to_owned() }).collect(),
        locks: locks.infos.clone(),
        graphs,
        edges,
        latest,
        chains,
        ..TraceHeader::new(Origin::Simulated, &workload.name, platform.cpus, *scheduler)
    }
}
