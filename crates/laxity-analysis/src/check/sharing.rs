//! How resources and GPUs are shared under a configuration.

use laxity_model::{
    Engine, ExecutionTime, GpuArbitration, InterruptHandling, Nanos, ResourceProtocol, Scheduler, Scope, Workload,
};

use super::analysed_task::AnalysedTask;
use super::assign::Cluster;
use super::devices::DeviceLoad;
use super::tokens::TokenRules;
use super::uses::{Lock, Operation, Request};

/// Which tasks may hold what, and where interrupts are handled.
#[derive(Clone, Debug)]
pub(super) struct Sharing {
    pub arbitration: Arbitration,
    pub handling: InterruptHandling,
    /// Longest top and bottom half of a GPU interrupt.
    pub top_half: u64,
    pub bottom_half: u64,
    /// Longest call of the run-time library's thread after an operation; `None`: it has no such thread.
    pub callback: Option<u64>,
    /// The protocol of each resource.
    pub protocols: Vec<ResourceProtocol>,
    /// How many jobs may hold each resource at once.
    replicas: Vec<u32>,
    /// Devices that serve no job.
    pub devices: Vec<DeviceLoad>,
    /// The GPUs that each cluster shares.
    pub pools: Vec<Vec<usize>>,
    /// The GPU of each task under the driver, where an operation names none.
    default_gpus: Vec<Option<usize>>,
    copy_engines: Vec<u8>,
}

/// How jobs get GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arbitration {
    /// They do not hold them: the driver takes operations one at a time.
    Driver,
    /// They hold one, and inherit nothing from jobs that wait for it.
    Semaphore,
    /// The k-FMLP; whether requests join the queue of the shortest declared lengths.
    KFmlp { length_aware: bool },
    /// GPUSync.
    Tokens(TokenRules),
}

/// Whose CPU time a bottom half takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Its owner's.
    Owner,
    /// Its owner's, behind bottom halves of other holders of the GPU's tokens; but its thread has the priority of the
    /// most urgent holder, which may execute at the same time.
    OwnerOrHolder {
        /// Of each GPU.
        tokens: u64,
    },
    /// Any job's: on the stack of any, above all, or in a second thread of the owner.
    AnyJob,
}

impl Sharing {
    pub fn new(workload: &Workload, scheduler: &Scheduler, clusters: &[Cluster], analysed: &[AnalysedTask]) -> Sharing {
        let management = &workload.gpu_management;
        let costs = workload.platform.overheads.at(analysed.len());
        let pools = pools(workload, scheduler, clusters);
        let longest = |time: &ExecutionTime| time.wcet.max(time.actual.max(time.wcet));
        let half = |time: &Option<ExecutionTime>, cost: Nanos| time.as_ref().map_or(cost, longest).0;
        Sharing {
            arbitration: match management.arbitration {
                GpuArbitration::Driver | GpuArbitration::DriverSpinning => Arbitration::Driver,
                GpuArbitration::Semaphore => Arbitration::Semaphore,
                GpuArbitration::KFmlp { length_aware } => Arbitration::KFmlp { length_aware },
                GpuArbitration::GpuSync(sync) => Arbitration::Tokens(TokenRules::of(&sync)),
            },
            handling: management.handling,
            top_half: half(&management.top_half, costs.top_half),
            bottom_half: half(&management.bottom_half, costs.bottom_half),
            callback: management.callback.as_ref().map(|time| longest(time).0),
            protocols: workload.resources.iter().map(|resource| resource.protocol).collect(),
            replicas: workload.resources.iter().map(|resource| resource.replicas).collect(),
            devices: DeviceLoad::all(workload, scheduler, clusters, analysed.len()),
            default_gpus: default_gpus(&pools, clusters, analysed),
            pools,
            copy_engines: workload.platform.gpus.iter().map(|gpu| gpu.copy_engines).collect(),
        }
    }

    /// Whether there are GPUs, used or not.
    pub fn has_gpus(&self) -> bool {
        !self.copy_engines.is_empty()
    }

    /// Whether jobs hold GPUs, or tokens of them.
    pub fn holds_gpus(&self) -> bool {
        self.arbitration != Arbitration::Driver
    }

    /// The rules of GPUSync's tokens.
    pub fn tokens(&self) -> Option<&TokenRules> {
        match &self.arbitration {
            Arbitration::Tokens(rules) => Some(rules),
            _ => None,
        }
    }

    /// Of the k-FMLP: whether requests join the queue of the shortest declared lengths.
    pub fn length_aware(&self) -> Option<bool> {
        match self.arbitration {
            Arbitration::KFmlp { length_aware } => Some(length_aware),
            _ => None,
        }
    }

    /// In whose place bottom halves are executed.
    pub fn place_of_halves(&self) -> Place {
        let tokens = self.tokens().map_or(1, |rules| rules.tokens);
        match self.handling {
            InterruptHandling::Klmirqd { .. } if self.callback.is_some() => Place::AnyJob,
            InterruptHandling::Klmirqd { .. } if tokens > 1 => Place::OwnerOrHolder { tokens: tokens.into() },
            InterruptHandling::Klmirqd { .. } => Place::Owner,
            _ => Place::AnyJob,
        }
    }

    /// Whether a klmirqd thread may have a priority with which another entity runs meanwhile.
    pub fn lends_priorities_twice(&self) -> bool {
        matches!(self.handling, InterruptHandling::Klmirqd { .. }) && self.place_of_halves() != Place::Owner
    }

    /// What is executed after the top half, by one thread or two.
    pub fn after_top_half(&self) -> u64 {
        self.bottom_half.saturating_add(self.callback.unwrap_or(0))
    }

    /// How often the scheduler is asked for what follows the top half of an interrupt.
    pub fn schedulings_of_a_half(&self) -> u64 {
        u64::from(self.handling != InterruptHandling::Linux) + u64::from(self.callback.is_some())
    }

    /// The fewest copy engines of a GPU that `cluster` shares.
    pub fn copy_engines_of(&self, cluster: usize) -> u8 {
        self.pools[cluster].iter().map(|&gpu| self.copy_engines[gpu]).min().unwrap_or(1)
    }

    /// The GPU and the engine that an operation of a task occupies, where the driver arbitrates.
    pub fn engine(&self, task: usize, operation: &Operation) -> Option<(usize, Engine)> {
        let gpu = operation.gpu.or(self.default_gpus[task])?;
        Some((gpu, operation.work.engine(self.copy_engines[gpu])))
    }

    /// Whether a priority may be that of several holders of `lock` at once, or of a holder for which no job waits: it has
    /// replicas, or a ceiling.
    pub fn raises_many(&self, lock: Lock) -> bool {
        let Lock::Resource(at) = lock else { return false };
        self.replicas[at] > 1 || self.protocols[at] == ResourceProtocol::PriorityCeiling
    }

    /// Whether `lock` is granted in the order of requests, by the k-FMLP if it is that of GPUs.
    pub fn is_fifo(&self, lock: Lock) -> bool {
        match lock {
            Lock::Gpu => self.length_aware().is_some(),
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
