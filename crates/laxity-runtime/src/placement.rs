//! Which CPUs of this machine stand for those of the workload, and where each task may run.

use laxity_model::CpuId;
use laxity_trace::TraceHeader;

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
    /// The first of the `usable` CPUs stand for those of `header`, which says where each task runs.
    ///
    /// # Errors
    /// If there are not enough.
    pub fn new(header: &TraceHeader, usable: &[usize]) -> Result<Placement, String> {
        let count = header.cpus;
        let Some(linux) = usable.get(..count) else {
            return Err(format!(
                "the workload is for {count} CPUs and this process may use {}; run it on a larger machine, allow it more \
                 (`taskset`, the CPUs of its container), or fold it onto these (`laxity run --cpus {}`)",
                usable.len(),
                usable.len()
            ));
        };
        let cluster_of = header.tasks.iter().map(|task| task.cluster).collect();
        Ok(Placement { linux: linux.to_vec(), clusters: header.clusters.clone(), cluster_of })
    }

    /// The CPUs of each cluster, numbered as Linux does.
    pub fn linux_clusters(&self) -> Vec<Vec<u16>> {
        let linux = |cpus: &Vec<CpuId>| cpus.iter().map(|cpu| self.linux[cpu.index()] as u16).collect();
        self.clusters.iter().map(linux).collect()
    }

    /// The CPUs, numbered as Linux does, that `task` may use.
    pub fn cpus(&self, task: usize) -> Vec<usize> {
        self.clusters[self.cluster_of[task]].iter().map(|cpu| self.linux[cpu.index()]).collect()
    }
}
