//! How resources and GPUs are shared under a configuration.

use laxity_model::{
    Engine, ExecutionTime, GpuArbitration, InterruptHandling, Nanos, Platform, PriorityRule, ResourceProtocol,
    Scheduler, Scope, ThreadPriority, Workload,
};

use super::analysed_task::AnalysedTask;
use super::assign::{Cluster, Part};
use super::devices::DeviceLoad;
use super::regions::named_cluster;
use super::tokens::TokenRules;
use super::uses::{Lock, Operation, Request};

/// Which tasks may hold what, and where interrupts are handled.
#[derive(Clone, Debug)]
pub(super) struct Sharing {
    pub arbitration: Arbitration,
    /// Whether jobs spin until their GPU operations are complete.
    pub spins: bool,
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
    /// How many CPUs run jobs that may ask for these, whichever cluster of the scheduler they are of.
    pool_cpus: Vec<u32>,
    /// The GPU of each task under the driver, where an operation names none.
    default_gpus: Vec<Option<usize>>,
    copy_engines: Vec<u8>,
    /// Whether bottom halves that jobs wait for may wait themselves at a priority that does not follow from these jobs'.
    pub halves_wait: bool,
    /// Bottom halves that may still be pending when their operation is complete, at most.
    pub left_over: u64,
    /// Of each cluster: what its tasks do.
    users: Vec<Users>,
    /// Of each cluster: a task of which process-aware handling may forget that a bottom half is its job's.
    pub forgotten: Vec<Option<usize>>,
}

