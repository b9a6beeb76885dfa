//! For how long the jobs of a busy period keep it going, where branches of graphs may execute side by side.
//!
//! From its end a busy period goes back along jobs of which each is the last that the next one waited for, to the arrival of
//! a source's job; and from there along others, pending at that time. These are a path in each instance of a graph. While
//! none of them proceeds a CPU is not to be had, as all `m` of a cluster execute other jobs, or something that is done one thing at a
//! time. So of what jobs do in it
//!
//! - *apart*, which is on CPUs or suspended and with nothing held that others wait for, it holds the longest path; and the time for
//!   which others can keep all CPUs of a cluster;
//! - and all else, in critical sections, on GPUs, in handlers, it holds once.
//!
//! Others keep all CPUs for no longer than the greatest `t` with `m t = sum of min(W, t)`, where W is what a task does on CPUs in
//! the busy period: a task keeps one CPU at a time. Nor, with all that the jobs on the way do themselves, for longer than
//! `sum of W / m + (1 - 1 / m) path`. Proof: `docs/decisions/0141-branches-side-by-side.md`.

use std::collections::BTreeMap;
use std::ops::Range;

use laxity_model::PriorityRule;

use super::analysed_task::AnalysedTask;
use super::context::Context;
use super::coupled::Flow;
use super::uses::Demand;
use crate::pgm::longest_path;

/// What a job of a task does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// All of it, with what its events cost.
    pub work: u64,
    /// Of that: on CPUs, apart.
    pub executes: u64,
    /// Of that: suspended for a time, apart.
    pub suspended: u64,
    /// The ready queue that it waits in, and the CPUs that take jobs from there.
    pub queue: usize,
    pub cpus: u64,
}

/// The jobs of a busy period.
#[derive(Clone, Debug, Default)]
pub(super) struct Load {
    /// Of each task that is there.
    jobs: Vec<(usize, Job)>,
    /// Graphs whose branches may execute side by side.
    graphs: Vec<Branches>,
}

/// A graph with branches.
#[derive(Clone, Debug)]
struct Branches {
    nodes: Range<usize>,
    /// The longest path by what nodes do apart.
    longest: u64,
    /// The same without the part that others of their clusters are supposed to have, too.
    longest_beside: u64,
}

impl Job {
    /// A job of `task`, of that index, that does `work` in all.
    pub fn of(context: &Context<'_>, index: usize, task: &AnalysedTask, work: u64) -> Job {
        let (machine, part) = (context.machine, &context.cluster.parts[context.cluster.part_of(index)]);
        let (queue, cpus) = (part.number, part.cpus.len() as u64);
        // Where jobs spin a CPU may be busy without anything that proceeds there; the fair class may leave one idle.
        if task.uses.outlasts_a_section || machine.sharing.spins || machine.rule == PriorityRule::Fair {
            return Job { work, executes: 0, suspended: 0, queue, cpus };
        }
        let held = |of: fn(&Demand) -> u64| {
            task.uses.outermost().fold(0, |sum: u64, request| sum.saturating_add(of(&request.demand)))
        };
        let executes = task.wcet.saturating_sub(held(|demand| demand.wcet));
        let suspended = task.suspension.saturating_sub(held(|demand| demand.suspension));
        Job { work, executes, suspended, queue, cpus }
    }

    fn apart(&self) -> u64 {
        self.executes.saturating_add(self.suspended)
    }

    /// A CPU's part of what it executes, if all of its cluster take part.
    fn part(&self) -> u64 {
        self.executes.div_ceil(self.cpus)
    }
}

impl Load {
    /// Of `jobs` in the order of tasks, of which `flows` has those of graphs, and `uneven` says how unevenly they come.
    pub fn new(jobs: Vec<(usize, Job)>, flows: &[Flow], uneven: &[u64]) -> Load {
        let mut load = Load { jobs, graphs: Vec::new() };
        load.graphs = flows.iter().filter_map(|flow| load.branches(flow, uneven)).collect();
        load
    }

    fn branches(&self, flow: &Flow, uneven: &[u64]) -> Option<Branches> {
        let nodes = flow.nodes();
        let first = self.jobs.partition_point(|&(task, _)| task < nodes.start);
        let jobs = self.jobs.get(first..first + nodes.len())?;
        // Each instance has one job of every node in a busy period.
        let is_whole =
            jobs.iter().map(|&(task, _)| task).eq(nodes.clone()) && uneven[nodes.clone()].iter().all(|&it| it == 0);
        if !is_whole {
            return None;
        }
        let longest = |weight: fn(&Job) -> u64| {
            longest_path(flow.graph(), &jobs.iter().map(|(_, job)| weight(job)).collect::<Vec<_>>())
        };
        let longest_beside = longest(|job| job.apart() - job.part())?;
        Some(Branches { nodes, longest: longest(Job::apart)?, longest_beside })
    }

