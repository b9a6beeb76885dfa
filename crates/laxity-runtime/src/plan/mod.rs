//! From a workload to what its workers do.

mod best_effort;
mod devices;
mod edges;
mod fold;
mod graph;
mod notes;
mod pools;
mod protection;
mod state;
mod task;

use laxity_graph::Spec;
use laxity_model::{
    Arrival, EngineOrder, GpuArbitration, Instant, InterruptHandling, Nanos, OverheadCosts, PriorityRule,
    ResourceProtocol, Scheduler, Scope, Step, Task, TaskId, ThreadPriority, Workload,
};
use laxity_plan::draws::TaskDraws;
use laxity_plan::{GraphPlan, Op, ReleasePattern};
use laxity_policy::graph::{LatestEdge, Releasing};
use laxity_policy::lock;
use laxity_sched::{Config as SystemConfig, Parameters, Rule};
use laxity_scx::{Releases, TaskRequest};
use laxity_sys::scheduling;
use laxity_trace::{LockInfo, LockKind, Origin, TaskInfo, TaskKind, TraceHeader};

pub(crate) use self::best_effort::{BestEffort, BestEffortTask, start};
pub(crate) use self::devices::LiveDevice;
use self::devices::Schedule;
pub(crate) use self::edges::CodeEdges;
pub use self::graph::{GraphOptions, NodeOptions};
pub(crate) use self::pools::Pool;
pub(crate) use self::protection::{Hold, Protection};
pub(crate) use self::state::StatePlan;
pub(crate) use self::task::{Handles, NodeId, Raised, ReleaseRule, ReleaseTimes, TaskPlan, Trigger};
use crate::attributes::Attributes;
use crate::jobs::Messages;
use crate::kernel::{self, Unfit};
use crate::linux::{self, LinuxScheduler};
use crate::placement::Placement;
use crate::refusal::{self, Refusal};

/// How to run a workload.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The scheduler whose priorities and clusters are used.
    pub scheduler: Scheduler,
    /// The scheduling class; the strongest that is permitted and fits if none is named.
    pub linux: Option<LinuxScheduler>,
    /// Seed of random execution times, gaps and jitter.
    pub seed: u64,
    /// Jobs that are released within it are run.
    pub duration: Nanos,
}

/// A workload that is ready to run.
#[derive(Clone, Debug)]
pub struct LivePlan {
    header: TraceHeader,
    linux: LinuxScheduler,
    notes: Vec<String>,
    /// Of these the one on the scheduler that runs in place of the one that was asked for.
    replaced: Option<String>,
    pub(crate) duration: Nanos,
    pub(crate) placement: Placement,
    pub(crate) tasks: Vec<TaskPlan>,
    pub(crate) best_effort: BestEffort,
    /// The bandwidth lock, if there is one.
    pub(crate) protection: Option<Protection>,
    /// Locks with smaller numbers are resources.
    pub(crate) resources: usize,
    pub(crate) graphs: Vec<LiveGraph>,
    pub(crate) latest: Vec<LatestEdge>,
    pub(crate) ending: Ending,
    /// The GPUs, if a task uses one.
    pub(crate) gpus: Vec<laxity_model::Gpu>,
    pub(crate) pools: Vec<Pool>,
    /// The devices that serve no job, and the number of the first one's thread among the tasks of the trace.
    pub(crate) devices: Vec<LiveDevice>,
    pub(crate) first_device: usize,
    /// The state that tasks keep on GPUs, if it moves with them.
    pub(crate) state: Option<StatePlan>,
    /// Threads that handle interrupts are as urgent as the holder of the GPU, or its owner: klmirqd.
    pub(crate) follows_owners: bool,
    /// The system of Laxity's scheduler, if that schedules.
    pub(crate) system: Option<SystemConfig>,
    /// All locks, if its scheduler in the kernel schedules and an arbiter in user space grants them.
    pub(crate) kernel_locks: Option<Vec<lock::Config>>,
}

/// When a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// At the end of its duration, or when all jobs that were released until then are complete.
    AtDuration,
    /// As soon as there are no more jobs.
    WithLastJob,
}

/// A graph, and how it is carried out.
#[derive(Clone, Debug)]
pub(crate) struct LiveGraph {
    pub spec: Spec,
    pub plan: GraphPlan,
    /// Whether jobs of nodes that are no sources may begin before their releases.
    pub releasing: Releasing,
}

