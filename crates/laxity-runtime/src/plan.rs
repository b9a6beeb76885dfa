//! From a workload to what its threads do, and a refusal by name of what cannot be run live.

use std::fmt;

use laxity_model::{EngineOrder, Instant, Nanos, ResourceProtocol, Scheduler, Scope, Step, Task, TaskId, Workload};
use laxity_policy::cpu::Ranking;
use laxity_sys::scheduling;
use laxity_trace::{LockInfo, LockKind, Origin, TaskInfo, TraceHeader};

use crate::body::{Op, flatten};
use crate::draws::{Draws, Releases};
use crate::linux::{self, Attributes, LinuxScheduler};
use crate::placement::Placement;

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
pub struct Plan {
    header: TraceHeader,
    linux: LinuxScheduler,
    notes: Vec<String>,
    pub(crate) duration: Nanos,
    pub(crate) placement: Placement,
    pub(crate) tasks: Vec<TaskPlan>,
    pub(crate) locks: usize,
}

/// What one thread does.
#[derive(Clone, Debug)]
pub(crate) struct TaskPlan {
    pub name: String,
    pub ops: Vec<Op>,
    pub draws: Draws,
    pub releases: Releases,
    pub working_set: u64,
    /// The CPUs that it keeps to, numbered as Linux does; `None`: it may use all.
    pub cpus: Option<Vec<usize>>,
    pub attributes: Attributes,
    /// Under `SCHED_FIFO` the priority of non-preemptive sections, and for each lock that of its ceiling, if it has one.
    pub raised: Option<Raised>,
}

/// Priorities of sections.
#[derive(Clone, Debug)]
pub(crate) struct Raised {
    pub base: u8,
    pub non_preemptive: u8,
    pub ceilings: Vec<Option<u8>>,
}

/// What cannot be run live, each thing by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    reasons: Vec<String>,
}

impl Refusal {
    /// The reasons, each with the way out.
    pub fn reasons(&self) -> &[String] {
        &self.reasons
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reasons.join("\n"))
    }
}

impl std::error::Error for Refusal {}

impl Plan {
    /// Prepares `workload`, which must be valid, and tries out what it needs of Linux.
    ///
    /// # Errors
    /// What cannot be run live, or not by this user on this machine.
    pub fn new(workload: &Workload, options: &Options) -> Result<Plan, Refusal> {
        let reasons = unsupported(workload);
        if !reasons.is_empty() {
            return Err(Refusal { reasons });
        }
        Plan::of_supported(workload, options).map_err(|reason| Refusal { reasons: vec![reason] })
    }

    fn of_supported(workload: &Workload, options: &Options) -> Result<Plan, String> {
        let scheduler =
            Scheduler { rule: options.scheduler.rule, scope: options.scheduler.scope, ..Scheduler::GLOBAL_EDF };
        let usable =
            scheduling::usable_cpus().map_err(|error| format!("cannot ask which CPUs may be used: {error}"))?;
        let placement = Placement::new(workload, &scheduler, &usable)?;
        let uses_all = scheduler.scope == Scope::Global && placement.linux.len() == usable.len();
        let (linux, note) = linux::choose(&scheduler, options.linux, &workload.tasks, uses_all)?;
        let ranking = Ranking::new(scheduler.rule, &workload.tasks);
        let rank = |task: usize| ranking.rank(TaskId(task as u32));
        let header = TraceHeader {
            clusters: placement.clusters.clone(),
            quantum: workload.platform.quantum,
            seed: options.seed,
            tasks: TaskInfo::of(&workload.tasks, |task| (placement.cluster_of[task], rank(task))),
            locks: locks(workload, linux),
            ..TraceHeader::new(Origin::Live, &workload.name, workload.platform.cpus, scheduler)
        };
        let notes = note.into_iter().chain(left_out(workload, linux)).collect();
        let end = Instant::ZERO.saturating_add(options.duration);
        let task_plan = |(number, task): (usize, &Task)| {
            let draws = Draws { seed: options.seed, task: number as u32 };
            let priority = |task: usize| linux::priority(rank(task), workload.tasks.len());
            let (attributes, raised) = match linux {
                LinuxScheduler::Other => (Attributes::Other, None),
                LinuxScheduler::Deadline => (Attributes::deadline(task), None),
                LinuxScheduler::Fifo => {
                    let base = priority(number);
                    let non_preemptive = linux::priority(0, workload.tasks.len()) + 1;
                    let raised = Raised { base, non_preemptive, ceilings: ceilings(workload, priority) };
                    (Attributes::Fifo { priority: base }, Some(raised))
                }
            };
            TaskPlan {
                name: task.name.clone(),
                ops: flatten(&task.body),
                draws,
                releases: Releases::new(task, draws, end),
                working_set: task.working_set.unwrap_or(0),
                // Who has all may not say so: SCHED_DEADLINE takes no other.
                cpus: (!uses_all).then(|| placement.cpus(number)),
                attributes,
                raised,
            }
        };
        let tasks = workload.tasks.iter().enumerate().map(task_plan).collect();
        let locks = workload.resources.len();
        Ok(Plan { header, linux, notes, duration: options.duration, placement, tasks, locks })
    }