/// What the tasks of a cluster that use GPUs do.
#[derive(Clone, Copy, Debug, Default)]
struct Users {
    /// Some use GPUs.
    are_some: bool,
    /// Some ask for a GPU while they hold something else, or for something else while they hold a GPU.
    nest: bool,
    /// Requests for tokens may find all queues full.
    fill_queues: bool,
    /// Holders have the shortest relative deadline of all users, counted from the grant: the counterpart of ceilings under
    /// EDF. One that waits may be due earlier.
    take_floors: bool,
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
        let pools = pools(workload, scheduler, clusters, analysed);
        let longest = |time: &ExecutionTime| time.wcet.max(time.actual.max(time.wcet));
        let half = |time: &Option<ExecutionTime>, cost: Nanos| time.as_ref().map_or(cost, longest).0;
        let mut sharing = Sharing {
            spins: management.arbitration == GpuArbitration::DriverSpinning,
            halves_wait: false,
            left_over: 0,
            users: Vec::new(),
            forgotten: Vec::new(),
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
            pool_cpus: pool_cpus(workload, scheduler, clusters, analysed),
            pools,
            copy_engines: workload.platform.gpus.iter().map(|gpu| gpu.copy_engines).collect(),
        };
        sharing.users =
            (0..clusters.len()).map(|cluster| sharing.users(cluster, scheduler.rule, clusters, analysed)).collect();
        let forgotten = |cluster: usize| sharing.forgotten(&workload.platform, cluster, &clusters[cluster], analysed);
        sharing.forgotten = (0..clusters.len()).map(forgotten).collect();
        sharing.left_over = sharing.left_over(workload, analysed);
        sharing.halves_wait = sharing.halves_wait(workload, analysed);
        sharing
    }

    fn users(&self, index: usize, rule: PriorityRule, clusters: &[Cluster], analysed: &[AnalysedTask]) -> Users {
        let cluster = &clusters[index];
        let members = || cluster.members.iter().map(|&at| &analysed[at]);
        let users = || members().filter(|task| task.uses_gpu());
        let has_ceiling = |request: &Request| matches!(request.lock, Lock::Resource(at) if self.protocols[at] == ResourceProtocol::PriorityCeiling);
        let nests = |request: &Request| {
            let locks = request.within.iter().chain([&request.lock]);
            locks.clone().any(|&lock| lock == Lock::Gpu) && locks.clone().any(|&lock| lock != Lock::Gpu)
        };
        let queues = self.tokens().map(|rules| rules.queues(self.pool_cpus[index], self.pools[index].len()));
        let names = |task: &AnalysedTask| task.uses.demand.named_gpu().is_some();
        let names_gpus = self.pools[index].len() > 1 && users().any(names);
        Users {
            are_some: users().next().is_some(),
            nest: users().any(|task| task.uses.requests.iter().any(nests)),
            take_floors: rule == PriorityRule::Edf && members().any(|task| task.uses.requests.iter().any(has_ceiling)),
            fill_queues: queues.is_some_and(|queues| !queues.never_fill(users().count() as u64, names_gpus)),
        }
    }

    /// Under klmirqd a thread knows no owner, and so no priority, of a bottom half whose operation is complete. Its queue is
    /// in the order of arrival, so that the next operation's end finds none of them any more.
    fn left_over(&self, workload: &Workload, analysed: &[AnalysedTask]) -> u64 {
        let scattered = workload.platform.gpus.iter().filter(|gpu| gpu.interrupt_cpus.len() > 1).count() as u64;
        if scattered == 0 || !matches!(self.handling, InterruptHandling::Klmirqd { .. }) {
            return 0;
        }
        let beyond = |task: &AnalysedTask| {
            let operations = task.uses.demand.operations.iter();
            operations.map(|operation| u64::from(operation.interrupts.saturating_sub(1))).max().unwrap_or(0)
        };
        analysed.iter().map(beyond).fold(0, u64::saturating_add).saturating_mul(scattered)
    }

    /// A task whose operations raise several interrupts, on several CPUs, under process-aware handling: one of them may come after the
    /// job is complete, and then has no owner to be aware of.
    fn forgotten(
        &self,
        platform: &Platform,
        index: usize,
        cluster: &Cluster,
        analysed: &[AnalysedTask],
    ) -> Option<usize> {
        let is_scattered = self.pools[index].iter().any(|&gpu| platform.gpus[gpu].interrupt_cpus.len() > 1);
        let has_several = |&&task: &&usize| {
            let operations = analysed[task].uses.demand.operations.iter();
            operations.map(|operation| operation.interrupts).any(|interrupts| interrupts > 1)
        };
        let is_aware = self.handling == InterruptHandling::ProcessAware;
        cluster.members.iter().find(has_several).copied().filter(|_| is_aware && is_scattered)
    }

    fn halves_wait(&self, workload: &Workload, analysed: &[AnalysedTask]) -> bool {
        if !analysed.iter().any(AnalysedTask::uses_gpu) {
            return false;
        }
        match self.handling {
            InterruptHandling::PreemptRt(ThreadPriority::Low) => true,
            InterruptHandling::Klmirqd { threads } => {
                let gpus = workload.platform.gpus.len();
                let shared = threads.is_some_and(|threads| (threads as usize) < gpus);
                shared || self.left_over > 0 || (0..gpus).any(|gpu| self.is_shared_by_the_driver(gpu, analysed))
            }
            _ => self.callback.is_some(),
        }
    }

    /// Whether several tasks use a GPU without holding it.
    fn is_shared_by_the_driver(&self, gpu: usize, analysed: &[AnalysedTask]) -> bool {
        let uses = |&(index, task): &(usize, &AnalysedTask)| {
            let mut operations = task.uses.demand.operations.iter();
            operations.any(|operation| self.engine(index, operation).is_some_and(|(at, _)| at == gpu))
        };
        !self.holds_gpus() && analysed.iter().enumerate().filter(uses).count() > 1
    }

    /// How many CPUs run jobs that may ask for the GPUs of a cluster: GPUSync's m.
    pub fn pool_cpus(&self, cluster: usize) -> u32 {
        self.pool_cpus[cluster]
    }

    /// Whether requests for tokens of a cluster may find all queues full: then no job that holds one need be as urgent.
    pub fn tokens_run_out(&self, cluster: usize) -> bool {
        self.users[cluster].fill_queues
    }

    /// Whether jobs of `task` may wait for what does not become as urgent as they are: a holder of a GPU that inherits
    /// nothing, or a thread of another priority.
    pub fn leaves_behind(&self, cluster: usize, task: &AnalysedTask) -> bool {
        let users = &self.users[cluster];
        let asks = task.uses_gpu() || !task.uses.requests.is_empty();
        let asks_for_gpus = task.uses_gpu() || users.nest && asks;
        let inherits_nothing = self.arbitration == Arbitration::Semaphore || users.fill_queues;
        users.take_floors && asks || users.are_some && (self.halves_wait && asks || inherits_nothing && asks_for_gpus)
    }

    /// Whether waits in a cluster are bounded only if they are kept apart from execution.
    pub fn keeps_waits_apart(&self, cluster: usize) -> bool {
        let users = &self.users[cluster];
        let by_gpus = self.halves_wait || self.arbitration == Arbitration::Semaphore;
        users.take_floors || users.are_some && by_gpus
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
            InterruptHandling::Klmirqd { .. } if self.callback.is_some() || self.halves_wait => Place::AnyJob,
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

    /// Whether `lock` has a ceiling, and one holder at a time.
    pub fn is_lone_ceiling(&self, lock: Lock) -> bool {
        let Lock::Resource(at) = lock else { return false };
        self.replicas[at] == 1 && self.protocols[at] == ResourceProtocol::PriorityCeiling
    }

    /// Whether several jobs may hold `lock` at once.
    pub fn has_replicas(&self, lock: Lock) -> bool {
        matches!(lock, Lock::Resource(at) if self.replicas[at] > 1)
    }

    /// Whether `lock` raises its holder to the priority of the most urgent user at once.
    pub fn has_ceiling(&self, lock: Lock) -> bool {
        matches!(lock, Lock::Resource(at) if self.protocols[at] == ResourceProtocol::PriorityCeiling)
    }

    /// Whether `lock` is granted in the order of requests, by the k-FMLP if it is that of GPUs.
    pub fn is_fifo(&self, lock: Lock) -> bool {
        match lock {
            Lock::Gpu => self.length_aware().is_some(),
            Lock::Resource(at) => self.protocols[at] == ResourceProtocol::Fifo,
        }
    }
}

