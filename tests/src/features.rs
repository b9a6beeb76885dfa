//! Random systems with a feature that an analysis must know about, many of them with much contention.

use laxity_model::rng::SplitMix64;
use laxity_model::{
    EngineOrder, ExecutionTime, Factor, GpuArbitration, GpuOperation, GpuSync, GpuWork, InterruptHandling,
    MigrationPath, Nanos, OverheadCosts, OverheadProfile, PriorityRule, Resource, ResourceProtocol, Scheduler, Step,
    ThreadPriority, TokenHold, Waiting, Workload,
};

use crate::beyond;
use crate::graphs::{self, Kind};
use crate::one_cpu;
use crate::protected;
use crate::queues;
use crate::servers::{add_devices, mixed, serve};
use crate::systems::{self, UNIT, pick};

pub(crate) const HIGH: InterruptHandling = InterruptHandling::PreemptRt(ThreadPriority::High);

/// Those whose bottom halves never wait behind what is less urgent than their owner.
pub(crate) const HANDLINGS: [InterruptHandling; 4] =
    [InterruptHandling::Linux, InterruptHandling::ProcessAware, InterruptHandling::Klmirqd { threads: None }, HIGH];

/// What a random system has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// GPUSync with as many requests in its queues as it may be.
    Tokens,
    /// GPUSync with many more tasks than CPUs, all of which use GPUs: requests wait outside, donate and are displaced.
    Donors,
    /// GPUSync with long bottom halves in klmirqd's threads, and jobs that execute while they hold tokens.
    Halves,
    /// GPUSync with two GPUs for each cluster, between which tasks' state moves.
    Migration,
    /// GPUSync with requests for GPUs by name, and queues that hold all of them.
    Named,
    /// Calls of the run-time library after each operation.
    Callbacks,
    /// Resources with replicas.
    Replicas,
    /// Devices that serve no job.
    Devices,
    /// Tasks that are bandwidth servers, whose jobs use up several budgets.
    Servers,
    /// GPUs behind a semaphore, whose holders inherit nothing.
    Semaphore,
    /// Bottom halves, or calls of the run-time library, in threads below all jobs.
    LowThreads,
    /// klmirqd with a thread for bottom halves of several jobs, in the order of arrival.
    SharedThreads,
    /// Operations that raise several interrupts on several CPUs, under klmirqd or process-aware handling.
    Scattered,
    /// The counterpart of priority ceilings under EDF.
    Floors,
    /// Graphs with replicas of their data objects, at times too few.
    Copies,
    /// Graphs whose nodes have many rates: several jobs of a node may be released at once.
    Rates,
    /// Graphs whose branches execute side by side, with locks and GPUs shared in any way.
    Branches,
    /// Graphs whose tokens go from one CPU to another, each scheduled by itself.
    Spread,
    /// Graphs whose nodes are bandwidth servers, whose jobs use up several budgets.
    ServedNodes,
    /// Resources under quantum-driven scheduling.
    Quanta,
    /// GPUs, and resources, under quantum-driven scheduling.
    QuantaGpus,
    /// Resources that tasks of several ready queues share.
    Across,
    /// GPUs, and resources, that tasks of several ready queues share, with interrupts on any CPU.
    AcrossGpus,
    /// EDF on one CPU: sections that cannot be preempted, release jitter, and resources of any protocol.
    OneCpu,
    /// EDF on several CPUs, with deadlines beyond periods.
    Beyond,
    /// GPU operations under the bandwidth lock, one after another, beside graphs; what cannot be analysed is refused.
    Protected,
    /// One of the others, with servers, devices and a graph besides; what cannot be analysed together is refused.
    Mixed,
}