/// Settings of the tasks, in their order, that the simulator does not know.
struct Settled {
    linux: LinuxScheduler,
    attributes: Vec<Attributes>,
    urgencies: Vec<Option<u8>>,
    cpus: Vec<Option<Vec<usize>>>,
    placement: Placement,
    /// The number of the first task where draws are concerned.
    first_task: u32,
}

impl LivePlan {
    /// Prepares `workload`, which must be valid, and tries out what it needs of Linux.
    ///
    /// # Errors
    /// What cannot be run live, or not by this user on this machine.
    pub fn new(workload: &Workload, options: &Options) -> Result<LivePlan, Refusal> {
        let reasons = refusal::unsupported(workload);
        if !reasons.is_empty() {
            return Err(Refusal::of(reasons));
        }
        let one = |reason| Refusal::of(vec![reason]);
        let modelled = without_modelled_interrupts(workload);
        // Before the simulator, whose reasons are about more than CPUs.
        let usable =
            scheduling::usable_cpus().map_err(|error| one(format!("cannot ask which CPUs may be used: {error}")))?;
        let compile = |scheduler: Scheduler| {
            laxity_plan::Plan::of_live_interrupts(&modelled, &scheduler, options.seed)
                .map_err(|refusal| Refusal::of(refusal.reasons().to_vec()))
        };
        let asked = Scheduler { coarse_lock: false, ..options.scheduler };
        let plain = Scheduler { rule: asked.rule, scope: asked.scope, ..Scheduler::GLOBAL_EDF };
        // Only the scheduler in the kernel has other realizations.
        let in_kernel = match options.linux {
            Some(LinuxScheduler::Kernel) => Some(compile(asked)?),
            None | Some(LinuxScheduler::Laxity) if asked != plain => compile(asked).ok().filter(|compiled| {
                let placement = Placement::new(&compiled.header, &usable);
                placement.is_ok_and(|placement| kernel::fits(&asked, &placement).is_ok())
            }),
            _ => None,
        };
        let compiled = in_kernel.map_or_else(|| compile(plain), Ok)?;
        LivePlan::of(workload, &compiled, &usable, options).map_err(one)
    }

    /// The same jobs, step by step, that are simulated.
    fn of(
        workload: &Workload,
        compiled: &laxity_plan::Plan,
        usable: &[usize],
        options: &Options,
    ) -> Result<LivePlan, String> {
        let scheduler = compiled.header.scheduler;
        let placement = Placement::new(&compiled.header, usable)?;
        let uses_all = scheduler.scope == Scope::Global && placement.linux.len() == usable.len();
        let models = compiled.models(workload);
        let reserved = |(task, ops): (&Task, &[Op])| Attributes::deadline(task, ops.iter().filter(may_wait).count());
        let reserved: Vec<Attributes> = models.iter().zip(compiled.bodies()).map(reserved).collect();
        let beyond_linux = refusal::beyond_linux(workload, &models);
        let is_ours = !beyond_linux.is_empty() && scheduler.rule != PriorityRule::Fair;
        let wanted = options.linux.or(is_ours.then_some(LinuxScheduler::Laxity));
        let in_kernel = || {
            kernel::fits(&options.scheduler, &placement)?;
            let reasons = refusal::beyond_kernel(workload, &models);
            if reasons.is_empty() { Ok(()) } else { Err(Unfit::Other(reasons.join("\n"))) }
        };
        let (linux, note) = linux::choose(&scheduler, wanted, in_kernel, &models, &reserved, uses_all)?;
        if !matches!(linux, LinuxScheduler::Laxity | LinuxScheduler::Kernel) && !beyond_linux.is_empty() {
            return Err(beyond_linux.join("\n"));
        }
        let ranks = compiled.header.tasks[..models.len()].iter().map(|task| task.rank);
        // Regulators are below all tasks.
        let above = if workload.gpu_management.bandwidth_lock.is_some() { protection::BELOW_TASKS } else { 0 };
        let priority = |rank| (linux::priority(rank, models.len()) + above).min(linux::PRIORITY_MAX - 1);
        let priorities: Vec<u8> = ranks.map(priority).collect();
        let attributes = match linux {
            LinuxScheduler::Laxity | LinuxScheduler::Kernel | LinuxScheduler::Other => {
                vec![Attributes::Other; models.len()]
            }
            LinuxScheduler::Deadline => reserved,
            LinuxScheduler::Fifo => priorities.iter().map(|&priority| Attributes::fifo(priority)).collect(),
        };
        let is_fixed = !scheduler.rule.goes_by_deadline();
        let is_ours = matches!(linux, LinuxScheduler::Laxity | LinuxScheduler::Kernel);
        let settled = Settled {
            linux,
            attributes,
            urgencies: priorities.iter().map(|&priority| is_fixed.then_some(priority)).collect(),
            // A thread that may use all CPUs must not say so: SCHED_DEADLINE takes no other.
            cpus: (0..models.len()).map(|task| (!uses_all && !is_ours).then(|| placement.cpus(task))).collect(),
            placement,
            first_task: 0,
        };
        let mut plan = LivePlan::assemble(workload, compiled, settled, options.seed, options.duration)?;
        plan.replaced = notes::other_realization(&options.scheduler, &plan.header.scheduler, linux);
        plan.notes.splice(0..0, note.into_iter().chain(plan.replaced.clone()));
        Ok(plan)
    }

