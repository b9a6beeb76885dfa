//! Which locks there are, and which GPUs they stand for.

use laxity_model::{
    CpuId, Engine, EngineOrder, GpuArbitration, GpuId, Instant, LockId, PriorityRule, ResourceProtocol, Scheduler,
    Scope, Task, TaskId, Workload,
};
use laxity_policy::cpu::{Priority, Ranking};
use laxity_policy::lock;
use laxity_trace::{LockInfo, LockKind};

use crate::body::uses_gpu;
use crate::resources::users_of;

/// GPUs that are granted by one lock.
#[derive(Clone, Debug)]
pub struct Pool {
    /// The lock.
    pub lock: LockId,
    /// The GPUs.
    pub gpus: Vec<GpuId>,
}

/// All locks of a workload: those of its resources, then those of GPUs, then those of engines.
#[derive(Clone, Debug, Default)]
pub struct Locks {
    /// How each is configured.
    pub configs: Vec<lock::Config>,
    /// What the trace says of it.
    pub infos: Vec<LockInfo>,
    /// The pool of GPUs that each cluster uses; `None`: it has no GPU, or GPUs are not locked.
    pub pools: Vec<Option<Pool>>,
    /// The lock of each engine of each GPU, by [`Engine::index`]; under GPUSync only.
    pub engines: Vec<[Option<LockId>; Engine::ALL.len()]>,
    /// The bandwidth lock, if there is one.
    pub bandwidth: Option<LockId>,
}

impl Locks {
    /// The locks of `workload`, whose `tasks` (nodes of graphs included) are ranked by `ranking` and run in clusters of
    /// CPUs `clusters`.
    pub(crate) fn new(
        workload: &Workload,
        scheduler: &Scheduler,
        tasks: &[Task],
        ranking: &Ranking,
        clusters: &[Vec<CpuId>],
    ) -> Locks {
        let mut locks = Locks { pools: vec![None; clusters.len()], ..Locks::default() };
        for (index, resource) in workload.resources.iter().enumerate() {
            let users = users_of(index, tasks);
            let (order, progress) = match resource.protocol {
                // Linux has one priority for all of its fair class: first come, first served, and nothing is inherited.
                _ if scheduler.rule == PriorityRule::Fair => (EngineOrder::Fifo, lock::Progress::None),
                ResourceProtocol::PriorityInheritance => (EngineOrder::Priority, lock::Progress::Inheritance),
                ResourceProtocol::Fifo => (EngineOrder::Fifo, lock::Progress::Inheritance),
                ResourceProtocol::PriorityCeiling => {
                    (EngineOrder::Priority, ceiling(scheduler, &users, tasks, ranking))
                }
            };
            let replicas = resource.replicas.min(u32::from(u16::MAX)) as u16;
            let config = lock::Config::Queue { replicas, order, progress };
            locks.add(resource.name.clone(), LockKind::Resource { order }, replicas, config);
        }
        for (cluster, gpus) in pools(workload, scheduler, clusters) {
            locks.add_pool(workload, &cluster, gpus, clusters);
        }
        if let GpuArbitration::GpuSync(sync) = workload.gpu_management.arbitration {
            locks.add_engines(workload, sync.engine_order);
        }
        if workload.gpu_management.bandwidth_lock.is_some() {
            locks.add_bandwidth(scheduler, tasks);
        }
        locks
    }

    fn add(&mut self, name: String, kind: LockKind, replicas: u16, config: lock::Config) -> LockId {
        let id = LockId(self.configs.len() as u16);
        self.configs.push(config);
        self.infos.push(LockInfo { name, kind, replicas });
        id
    }

    /// One lock for `gpus`, which the `users`, numbers of clusters, share.
    fn add_pool(&mut self, workload: &Workload, users: &[usize], gpus: Vec<GpuId>, clusters: &[Vec<CpuId>]) {
        let count = gpus.len() as u16;
        let config = match workload.gpu_management.arbitration {
            GpuArbitration::Driver | GpuArbitration::DriverSpinning => return,
            GpuArbitration::Semaphore => {
                lock::Config::Queue { replicas: count, order: EngineOrder::Fifo, progress: lock::Progress::None }
            }
            GpuArbitration::KFmlp { length_aware } => lock::Config::KFmlp { replicas: count, length_aware },
            GpuArbitration::GpuSync(sync) => {
                let cpus: usize = users.iter().map(|&cluster| clusters[cluster].len()).sum();
                lock::Config::tokens(&sync, count, cpus as u32)
            }
        };
        let (kind, replicas) = match &config {
            lock::Config::Queue { .. } => (LockKind::Semaphore { gpus: gpus.clone() }, count),
            lock::Config::KFmlp { .. } => (LockKind::KFmlp { gpus: gpus.clone() }, count),
            lock::Config::Tokens { tokens, .. } => (LockKind::Tokens { gpus: gpus.clone() }, tokens * count),
        };
        let name = match (gpus.as_slice(), users) {
            (&[gpu], _) => workload.platform.gpus[gpu.index()].name.clone(),
            (_, &[cluster]) if clusters.len() > 1 => format!("GPUs of cluster {cluster}"),
            _ => "GPUs".to_owned(),
        };
        let lock = self.add(name, kind, replicas, config);
        for &cluster in users {
            self.pools[cluster] = Some(Pool { lock, gpus: gpus.clone() });
        }
    }

