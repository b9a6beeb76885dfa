//! How resources and GPUs are shared under a configuration.

use laxity_model::{Engine, GpuArbitration, InterruptHandling, ResourceProtocol, Scheduler, Scope, Workload};

use super::analysed_task::AnalysedTask;
use super::assign::Cluster;
use super::uses::{Lock, Operation, Request};

/// Which tasks may hold what, and where interrupts are handled.
#[derive(Clone, Debug)]
pub(super) struct Sharing {
    /// Of the k-FMLP: whether requests join the queue of the shortest declared lengths. `None`: the driver arbitrates.
    pub length_aware: Option<bool>,
    pub handling: InterruptHandling,
    /// Longest top and bottom half of a GPU interrupt.
    pub top_half: u64,
    pub bottom_half: u64,
    /// The protocol of each resource.
    pub protocols: Vec<ResourceProtocol>,
    /// The GPUs that each cluster shares.
    pub pools: Vec<Vec<usize>>,
    /// The GPU of each task under the driver, where an operation names none.
    default_gpus: Vec<Option<usize>>,
    copy_engines: Vec<u8>,
}

impl Sharing {
    pub fn new(workload: &Workload, scheduler: &Scheduler, clusters: &[Cluster], analysed: &[AnalysedTask]) -> Sharing {
        let management = &workload.gpu_management;
        let costs = workload.platform.overheads.at(analysed.len());
        let pools = pools(workload, scheduler, clusters);
        let half = |time: &Option<laxity_model::ExecutionTime>, cost: laxity_model::Nanos| {
            time.as_ref().map_or(cost, |time| time.wcet.max(time.actual.max(time.wcet))).0
        };
        Sharing {
            length_aware: match management.arbitration {
                GpuArbitration::KFmlp { length_aware } => Some(length_aware),
                _ => None,
            },
            handling: management.handling,
            top_half: half(&management.top_half, costs.top_half),
            bottom_half: half(&management.bottom_half, costs.bottom_half),
            protocols: workload.resources.iter().map(|resource| resource.protocol).collect(),
            default_gpus: default_gpus(&pools, clusters, analysed),
            pools,
            copy_engines: workload.platform.gpus.iter().map(|gpu| gpu.copy_engines).collect(),
        }
    }

    /// Whether there are GPUs, used or not.
    pub fn has_gpus(&self) -> bool {
        !self.copy_engines.is_empty()
    }

    /// Whether a bottom half takes a CPU that is not its owner's to spend: on anybody's stack, or above all jobs.
    pub fn delays_all(&self) -> bool {
        !matches!(self.handling, InterruptHandling::Klmirqd { .. })
    }

    /// Whether the scheduler is asked for each bottom half.
    pub fn schedules_halves(&self) -> bool {
        self.handling != InterruptHandling::Linux
    }

    /// The GPU and the engine that an operation of a task occupies, where the driver arbitrates.
    pub fn engine(&self, task: usize, operation: &Operation) -> Option<(usize, Engine)> {
        let gpu = operation.gpu.or(self.default_gpus[task])?;
        Some((gpu, operation.work.engine(self.copy_engines[gpu])))
    }

    /// Whether a holder of `lock` is raised at once, rather than when a job waits for it.
    pub fn has_ceiling(&self, lock: Lock) -> bool {
        matches!(lock, Lock::Resource(at) if self.protocols[at] == ResourceProtocol::PriorityCeiling)
    }

    /// Whether `lock` is granted in the order of requests.
    pub fn is_fifo(&self, lock: Lock) -> bool {
        match lock {
            Lock::Gpu => true,
            Lock::Resource(at) => self.protocols[at] == ResourceProtocol::Fifo,
        }
    }
}

/// All GPUs under global scheduling, else those of the cluster of the platform that the CPUs are part of.
fn pools(workload: &Workload, scheduler: &Scheduler, clusters: &[Cluster]) -> Vec<Vec<usize>> {
    let platform = &workload.platform;
    let pool = |cluster: &Cluster| {
        let named = platform.clusters.iter().position(|cpus| cpus.contains(&cluster.cpus[0]));
        let belongs = |&gpu: &usize| scheduler.scope == Scope::Global || Some(platform.gpus[gpu].cluster) == named;
        (0..platform.gpus.len()).filter(belongs).collect()
    };
    clusters.iter().map(pool).collect()
}

/// Round robin among the tasks of a cluster that use a GPU.
fn default_gpus(pools: &[Vec<usize>], clusters: &[Cluster], analysed: &[AnalysedTask]) -> Vec<Option<usize>> {
    let mut gpus = vec![None; analysed.len()];
    for (pool, cluster) in pools.iter().zip(clusters).filter(|(pool, _)| !pool.is_empty()) {
        let users = cluster.members.iter().filter(|&&index| analysed[index].uses_gpu());
        for (count, &index) in users.enumerate() {
            gpus[index] = Some(pool[count % pool.len()]);
        }
    }
    gpus
}

/// Whether a job holds another lock when it makes `request`, or asks for one while it holds this one.
pub(super) fn is_nested(request: &Request) -> bool {
    request.depth > 0 || !request.within.is_empty()
}