impl Feature {
    /// All of them.
    pub const ALL: [Feature; 27] = [
        Feature::Tokens,
        Feature::Donors,
        Feature::Halves,
        Feature::Migration,
        Feature::Named,
        Feature::Callbacks,
        Feature::Replicas,
        Feature::Devices,
        Feature::Servers,
        Feature::Semaphore,
        Feature::LowThreads,
        Feature::SharedThreads,
        Feature::Scattered,
        Feature::Floors,
        Feature::Copies,
        Feature::Rates,
        Feature::Branches,
        Feature::Spread,
        Feature::ServedNodes,
        Feature::Quanta,
        Feature::QuantaGpus,
        Feature::Across,
        Feature::AcrossGpus,
        Feature::OneCpu,
        Feature::Beyond,
        Feature::Protected,
        Feature::Mixed,
    ];

    /// Whether some of its systems cannot be analysed.
    pub fn may_be_refused(self) -> bool {
        matches!(self, Feature::Protected | Feature::Mixed)
    }

    /// A system with the feature from `seed`, and its scheduler.
    pub fn system(self, seed: u64) -> (Workload, Scheduler) {
        match self {
            Feature::Mixed => return mixed(seed),
            Feature::Copies => return graphs::system(Kind::Copies, seed),
            Feature::OneCpu => return one_cpu::system(seed),
            Feature::Beyond => return beyond::system(seed),
            Feature::Protected => return protected::system(seed),
            Feature::Rates => return graphs::system(Kind::Rates, seed),
            Feature::Spread => return graphs::system(Kind::Spread, seed),
            Feature::ServedNodes => return graphs::system(Kind::Served, seed),
            Feature::Quanta | Feature::QuantaGpus | Feature::Across | Feature::AcrossGpus => {
                return queues::system(self, seed);
            }
            _ => {}
        }
        let rng = &mut SplitMix64::new(!seed);
        let size = match self {
            Feature::Donors => systems::Size { cpus: 1 + seed % 3, gpus: 1, tasks: 4 + rng.below(7), stretch: 2 },
            Feature::Migration => {
                let gpus = 2 + u64::from(seed.is_multiple_of(9));
                systems::Size { cpus: 1 + seed % 4, gpus, tasks: 1 + rng.below(7), stretch: 2 }
            }
            Feature::Halves => systems::Size { cpus: 1 + seed % 3, gpus: 1, tasks: 3 + rng.below(5), stretch: 3 },
            Feature::Branches => systems::Size { cpus: 2 + seed % 3, gpus: 1, tasks: rng.below(3), stretch: 1 },
            Feature::Named => systems::Size { cpus: 1 + seed % 4, gpus: 2, tasks: 1 + rng.below(6), stretch: 2 },
            _ => systems::Size { cpus: 1 + seed % 4, gpus: 1 + seed / 4 % 2, tasks: 1 + rng.below(6), stretch: 1 },
        };
        let (mut workload, mut scheduler) = systems::sized(seed, &size);
        match self {
            Feature::Semaphore => {
                workload.gpu_management.arbitration = GpuArbitration::Semaphore;
                workload.gpu_management.handling = pick(rng, &HANDLINGS);
            }
            Feature::LowThreads => self.add_low_threads(&mut workload, rng),
            Feature::SharedThreads => self.share_threads(&mut workload, rng),
            Feature::Branches => self.branch(&mut workload, rng),
            Feature::Scattered => self.scatter(&mut workload, rng),
            Feature::Floors => {
                scheduler.rule = PriorityRule::Edf;
                let ceiling = |resource: &mut Resource| resource.protocol = ResourceProtocol::PriorityCeiling;
                workload.resources.iter_mut().for_each(ceiling);
            }
            Feature::Replicas => replicate(&mut workload, rng),
            Feature::Devices => self.add_devices(&mut workload, rng),
            Feature::Callbacks => self.manage(&mut workload, rng),
            Feature::Servers => serve(&mut workload, rng),
            _ => self.share_tokens(&mut workload, rng),
        }
        if self == Feature::Donors {
            contend(&mut workload, rng);
        }
        if self == Feature::Halves {
            interrupt(&mut workload, rng);
        }
        if self == Feature::Named {
            name_gpus(&mut workload, rng);
        }
        (workload, scheduler)
    }