    /// One replica for every task that uses GPUs: holding it makes no other wait, but raises to the ceiling of all.
    fn add_bandwidth(&mut self, scheduler: &Scheduler, tasks: &[Task]) {
        let users = tasks.iter().filter(|task| task.body.iter().any(uses_gpu)).count();
        let replicas = users.clamp(1, usize::from(u16::MAX)) as u16;
        let progress = match scheduler.rule {
            PriorityRule::Fair => lock::Progress::None,
            _ => lock::Progress::Ceiling { level: Priority::HIGHEST },
        };
        let config = lock::Config::Queue { replicas, order: EngineOrder::Fifo, progress };
        self.bandwidth = Some(self.add("memory bandwidth".to_owned(), LockKind::Bandwidth, replicas, config));
    }

    fn add_engines(&mut self, workload: &Workload, order: EngineOrder) {
        for (index, gpu) in workload.platform.gpus.iter().enumerate() {
            let mut locks = [None; Engine::ALL.len()];
            for engine in Engine::ALL.into_iter().take(1 + usize::from(gpu.copy_engines)) {
                let kind = LockKind::Engine { gpu: GpuId(index as u16), engine, order };
                let name = format!("{} {}", gpu.name, engine.name());
                locks[engine.index()] = Some(self.add(name, kind, 1, lock::Config::engine(order)));
            }
            self.engines.push(locks);
        }
    }
}

/// The highest level among the users under fixed priorities; under EDF the deadline floor, its counterpart.
fn ceiling(scheduler: &Scheduler, users: &[usize], tasks: &[Task], ranking: &Ranking) -> lock::Progress {
    let priority = |&task: &usize| ranking.priority(TaskId(task as u32), Instant::ZERO);
    match scheduler.rule {
        PriorityRule::Edf | PriorityRule::Fair => {
            let shortest = users.iter().copied().min_by_key(|&task| (tasks[task].deadline, task));
            shortest.map_or(lock::Progress::None, |task| lock::Progress::Floor {
                deadline: tasks[task].deadline,
                tie: task as u32,
            })
        }
        PriorityRule::RateMonotonic | PriorityRule::DeadlineMonotonic | PriorityRule::Given => users
            .iter()
            .map(priority)
            .min()
            .map_or(lock::Progress::None, |priority| lock::Progress::Ceiling { level: priority.level() }),
    }
}

/// Groups of scheduling clusters that share GPUs, with these GPUs: all of them under global scheduling, else those of
/// each cluster of the platform; under partitioned scheduling its CPUs share them.
fn pools(workload: &Workload, scheduler: &Scheduler, clusters: &[Vec<CpuId>]) -> Vec<(Vec<usize>, Vec<GpuId>)> {
    let platform = &workload.platform;
    let all = || (0..platform.gpus.len()).map(|gpu| GpuId(gpu as u16));
    let mut pools = match scheduler.scope {
        Scope::Global => vec![((0..clusters.len()).collect(), all().collect())],
        Scope::Clustered | Scope::Partitioned => (0..platform.clusters.len())
            .map(|named| {
                let within = |cluster: &usize| platform.clusters[named].contains(&clusters[*cluster][0]);
                let gpus = all().filter(|gpu| platform.gpus[gpu.index()].cluster == named).collect();
                ((0..clusters.len()).filter(within).collect(), gpus)
            })
            .collect::<Vec<(Vec<usize>, Vec<GpuId>)>>(),
    };
    pools.retain(|(users, gpus)| !users.is_empty() && !gpus.is_empty());
    pools
}

/// The GPUs that tasks of each scheduling cluster may use.
pub(crate) fn reachable_gpus(workload: &Workload, scheduler: &Scheduler, clusters: &[Vec<CpuId>]) -> Vec<Vec<GpuId>> {
    let mut reachable = vec![Vec::new(); clusters.len()];
    for (users, gpus) in pools(workload, scheduler, clusters) {
        for cluster in users {
            reachable[cluster].clone_from(&gpus);
        }
    }
    reachable
}
