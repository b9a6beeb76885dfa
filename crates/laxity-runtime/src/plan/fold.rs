//! A workload for more CPUs than a run may have.

use laxity_model::{CpuId, Workload};

use super::{LivePlan, Options};
use crate::refusal::Refusal;

impl LivePlan {
    /// Like [`LivePlan::new`], on `cpus` CPUs at most: the traces and notes say so, if the workload is for more.
    ///
    /// # Errors
    /// As [`LivePlan::new`].
    pub fn folded(workload: &Workload, cpus: usize, options: &Options) -> Result<LivePlan, Refusal> {
        let from = workload.platform.cpus;
        if from <= cpus {
            return LivePlan::new(workload, options);
        }
        let folded = fold(workload, cpus);
        let mut plan = LivePlan::new(&folded, options)?;
        plan.header.folded_from = Some(from);
        let (before, after) = (workload.platform.clusters.len(), folded.platform.clusters.len());
        let clusters = match before == after {
            true => String::new(),
            false => format!(", and clusters that then share a CPU are one: {after} in place of {before}"),
        };
        plan.notes.insert(
            0,
            format!(
                "the workload is for {from} CPUs and runs on {cpus}: each CPU stands for {} of the file{clusters}; response \
                 times say nothing about {from} CPUs",
                share(from, cpus)
            ),
        );
        Ok(plan)
    }
}

/// For how many CPUs of `from` each of `cpus` stands, as in `3` or `2 or 3`.
fn share(from: usize, cpus: usize) -> String {
    let least = from / cpus;
    if from.is_multiple_of(cpus) { least.to_string() } else { format!("{least} or {}", least + 1) }
}

/// `workload` on `cpus` CPUs, which must be fewer than it is for: neighbours share one, in equal shares, and clusters of
/// which CPUs meet become one. Each task, GPU and device is where its cluster or CPU went.
pub(super) fn fold(workload: &Workload, cpus: usize) -> Workload {
    let mut folded = workload.clone();
    let from = workload.platform.cpus;
    // At most `cpus - 1`, as `cpu < from`.
    let place = |cpu: CpuId| CpuId((cpu.index() * cpus / from) as u16);
    let places = |list: &[CpuId]| {
        let mut places: Vec<CpuId> = list.iter().map(|&cpu| place(cpu)).collect();
        places.sort_unstable();
        places.dedup();
        places
    };
    let (clusters, number) = merged(workload.platform.clusters.iter().map(|cluster| places(cluster)).collect());
    let partitioned = workload.scheduler.scope == laxity_model::Scope::Partitioned;
    let move_task = |cluster: &mut Option<usize>| {
        if let Some(cluster) = cluster {
            *cluster = if partitioned {
                place(CpuId(*cluster as u16)).index()
            } else {
                number.get(*cluster).copied().unwrap_or(0)
            };
        }
    };
    folded.tasks.iter_mut().for_each(|task| move_task(&mut task.cluster));
    folded.graphs.iter_mut().flat_map(|graph| &mut graph.nodes).for_each(|node| move_task(&mut node.cluster));
    for task in &mut folded.best_effort {
        task.cpu = task.cpu.map(|cpu| place(CpuId(cpu as u16)).index());
    }
    let platform = &mut folded.platform;
    platform.cpus = cpus;
    for gpu in &mut platform.gpus {
        gpu.cluster = number[gpu.cluster];
        gpu.interrupt_cpus = places(&gpu.interrupt_cpus);
    }
    for device in &mut platform.devices {
        device.cluster = number[device.cluster];
        device.interrupt_cpus = places(&device.interrupt_cpus);
    }
    platform.clusters = clusters;
    folded
}

