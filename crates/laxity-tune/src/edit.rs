//! Changes of a workload's configuration.

use laxity_model::{GpuArbitration, InterruptHandling, PriorityRule, Replicas, Scheduler, Scope, TokenHold, Workload};

use crate::priorities;

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// None.
    Keep,
    /// Another rule and scope; placements are for the scope that they were made for, and are dropped if that changes.
    Scheduler(PriorityRule, Scope),
    /// Fixed priorities by deadline minus worst case, the shortest first.
    SlackMonotonic,
    /// Fixed priorities as Audsley assigns them: the lowest to a job that meets its deadline with it.
    Audsley,
    /// Every task where the file puts it none, from the one of the highest utilization on, to the first CPU or cluster
    /// that has room.
    FirstFit,
    /// The same, where the most room is.
    WorstFit,
    /// One task or node to one CPU or cluster.
    Place {
        /// Tasks, then nodes graph by graph.
        task: usize,
        /// The CPU or cluster.
        cluster: usize,
    },
    /// Another arbitration of GPUs.
    Arbitration(GpuArbitration),
    /// Copies broken into chunks of so many bytes; under GPUSync only.
    Chunk(Option<u64>),
    /// How long tokens are held; under GPUSync only.
    Hold(TokenHold),
    /// Another place for bottom halves.
    Handling(InterruptHandling),
    /// So many replicas of the objects of graphs.
    Replicas {
        /// Which graphs.
        graphs: Vec<usize>,
        /// How many.
        count: u32,
    },
    /// Another budget of best-effort CPUs while the bandwidth lock is held, in bytes a second.
    Budget(u64),
}

impl Edit {
    /// Applies the change.
    pub fn apply(&self, workload: &mut Workload) {
        match *self {
            Edit::Keep => {}
            Edit::Scheduler(rule, scope) => {
                if workload.scheduler.scope != scope {
                    clusters(workload).for_each(|cluster| *cluster = None);
                }
                workload.scheduler = Scheduler { rule, scope, ..workload.scheduler };
            }
            Edit::SlackMonotonic => priorities::by_slack(workload),
            Edit::Audsley => priorities::audsley(workload),
            Edit::FirstFit => fit(workload, false),
            Edit::WorstFit => fit(workload, true),
            Edit::Place { task, cluster } => {
                if let Some(place) = clusters(workload).nth(task) {
                    *place = Some(cluster);
                }
            }
            Edit::Arbitration(arbitration) => workload.gpu_management.arbitration = arbitration,
            Edit::Chunk(chunk) => {
                if let GpuArbitration::GpuSync(sync) = &mut workload.gpu_management.arbitration {
                    sync.chunk = chunk;
                }
            }
            Edit::Hold(hold) => {
                if let GpuArbitration::GpuSync(sync) = &mut workload.gpu_management.arbitration {
                    sync.hold = hold;
                }
            }
            Edit::Handling(handling) => workload.gpu_management.handling = handling,
            Edit::Replicas { ref graphs, count } => {
                graphs.iter().for_each(|&graph| workload.graphs[graph].replicas = Replicas::Count(count));
            }
            Edit::Budget(budget) => {
                if let Some(lock) = &mut workload.gpu_management.bandwidth_lock {
                    lock.budget = budget;
                }
            }
        }
    }
}

/// The placements of tasks, then of nodes graph by graph.
fn clusters(workload: &mut Workload) -> impl Iterator<Item = &mut Option<usize>> {
    let tasks = workload.tasks.iter_mut().map(|task| &mut task.cluster);
    tasks.chain(workload.graphs.iter_mut().flat_map(|graph| &mut graph.nodes).map(|node| &mut node.cluster))
}

/// How many CPUs each place has on which a task may be put; empty under global scheduling.
pub(crate) fn places(workload: &Workload) -> Vec<usize> {
    match workload.scheduler.scope {
        Scope::Global => Vec::new(),
        Scope::Clustered => workload.platform.clusters.iter().map(Vec::len).collect(),
        Scope::Partitioned => vec![1; workload.platform.cpus],
    }
}

/// Places every task without a graph: bin packing by utilization, in parts per million, decreasing.
fn fit(workload: &mut Workload, is_worst: bool) {
    let mut room: Vec<u64> = places(workload).iter().map(|&cpus| cpus as u64 * 1_000_000).collect();
    if room.is_empty() {
        return;
    }
    let share = |wcet: u64, period: u64| (u128::from(wcet) * 1_000_000).div_ceil(u128::from(period.max(1))) as u64;
    let mut order: Vec<(u64, usize)> =
        workload.tasks.iter().map(|task| share(task.wcet().0, task.period.0)).zip(0..).collect();
    order.sort_unstable_by_key(|&(share, index)| (std::cmp::Reverse(share), index));
    for (share, index) in order {
        let fits = |&place: &usize| room[place] >= share;
        let widest = || (0..room.len()).max_by_key(|&place| (room[place], std::cmp::Reverse(place)));
        let first = (0..room.len()).find(fits).filter(|_| !is_worst);
        let Some(place) = first.or_else(widest) else { return };
        room[place] = room[place].saturating_sub(share);
        workload.tasks[index].cluster = Some(place);
    }
}
