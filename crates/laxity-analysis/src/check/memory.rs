//! The bandwidth lock and memory traffic, put into terms of CPU time: what the other accounting then sees.
//!
//! ```text
//!   body      cpu a | kernel k | cpu b                          beside traffic      under the lock, one CPU, spinning
//!   becomes                                 cpu a | kernel R(k) | cpu b             cpu a | nonpreemptive R(k) + 2 calls | cpu b
//! ```
//!
//! *Traffic*: an operation takes no longer than [`unprotected`](crate::bwlock::unprotected) says, or while the lock is held
//! [`protected`](crate::bwlock::protected) (formula 9).
//!
//! *Lock*: its holder is above all others, spins, and is alone on its CPU. So the time from the first launch to the end of
//! the synchronization is a non-preemptive section: part of E of equation 4 of paper 004, and for others B. (Not the
//! longest GPU kernel, as the paper's text has it: by its Table I launches before one synchronization are one section.)
//! That needs all that use GPUs on one CPU, and no suspension meanwhile. A job that locks again where it has just unlocked is
//! not preempted between: both are one section. Proof: `docs/decisions/0165-sections-of-the-bandwidth-lock-that-touch.md`.

use std::borrow::Cow;

use laxity_model::{
    CpuId, Factor, GpuArbitration, GpuOperation, GpuWork, InterruptHandling, Invocation, Nanos, OverheadCosts,
    PriorityRule, Scheduler, Scope, Step, Workload,
};

use super::Refusal;
use super::analysed_task::analysed_tasks;
use super::assign::{Cluster, assign};
use super::sections::Sections;
use crate::bwlock::{Aggressor, unprotected};

/// `workload` without traffic and lock; adds what cannot be analysed to `refusals`.
pub(super) fn without_memory<'w>(
    workload: &'w Workload,
    scheduler: &Scheduler,
    refusals: &mut Vec<Refusal>,
) -> Cow<'w, Workload> {
    let lock = workload.gpu_management.bandwidth_lock;
    let bodies = || {
        let nodes = workload.graphs.iter().flat_map(|graph| graph.nodes.iter().map(|node| &node.body));
        workload.tasks.iter().map(|task| &task.body).chain(nodes)
    };
    let is_sensitive = bodies().any(|body| any_operation(body, &|operation| operation.memory > Factor::ZERO));
    let uses_gpus = bodies().any(|body| any_operation(body, &|_| true));
    if !uses_gpus || lock.is_none() && (!is_sensitive || workload.platform.memory.contention.is_flat()) {
        return Cow::Borrowed(workload);
    }
    // The assignment is that of the workload as it is.
    let analysed = analysed_tasks(workload, scheduler, &mut Vec::new());
    let clusters = assign(workload, scheduler, &analysed, &mut Vec::new());
    let memory = Memory { workload, scheduler, clusters: &clusters };
    let mut lowered = workload.clone();
    match lock {
        None => {
            if bodies().any(|body| any_operation(body, &|operation| memory.is_slowed_in_pieces(operation))) {
                let reason =
                    "pieces of copies that memory traffic slows down are not analysed; leave `chunk` out".to_owned();
                refusals.push(Refusal { subject: "copies in chunks".to_owned(), reason });
            }
            memory.slow_down(&mut lowered);
        }
        Some(_) => match memory.real_time_cpu() {
            Ok(cpu) => memory.protect(&mut lowered, cpu, refusals),
            Err(reason) => refusals.push(refusal(reason)),
        },
    }
    Cow::Owned(lowered)
}

fn refusal(reason: impl Into<String>) -> Refusal {
    Refusal { subject: "the bandwidth lock".to_owned(), reason: reason.into() }
}

pub(super) struct Memory<'a> {
    pub workload: &'a Workload,
    scheduler: &'a Scheduler,
    clusters: &'a [Cluster],
}