    /// What a trace of it begins with.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// How Linux schedules the threads.
    pub fn linux(&self) -> LinuxScheduler {
        self.linux
    }

    /// What its user should know: what is weaker than the workload asks for.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// What no live run can do yet, by name.
fn unsupported(workload: &Workload) -> Vec<String> {
    let mut reasons = Vec::new();
    for graph in &workload.graphs {
        reasons.push(format!(
            "graph \"{}\": `laxity run` runs tasks, not graphs; `laxity graph run` runs it, so move it to a file of its own",
            graph.name
        ));
    }
    for task in &workload.best_effort {
        reasons.push(format!("best-effort task \"{}\": is not run live yet; leave it out", task.name));
    }
    for task in &workload.tasks {
        if task.body.iter().any(uses_gpu) {
            reasons.push(format!(
                "task \"{}\": GPU operations are not run live yet (the soft GPU comes); leave them out, or simulate",
                task.name
            ));
        }
        if let Some(budget) = task.budget {
            reasons.push(format!(
                "task \"{}\": its budget of {budget} is not enforced live yet; leave it out, or simulate",
                task.name
            ));
        }
    }
    let used =
        |resource: usize| workload.tasks.iter().any(|task| task.body.iter().any(|step| locks_it(step, resource)));
    for (_, resource) in workload.resources.iter().enumerate().filter(|&(index, _)| used(index)) {
        if resource.replicas > 1 {
            reasons.push(format!(
                "resource \"{}\": {} replicas, and locks of Linux have one; write replicas = 1, or simulate",
                resource.name, resource.replicas
            ));
        }
        if resource.protocol == ResourceProtocol::Fifo {
            reasons.push(format!(
                "resource \"{}\": locks of Linux that lend priorities are granted by priority, not first come first \
                 served; take priority inheritance or a ceiling, or simulate",
                resource.name
            ));
        }
    }
    if workload.tasks.is_empty() && reasons.is_empty() {
        reasons.push("the workload has no task; add a [[task]]".to_owned());
    }
    reasons
}

/// What `linux` does not do for `workload`.
fn left_out(workload: &Workload, linux: LinuxScheduler) -> Vec<String> {
    if linux == LinuxScheduler::Fifo {
        return Vec::new();
    }
    let mut notes = Vec::new();
    if workload.tasks.iter().any(|task| task.body.iter().any(is_non_preemptive)) {
        notes.push(format!("non-preemptive sections can be preempted under {linux}"));
    }
    if workload.resources.iter().any(|resource| resource.protocol == ResourceProtocol::PriorityCeiling) {
        notes.push(format!("there are no ceilings under {linux}: holders inherit priorities instead"));
    }
    notes
}

/// What the trace says of the resources. Linux grants by priority, and has none among threads of `SCHED_OTHER`.
fn locks(workload: &Workload, linux: LinuxScheduler) -> Vec<LockInfo> {
    let order = if linux == LinuxScheduler::Other { EngineOrder::Fifo } else { EngineOrder::Priority };
    let info = |resource: &laxity_model::Resource| LockInfo {
        name: resource.name.clone(),
        kind: LockKind::Resource { order },
        replicas: resource.replicas.min(u32::from(u16::MAX)) as u16,
    };
    workload.resources.iter().map(info).collect()
}

/// For each resource with a ceiling the highest priority among its users.
fn ceilings(workload: &Workload, priority: impl Fn(usize) -> u8) -> Vec<Option<u8>> {
    let ceiling = |(index, resource): (usize, &laxity_model::Resource)| {
        if resource.protocol != ResourceProtocol::PriorityCeiling {
            return None;
        }
        let uses = |task: &Task| task.body.iter().any(|step| locks_it(step, index));
        (0..workload.tasks.len()).filter(|&task| uses(&workload.tasks[task])).map(&priority).max()
    };
    workload.resources.iter().enumerate().map(ceiling).collect()
}

/// Whether `step` or what is inside satisfies `condition`.
fn any(step: &Step, condition: &dyn Fn(&Step) -> bool) -> bool {
    let inner = match step {
        Step::Critical { body, .. } | Step::GpuSection { body } => body.as_slice(),
        Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) | Step::Gpu(_) => &[],
    };
    condition(step) || inner.iter().any(|step| any(step, condition))
}

fn uses_gpu(step: &Step) -> bool {
    any(step, &|step| matches!(step, Step::Gpu(_) | Step::GpuSection { .. }))
}

fn is_non_preemptive(step: &Step) -> bool {
    any(step, &|step| matches!(step, Step::NonPreemptive(_)))
}

fn locks_it(step: &Step, wanted: usize) -> bool {
    any(step, &|step| matches!(step, Step::Critical { resource, .. } if *resource == wanted))
}