    /// For how long they keep the machine busy, if so many of each task are there.
    pub fn length(&self, count: impl Fn(usize) -> u64) -> u64 {
        let sum = |of: &dyn Fn(&Job) -> u64| {
            let jobs = self.jobs.iter().map(|(task, job)| count(*task).saturating_mul(of(job)));
            jobs.fold(0, u64::saturating_add)
        };
        let all = sum(&|job| job.work);
        if self.graphs.is_empty() {
            return all;
        }
        // What jobs of graphs do apart, but for that of their longest paths.
        let spared = |of: &dyn Fn(&Job) -> u64, longest: fn(&Branches) -> u64| {
            let graphs = self.graphs.iter().map(|graph| {
                let first = self.jobs.partition_point(|&(task, _)| task < graph.nodes.start);
                let jobs = &self.jobs[first..first + graph.nodes.len()];
                let apart = jobs.iter().fold(0, |sum: u64, (_, job)| sum.saturating_add(of(job)));
                count(graph.nodes.start).saturating_mul(apart.saturating_sub(longest(graph)))
            });
            graphs.fold(0, u64::saturating_add)
        };
        let beside = all.saturating_sub(spared(&|job| job.apart() - job.part(), |graph| graph.longest_beside));
        let alone = all.saturating_sub(spared(&Job::apart, |graph| graph.longest));
        beside.min(alone.saturating_add(self.kept_by_others(count)))
    }

    /// For how long they can keep all CPUs that take jobs from a ready queue, summed over those.
    fn kept_by_others(&self, count: impl Fn(usize) -> u64) -> u64 {
        let mut queues: BTreeMap<usize, (u64, Vec<u64>)> = BTreeMap::new();
        for (task, job) in self.jobs.iter().filter(|(_, job)| job.executes > 0) {
            let (_, work) = queues.entry(job.queue).or_insert((job.cpus, Vec::new()));
            work.push(count(*task).saturating_mul(job.executes));
        }
        queues.into_values().map(|(cpus, work)| all_kept(cpus, work)).fold(0, u64::saturating_add)
    }
}

/// The greatest `t` with `cpus * t <= sum of min(W, t)` over the `work` W of tasks, each of which keeps one CPU at a time; rounded up.
///
/// For the j tasks that do most it is at most `(sum of the others' work) / (cpus - j)`, and for some j below `cpus` just that.
fn all_kept(cpus: u64, mut work: Vec<u64>) -> u64 {
    work.sort_unstable_by(|one, other| other.cmp(one));
    let mut others = work.iter().map(|&work| u128::from(work)).sum::<u128>();
    let mut least = others.div_ceil(u128::from(cpus));
    for (work, left) in work.into_iter().zip((1..cpus).rev()) {
        others -= u128::from(work);
        least = least.min(others.div_ceil(u128::from(left)));
    }
    u64::try_from(least).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_keep_all_cpus_for_as_long_as_there_is_one_for_each() {
        assert_eq!(all_kept(1, vec![3, 4]), 7);
        assert_eq!(all_kept(2, vec![3, 4]), 3);
        assert_eq!(all_kept(2, vec![10, 1, 1]), 2);
        assert_eq!(all_kept(2, vec![4, 4, 4]), 6);
        assert_eq!(all_kept(3, vec![9, 9]), 0);
        assert_eq!(all_kept(2, vec![]), 0);
    }

    #[test]
    fn all_cpus_are_kept_for_no_longer_than_tasks_can() {
        // By the definition: t units in which each of them has a CPU for no longer.
        let mut seed = 1u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..2_000 {
            let (cpus, tasks) = (1 + random(4), random(7));
            let work: Vec<u64> = (0..tasks).map(|_| random(20)).collect();
            let is_possible = |t: &u64| cpus * t <= work.iter().map(|&work| work.min(*t)).sum();
            let greatest = (0..200).filter(is_possible).max().expect("0 is");
            let found = all_kept(cpus, work.clone());
            assert!((greatest..=greatest + 1).contains(&found), "{cpus} CPUs, {work:?}: {found}, not {greatest}");
        }
    }
}
