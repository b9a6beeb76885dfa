//! Best-effort tasks: one job each, from the start, wherever no real-time job wants a CPU.

use laxity_model::{CpuId, ExecutionTime, Factor, Nanos, PriorityRule, Scheduler, TaskId, Workload};
use laxity_policy::cpu::fair::{FairThread, Parameters};
use laxity_trace::{TaskInfo, TaskKind};

use crate::clusters::{Assignment, ClusterPlan};
use crate::op::Op;
use crate::releases::ReleasePattern;
use crate::tasks::{ReleasedBy, TaskPlan};
use crate::unsupported::UnsupportedFeatures;

/// The best-effort tasks.
#[derive(Clone, Debug)]
pub struct BestEffortPlan {
    /// The number of the first one among all tasks.
    pub first_task: usize,
    /// What their scheduler knows of each; CPUs are positions in `cpus`.
    pub threads: Vec<FairThread>,
    /// The CPUs that they may be on: all that run jobs, in their order.
    pub cpus: Vec<CpuId>,
    /// The tunables of their scheduler.
    pub parameters: Parameters,
    /// What TFS charges for throttled time; none under CFS.
    pub punishment: Factor,
}

impl BestEffortPlan {
    pub(crate) fn new(workload: &Workload, clusters: &Assignment, first_task: usize) -> BestEffortPlan {
        let mut cpus: Vec<CpuId> = clusters.cpus.iter().flatten().copied().collect();
        cpus.sort_unstable();
        let scheduler = &workload.best_effort_scheduler;
        let linux = Parameters::of_linux(workload.platform.cpus);
        let local = |cpu: usize| cpus.iter().position(|known| known.index() == cpu).map(|at| CpuId(at as u16));
        let thread = |task: &laxity_model::BestEffortTask| FairThread {
            weight: u64::from(task.weight),
            cpu: task.cpu.and_then(local),
        };
        BestEffortPlan {
            first_task,
            threads: workload.best_effort.iter().map(thread).collect(),
            parameters: Parameters {
                latency: scheduler.latency.unwrap_or(linux.latency),
                min_granularity: scheduler.min_granularity.unwrap_or(linux.min_granularity),
                wakeup_granularity: scheduler.wakeup_granularity.unwrap_or(linux.wakeup_granularity),
            },
            punishment: scheduler.rule.punishment(),
            cpus,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Them as tasks. That of a cluster means nothing; it is that of the CPU they are bound to, if they are.
    pub(crate) fn as_tasks(&self, workload: &Workload, clusters: &[ClusterPlan]) -> (Vec<TaskInfo>, Vec<TaskPlan>) {
        let cluster = |task: &laxity_model::BestEffortTask| {
            let has = |cluster: &ClusterPlan| cluster.cpus.iter().any(|cpu| Some(cpu.index()) == task.cpu);
            clusters.iter().position(has).unwrap_or(0)
        };
        let info = |(number, task): (usize, &laxity_model::BestEffortTask)| TaskInfo {
            name: task.name.clone(),
            period: Nanos::ZERO,
            // As far away as can be written: it is none.
            deadline: Nanos::LONGEST,
            wcet: task.work.unwrap_or_default(),
            cluster: cluster(task),
            rank: (self.first_task + number) as u32,
            kind: TaskKind::BestEffort,
        };
        let plan = |(number, task): (usize, &laxity_model::BestEffortTask)| TaskPlan {
            releases: ReleasePattern::NEVER,
            ops: Box::new([Op::Run(ExecutionTime::constant(task.work.unwrap_or(Nanos::LONGEST)))]),
            released_by: ReleasedBy::Start,
            cluster: cluster(task) as u16,
            local: TaskId(number as u32),
            server: None,
        };
        let tasks = || workload.best_effort.iter().enumerate();
        (tasks().map(info).collect(), tasks().map(plan).collect())
    }
}

/// Adds what best-effort tasks ask for and cannot have.
pub(crate) fn check(
    workload: &Workload,
    scheduler: &Scheduler,
    clusters: &Assignment,
    unsupported: &mut UnsupportedFeatures,
) {
    for task in &workload.best_effort {
        let runs_jobs = |cpu: usize| clusters.cpus.iter().flatten().any(|known| known.index() == cpu);
        if let Some(cpu) = task.cpu.filter(|&cpu| !runs_jobs(cpu)) {
            unsupported.add(format!(
                "best-effort task \"{}\": CPU {cpu}, which it is bound to, is dedicated to interrupts under {scheduler}; bind \
                 it to another, or take interrupts on all CPUs (m instead of 1)",
                task.name
            ));
        }
        if scheduler.rule == PriorityRule::Fair {
            unsupported.add(format!(
                "best-effort task \"{}\" under {scheduler}: all tasks are of the fair class there, and none is below the \
                 others; leave it out, or choose a scheduler with priorities",
                task.name
            ));
        }
    }
}