impl Memory<'_> {
    /// What may execute on each CPU but `except`.
    fn aggressors(&self, except: Option<CpuId>) -> Vec<Aggressor> {
        let mut cpus = Vec::new();
        for cluster in self.clusters {
            let tasks = cluster.members.iter().filter_map(|&task| self.workload.tasks.get(task));
            let unregulated: Vec<u64> = tasks.map(|task| task.memory_demand).collect();
            for &cpu in cluster.cpus.iter().filter(|&&cpu| Some(cpu) != except) {
                let may_be_there = |bound: Option<usize>| bound.is_none_or(|only| only == cpu.index());
                let tasks = self.workload.best_effort.iter().filter(|task| may_be_there(task.cpu));
                let regulated = tasks.map(|task| task.memory_demand).collect();
                cpus.push(Aggressor { regulated, unregulated: unregulated.clone() });
            }
        }
        cpus
    }

    /// Whether an operation is a copy in pieces, each of which takes a time of its own beside traffic.
    fn is_slowed_in_pieces(&self, operation: &GpuOperation) -> bool {
        let GpuArbitration::GpuSync(sync) = self.workload.gpu_management.arbitration else { return false };
        let is_copy = matches!(operation.work, GpuWork::Copy { .. });
        sync.chunk.is_some() && is_copy && operation.memory > Factor::ZERO
    }

    /// Every operation takes as long as beside all traffic that there may be.
    fn slow_down(&self, lowered: &mut Workload) {
        let aggressors = self.aggressors(None);
        let contention = &self.workload.platform.memory.contention;
        let slow = |operation: &mut GpuOperation| {
            let work = self.length(operation);
            let time = Nanos(unprotected(work.0, operation.memory, contention, &aggressors));
            if time != work {
                set_length(operation, time);
            }
        };
        let nodes = lowered.graphs.iter_mut().flat_map(|graph| graph.nodes.iter_mut().map(|node| &mut node.body));
        for body in lowered.tasks.iter_mut().map(|task| &mut task.body).chain(nodes) {
            each_operation(body, &slow);
        }
    }

    /// The longest that an operation takes without traffic.
    pub fn length(&self, operation: &GpuOperation) -> Nanos {
        match &operation.work {
            GpuWork::Kernel(time) | GpuWork::Copy { time: Some(time), .. } => time.wcet,
            GpuWork::Copy { bytes, time: None, .. } => {
                let gpus = &self.workload.platform.gpus;
                let named = operation.gpu.and_then(|gpu| gpus.get(gpu));
                let any = gpus.iter().map(|gpu| gpu.copy_time(*bytes)).max().unwrap_or_default();
                named.map_or(any, |gpu| gpu.copy_time(*bytes))
            }
        }
    }

    /// The CPU of all tasks that use GPUs, or why equation 4 does not hold.
    fn real_time_cpu(&self) -> Result<CpuId, String> {
        let management = &self.workload.gpu_management;
        if self.scheduler.rule == PriorityRule::Fair || self.scheduler.invocation == Invocation::QuantumDriven {
            return Err(format!(
                "its ceiling holds others back at once, which {} does not; choose an event-driven scheduler with priorities",
                self.scheduler
            ));
        }
        if management.arbitration != GpuArbitration::DriverSpinning {
            return Err(format!(
                "equation 4 of paper 004 needs jobs that spin while they hold it, and under \"{}\" they suspend, so that \
                 others run and take it meanwhile; take \"driver_spinning\", or simulate",
                management.arbitration.name()
            ));
        }
        let uses_gpus = |body: &[Step]| any_operation(body, &|_| true);
        if self.workload.graphs.iter().flat_map(|graph| &graph.nodes).any(|node| uses_gpus(&node.body)) {
            return Err("nodes of graphs that hold it are not analysed yet; make them tasks, or simulate".to_owned());
        }
        let interrupts = |operation: &GpuOperation| operation.interrupts > 0;
        if !self.interrupts_are_instant()
            && self.workload.tasks.iter().any(|task| any_operation(&task.body, &interrupts))
        {
            return Err(format!(
                "interrupts of its holder's operations under \"{}\" are not analysed where overheads, threads, priorities or \
                 other devices may delay them; let the operations raise none (`interrupts = 0`), as jobs that spin need none",
                management.handling.name()
            ));
        }
        if !self.workload.platform.memory.regulator.interrupt.is_zero() {
            return Err(
                "what interrupts of the regulator cost is not analysed; write `interrupt = \"0 ms\"`".to_owned()
            );
        }
        let has_user = |cluster: &&Cluster| {
            let tasks = cluster.members.iter().filter_map(|&task| self.workload.tasks.get(task));
            tasks.into_iter().any(|task| uses_gpus(&task.body))
        };
        let mut users = self.clusters.iter().filter(has_user);
        match (users.next().map(|cluster| cluster.cpus.as_slice()), users.next()) {
            (Some(&[cpu]), None) => Ok(cpu),
            _ => Err("equation 4 of paper 004 is about tasks that use GPUs on one CPU (section VIII); give them a cluster of \
                      one CPU, or take partitioned scheduling and name that CPU as `cluster`"
                .to_owned()),
        }
    }

    /// What overheads cost.
    pub fn costs(&self) -> OverheadCosts {
        let nodes = self.workload.graphs.iter().map(|graph| graph.nodes.len()).sum::<usize>();
        self.workload.platform.overheads.at(self.workload.tasks.len() + nodes)
    }

    /// Whether a holder that spins goes on at the very instant at which its operation is complete, if that raises interrupts:
    /// they are handled where they arrive, and nothing that takes time may precede them there.
    fn interrupts_are_instant(&self) -> bool {
        let management = &self.workload.gpu_management;
        let platform = &self.workload.platform;
        let is_free = self.costs() == OverheadCosts::default();
        let has_halves = management.top_half.is_some() || management.bottom_half.is_some();
        management.handling == InterruptHandling::Linux
            && is_free
            && !has_halves
            && management.callback.is_none()
            && platform.devices.is_empty()
    }

    /// The time in which a job holds the lock becomes a non-preemptive section.
    fn protect(&self, lowered: &mut Workload, cpu: CpuId, refusals: &mut Vec<Refusal>) {
        let aggressors = self.aggressors(Some(cpu));
        self.keep_assignment(lowered);
        for task in &mut lowered.tasks {
            let sections = Sections::new(self, task, &aggressors);
            match sections.of(&task.body) {
                Ok(body) => task.body = body,
                Err(reason) => {
                    refusals.push(Refusal { subject: format!("task \"{}\"", task.name), reason: reason.to_owned() });
                }
            }
        }
    }

    /// Tasks and nodes stay where the workload as it is has them: sections, which are long, would put them elsewhere.
    fn keep_assignment(&self, lowered: &mut Workload) {
        let nodes = lowered.graphs.iter_mut().flat_map(|graph| graph.nodes.iter_mut().map(|node| &mut node.cluster));
        let of_tasks = lowered.tasks.iter_mut().map(|task| &mut task.cluster);
        for (index, cluster) in of_tasks.chain(nodes).enumerate() {
            let has = |cluster: &&Cluster| cluster.members.contains(&index);
            *cluster = self.clusters.iter().find(has).and_then(|found| self.name(found));
        }
    }

    /// What a file calls `cluster`.
    fn name(&self, cluster: &Cluster) -> Option<usize> {
        let first = *cluster.cpus.first()?;
        match self.scheduler.scope {
            Scope::Global => None,
            Scope::Partitioned => Some(first.index()),
            Scope::Clustered => self.workload.platform.clusters.iter().position(|cpus| cpus.contains(&first)),
        }
    }
}

pub(super) fn any_operation(body: &[Step], wanted: &dyn Fn(&GpuOperation) -> bool) -> bool {
    body.iter().any(|step| match step {
        Step::Gpu(operation) => wanted(operation),
        Step::Critical { body, .. } | Step::GpuSection { body } => any_operation(body, wanted),
        Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => false,
    })
}

fn each_operation(body: &mut [Step], change: &dyn Fn(&mut GpuOperation)) {
    for step in body {
        match step {
            Step::Gpu(operation) => change(operation),
            Step::Critical { body, .. } | Step::GpuSection { body } => each_operation(body, change),
            Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => {}
        }
    }
}

fn set_length(operation: &mut GpuOperation, length: Nanos) {
    let length = laxity_model::ExecutionTime::constant(Nanos(length.0.min(Nanos::LONGEST.0)));
    match &mut operation.work {
        GpuWork::Kernel(time) => *time = length,
        GpuWork::Copy { time, .. } => *time = Some(length),
    }
}
