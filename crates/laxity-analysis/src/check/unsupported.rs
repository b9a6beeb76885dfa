//! What of a workload and its configuration cannot be analysed.

use laxity_model::{
    CpuId, GpuArbitration, InterruptHandling, Invocation, Nanos, PriorityRule, ResourceProtocol, Scheduler, Scope,
    ThreadPriority, Workload,
};

use super::analysed_task::AnalysedTask;
use super::assign::{Cluster, Part};
use super::regions::{may_share_gpus, named_cluster};
use super::sharing::Sharing;
use super::uses::Lock;
use super::{Accounting, Refusal};

/// Looks for what cannot be analysed.
pub(super) struct UnsupportedFeatures<'a> {
    pub workload: &'a Workload,
    pub scheduler: &'a Scheduler,
    pub accounting: Accounting,
    pub clusters: &'a [Cluster],
    pub analysed: &'a [AnalysedTask],
    pub sharing: &'a Sharing,
    pub refusals: &'a mut Vec<Refusal>,
}

impl UnsupportedFeatures<'_> {
    pub fn refuse(&mut self) {
        // Exhaustive: a rule that the tests do not know must not compile before it is decided here whether they hold.
        let is_analysed = match self.scheduler.rule {
            PriorityRule::Edf | PriorityRule::RateMonotonic | PriorityRule::DeadlineMonotonic | PriorityRule::Given => {
                true
            }
            PriorityRule::Fair => false,
        };
        if !is_analysed {
            let reason = "not analysed: no bound exists for Linux's fair class, as how long a job waits depends on all that \
                          its competitors did before; simulate it, or choose another scheduler for bounds";
            return self.add(self.scheduler.to_string(), reason);
        }
        self.devices();
        for task in self.analysed.iter().filter(|task| task.server.is_some()) {
            self.server(task);
        }
        let any = |wanted: &dyn Fn(&AnalysedTask) -> bool| self.analysed.iter().any(wanted);
        let (uses_gpus, uses_locks) = (any(&AnalysedTask::uses_gpu), any(&|task| !task.uses.requests.is_empty()));
        if (uses_gpus || uses_locks) && self.scheduler.invocation == Invocation::QuantumDriven {
            self.quanta(uses_gpus);
        }
        self.resources();
        if uses_gpus {
            self.management();
            self.pools();
        }
    }

    /// Waits for resources and GPUs under quanta.
    fn quanta(&mut self, uses_gpus: bool) {
        if self.accounting == Accounting::Published {
            let reason = "no accounting of waits for resources and GPUs under quanta is published; take the safe accounting, or \
                          event-driven scheduling (E instead of Q)";
            return self.add(self.scheduler.to_string(), reason);
        }
        let management = &self.workload.gpu_management;
        let is_on_stacks = management.handling == InterruptHandling::Linux && management.callback.is_none();
        if uses_gpus && !is_on_stacks {
            let reason = "bottom halves that wait for a thread, or for their owner's priority, are analysed for event-driven \
                          scheduling only; choose that (E instead of Q), or interrupt handling \"linux\" without `callback`";
            self.add(self.scheduler.to_string(), reason);
        }
    }

    /// Devices that serve no job.
    fn devices(&mut self) {
        let has_threads =
            matches!(self.sharing.handling, InterruptHandling::PreemptRt(_) | InterruptHandling::Klmirqd { .. });
        for device in &self.workload.platform.devices {
            let reason = if is_dedicated(self.scheduler) {
                "its interrupts would queue on the CPU dedicated to interrupts, which is not analysed; take interrupts on \
                 all CPUs (m instead of 1)"
            } else if has_threads && self.scheduler.invocation == Invocation::QuantumDriven {
                "threads that execute bottom halves are analysed for event-driven scheduling only; choose that (E instead \
                 of Q)"
            } else if self.sharing.halves_wait {
                "its bottom halves may keep others from CPUs that jobs wait for at a priority that does not follow from \
                 theirs, and both together are not analysed; take a handling whose threads have the priority of jobs, or \
                 leave the device out"
            } else if self.accounting == Accounting::Published {
                "no accounting of devices that serve no job is published; take the safe accounting"
            } else {
                continue;
            };
            self.add(format!("device \"{}\"", device.name), reason);
        }
    }

    /// What counts against the budget of `task` besides its jobs' own execution.
    fn server(&mut self, task: &AnalysedTask) {
        let costs = self.workload.platform.overheads.at(self.analysed.len());
        let spins = self.workload.gpu_management.arbitration == GpuArbitration::DriverSpinning;
        if spins || costs.cache_preemption.max(costs.cache_migration) > Nanos::ZERO {
            let reason = "cache-related delay and spinning count against its budget, which is not analysed; leave the budget \
                          out, or simulate";
            self.add(format!("task \"{}\"", task.name), reason);
        }
    }

    fn add(&mut self, subject: String, reason: impl Into<String>) {
        self.refusals.push(Refusal { subject, reason: reason.into() });
    }

    fn management(&mut self) {
        let management = &self.workload.gpu_management;
        self.callbacks();
        self.handling();
        let published = matches!(management.arbitration, GpuArbitration::KFmlp { .. });
        if self.accounting == Accounting::Published && self.sharing.halves_wait {
            let reason = "it counts no bottom half that waits for a CPU behind others; take the safe accounting";
            self.add("the published accounting of GPU interrupts".to_owned(), reason);
        }
        if self.accounting == Accounting::Published && !published {
            let reason = "it is published for the k-FMLP only; take \"k_fmlp\", or the safe accounting";
            self.add("the published accounting of GPU interrupts".to_owned(), reason);
        }
    }

    /// Threads of the run-time library: one for each graph that uses GPUs, and for each task.
    fn callbacks(&mut self) {
        if self.workload.gpu_management.callback.is_none() {
            return;
        }
        let mut first = self.workload.tasks.len();
        for graph in &self.workload.graphs {
            let nodes = first..first + graph.nodes.len();
            first = nodes.end;
            let users: Vec<usize> = nodes.filter(|&node| self.analysed[node].uses_gpu()).collect();
            let cluster_of = |node: &usize| self.clusters.iter().position(|cluster| cluster.members.contains(node));
            let mut clusters: Vec<usize> = users.iter().filter_map(cluster_of).collect();
            clusters.dedup();
            let gpus = clusters.first().map_or(0, |&cluster| self.sharing.pools[cluster].len());
            if users.len() > 1 && (clusters.len() > 1 || gpus > 1) {
                let reason = "its nodes use several GPUs, and one thread of the run-time library serves them all, in the \
                              order of arrival, with the priority of the one it is at; give them one GPU, or leave \
                              `callback` out";
                self.add(format!("graph \"{}\"", graph.name), reason);
            }
        }
    }

    /// What bounds on the waits for tokens need.
    fn tokens(&mut self, cluster: usize) {
        let Some(rules) = self.sharing.tokens() else { return };
        let gpus = self.sharing.pools[cluster].len();
        let queues = rules.queues(self.sharing.pool_cpus(cluster), gpus);
        let users =
            || self.clusters[cluster].members.iter().map(|&at| &self.analysed[at]).filter(|task| task.uses_gpu());
        let names = users().find(|task| task.uses.demand.named_gpu().is_some());
        let requesters = users().count() as u64;
        if let Some(task) = names.filter(|_| gpus > 1 && !queues.never_fill(requesters, true)) {
            let reason = format!(
                "it asks for one GPU by name, and may wait outside of full queues while no job that holds a token \
                 inherits from it; name none, or let `fifo_length` and `fifo_requests` be at least {requesters}, so that \
                 no queue is ever full"
            );
            let subject = format!("task \"{}\"", task.name);
            self.add(subject, reason);
        }
        let outlasting: Vec<String> =
            users().filter(|task| task.uses.outlasts_a_section).map(|task| format!("task \"{}\"", task.name)).collect();
        for subject in outlasting {
            let reason = "it asks for a token within a critical section and keeps it until its end, which comes after the \
                          section's; take `hold = \"section\"`, or use the GPU outside";
            self.add(subject, reason);
        }
    }

    fn handling(&mut self) {
        let name = format!("interrupt handling \"{}\"", self.sharing.handling.name());
        if self.sharing.halves_wait && self.sharing.spins {
            let reason = "bottom halves may wait for a CPU below jobs that spin until these are done, so that both wait for \
                          ever; take \"driver\" or \"k_fmlp\"";
            self.add(name.clone(), reason);
        }
        match self.sharing.handling {
            InterruptHandling::Linux | InterruptHandling::ProcessAware => {}
            InterruptHandling::PreemptRt(ThreadPriority::High) if self.accounting == Accounting::Published => {
                self.add(name, "no accounting of it is published; take the safe accounting, or another handling");
            }
            InterruptHandling::PreemptRt(ThreadPriority::High) => {}
            InterruptHandling::PreemptRt(ThreadPriority::Low) => {}
            InterruptHandling::Klmirqd { threads } => {
                if let Some((one, other)) = self.served_across_clusters(threads) {
                    let reason = format!(
                        "a thread takes the bottom halves of GPUs \"{one}\" and \"{other}\", which tasks of different \
                         clusters use, and waits are analysed within one; give each of the {} GPUs a thread",
                        self.workload.platform.gpus.len()
                    );
                    self.add(name, reason);
                }
            }
        }
    }

    /// Two GPUs of different clusters that one of so many threads serves.
    fn served_across_clusters(&self, threads: Option<u32>) -> Option<(&str, &str)> {
        let gpus = &self.workload.platform.gpus;
        let threads = (threads? as usize).max(1);
        if self.scheduler.scope == Scope::Global {
            return None;
        }
        let pairs = (0..gpus.len()).filter_map(|at| at.checked_sub(threads).map(|before| (before, at)));
        let mut apart = pairs.filter(|&(before, at)| gpus[before].cluster != gpus[at].cluster);
        apart.next().map(|(before, at)| (gpus[before].name.as_str(), gpus[at].name.as_str()))
    }

    fn pools(&mut self) {
        for (index, pool) in self.sharing.pools.iter().enumerate() {
            let members = |cluster: usize| self.clusters[cluster].members.iter().map(|&at| &self.analysed[at]);
            let Some(user) = members(index).find(|task| task.uses_gpu()) else { continue };
            if pool.is_empty() {
                self.add(format!("task \"{}\"", user.name), "its cluster has no GPU; move the task or the GPU");
                continue;
            }
            self.users(index);
            for &gpu in pool {
                self.interrupts(index, gpu);
            }
            self.operations(index);
            self.tokens(index);
        }
    }

    /// The ready queues of which tasks use GPUs, each with the cluster that it is of.
    fn parts_with_gpus(&self) -> Vec<(usize, Part)> {
        let uses = |part: &&Part| part.members.iter().any(|&at| self.analysed[at].uses_gpu());
        let mut parts = Vec::new();
        for (index, cluster) in self.clusters.iter().enumerate() {
            parts.extend(cluster.parts.iter().filter(uses).map(|part| (index, part.clone())));
        }
        parts
    }

    /// Users of the GPUs of a cluster in several ready queues.
    fn users(&mut self, index: usize) {
        let parts = self.parts_with_gpus();
        let pool = |part: &Part| named_cluster(self.workload, self.scheduler, part);
        let mut found = Vec::new();
        for (at, (of, part)) in parts.iter().enumerate().filter(|(_, (of, _))| *of == index) {
            let before = || parts[..at].iter();
            let beside = before().find(|(_, other)| pool(other) == pool(part));
            let apart = before().find(|(other, beside)| other == of && pool(beside) != pool(part));
            let reason = if let Some((_, other)) = beside.filter(|_| !may_share_gpus(self.workload)) {
                format!(
                    "it shares its GPUs with tasks of CPUs {}, which have a ready queue of their own, where bottom halves may \
                     wait for CPUs and keep them; take interrupt handling \"linux\" or \"preempt_rt_high\" without \
                     `callback`, or put all users of a GPU into one cluster (C- or G-)",
                    counted(&other.cpus)
                )
            } else if let Some((_, other)) = apart {
                format!(
                    "it asks for the same resources as tasks of CPUs {}, or is interrupted together with them, and these use \
                     other GPUs: such waits are analysed for one pool of GPUs only; put all users into one cluster (C- or G-)",
                    counted(&other.cpus)
                )
            } else {
                continue;
            };
            let task = part.members.iter().map(|&at| &self.analysed[at]).find(|task| task.uses_gpu());
            found.push((format!("task \"{}\"", task.map_or("", |task| task.name.as_str())), reason));
        }
        found.into_iter().for_each(|(subject, reason)| self.add(subject, reason));
    }

    /// The interrupts of a GPU that tasks of `cluster` use.
    fn interrupts(&mut self, cluster: usize, gpu: usize) {
        let gpu = &self.workload.platform.gpus[gpu];
        let cpus: Vec<CpuId> = match may_share_gpus(self.workload) {
            true => self.clusters[cluster].cpus.clone(),
            false => {
                let users = self.parts_with_gpus().into_iter().filter(|&(of, _)| of == cluster);
                users.flat_map(|(_, part)| part.cpus).collect()
            }
        };
        let outside = gpu.interrupt_cpus.iter().find(|cpu| !cpus.contains(cpu));
        if let Some(outside) = outside.filter(|_| !is_dedicated(self.scheduler)) {
            let reason = format!(
                "it may interrupt cpu{}, which is not among CPUs {} of the tasks that use it, where bottom halves may wait for \
                 CPUs and keep them; route its interrupts to these, or take interrupt handling \"linux\" or \
                 \"preempt_rt_high\" without `callback`",
                outside.0,
                counted(&cpus)
            );
            self.add(format!("GPU \"{}\"", gpu.name), reason);
        }
    }

    fn operations(&mut self, cluster: usize) {
        let platform = &self.workload.platform;
        let pool = &self.sharing.pools[cluster];
        for &index in &self.clusters[cluster].members {
            let task = &self.analysed[index];
            let operations = &task.uses.demand.operations;
            if let Some(gpu) = operations.iter().filter_map(|operation| operation.gpu).find(|gpu| !pool.contains(gpu)) {
                let name = platform.gpus.get(gpu).map_or("?", |gpu| gpu.name.as_str());
                let reason = format!("GPU \"{name}\" is not one of its cluster's; name another");
                self.add(format!("task \"{}\"", task.name), reason);
            }
        }
        if let Some(task) = self.sharing.forgotten[cluster].filter(|_| self.accounting == Accounting::Published) {
            let reason = "no accounting of bottom halves whose owner is not known any more is published; take the safe \
                          accounting, or route the GPU's interrupts to one CPU";
            self.add(format!("task \"{}\"", self.analysed[task].name), reason);
        }
    }

    fn resources(&mut self) {
        for (index, resource) in self.workload.resources.iter().enumerate() {
            let lock = Lock::Resource(index);
            let uses = |task: &AnalysedTask| task.uses.requests.iter().any(|request| request.lock == lock);
            let used_in = |cluster: &&Cluster| cluster.members.iter().any(|&at| uses(&self.analysed[at]));
            let clusters = self.clusters.iter().filter(used_in).count();
            let reason = if clusters == 0 {
                continue;
            } else if clusters > 1 {
                "tasks of several ready queues use it, for which no accounting is published; take the safe accounting, or \
                 put all its users into one cluster (C- or G-)"
            } else if resource.protocol == ResourceProtocol::PriorityCeiling
                && self.scheduler.rule == PriorityRule::Edf
                && self.accounting == Accounting::Published
            {
                "its holder's deadline is no later than any user's from the grant on, but may be later than that of one \
                 that waits; take \"priority-inheritance\" or \"fifo\", or the safe accounting"
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
        let requests = || self.analysed.iter().flat_map(|task| &task.uses.requests);
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

fn is_dedicated(scheduler: &Scheduler) -> bool {
    scheduler.interrupts == laxity_model::ReleaseInterrupts::Dedicated
}

fn counted(cpus: &[CpuId]) -> String {
    cpus.iter().map(|cpu| cpu.0.to_string()).collect::<Vec<_>>().join(",")
}