    fn assemble(
        workload: &Workload,
        compiled: &laxity_plan::Plan,
        settled: Settled,
        seed: u64,
        duration: Nanos,
    ) -> Result<LivePlan, String> {
        let bodies: Vec<&[Op]> = compiled.bodies().collect();
        let lock = compiled.memory.as_ref().and_then(|memory| memory.lock.as_ref());
        let (best_effort, mut notes) =
            BestEffort::new(workload, &compiled.best_effort, &settled.placement, settled.linux);
        let protection = lock.map(|_| Protection::new(workload, &best_effort, &bodies, &settled));
        let protection = protection.transpose()?;
        let holds = lock.map_or_else(|| vec![None; bodies.len()], |lock| protection::holders(lock, &bodies));
        let Settled { linux, attributes, urgencies, cpus, placement, first_task } = settled;
        let models = compiled.models(workload);
        let priority = |task: usize| attributes[task].priority();
        let highest = (0..models.len()).filter_map(priority).max();
        let raised = |task: usize| {
            Some(Raised {
                base: priority(task)?,
                non_preemptive: highest? + 1,
                ceilings: ceilings(workload, &models, priority),
            })
        };
        let end = Instant::ZERO.saturating_add(duration);
        let scheduler = compiled.header.scheduler;
        let system = system(&scheduler, linux, &placement, compiled.header.tasks.len(), &compiled.locks.configs)?;
        let is_fixed = !scheduler.rule.goes_by_deadline();
        let is_in_kernel = linux == LinuxScheduler::Kernel;
        let task_plan = |(number, (task, ops)): (usize, (&Task, &[Op]))| {
            let draws = TaskDraws { seed, task: TaskId(first_task + number as u32) };
            TaskPlan {
                name: task.name.clone(),
                messages: Messages::default(),
                run: task.run.clone(),
                code: None,
                edges: CodeEdges::default(),
                ops: ops.into(),
                draws,
                trigger: trigger(
                    number,
                    &compiled.graphs,
                    ReleaseRule { pattern: ReleasePattern::new(task), end, jobs: u64::MAX },
                ),
                working_set: task.working_set.unwrap_or(0),
                cpus: cpus[number].clone(),
                attributes: attributes[number],
                urgency: urgencies[number],
                spins: workload.gpu_management.arbitration == GpuArbitration::DriverSpinning,
                raised: raised(number),
                bandwidth: holds[number],
                deadline: task.deadline,
                handles: None,
                // The kernel enforces the budgets of its tasks.
                server: compiled.tasks[number].server.as_deref().copied().filter(|_| !is_in_kernel),
                in_kernel: is_in_kernel.then(|| (number, request(task, &compiled.header.tasks[number]))),
                scheduled: system
                    .as_ref()
                    .map(|_| (number, parameters(task, &compiled.header.tasks[number], is_fixed))),
            }
        };
        let mut tasks: Vec<TaskPlan> = models.iter().zip(compiled.bodies()).enumerate().map(task_plan).collect();
        let use_gpus = tasks.iter().any(TaskPlan::uses_gpu);
        let is_ours = system.is_some();
        // Where jobs spin, Linux schedules the threads that handle interrupts.
        let has_spinning = use_gpus && tasks.iter().any(|task| task.spins);
        let is_linked = is_ours && !has_spinning;
        let is_followed = !has_spinning && matches!(linux, LinuxScheduler::Laxity | LinuxScheduler::Kernel);
        let handling = handling(workload, is_followed, use_gpus);
        let header = TraceHeader { is_linked, handling, ..header(compiled, workload, linux) };
        let locks = &compiled.locks.configs;
        let pools =
            if use_gpus { pools::new(&header, locks, workload, &tasks, is_ours || is_in_kernel)? } else { Vec::new() };
        let is_arbitrated = is_in_kernel && !locks.is_empty() && !models.iter().any(refusal::locks_within_budget);
        let is_klmirqd = matches!(workload.gpu_management.handling, InterruptHandling::Klmirqd { .. });
        notes.splice(0..0, notes::left_out(workload, &models, linux, use_gpus));
        let first_device = models.len() + workload.platform.gpus.len();
        let schedule = Schedule { linux, is_linked, placement: &placement, seed, end };
        let devices = LiveDevice::all(workload, compiled, first_device, &schedule);
        if is_in_kernel && is_klmirqd {
            pools::refuse_apart(&pools, &header, &tasks, workload)?;
        }
        let graphs = edges::graphs(workload, compiled)?;
        edges::set_messages(&mut tasks, &graphs);
        Ok(LivePlan {
            linux,
            notes,
            replaced: None,
            best_effort,
            protection,
            duration,
            placement,
            resources: workload.resources.len(),
            graphs,
            latest: compiled.latest.clone(),
            ending: Ending::AtDuration,
            follows_owners: (is_linked || !pools.is_empty()) && is_klmirqd,
            gpus: if use_gpus { workload.platform.gpus.clone() } else { Vec::new() },
            devices,
            first_device,
            state: StatePlan::new(workload).filter(|_| use_gpus),
            kernel_locks: is_arbitrated.then(|| locks.clone()),
            pools,
            tasks,
            header,
            system,
        })
    }

