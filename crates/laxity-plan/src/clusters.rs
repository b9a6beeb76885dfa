//! Which CPUs form a cluster, and which tasks run there.

use laxity_model::{CpuId, Scheduler, Scope, Task, TaskId, Workload};
use laxity_policy::cpu::{Ranking, worst_fit};
use laxity_trace::TaskInfo;

use crate::tasks::{TaskPlan, Unplaced};
use crate::unsupported::UnsupportedFeatures;

/// CPUs that share a ready queue, and their tasks.
#[derive(Clone, Debug)]
pub struct ClusterPlan {
    /// Its CPUs, by their number within it.
    pub cpus: Vec<CpuId>,
    /// Its tasks, by their number within it.
    pub tasks: Vec<TaskId>,
    /// Ranks its tasks.
    pub ranking: Ranking,
}

/// The CPUs of each cluster, and the cluster of each task.
pub(crate) struct Assignment {
    pub cpus: Vec<Vec<CpuId>>,
    pub of_task: Vec<usize>,
}

impl Assignment {
    /// The cluster that the first of `cpus` within one belongs to.
    pub fn cluster_of_cpus(&self, cpus: &[CpuId]) -> usize {
        let within = |cpu: &CpuId| self.cpus.iter().position(|cluster| cluster.contains(cpu));
        cpus.iter().find_map(within).unwrap_or(0)
    }
}

/// Forms the clusters and assigns `tasks` to them: each to the one it names, others worst fit. `dedicated` runs no jobs.
pub(crate) fn assign(
    workload: &Workload,
    tasks: &[Task],
    scheduler: &Scheduler,
    dedicated: Option<CpuId>,
    unsupported: &mut UnsupportedFeatures,
) -> Assignment {
    let (cpus, kept) = form(workload, scheduler, dedicated);
    if cpus.is_empty() {
        unsupported.add(format!(
            "{scheduler} on {} CPU: the CPU dedicated to interrupts leaves none for jobs, so add a CPU or take \
             interrupts on all CPUs (m instead of 1)",
            workload.platform.cpus
        ));
        return Assignment { cpus: vec![vec![CpuId(0)]], of_task: vec![0; tasks.len()] };
    }
    let mut tasks = tasks.to_vec();
    for task in &mut tasks {
        let wanted = task.cluster.filter(|_| scheduler.scope != Scope::Global);
        task.cluster = wanted.and_then(|wanted| kept.get(wanted).copied().flatten());
        if let (Some(wanted), None) = (wanted, task.cluster) {
            unsupported.add(format!(
                "task \"{}\": its cluster {wanted} has no CPU that runs jobs under {scheduler} ({} clusters, \
                 interrupts on {}), so name another or leave it out to have it assigned",
                task.name,
                kept.len(),
                dedicated.map_or("all CPUs".to_owned(), |cpu| cpu.to_string()),
            ));
        }
    }
    let sizes: Vec<usize> = cpus.iter().map(Vec::len).collect();
    let of_task = worst_fit(&tasks, &sizes);
    Assignment { cpus, of_task }
}

/// The CPUs of each cluster that runs jobs, and for each cluster that a task may name its number among these. A cluster
/// that consists of the CPU dedicated to interrupts does not exist.
fn form(workload: &Workload, scheduler: &Scheduler, dedicated: Option<CpuId>) -> (Vec<Vec<CpuId>>, Vec<Option<usize>>) {
    let platform = &workload.platform;
    let all = || (0..platform.cpus as u16).map(CpuId);
    let named: Vec<Vec<CpuId>> = match scheduler.scope {
        Scope::Global => vec![all().collect()],
        Scope::Clustered => platform.clusters.clone(),
        Scope::Partitioned => all().map(|cpu| vec![cpu]).collect(),
    };
    let mut cpus = Vec::new();
    let mut kept = vec![None; named.len()];
    for (index, cluster) in named.into_iter().enumerate() {
        let cluster: Vec<CpuId> = cluster.into_iter().filter(|&cpu| Some(cpu) != dedicated).collect();
        if !cluster.is_empty() {
            kept[index] = Some(cpus.len());
            cpus.push(cluster);
        }
    }
    (cpus, kept)
}

/// Gives every task its number within its cluster, in the order of `tasks`. `ranking` ranks those that do jobs, so that
/// the levels of different clusters can be compared; threads of the system, which come after these, are told their level
/// when they are woken.
pub(crate) fn place(
    tasks: Vec<Unplaced>,
    cpus: Vec<Vec<CpuId>>,
    ranking: &Ranking,
    first_thread: usize,
) -> (Vec<TaskInfo>, Vec<TaskPlan>, Vec<ClusterPlan>) {
    let mut members = vec![Vec::new(); cpus.len()];
    let mut place = |(number, task): (usize, Unplaced)| {
        let cluster: &mut Vec<TaskId> = &mut members[task.info.cluster];
        cluster.push(TaskId(number as u32));
        task.place(TaskId(cluster.len() as u32 - 1))
    };
    let (infos, plans) = tasks.into_iter().enumerate().map(&mut place).unzip();
    let cluster = |(cpus, tasks): (Vec<CpuId>, Vec<TaskId>)| {
        let ranked = tasks.partition_point(|task| task.index() < first_thread);
        ClusterPlan { cpus, ranking: ranking.among(&tasks[..ranked]), tasks }
    };
    (infos, plans, cpus.into_iter().zip(members).map(cluster).collect())
}