    pub(crate) fn share_tokens(self, workload: &mut Workload, rng: &mut SplitMix64) {
        let time = || Nanos(UNIT / 2 + seed_of(workload));
        let migration = (self == Feature::Migration).then(time);
        let all = self == Feature::Named;
        let sync = GpuSync {
            tokens: rng.between(1, 3) as u32,
            fifo_length: if all { Some(20) } else { pick(rng, &[None, None, Some(1), Some(2), Some(3)]) },
            fifo_requests: if all { Some(20) } else { pick(rng, &[None, None, None, Some(1), Some(4), Some(20)]) },
            engine_order: pick(rng, &[EngineOrder::Fifo, EngineOrder::Priority]),
            chunk: pick(rng, &[None, Some(30_000)]),
            hold: pick(rng, &[TokenHold::Section, TokenHold::Section, TokenHold::Job]),
            migration,
            migration_path: pick(rng, &[MigrationPath::Peer, MigrationPath::Host]),
        };
        let management = &mut workload.gpu_management;
        management.arbitration = GpuArbitration::GpuSync(sync);
        management.handling = pick(rng, &HANDLINGS);
        free_tokens_kept(workload);
    }

    fn manage(self, workload: &mut Workload, rng: &mut SplitMix64) {
        if rng.below(2) == 0 {
            self.share_tokens(workload, rng);
        } else {
            workload.gpu_management.arbitration = GpuArbitration::KFmlp { length_aware: rng.below(2) == 0 };
        }
        workload.gpu_management.handling = InterruptHandling::Klmirqd { threads: None };
        let wcet = Nanos(rng.between(1, UNIT));
        workload.gpu_management.callback = Some(ExecutionTime::constant(wcet));
        // One thread serves all nodes of a graph.
        let several = workload.platform.gpus.iter().filter(|gpu| gpu.cluster == 0).count() > 1;
        if several {
            workload.graphs.clear();
        }
    }
}

impl Feature {
    fn add_devices(self, workload: &mut Workload, rng: &mut SplitMix64) {
        if rng.below(2) == 0 {
            self.share_tokens(workload, rng);
        }
        add_devices(workload, rng);
    }
}

impl Feature {
    /// Any way to share GPUs, but for jobs that spin.
    pub(crate) fn arbitrate(self, workload: &mut Workload, rng: &mut SplitMix64) {
        let length_aware = rng.below(2) == 0;
        match rng.below(4) {
            0 => workload.gpu_management.arbitration = GpuArbitration::Driver,
            1 => workload.gpu_management.arbitration = GpuArbitration::Semaphore,
            2 => workload.gpu_management.arbitration = GpuArbitration::KFmlp { length_aware },
            _ => self.share_tokens(workload, rng),
        }
    }

    fn add_low_threads(self, workload: &mut Workload, rng: &mut SplitMix64) {
        self.arbitrate(workload, rng);
        let low = InterruptHandling::PreemptRt(ThreadPriority::Low);
        let with_calls = [InterruptHandling::Linux, InterruptHandling::ProcessAware, HIGH, low, low];
        let management = &mut workload.gpu_management;
        management.handling = pick(rng, &with_calls);
        if management.handling != low || rng.below(2) == 0 {
            management.callback = Some(ExecutionTime::constant(Nanos(rng.between(1, UNIT))));
            // One thread serves all nodes of a graph, and is of one cluster.
            if workload.platform.clusters.len() > 1 || workload.platform.gpus.len() > 1 {
                workload.graphs.clear();
            }
        }
    }