    /// The header of its traces.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// How Linux schedules the threads.
    pub fn linux(&self) -> LinuxScheduler {
        self.linux
    }

    /// Whether Laxity's scheduler in the kernel schedules the threads.
    pub(crate) fn is_in_kernel(&self) -> bool {
        self.linux == LinuxScheduler::Kernel
    }

    /// How many logs a run has: those of the tasks, and then those of the threads that handle the interrupts of GPUs and of
    /// other devices, of other threads of the trace, which write nothing, of best-effort tasks, and of the regulators of CPUs.
    pub(crate) fn logs(&self) -> usize {
        let regulated = self.protection.as_ref().map_or(0, |protection| protection.cpus.len());
        let of_devices = if self.devices.is_empty() { 0 } else { self.first_device + self.devices.len() };
        self.best_effort.logs(of_devices.max(self.tasks.len() + self.gpus.len())) + regulated
    }

    /// That the realization of the scheduler is another one than was asked for, if it is; [`LivePlan::notes`] say so, too.
    pub fn replaced(&self) -> Option<&str> {
        self.replaced.as_deref()
    }

    /// Notes to the user: what is weaker than the workload asks for.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// The system of Laxity's scheduler, if that schedules.
fn system(
    scheduler: &Scheduler,
    linux: LinuxScheduler,
    placement: &Placement,
    tasks: usize,
    locks: &[lock::Config],
) -> Result<Option<SystemConfig>, String> {
    if linux != LinuxScheduler::Laxity {
        return Ok(None);
    }
    let rule = Rule::of_model(scheduler.rule).expect("the fair class is Linux's own");
    let config = SystemConfig {
        tasks: tasks.max(1) as u16,
        locks: locks.to_vec(),
        ..SystemConfig::new(rule, placement.linux_clusters())
    };
    config.validate().map_err(|error| format!("Laxity's scheduler: {error}"))?;
    Ok(Some(config))
}

const _: () = assert!(laxity_sched::NAME_MAX == laxity_scx::protocol::NAME_MAX, "names are cut for both");

/// The part of a name that Laxity's scheduler takes, in user space and in the kernel.
pub(crate) fn truncated(name: &str) -> &str {
    let end = (0..=name.len().min(laxity_sched::NAME_MAX)).rev().find(|&end| name.is_char_boundary(end));
    &name[..end.unwrap_or(0)]
}

/// What `task` is for Laxity's scheduler.
fn parameters(task: &Task, info: &TaskInfo, is_fixed: bool) -> Parameters {
    Parameters {
        cluster: info.cluster,
        deadline: task.deadline,
        wcet: task.wcet(),
        // As the simulator ranks it: level 0 is above all jobs.
        level: is_fixed.then(|| u64::from(info.rank) + 1),
        ..Parameters::periodic(truncated(&task.name), task.period)
    }
}

/// What `task` is for the scheduler in the kernel.
fn request(task: &Task, info: &TaskInfo) -> TaskRequest {
    TaskRequest {
        name: truncated(&task.name).to_owned(),
        period: task.period,
        deadline: task.deadline,
        wcet: task.wcet(),
        budget: task.server.map(|server| server.budget),
        // Under priorities that are given, as the simulator ranks it.
        priority: info.rank.into(),
        cluster: Some(info.cluster),
        release: None,
        releases: match info.kind {
            TaskKind::Node { .. } => Releases::Tokens { due: None },
            _ if task.arrival == Arrival::Periodic && task.jitter.is_zero() => Releases::Periodic,
            _ => Releases::Told { due: None },
        },
    }
}

/// Live each device has a thread that handles its interrupts; what the halves of a GPU's interrupts take there is measured and
/// not modelled.
fn without_modelled_interrupts(workload: &Workload) -> Workload {
    let mut workload = workload.clone();
    let is_klmirqd = matches!(workload.gpu_management.handling, InterruptHandling::Klmirqd { .. });
    let has_servers = is_klmirqd && workload.platform.devices.iter().any(|device| device.server.is_some());
    workload.gpu_management.handling = if has_servers {
        InterruptHandling::Klmirqd { threads: None }
    } else {
        InterruptHandling::PreemptRt(ThreadPriority::High)
    };
    workload.gpu_management.callback = None;
    workload
}

/// How threads are scheduled that handle interrupts, each of one device. Those of GPUs are above all tasks, unless they follow their
/// owners (`is_followed`).
fn handling(workload: &Workload, is_followed: bool, use_gpus: bool) -> InterruptHandling {
    match workload.gpu_management.handling {
        InterruptHandling::Klmirqd { .. } if is_followed || !use_gpus => InterruptHandling::Klmirqd { threads: None },
        low @ InterruptHandling::PreemptRt(ThreadPriority::Low) if !use_gpus => low,
        _ => InterruptHandling::PreemptRt(ThreadPriority::High),
    }
}

fn header(compiled: &laxity_plan::Plan, workload: &Workload, linux: LinuxScheduler) -> TraceHeader {
    let mut header = TraceHeader { origin: Origin::Live, costs: OverheadCosts::default(), ..compiled.header.clone() };
    if linux == LinuxScheduler::Laxity {
        return header;
    }
    header.linux_class = linux.class();
    // Linux grants its own locks by priority, and has none among threads of `SCHED_OTHER`.
    let order = if linux == LinuxScheduler::Other { EngineOrder::Fifo } else { EngineOrder::Priority };
    for LockInfo { kind, .. } in &mut header.locks[..workload.resources.len()] {
        *kind = LockKind::Resource { order };
    }
    header
}

/// The trigger of task `number`; `rule` is that of time alone.
fn trigger(number: usize, graphs: &[GraphPlan], rule: ReleaseRule) -> Trigger {
    let within = |(graph, plan): (usize, &GraphPlan)| {
        let node = number.checked_sub(plan.first_task)?;
        let is_source = plan.plan.nodes().get(node)?.is_source;
        Some((NodeId { graph, node }, is_source))
    };
    match graphs.iter().enumerate().find_map(within) {
        None => Trigger::Time(rule),
        Some((node, true)) => Trigger::Source(node, rule),
        Some((node, false)) => Trigger::Tokens(node, Releasing::Early),
    }
}

/// Whether a job may be suspended there.
fn may_wait(op: &&Op) -> bool {
    matches!(op, Op::Suspend(_) | Op::Lock { .. } | Op::LockEngine(_) | Op::Wait)
}

/// For each resource with a ceiling the highest priority among its users.
fn ceilings(workload: &Workload, tasks: &[Task], priority: impl Fn(usize) -> Option<u8>) -> Vec<Option<u8>> {
    let ceiling = |(index, resource): (usize, &laxity_model::Resource)| {
        if resource.protocol != ResourceProtocol::PriorityCeiling {
            return None;
        }
        let uses = |task: &Task| task.body.iter().any(|step: &Step| refusal::locks_it(step, index));
        (0..tasks.len()).filter(|&task| uses(&tasks[task])).filter_map(&priority).max()
    };
    workload.resources.iter().enumerate().map(ceiling).collect()
}
