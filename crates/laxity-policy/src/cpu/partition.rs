//! Which cluster each task runs on.

use laxity_model::Task;

/// Assigns every task to one of `clusters`, given each cluster's number of CPUs. A task that names its cluster keeps
/// it; the others follow in order of decreasing utilization (ties: listed first), each to the cluster with the least
/// utilization per CPU so far (ties: the lowest index): worst fit, decreasing.
///
/// Panics if a task names a cluster that does not exist; validation refuses that.
pub fn worst_fit(tasks: &[Task], cpus_of: &[usize]) -> Vec<usize> {
    // Utilization in units of 2^-53, rounded up: exact enough to balance, and the same on every machine.
    let utilization = |task: &Task| {
        let (wcet, period) = (u128::from(task.wcet().as_nanos()), u128::from(task.period.as_nanos()));
        (wcet << 53).div_ceil(period)
    };
    let mut load = vec![0u128; cpus_of.len()];
    let mut cluster_of = vec![usize::MAX; tasks.len()];
    for (index, task) in tasks.iter().enumerate() {
        if let Some(cluster) = task.cluster {
            cluster_of[index] = cluster;
            load[cluster] += utilization(task);
        }
    }
    let mut open: Vec<usize> = (0..tasks.len()).filter(|&index| tasks[index].cluster.is_none()).collect();
    open.sort_by_key(|&index| (std::cmp::Reverse(utilization(&tasks[index])), index));
    for index in open {
        // load[a] / cpus[a] < load[b] / cpus[b], cross-multiplied.
        let best = (1..cpus_of.len()).fold(0, |best, next| {
            if load[next] * (cpus_of[best] as u128) < load[best] * (cpus_of[next] as u128) { next } else { best }
        });
        cluster_of[index] = best;
        load[best] += utilization(&tasks[index]);
    }
    cluster_of
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::Nanos;

    #[test]
    fn worst_fit_decreasing_balances_two_cpus() {
        // .7 -> 0; .5, .5 -> 1; .4 -> 0; .3 -> 1 (1.0 against 1.1); .3 -> 0; .2 -> 1: loads 1.4 and 1.5.
        let tasks: Vec<Task> =
            [3, 5, 4, 2, 7, 3, 5].iter().map(|&u| Task::periodic("t", Nanos(u), Nanos(10))).collect();
        let cluster_of = worst_fit(&tasks, &[1, 1]);
        let load = |cluster| -> u64 {
            (0..7).filter(|&task| cluster_of[task] == cluster).map(|task| tasks[task].wcet().as_nanos()).sum()
        };
        assert_eq!((load(0), load(1)), (14, 15));
    }

    #[test]
    fn a_named_cluster_is_kept_and_larger_clusters_take_more() {
        let mut tasks: Vec<Task> = (0..4).map(|_| Task::periodic("t", Nanos(1), Nanos(10))).collect();
        tasks[0].cluster = Some(1);
        assert_eq!(worst_fit(&tasks, &[3, 1]), vec![1, 0, 0, 0]);
    }
}
