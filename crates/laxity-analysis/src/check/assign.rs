//! Which cluster each task runs on: the same rule as the scheduler's, written a second time.
//!
//! A task keeps the cluster it names. The others follow in order of falling utilization (ties: listed first), each to
//! the cluster with the least utilization per CPU so far (ties: the lowest index). Utilizations are rounded up to
//! 2^-53, as part of the rule: exact fractions would break some ties the other way, and a check of an assignment that
//! the scheduler does not make would prove nothing. (Hence not [`partition`](crate::partition), whose loads are exact.)

use std::cmp::Reverse;

use laxity_model::{CpuId, ReleaseInterrupts, Scheduler, Scope, Workload};

use super::Refusal;
use super::analysed_task::AnalysedTask;

/// CPUs that share a ready queue, and what runs there; or several such clusters whose jobs wait for one another
/// ([`regions`](super::regions)).
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    /// Those that run jobs; at least one.
    pub cpus: Vec<CpuId>,
    /// Indices of its analysed, ascending.
    pub members: Vec<usize>,
    /// Indices of tasks that no set to test has, as their servers are charged to all others whatever schedules them.
    pub isolated: Vec<usize>,
    /// Its ready queues: one, but where jobs of several wait for one another.
    pub parts: Vec<Part>,
}

/// CPUs that share a ready queue, as the scheduler has them.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// Its number among the clusters of the scheduler.
    pub number: usize,
    /// Those that run jobs; at least one.
    pub cpus: Vec<CpuId>,
    /// Indices of the tasks that it schedules, ascending, isolated ones included.
    pub members: Vec<usize>,
}

impl Cluster {
    /// That of `parts`, of which there is at least one.
    pub fn of(parts: Vec<Part>) -> Cluster {
        let cpus = parts.iter().flat_map(|part| part.cpus.iter().copied()).collect();
        let mut members: Vec<usize> = parts.iter().flat_map(|part| part.members.iter().copied()).collect();
        members.sort_unstable();
        Cluster { cpus, members, isolated: Vec::new(), parts }
    }

    /// Which of its parts schedules a task, which is one of its own.
    pub fn part_of(&self, task: usize) -> usize {
        let has = |part: &Part| part.members.binary_search(&task).is_ok();
        self.parts.iter().position(has).expect("a task of the cluster is of one of its parts")
    }

    /// The number, among the clusters of the scheduler, of the one that schedules a task of its own.
    pub fn number_of(&self, task: usize) -> usize {
        self.parts[self.part_of(task)].number
    }
}

/// Assigns every task. Tasks that cannot be assigned are added to `refusals`.
pub(super) fn assign(
    workload: &Workload,
    scheduler: &Scheduler,
    analysed: &[AnalysedTask],
    refusals: &mut Vec<Refusal>,
) -> Vec<Cluster> {
    let (clusters, renumbered) = cpus_of_clusters(workload, scheduler);
    if clusters.is_empty() {
        let reason = format!(
            "its {} CPU is dedicated to interrupts, which leaves none for jobs; add a CPU or take interrupts on all (m \
             instead of 1)",
            workload.platform.cpus
        );
        refusals.push(Refusal { subject: format!("{scheduler}"), reason });
        return Vec::new();
    }
    let mut named = vec![None; analysed.len()];
    if scheduler.scope != Scope::Global {
        for (task, named) in analysed.iter().zip(&mut named) {
            let Some(wanted) = task.cluster else { continue };
            *named = renumbered.get(wanted).copied().flatten();
            if named.is_none() {
                let reason = format!("its cluster {wanted} has no CPU that runs jobs under {scheduler}; name another");
                refusals.push(Refusal { subject: format!("task \"{}\"", task.name), reason });
            }
        }
    }
    let sizes: Vec<u128> = clusters.iter().map(|cpus| cpus.len() as u128).collect();
    let cluster_of = worst_fit(analysed, &named, &sizes);
    let members = |cluster: usize| (0..analysed.len()).filter(|&task| cluster_of[task] == cluster).collect();
    let part = |(number, cpus)| Part { number, cpus, members: members(number) };
    clusters.into_iter().enumerate().map(part).map(|part| Cluster::of(vec![part])).collect()
}

/// The CPUs of each cluster without a dedicated interrupt CPU, and the new number of each cluster of the platform: one
/// that consists of that CPU alone does not exist.
fn cpus_of_clusters(workload: &Workload, scheduler: &Scheduler) -> (Vec<Vec<CpuId>>, Vec<Option<usize>>) {
    let all = (0..workload.platform.cpus).map(|cpu| CpuId(cpu as u16));
    let named: Vec<Vec<CpuId>> = match scheduler.scope {
        Scope::Global => vec![all.collect()],
        Scope::Clustered => workload.platform.clusters.clone(),
        Scope::Partitioned => all.map(|cpu| vec![cpu]).collect(),
    };
    let runs_jobs = |cpu: &CpuId| scheduler.interrupts == ReleaseInterrupts::Global || *cpu != CpuId(0);
    let mut clusters = Vec::new();
    let mut renumbered = Vec::new();
    for cpus in named {
        let cpus: Vec<CpuId> = cpus.into_iter().filter(runs_jobs).collect();
        renumbered.push((!cpus.is_empty()).then_some(clusters.len()));
        clusters.extend((!cpus.is_empty()).then_some(cpus));
    }
    (clusters, renumbered)
}

fn worst_fit(analysed: &[AnalysedTask], named: &[Option<usize>], sizes: &[u128]) -> Vec<usize> {
    let weight = |index: usize| (u128::from(analysed[index].wcet) << 53).div_ceil(u128::from(analysed[index].period));
    let mut loads = vec![0u128; sizes.len()];
    let mut cluster_of = vec![0; analysed.len()];
    let mut open = Vec::new();
    for (index, named) in named.iter().enumerate() {
        match *named {
            Some(cluster) => {
                cluster_of[index] = cluster;
                loads[cluster] += weight(index);
            }
            None => open.push(index),
        }
    }
    open.sort_by_key(|&index| Reverse(weight(index)));
    for index in open {
        let mut least = 0;
        for cluster in 1..sizes.len() {
            // load / size below that of the least so far, cross-multiplied.
            if loads[cluster] * sizes[least] < loads[least] * sizes[cluster] {
                least = cluster;
            }
        }
        cluster_of[index] = least;
        loads[least] += weight(index);
    }
    cluster_of
}
