//! Which CPUs of this machine stand for those of the workload, and where each task may run.

use laxity_model::{CpuId, Scheduler, Scope, Workload};
use laxity_policy::cpu::worst_fit;

/// Where tasks run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placement {
    /// For each CPU of the workload its number in Linux.
    pub linux: Vec<usize>,
    /// The CPUs of each cluster.
    pub clusters: Vec<Vec<CpuId>>,
    /// The cluster of each task.
    pub cluster_of: Vec<usize>,
}

impl Placement {
    /// The first of the `usable` CPUs stand for those of `workload`. Tasks are assigned as in simulations.
    ///
    /// # Errors
    /// If there are not enough.
    pub fn new(workload: &Workload, scheduler: &Scheduler, usable: &[usize]) -> Result<Placement, String> {
        let count = workload.platform.cpus;
        let Some(linux) = usable.get(..count) else {
            return Err(format!(
                "the workload is for {count} CPUs and this process may use {}; run it on a larger machine, allow it more \
                 (`taskset`, the CPUs of its container), or lower `cpus` of the platform to {}",
                usable.len(),
                usable.len()
            ));
        };
        let all = || (0..count as u16).map(CpuId);
        let clusters: Vec<Vec<CpuId>> = match scheduler.scope {
            Scope::Global => vec![all().collect()],
            Scope::Clustered => workload.platform.clusters.clone(),
            Scope::Partitioned => all().map(|cpu| vec![cpu]).collect(),
        };
        let mut tasks = workload.tasks.clone();
        for task in &mut tasks {
            let wanted = task.cluster.filter(|_| scheduler.scope != Scope::Global);
            if let Some(cluster) = wanted.filter(|&cluster| cluster >= clusters.len()) {
                return Err(format!(
                    "task \"{}\": there is no cluster {cluster} under {scheduler}, which has {}; name another or leave \
                     it out to have the task assigned",
                    task.name,
                    clusters.len()
                ));
            }
            task.cluster = wanted;
        }
        let sizes: Vec<usize> = clusters.iter().map(Vec::len).collect();
        let cluster_of = worst_fit(&tasks, &sizes);
        Ok(Placement { linux: linux.to_vec(), clusters, cluster_of })
    }

    /// The CPUs, numbered as Linux does, that `task` may use.
    pub fn cpus(&self, task: usize) -> Vec<usize> {
        self.clusters[self.cluster_of[task]].iter().map(|cpu| self.linux[cpu.index()]).collect()
    }
}
