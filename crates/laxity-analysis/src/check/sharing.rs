//! How resources and GPUs are shared under a configuration, and what of it cannot be analysed.

use laxity_model::{
    CpuId, Engine, GpuArbitration, InterruptHandling, Invocation, Nanos, PriorityRule, ResourceProtocol, Scheduler,
    Scope, Task, ThreadPriority, Workload,
};

use super::assign::Cluster;
use super::subject::Subject;
use super::uses::{Lock, Operation, Request};
use super::{Accounting, Refusal};

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
    /// The GPU of each subject under the driver, where an operation names none.
    default_gpus: Vec<Option<usize>>,
    copy_engines: Vec<u8>,
}

/// Whether jobs hold a GPU during their GPU sections.
pub(super) fn holds_gpus(workload: &Workload) -> bool {
    match workload.gpu_management.arbitration {
        GpuArbitration::Driver | GpuArbitration::DriverSpinning => false,
        GpuArbitration::Semaphore | GpuArbitration::KFmlp { .. } | GpuArbitration::GpuSync(_) => true,
    }
}

impl Sharing {
    pub fn new(workload: &Workload, scheduler: &Scheduler, clusters: &[Cluster], subjects: &[Subject]) -> Sharing {
        let management = &workload.gpu_management;
        let costs = workload.platform.overheads.at(subjects.len());
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
            default_gpus: default_gpus(&pools, clusters, subjects),
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

    /// The GPU and the engine that an operation of a subject occupies, where the driver arbitrates.
    pub fn engine(&self, subject: usize, operation: &Operation) -> Option<(usize, Engine)> {
        let gpu = operation.gpu.or(self.default_gpus[subject])?;
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
fn default_gpus(pools: &[Vec<usize>], clusters: &[Cluster], subjects: &[Subject]) -> Vec<Option<usize>> {
    let mut gpus = vec![None; subjects.len()];
    for (pool, cluster) in pools.iter().zip(clusters).filter(|(pool, _)| !pool.is_empty()) {
        let users = cluster.members.iter().filter(|&&index| subjects[index].uses_gpu());
        for (count, &index) in users.enumerate() {
            gpus[index] = Some(pool[count % pool.len()]);
        }
    }
    gpus
}

/// Looks for what cannot be analysed.
pub(super) struct Refuser<'a> {
    pub workload: &'a Workload,
    pub scheduler: &'a Scheduler,
    pub accounting: Accounting,
    pub clusters: &'a [Cluster],
    pub subjects: &'a [Subject],
    pub sharing: &'a Sharing,
    pub refusals: &'a mut Vec<Refusal>,
}

impl Refuser<'_> {
    pub fn refuse(&mut self) {
        if self.scheduler.rule == PriorityRule::Fair {
            let reason = "not analysed: no bound exists for Linux's fair class, as how long a job waits depends on all that \
                          its competitors did before; simulate it, or choose another scheduler for bounds";
            return self.add(self.scheduler.to_string(), reason);
        }
        for device in &self.workload.platform.devices {
            let reason = "the interrupts of devices that serve no job are not analysed yet; leave it out, or simulate";
            self.add(format!("device \"{}\"", device.name), reason);
        }
        for task in &self.workload.tasks {
            self.budget(task);
        }
        let any = |wanted: &dyn Fn(&Subject) -> bool| self.subjects.iter().any(wanted);
        let (uses_gpus, uses_locks) = (any(&Subject::uses_gpu), any(&|subject| !subject.uses.requests.is_empty()));
        if (uses_gpus || uses_locks) && self.scheduler.invocation == Invocation::QuantumDriven {
            let reason = "waits for resources and GPUs are analysed for event-driven scheduling only; choose that (E \
                          instead of Q)";
            return self.add(self.scheduler.to_string(), reason);
        }
        self.resources();
        if uses_gpus {
            self.management();
            self.pools();
        }
    }

    /// A budget that no job exhausts changes nothing.
    fn budget(&mut self, task: &Task) {
        let Some(budget) = task.budget else { return };
        let subject = || format!("task \"{}\"", task.name);
        if budget < task.wcet() {
            let reason = format!(
                "its budget of {budget} may be exhausted, as its worst case is {}, and throttled jobs are not analysed \
                 yet; raise it, leave it out, or simulate",
                task.wcet()
            );
            return self.add(subject(), reason);
        }
        let costs = self.workload.platform.overheads.at(self.subjects.len());
        let spins = self.workload.gpu_management.arbitration == GpuArbitration::DriverSpinning;
        if spins || costs.cache_preemption.max(costs.cache_migration) > Nanos::ZERO {
            let reason = "cache-related delay and spinning count against its budget, and throttled jobs are not analysed \
                          yet; leave the budget out, or simulate";
            self.add(subject(), reason);
        }
    }

    fn add(&mut self, subject: String, reason: impl Into<String>) {
        self.refusals.push(Refusal { subject, reason: reason.into() });
    }

    fn management(&mut self) {
        let management = &self.workload.gpu_management;
        let reason = match management.arbitration {
            GpuArbitration::Driver | GpuArbitration::DriverSpinning | GpuArbitration::KFmlp { .. } => None,
            GpuArbitration::Semaphore => Some(
                "the holder of a GPU inherits no priority, so that others may keep it, and those that wait, from running \
                 for ever; take \"k_fmlp\"",
            ),
            GpuArbitration::GpuSync(_) => Some(
                "the waits of token requests that are displaced from the highest have no known bound; take \"k_fmlp\", \
                 or simulate",
            ),
        };
        if let Some(reason) = reason {
            self.add(format!("GPU arbitration \"{}\"", management.arbitration.name()), reason);
        }
        if management.callback.is_some() {
            let reason = "threads of the run-time library are not analysed yet; leave `callback` out, or simulate";
            self.add("GPU callbacks".to_owned(), reason);
        }
        self.handling();
        let published = matches!(management.arbitration, GpuArbitration::KFmlp { .. });
        if self.accounting == Accounting::Published && !published {
            let reason = "it is published for the k-FMLP only; take \"k_fmlp\", or the safe accounting";
            self.add("the published accounting of GPU interrupts".to_owned(), reason);
        }
    }

    fn handling(&mut self) {
        let name = format!("interrupt handling \"{}\"", self.sharing.handling.name());
        match self.sharing.handling {
            InterruptHandling::Linux | InterruptHandling::ProcessAware => {}
            InterruptHandling::PreemptRt(ThreadPriority::High) if self.accounting == Accounting::Published => {
                self.add(name, "no accounting of it is published; take the safe accounting, or another handling");
            }
            InterruptHandling::PreemptRt(ThreadPriority::High) => {}
            InterruptHandling::PreemptRt(ThreadPriority::Low) => self.add(
                name,
                "bottom halves run only while no real-time job wants a CPU, so that the jobs they serve may wait for \
                 ever; give the threads a high priority, or take \"klmirqd\"",
            ),
            InterruptHandling::Klmirqd { threads } => {
                let gpus = self.workload.platform.gpus.len();
                if threads.is_some_and(|threads| (threads as usize) < gpus) {
                    let reason = format!(
                        "a thread takes the bottom halves of several GPUs in the order of arrival, at the priority of \
                         the one it is at, so that urgent ones wait behind others for ever; give each of the {gpus} \
                         GPUs a thread"
                    );
                    self.add(name.clone(), reason);
                }
                if let Some((gpu, users)) = self.shared_by_the_driver() {
                    let reason = format!(
                        "{users} tasks use GPU \"{gpu}\", and its thread takes their bottom halves in the order of \
                         arrival, at the priority of the one it is at; let jobs hold GPUs (\"k_fmlp\")"
                    );
                    self.add(name, reason);
                }
            }
        }
    }

    /// A GPU that several tasks use at a time, and how many.
    fn shared_by_the_driver(&self) -> Option<(&str, usize)> {
        let uses = |&(index, subject): &(usize, &Subject), gpu: usize| {
            let mut operations = subject.uses.demand.operations.iter();
            operations.any(|operation| self.sharing.engine(index, operation).is_some_and(|(at, _)| at == gpu))
        };
        let users = |gpu: usize| self.subjects.iter().enumerate().filter(|subject| uses(subject, gpu)).count();
        if self.sharing.length_aware.is_some() {
            return None;
        }
        let gpus = self.workload.platform.gpus.iter().enumerate();
        gpus.map(|(index, gpu)| (gpu.name.as_str(), users(index))).find(|&(_, users)| users > 1)
    }

    fn pools(&mut self) {
        for (index, pool) in self.sharing.pools.iter().enumerate() {
            let members = |cluster: usize| self.clusters[cluster].members.iter().map(|&at| &self.subjects[at]);
            let Some(user) = members(index).find(|subject| subject.uses_gpu()) else { continue };
            let beside =
                |&other: &usize| self.sharing.pools[other] == *pool && members(other).any(|subject| subject.uses_gpu());
            if pool.is_empty() {
                self.add(format!("task \"{}\"", user.name), "its cluster has no GPU; move the task or the GPU");
                continue;
            }
            if let Some(other) = (0..index).find(beside) {
                let reason = format!(
                    "it shares its GPUs with tasks of CPUs {}, which have a ready queue of their own, and waits are \
                     analysed within one; put all users of a GPU into one cluster (C- or G-)",
                    counted(&self.clusters[other].cpus)
                );
                self.add(format!("task \"{}\"", user.name), reason);
            }
            for &gpu in pool {
                self.interrupts(index, gpu);
            }
            self.operations(index);
        }
    }

    /// The interrupts of a GPU that tasks of `cluster` use.
    fn interrupts(&mut self, cluster: usize, gpu: usize) {
        let gpu = &self.workload.platform.gpus[gpu];
        let outside = gpu.interrupt_cpus.iter().find(|cpu| !self.clusters[cluster].cpus.contains(cpu));
        if let Some(outside) = outside.filter(|_| !is_dedicated(self.scheduler)) {
            let reason = format!(
                "it may interrupt cpu{}, which is not among CPUs {} of the tasks that use it; route its interrupts to \
                 these",
                outside.0,
                counted(&self.clusters[cluster].cpus)
            );
            self.add(format!("GPU \"{}\"", gpu.name), reason);
        }
    }

    fn operations(&mut self, cluster: usize) {
        let platform = &self.workload.platform;
        let pool = &self.sharing.pools[cluster];
        for &index in &self.clusters[cluster].members {
            let subject = &self.subjects[index];
            let operations = &subject.uses.demand.operations;
            if let Some(gpu) = operations.iter().filter_map(|operation| operation.gpu).find(|gpu| !pool.contains(gpu)) {
                let name = platform.gpus.get(gpu).map_or("?", |gpu| gpu.name.as_str());
                let reason = format!("GPU \"{name}\" is not one of its cluster's; name another");
                self.add(format!("task \"{}\"", subject.name), reason);
            }
            let by_owner =
                matches!(self.sharing.handling, InterruptHandling::ProcessAware | InterruptHandling::Klmirqd { .. });
            let scattered = pool.iter().any(|&gpu| platform.gpus[gpu].interrupt_cpus.len() > 1);
            if by_owner && scattered && operations.iter().any(|operation| operation.interrupts > 1) {
                let reason = format!(
                    "an operation raises several interrupts on several CPUs, so that one of them may come after the job \
                     is complete, and \"{}\" knows no owner of it any more; route the GPU's interrupts to one CPU",
                    self.sharing.handling.name()
                );
                self.add(format!("task \"{}\"", subject.name), reason);
            }
        }
    }

    fn resources(&mut self) {
        for (index, resource) in self.workload.resources.iter().enumerate() {
            let lock = Lock::Resource(index);
            let uses = |subject: &Subject| subject.uses.requests.iter().any(|request| request.lock == lock);
            let used_in = |cluster: &&Cluster| cluster.members.iter().any(|&at| uses(&self.subjects[at]));
            let clusters = self.clusters.iter().filter(used_in).count();
            let reason = if clusters == 0 {
                continue;
            } else if resource.replicas > 1 {
                "several jobs may hold it at once, and all of them inherit from one that waits; take one replica each"
            } else if clusters > 1 {
                "tasks of several ready queues use it, and a priority inherited in one means nothing in another; put \
                 all its users into one cluster (C- or G-)"
            } else if resource.protocol == ResourceProtocol::PriorityCeiling && self.scheduler.rule == PriorityRule::Edf
            {
                "its holder's deadline is no later than any user's from the grant on, but may be later than that of one \
                 that waits; take \"priority-inheritance\" or \"fifo\""
            } else {
                continue;
            };
            self.add(format!("resource \"{}\"", resource.name), reason);
        }
        if let Some(lock) = self.circle() {
            let name = match lock {
                Lock::Resource(at) => format!("resource \"{}\"", self.workload.resources[at].name),
                Lock::Gpu => "GPU sections".to_owned(),
            };
            let reason = "it is asked for by jobs that hold what others ask for while they hold it, so that jobs may \
                          wait for ever; lock in the same order everywhere";
            self.add(name, reason);
        }
    }

    /// A lock that may be waited for while it is held, through any number of others.
    fn circle(&self) -> Option<Lock> {
        let requests = || self.subjects.iter().flat_map(|subject| &subject.uses.requests);
        let mut locks: Vec<Lock> = requests().map(|request| request.lock).collect();
        locks.sort_unstable();
        locks.dedup();
        let reaches_itself = |&start: &Lock| {
            let mut reached: Vec<Lock> = Vec::new();
            let mut open = vec![start];
            while let Some(lock) = open.pop() {
                for request in requests().filter(|request| request.lock == lock) {
                    for &inner in request.within.iter().filter(|&inner| !reached.contains(inner)).collect::<Vec<_>>() {
                        reached.push(inner);
                        open.push(inner);
                    }
                }
            }
            reached.contains(&start)
        };
        locks.into_iter().find(reaches_itself)
    }
}

/// Whether a job holds another lock when it makes `request`, or asks for one while it holds this one.
pub(super) fn is_nested(request: &Request) -> bool {
    request.depth > 0 || !request.within.is_empty()
}

fn is_dedicated(scheduler: &Scheduler) -> bool {
    scheduler.interrupts == laxity_model::ReleaseInterrupts::Dedicated
}

fn counted(cpus: &[CpuId]) -> String {
    cpus.iter().map(|cpu| cpu.0.to_string()).collect::<Vec<_>>().join(",")
}
