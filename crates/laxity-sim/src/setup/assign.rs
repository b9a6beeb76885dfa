//! Which CPUs form a cluster, and which tasks run there.

use laxity_model::{CpuId, Scheduler, Scope, Task, TaskId, Workload};
use laxity_policy::cpu::{Ranking, worst_fit};

use super::ClusterPlan;

/// The CPUs of each cluster, and the cluster of each task.
pub(super) fn assign(
    workload: &Workload,
    tasks: &[Task],
    scheduler: &Scheduler,
    dedicated: Option<CpuId>,
    reasons: &mut Vec<String>,
) -> (Vec<Vec<CpuId>>, Vec<usize>) {
    let platform = &workload.platform;
    let all = || (0..platform.cpus as u16).map(CpuId);
    let named: Vec<Vec<CpuId>> = match scheduler.scope {
        Scope::Global => vec![all().collect()],
        Scope::Clustered => platform.clusters.clone(),
        Scope::Partitioned => all().map(|cpu| vec![cpu]).collect(),
    };
    // A dedicated interrupt CPU schedules nothing; a cluster that consists of it alone does not exist.
    let mut cpus = Vec::new();
    let mut kept = vec![None; named.len()];
    for (index, cluster) in named.into_iter().enumerate() {
        let cluster: Vec<CpuId> = cluster.into_iter().filter(|&cpu| Some(cpu) != dedicated).collect();
        if !cluster.is_empty() {
            kept[index] = Some(cpus.len());
            cpus.push(cluster);
        }
    }
    if cpus.is_empty() {
        reasons.push(format!(
            "{scheduler} on {} CPU: the CPU dedicated to interrupts leaves none for jobs, so add a CPU or take \
             interrupts on all CPUs (m instead of 1)",
            platform.cpus
        ));
        return (vec![vec![CpuId(0)]], vec![0; tasks.len()]);
    }
    let mut tasks = tasks.to_vec();
    for task in &mut tasks {
        task.cluster = match (scheduler.scope, task.cluster) {
            (Scope::Global, _) | (_, None) => None,
            (_, Some(wanted)) => match kept.get(wanted).copied().flatten() {
                Some(cluster) => Some(cluster),
                None => {
                    reasons.push(format!(
                        "task \"{}\": its cluster {wanted} has no CPU that runs jobs under {scheduler} ({} clusters, \
                         interrupts on {}), so name another or leave it out to have it assigned",
                        task.name,
                        kept.len(),
                        dedicated.map_or("all CPUs".to_owned(), |cpu| cpu.to_string()),
                    ));
                    None
                }
            },
        };
    }
    let sizes: Vec<usize> = cpus.iter().map(Vec::len).collect();
    let cluster_of = worst_fit(&tasks, &sizes);
    (cpus, cluster_of)
}

/// The clusters with their tasks, the interrupt threads (from `first_thread` on) after the others. `ranking` ranks
/// these, so that the levels of different clusters can be compared; threads are told their level when they are woken.
pub(super) fn cluster_plans(
    ranking: &Ranking,
    cpus: Vec<Vec<CpuId>>,
    cluster_of: &[usize],
    first_thread: usize,
) -> Vec<ClusterPlan> {
    let plan = |(cluster, cpus): (usize, Vec<CpuId>)| {
        let members = (0..cluster_of.len()).filter(|&task| cluster_of[task] == cluster);
        let tasks: Vec<TaskId> = members.map(|task| TaskId(task as u32)).collect();
        let ranked = tasks.partition_point(|task| task.index() < first_thread);
        ClusterPlan { cpus, ranking: ranking.among(&tasks[..ranked]), tasks }
    };
    cpus.into_iter().enumerate().map(plan).collect()
}