    fn branch(self, workload: &mut Workload, rng: &mut SplitMix64) {
        self.arbitrate(workload, rng);
        let management = &mut workload.gpu_management;
        let klmirqd = InterruptHandling::Klmirqd { threads: None };
        let is_held = management.arbitration != GpuArbitration::Driver;
        management.handling =
            if is_held { pick(rng, &HANDLINGS) } else { pick(rng, &[HIGH, InterruptHandling::Linux]) };
        if management.handling == klmirqd && rng.below(2) == 0 {
            management.callback = Some(ExecutionTime::constant(Nanos(rng.between(1, UNIT))));
        }
        workload.graphs = vec![systems::branches(rng, workload)];
        systems::pin(workload, rng);
        let clusters = workload.platform.clusters.len() as u64;
        for node in workload.graphs.iter_mut().flat_map(|graph| &mut graph.nodes) {
            if clusters > 1 && node.body.iter().all(|step| matches!(step, Step::Cpu(_) | Step::Suspend(_))) {
                node.cluster = Some(rng.below(clusters) as usize);
            }
        }
        free_tokens_kept(workload);
    }

    fn share_threads(self, workload: &mut Workload, rng: &mut SplitMix64) {
        self.arbitrate(workload, rng);
        let is_one_cluster = workload.platform.clusters.len() == 1;
        let threads = (is_one_cluster && rng.below(2) == 0).then_some(1);
        workload.gpu_management.handling = InterruptHandling::Klmirqd { threads };
        if threads.is_none() {
            workload.gpu_management.arbitration = GpuArbitration::Driver;
        }
    }

    fn scatter(self, workload: &mut Workload, rng: &mut SplitMix64) {
        self.arbitrate(workload, rng);
        let klmirqd = InterruptHandling::Klmirqd { threads: None };
        workload.gpu_management.handling = pick(rng, &[klmirqd, klmirqd, InterruptHandling::ProcessAware]);
        for gpu in &mut workload.platform.gpus {
            gpu.interrupt_cpus.clone_from(&workload.platform.clusters[gpu.cluster]);
        }
        let nodes = workload.graphs.iter_mut().flat_map(|graph| &mut graph.nodes).map(|node| &mut node.body);
        for body in workload.tasks.iter_mut().map(|task| &mut task.body).chain(nodes) {
            raise_several(body, rng);
        }
    }
}

fn raise_several(body: &mut [Step], rng: &mut SplitMix64) {
    for step in body {
        match step {
            Step::Gpu(operation) => operation.interrupts = rng.between(1, 3) as u32,
            Step::Critical { body, .. } | Step::GpuSection { body } => raise_several(body, rng),
            Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => {}
        }
    }
}

fn seed_of(workload: &Workload) -> u64 {
    workload.tasks.first().map_or(0, |task| task.period.0 % UNIT)
}

/// Where tokens are kept to the end of a job: see [`free_sections`].
fn free_tokens_kept(workload: &mut Workload) {
    if let GpuArbitration::GpuSync(GpuSync { hold: TokenHold::Job, .. }) = workload.gpu_management.arbitration {
        let nodes = workload.graphs.iter_mut().flat_map(|graph| &mut graph.nodes).map(|node| &mut node.body);
        workload.tasks.iter_mut().map(|task| &mut task.body).chain(nodes).for_each(|body| free_sections(body));
    }
}

/// A token that is kept to the end of a job must not be asked for within a critical section.
fn free_sections(body: &mut [Step]) {
    for step in body {
        if let Step::Critical { body, .. } = step {
            body.retain(|inner| !matches!(inner, Step::GpuSection { .. }));
        }
    }
}

