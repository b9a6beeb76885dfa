//! A cluster of CPUs: its job scheduling, and what its CPUs share.

use laxity_model::{CpuId, Instant, Nanos, TaskId};
use laxity_plan::Plan;
use laxity_policy::cpu::{CpuPolicy, build, fair};
use laxity_policy::interrupt::ProcessAware;

use crate::bottom_halves::BottomHalf;

/// A cluster.
pub(crate) struct Cluster {
    /// Decides which jobs run.
    pub policy: Box<dyn CpuPolicy>,
    /// Whether the policy has news and is in the event loop's list of those that must decide.
    pub must_decide: bool,
    /// When the scheduler's lock is free again, if that is modelled.
    lock_free: Instant,
    /// Tasks released at this instant, and the CPU that takes their interrupt.
    pub batch: Vec<TaskId>,
    pub batch_cpu: CpuId,
    /// Under process-aware interrupts, bottom halves that wait until the priority of their owner suffices.
    pub waiting_halves: ProcessAware<BottomHalf>,
}

impl Cluster {
    /// The clusters of `plan`.
    pub fn all(plan: &Plan) -> Vec<Cluster> {
        let header = &plan.header;
        let tunables = fair::Parameters::of_linux(header.cpus);
        let cluster = |cluster: &laxity_plan::ClusterPlan| {
            let (tasks, cpus) = (cluster.tasks.len(), cluster.cpus.len());
            Cluster {
                policy: build(&header.scheduler, tunables, cluster.ranking.clone(), tasks, cpus),
                must_decide: false,
                lock_free: Instant::ZERO,
                batch: Vec::new(),
                batch_cpu: CpuId(0),
                waiting_halves: ProcessAware::new(),
            }
        };
        plan.clusters.iter().map(cluster).collect()
    }

    /// A CPU asks for the scheduler's lock for a span of `cost`; answers how long it waits. The lock is granted first come,
    /// first served, and reserved until the CPU's own work ends.
    pub fn lock(&mut self, now: Instant, cost: Nanos) -> Nanos {
        let granted = self.lock_free.max(now);
        self.lock_free = granted + cost;
        granted - now
    }
}