/// `clusters` after those that share a CPU became one, and the new number of each.
fn merged(clusters: Vec<Vec<CpuId>>) -> (Vec<Vec<CpuId>>, Vec<usize>) {
    let mut merged: Vec<Vec<CpuId>> = Vec::new();
    for cluster in &clusters {
        let (meeting, apart): (Vec<_>, Vec<_>) =
            merged.into_iter().partition(|other: &Vec<CpuId>| other.iter().any(|cpu| cluster.contains(cpu)));
        let mut union: Vec<CpuId> = meeting.into_iter().flatten().chain(cluster.iter().copied()).collect();
        union.sort_unstable();
        union.dedup();
        merged = apart;
        merged.push(union);
    }
    // In the order of their first CPUs.
    merged.sort_unstable();
    let number = |cluster: &Vec<CpuId>| {
        merged.iter().position(|other| cluster.first().is_some_and(|cpu| other.contains(cpu))).unwrap_or(0)
    };
    let numbers = clusters.iter().map(number).collect();
    (merged, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(clusters: usize, scheduler: &str, tasks: &[usize]) -> Workload {
        let tasks: String = tasks
            .iter()
            .enumerate()
            .map(|(name, cluster)| {
                format!("[[task]]\nname = \"t{name}\"\nperiod = \"9 ms\"\nwcet = \"1 ms\"\ncluster = {cluster}\n")
            })
            .collect();
        let text = format!(
            "laxity = 1\nname = \"w\"\nscheduler = \"{scheduler}\"\n[platform]\ncpus = 12\nclusters = {clusters}\n[[platform.gpu]]\n\
             name = \"g\"\ncluster = {}\nbandwidth = \"1 GB/s\"\n{tasks}",
            clusters - 1
        );
        Workload::from_toml(&text, "w.toml").expect("a workload")
    }

    fn cpus(clusters: &[Vec<CpuId>]) -> Vec<Vec<u16>> {
        clusters.iter().map(|cluster| cluster.iter().map(|cpu| cpu.0).collect()).collect()
    }

    #[test]
    fn clusters_keep_apart_while_there_are_cpus_for_each() {
        let folded = fold(&workload(2, "C-EDF", &[0, 1]), 4);
        assert_eq!(cpus(&folded.platform.clusters), [[0, 1], [2, 3]]);
        assert_eq!(folded.tasks.iter().map(|task| task.cluster).collect::<Vec<_>>(), [Some(0), Some(1)]);
        assert_eq!(folded.platform.gpus[0].cluster, 1);
        assert_eq!(cpus(&[folded.platform.gpus[0].interrupt_cpus.clone()]), [[2, 3]]);
        assert_eq!(folded.validate(), Ok(()));
    }

    #[test]
    fn clusters_that_come_to_share_a_cpu_are_one() {
        let folded = fold(&workload(3, "C-EDF", &[0, 1, 2]), 2);
        assert_eq!(cpus(&folded.platform.clusters), [[0, 1]], "that in the middle has CPUs of both");
        let folded = fold(&workload(4, "C-EDF", &[0, 1, 2, 3]), 2);
        assert_eq!(cpus(&folded.platform.clusters), [[0], [1]]);
        let clusters: Vec<_> = folded.tasks.iter().map(|task| task.cluster).collect();
        assert_eq!(clusters, [Some(0), Some(0), Some(1), Some(1)]);
        assert_eq!(folded.validate(), Ok(()));
    }

    #[test]
    fn partitioned_tasks_go_with_their_cpu() {
        let folded = fold(&workload(1, "P-RM", &[0, 5, 6, 11]), 2);
        let clusters: Vec<_> = folded.tasks.iter().map(|task| task.cluster).collect();
        assert_eq!(clusters, [Some(0), Some(0), Some(1), Some(1)]);
        assert_eq!(folded.validate(), Ok(()));
    }

    #[test]
    fn a_run_of_a_folded_workload_says_so() {
        let workload = workload(4, "C-EDF", &[0]);
        let nanos = laxity_model::Nanos::from_millis(1);
        let options = Options {
            scheduler: workload.scheduler,
            linux: Some(crate::LinuxScheduler::Other),
            seed: 0,
            duration: nanos,
        };
        let plan = LivePlan::folded(&workload, 1, &options).expect("one CPU");
        assert_eq!((plan.header().cpus, plan.header().folded_from), (1, Some(12)));
        assert!(plan.notes()[0].contains("is for 12 CPUs and runs on 1"), "{:?}", plan.notes());
    }
}