/// Every task uses the GPU, most of them once and much alike; periods are much different.
fn contend(workload: &mut Workload, rng: &mut SplitMix64) {
    if rng.below(3) > 0 {
        workload.platform.overheads = OverheadProfile::constant("none", OverheadCosts::default());
    }
    let (copy, is_plain) = (workload.clone(), rng.below(4) > 0);
    workload.graphs.truncate(usize::from(!is_plain));
    for task in &mut workload.tasks {
        let times = rng.between(1, 8);
        (task.period, task.deadline) = (Nanos(task.period.0 * times), Nanos(task.deadline.0 * times));
        let uses_gpu = task.body.iter().any(|step| matches!(step, Step::GpuSection { .. }));
        if is_plain {
            let cpu = Step::Cpu(ExecutionTime::constant(Nanos(rng.between(1, UNIT / 4))));
            task.jitter = Nanos::ZERO;
            task.body = vec![cpu.clone(), Step::GpuSection { body: vec![kernel(4 * UNIT)] }, cpu];
        } else if !uses_gpu {
            let mut section = systems::section(rng, &copy);
            if let Step::GpuSection { body } = &mut section {
                // Users of a resource are all in one cluster.
                body.retain(|inner| !matches!(inner, Step::Critical { .. }));
            }
            task.body.push(section);
        }
    }
}

/// Short GPU kernels with long bottom halves, and time on a CPU between them.
fn interrupt(workload: &mut Workload, rng: &mut SplitMix64) {
    let bottom_half = Nanos(rng.between(1, 3) * UNIT);
    let costs = OverheadCosts { bottom_half, ..OverheadCosts::default() };
    workload.platform.overheads = OverheadProfile::constant("halves", costs);
    workload.graphs.clear();
    let management = &mut workload.gpu_management;
    management.handling = InterruptHandling::Klmirqd { threads: None };
    if let GpuArbitration::GpuSync(sync) = &mut management.arbitration {
        sync.tokens = rng.between(2, 4) as u32;
    }
    for task in &mut workload.tasks {
        task.jitter = Nanos::ZERO;
        let cpu = |rng: &mut SplitMix64| Step::Cpu(ExecutionTime::constant(Nanos(rng.between(1, 2 * UNIT))));
        let mut body = Vec::new();
        for _ in 0..rng.between(1, 3) {
            body.extend([kernel(rng.between(1, UNIT / 4)), cpu(rng)]);
        }
        let uses_gpu = rng.below(4) > 0;
        task.body = vec![cpu(rng)];
        task.body.extend(uses_gpu.then_some(Step::GpuSection { body }));
        let times = rng.between(1, 4);
        (task.period, task.deadline) = (Nanos(task.period.0 * times), Nanos(task.deadline.0 * times));
    }
}

fn kernel(length: u64) -> Step {
    let work = GpuWork::Kernel(ExecutionTime::constant(Nanos(length)));
    Step::Gpu(GpuOperation { gpu: None, work, waiting: Waiting::Synchronous, interrupts: 1, memory: Factor::ZERO })
}

/// `workload` with all of its tasks arriving almost at once, those of longer periods first: the urgent ones find others
/// in their way.
pub fn urgent_last(workload: &Workload, seed: u64) -> Workload {
    let rng = &mut SplitMix64::new(seed);
    let mut late = workload.clone();
    let mut order: Vec<usize> = (0..late.tasks.len()).collect();
    order.sort_by_key(|&task| std::cmp::Reverse(late.tasks[task].period));
    let (mut phase, step) = (0, pick(rng, &[UNIT / 100, UNIT / 10, UNIT]));
    for task in order {
        phase += rng.below(step);
        late.tasks[task].phase = Nanos(phase);
    }
    late
}

fn name_gpus(workload: &mut Workload, rng: &mut SplitMix64) {
    let gpus = workload.platform.gpus.clone();
    for task in &mut workload.tasks {
        let cluster = task.cluster.unwrap_or(0);
        let there: Vec<usize> = (0..gpus.len()).filter(|&gpu| gpus[gpu].cluster == cluster).collect();
        for step in &mut task.body {
            let named = pick(rng, &there);
            if let (Step::GpuSection { body }, 0) = (step, rng.below(2)) {
                for inner in body {
                    if let Step::Gpu(operation) = inner {
                        operation.gpu = Some(named);
                    }
                }
            }
        }
    }
}

pub(crate) fn replicate(workload: &mut Workload, rng: &mut SplitMix64) {
    for resource in &mut workload.resources {
        resource.replicas = rng.between(1, 3) as u32;
    }
}
