//! Clusters of the scheduler whose jobs wait for one another, as one: what their members wait for is bounded together.
//! Proof: `docs/decisions/0131-waits-across-ready-queues.md`.
//!
//! Jobs of two clusters wait for one another if they ask for one resource, or share GPUs; and a GPU whose interrupts a CPU
//! of another cluster handles delays jobs there.

use laxity_model::{InterruptHandling, PriorityRule, ReleaseInterrupts, Scheduler, Scope, ThreadPriority, Workload};

use super::Accounting;
use super::analysed_task::AnalysedTask;
use super::assign::{Cluster, Part};
use super::uses::Lock;

/// `clusters`, of one part each, with those in one whose jobs wait for one another.
pub(super) fn regions(
    workload: &Workload,
    scheduler: &Scheduler,
    accounting: Accounting,
    clusters: Vec<Cluster>,
    analysed: &[AnalysedTask],
) -> Vec<Cluster> {
    if clusters.len() < 2 || accounting == Accounting::Published || scheduler.rule == PriorityRule::Fair {
        return clusters;
    }
    let mut joined = Joined { region_of: (0..clusters.len()).collect() };
    let is_used_in = |cluster: &Cluster, uses: &dyn Fn(&AnalysedTask) -> bool| {
        cluster.members.iter().any(|&member| uses(&analysed[member]))
    };
    let of = |uses: &dyn Fn(&AnalysedTask) -> bool| -> Vec<usize> {
        (0..clusters.len()).filter(|&cluster| is_used_in(&clusters[cluster], uses)).collect()
    };
    for resource in 0..workload.resources.len() {
        let asks = |task: &AnalysedTask| task.uses.requests.iter().any(|it| it.lock == Lock::Resource(resource));
        joined.join(&of(&asks));
    }
    if may_share_gpus(workload) {
        let users = of(&AnalysedTask::uses_gpu);
        let named = |cluster: usize| named_cluster(workload, scheduler, &clusters[cluster].parts[0]);
        for &user in &users {
            let beside = users.iter().copied().filter(|&other| named(other) == named(user));
            joined.join(&beside.collect::<Vec<_>>());
            if scheduler.interrupts != ReleaseInterrupts::Dedicated {
                joined.join(&interrupted(workload, scheduler, &clusters, user));
            }
        }
    }
    joined.merge(clusters)
}

/// Whether GPUs may be shared across clusters: bottom halves are executed above all jobs, on whatever CPU, so that they delay
/// each job, and none waits for a CPU behind jobs of another cluster than its owner's.
pub(super) fn may_share_gpus(workload: &Workload) -> bool {
    let management = &workload.gpu_management;
    let is_above_all =
        matches!(management.handling, InterruptHandling::Linux | InterruptHandling::PreemptRt(ThreadPriority::High));
    is_above_all && management.callback.is_none()
}

/// The cluster of the platform that the CPUs of `part` are of; `None` where GPUs are those of all.
pub(super) fn named_cluster(workload: &Workload, scheduler: &Scheduler, part: &Part) -> Option<usize> {
    let of_platform = || workload.platform.clusters.iter().position(|cpus| cpus.contains(&part.cpus[0]));
    if scheduler.scope == Scope::Global { None } else { of_platform() }
}

/// `user` and the clusters that its GPUs may interrupt.
fn interrupted(workload: &Workload, scheduler: &Scheduler, clusters: &[Cluster], user: usize) -> Vec<usize> {
    let named = named_cluster(workload, scheduler, &clusters[user].parts[0]);
    let gpus = workload.platform.gpus.iter().filter(|gpu| named.is_none_or(|named| gpu.cluster == named));
    let cpus = gpus.flat_map(|gpu| &gpu.interrupt_cpus);
    let of = cpus.filter_map(|cpu| clusters.iter().position(|cluster| cluster.cpus.contains(cpu)));
    of.chain([user]).collect()
}

/// Which clusters are in one region: the number of its first.
struct Joined {
    region_of: Vec<usize>,
}

impl Joined {
    /// All of `clusters` are in one.
    fn join(&mut self, clusters: &[usize]) {
        let of: Vec<usize> = clusters.iter().map(|&cluster| self.region_of[cluster]).collect();
        let Some(&first) = of.iter().min() else { return };
        self.region_of.iter_mut().filter(|region| of.contains(region)).for_each(|region| *region = first);
    }

    fn merge(self, clusters: Vec<Cluster>) -> Vec<Cluster> {
        let mut regions: Vec<Vec<Part>> = clusters.iter().map(|_| Vec::new()).collect();
        for (cluster, region) in clusters.into_iter().zip(self.region_of) {
            regions[region].extend(cluster.parts);
        }
        regions.into_iter().filter(|parts| !parts.is_empty()).map(Cluster::of).collect()
    }
}
