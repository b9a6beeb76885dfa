//! Best-effort tasks as live threads: of the fair class, below every real-time job.

use laxity_model::{CpuId, Instant, Nanos, TaskId, Workload};
use laxity_plan::draws::TaskDraws;
use laxity_plan::{BestEffortPlan, ReleasePattern, Releases};

use super::ReleaseTimes;
use crate::linux::LinuxScheduler;
use crate::niceness;
use crate::placement::Placement;

/// The best-effort tasks of a plan.
#[derive(Clone, Debug, Default)]
pub(crate) struct BestEffort {
    /// The number of the first one among all tasks of the trace.
    pub first_task: usize,
    pub tasks: Vec<BestEffortTask>,
}

/// A best-effort task: one job, from the start.
#[derive(Clone, Debug)]
pub(crate) struct BestEffortTask {
    pub name: String,
    /// The CPUs that it keeps to, numbered as Linux does.
    pub cpus: Vec<usize>,
    pub niceness: i32,
    /// In the fair class, as the file says.
    pub weight: u32,
    /// Memory traffic while it executes, in bytes a second.
    pub demand: u64,
    /// How long it executes; `None`: until the run ends.
    pub work: Option<Nanos>,
}

impl BestEffort {
    /// Those of `workload`, and notes to the user.
    pub fn new(
        workload: &Workload,
        compiled: &BestEffortPlan,
        placement: &Placement,
        linux: LinuxScheduler,
    ) -> (BestEffort, Vec<String>) {
        let weights: Vec<u32> = workload.best_effort.iter().map(|task| task.weight).collect();
        let (niceness, note) = niceness::of_weights(&weights);
        let mut notes: Vec<String> = note.into_iter().collect();
        if linux == LinuxScheduler::Other && !weights.is_empty() {
            notes.push(
                "best-effort tasks are not below the others under SCHED_OTHER: all share the CPUs fairly".to_owned(),
            );
        }
        if linux == LinuxScheduler::Kernel && weights.iter().any(|weight| *weight != weights[0]) {
            notes.push(format!("weights of best-effort tasks do not count beside {linux}: they take turns"));
        }
        let tunables = &workload.best_effort_scheduler;
        let is_tuned =
            [tunables.latency, tunables.min_granularity, tunables.wakeup_granularity].iter().any(Option::is_some);
        if is_tuned && !weights.is_empty() {
            notes.push(
                "`latency` and granularities of `best_effort_scheduler` are those of a model: Linux's fair class has its \
                 own"
                .to_owned(),
            );
        }
        let all: Vec<usize> = compiled.cpus.iter().map(|cpu| placement.linux[cpu.index()]).collect();
        let cpus = |bound: Option<usize>| match bound {
            Some(cpu) => vec![placement.linux[CpuId(cpu as u16).index()]],
            None => all.clone(),
        };
        let task = |(task, niceness): (&laxity_model::BestEffortTask, i32)| BestEffortTask {
            name: task.name.clone(),
            cpus: cpus(task.cpu),
            niceness,
            weight: task.weight,
            demand: task.memory_demand,
            work: task.work,
        };
        let tasks = workload.best_effort.iter().zip(niceness).map(task).collect();
        (BestEffort { first_task: compiled.first_task, tasks }, notes)
    }

    /// The release of each: at the start.
    pub fn releases(&self) -> impl Iterator<Item = ReleaseTimes> {
        self.tasks.iter().map(|_| start())
    }

    /// The number of the log of `task` and of what comes after the last one, where `others` come before in any case.
    pub fn logs(&self, others: usize) -> usize {
        if self.tasks.is_empty() { others } else { self.first_task + self.tasks.len() }
    }
}

/// The one release of a best-effort task. Its deadline is as far away as can be written: it is none.
pub(crate) fn start() -> ReleaseTimes {
    let second = Nanos::from_secs(1);
    let pattern = ReleasePattern { period: second, deadline: Nanos::LONGEST, phase: Nanos::ZERO, irregular: None };
    // Nothing of it is drawn.
    let draws = TaskDraws { seed: 0, task: TaskId(0) };
    Releases::new(pattern, draws, Instant::ZERO.saturating_add(second)).take(1)
}