/// The part of a cluster whose GPUs it shares: the first with tasks that use some, or just the first.
fn part_with_gpus<'c>(cluster: &'c Cluster, analysed: &[AnalysedTask]) -> &'c Part {
    let uses = |part: &&Part| part.members.iter().any(|&member| analysed[member].uses_gpu());
    cluster.parts.iter().find(uses).unwrap_or(&cluster.parts[0])
}

/// All GPUs under global scheduling, else those of the cluster of the platform that the CPUs are part of.
fn pools(
    workload: &Workload,
    scheduler: &Scheduler,
    clusters: &[Cluster],
    analysed: &[AnalysedTask],
) -> Vec<Vec<usize>> {
    let platform = &workload.platform;
    let pool = |cluster: &Cluster| {
        let named = named_cluster(workload, scheduler, part_with_gpus(cluster, analysed));
        let belongs = |&gpu: &usize| scheduler.scope == Scope::Global || Some(platform.gpus[gpu].cluster) == named;
        (0..platform.gpus.len()).filter(belongs).collect()
    };
    clusters.iter().map(pool).collect()
}

/// Of each cluster: the CPUs that run jobs of all clusters with its GPUs.
fn pool_cpus(workload: &Workload, scheduler: &Scheduler, clusters: &[Cluster], analysed: &[AnalysedTask]) -> Vec<u32> {
    let parts = || clusters.iter().flat_map(|cluster| &cluster.parts);
    let count = |cluster: &Cluster| {
        let named = named_cluster(workload, scheduler, part_with_gpus(cluster, analysed));
        let beside = parts().filter(|part| named_cluster(workload, scheduler, part) == named);
        beside.map(|part| part.cpus.len() as u32).sum()
    };
    clusters.iter().map(count).collect()
}

/// Round robin among the tasks of a ready queue that use a GPU.
fn default_gpus(pools: &[Vec<usize>], clusters: &[Cluster], analysed: &[AnalysedTask]) -> Vec<Option<usize>> {
    let mut gpus = vec![None; analysed.len()];
    for (pool, cluster) in pools.iter().zip(clusters).filter(|(pool, _)| !pool.is_empty()) {
        for part in &cluster.parts {
            let users = part.members.iter().filter(|&&index| analysed[index].uses_gpu());
            for (count, &index) in users.enumerate() {
                gpus[index] = Some(pool[count % pool.len()]);
            }
        }
    }
    gpus
}
