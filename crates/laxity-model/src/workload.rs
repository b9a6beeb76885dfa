//! A workload: everything one file says.

use crate::{BestEffortScheduler, BestEffortTask, Chain, GpuManagement, Graph, Platform, Scheduler, Task};

/// What every verb of Laxity reads: platform, tasks, graphs, and how they are scheduled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// A name for tables and plots.
    pub name: String,
    /// The machine.
    pub platform: Platform,
    /// The scheduler, unless a command names another.
    pub scheduler: Scheduler,
    /// How GPUs are shared and interrupts handled.
    pub gpu_management: GpuManagement,
    /// The real-time tasks; their order breaks ties.
    pub tasks: Vec<Task>,
    /// Tasks without deadlines.
    pub best_effort: Vec<BestEffortTask>,
    /// How these are scheduled where no real-time job wants the CPU.
    pub best_effort_scheduler: BestEffortScheduler,
    /// Resources that critical sections name.
    pub resources: Vec<Resource>,
    /// PGM graphs.
    pub graphs: Vec<Graph>,
    /// Paths through them, with deadlines from end to end.
    pub chains: Vec<Chain>,
}

/// A shared resource that one job (or `replicas` jobs) may hold at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Unique name.
    pub name: String,
    /// How waiting is ordered and bounded.
    pub protocol: ResourceProtocol,
    /// How many jobs may hold it at once, at least 1.
    pub replicas: u32,
}

/// How jobs wait for a [`Resource`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResourceProtocol {
    /// Priority order; the holder inherits the highest priority among its waiters.
    PriorityInheritance,
    /// FIFO order with inheritance (FMLP).
    Fifo,
    /// The holder runs at the ceiling of the resource's users.
    PriorityCeiling,
}

impl Workload {
    /// A workload of `tasks` on `platform` under the default scheduler.
    pub fn new(name: impl Into<String>, platform: Platform, tasks: Vec<Task>) -> Self {
        Workload {
            name: name.into(),
            platform,
            scheduler: Scheduler::default(),
            gpu_management: GpuManagement::default(),
            tasks,
            best_effort: Vec::new(),
            best_effort_scheduler: BestEffortScheduler::default(),
            resources: Vec::new(),
            graphs: Vec::new(),
            chains: Vec::new(),
        }
    }

    /// Sum of the CPU utilizations of tasks and graph nodes, for tables and plots; decisions compare integers. Nodes of a graph
    /// without rates, which no valid workload has, do not count.
    pub fn utilization_f64(&self) -> f64 {
        let tasks = self.tasks.iter().map(Task::utilization_f64);
        tasks.chain(self.graphs.iter().map(Graph::utilization_f64)).sum()
    }
}
