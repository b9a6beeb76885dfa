//! What a trace is about: who wrote it, and the workload it shows.

use laxity_model::{CpuId, Nanos, OverheadCosts, Scheduler, Workload};

/// Everything a reader of a trace must know besides its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceHeader {
    /// Who wrote it.
    pub origin: Origin,
    /// The workload's name.
    pub workload: String,
    /// Number of CPUs.
    pub cpus: usize,
    /// The CPUs that share a ready queue, one list per queue; a dedicated interrupt CPU is in none.
    pub clusters: Vec<Vec<CpuId>>,
    /// The scheduler.
    pub scheduler: Scheduler,
    /// The scheduling quantum.
    pub quantum: Nanos,
    /// The overheads in force, zero where they are measured rather than modelled.
    pub costs: OverheadCosts,
    /// The seed of random execution times, gaps and jitter.
    pub seed: u64,
    /// The tasks; a `TaskId` indexes this list.
    pub tasks: Vec<TaskInfo>,
}

/// Where a trace comes from. Simulated is called simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Written by the simulator.
    Simulated,
    /// Recorded on a real machine.
    Live,
}

impl Origin {
    /// The name in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Simulated => "simulated",
            Origin::Live => "live",
        }
    }
}

/// What a trace says of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskInfo {
    /// The task's name.
    pub name: String,
    /// Its period or minimum separation.
    pub period: Nanos,
    /// Its relative deadline.
    pub deadline: Nanos,
    /// Its worst-case CPU time.
    pub wcet: Nanos,
    /// Index into [`TraceHeader::clusters`].
    pub cluster: usize,
    /// Its rank under fixed priorities (0 is the highest); its position in the list under EDF, where it breaks ties.
    pub rank: u32,
}

impl TaskInfo {
    /// What `workload` says of its tasks, given each one's `cluster` and `rank`.
    pub fn of(workload: &Workload, assignment: impl Fn(usize) -> (usize, u32)) -> Vec<TaskInfo> {
        workload
            .tasks
            .iter()
            .enumerate()
            .map(|(index, task)| {
                let (cluster, rank) = assignment(index);
                TaskInfo {
                    name: task.name.clone(),
                    period: task.period,
                    deadline: task.deadline,
                    wcet: task.wcet(),
                    cluster,
                    rank,
                }
            })
            .collect()
    }
}
