//! Response times of jobs that wait: on their GPU operations, for what others hold, for time to pass. Proof:
//! `docs/decisions/0111-waiting-is-not-executing.md`.
//!
//! The other tests count a job's waits as execution, and so charge them to all jobs below it: a set whose GPUs do most of the
//! work looks like an overload. Here a job i takes `own_i` while CPUs do not lack: its execution, its waits as long as
//! something that it waits for makes progress, and what overheads delay it by. At every other instant until it is complete,
//! all m CPUs execute for others (or these are delayed by what their own accounting contains). With `cpu_j` the time for which
//! a job of j may keep a CPU, and X the sum of these instants of i,
//!
//! ```text
//! R_i = own_i + X,   m * X <= sum over j != i of min( N_j(R_i) * cpu_j, X ),   N_j(t) = ceil( (t + R_j - cpu_j) / T_j )
//! ```
//!
//! and i is complete by the least R for which no larger X is possible. That a job of j which is carried in keeps a CPU for its
//! last `cpu_j` before its response time is the worst case whether or not j suspends itself. How much of j counts depends on why i
//! has no CPU:
//!
//! - jobs of higher priority, in full (under EDF those that are due no later);
//! - of jobs of lower priority, their critical sections, in which they may have a higher one;
//! - everything, if i may wait for something that runs at a priority which does not follow from its own.
//!
//! A job may respond after its period: then the jobs of its task that are pending together are regarded together.

use crate::gedf::least_beside;
use crate::{AnalysisTask, Evidence, Limits, Outcome, Reason, TaskSet, Test, Verdict};

/// Jobs of one task that may be pending together, at most; more are taken to be without bound.
const JOBS_MAX: u64 = 1_000;

/// A task whose jobs may wait. Times in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspendingTask {
    /// The longest that a job takes if it has a CPU whenever it wants one, and so has what it waits for.
    pub own: u64,
    /// The longest for which a job keeps a CPU from others; no more than `own`, but where jobs keep CPUs while they wait.
    pub cpu: u64,
    /// The part of that during which its priority may be higher than its base priority: its critical sections.
    pub sections: u64,
    /// Whether all that it may wait for is at least as urgent as the job while it waits.
    pub is_followed: bool,
    /// How long before its arrival a job may be pending.
    pub early: u64,
    /// Minimum separation of arrivals.
    pub period: u64,
    /// Relative deadline.
    pub deadline: u64,
}

/// Which job is more urgent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ranking {
    /// The one that is due earlier.
    Edf,
    /// That of the task listed earlier.
    Listed,
}

/// Why there are no bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unbounded {
    /// The response time of this task may exceed what it may be.
    Task(usize),
    /// The steps allowed did not suffice.
    OutOfSteps,
}

impl From<&AnalysisTask> for SuspendingTask {
    /// A task that never waits.
    fn from(task: &AnalysisTask) -> Self {
        SuspendingTask {
            own: task.wcet,
            cpu: task.wcet,
            sections: 0,
            is_followed: true,
            early: 0,
            period: task.period,
            deadline: task.deadline,
        }
    }
}

/// The tasks of `set`, which never wait.
pub fn tasks_of(set: &TaskSet) -> Vec<SuspendingTask> {
    set.tasks().iter().map(SuspendingTask::from).collect()
}

/// Whether tasks that never wait meet their deadlines under global EDF.
pub fn suspension_aware(set: &TaskSet, limits: &Limits) -> Verdict {
    let tasks = tasks_of(set);
    let deadlines: Vec<u64> = tasks.iter().map(|task| task.deadline).collect();
    let none = vec![0; tasks.len()];
    let outcome = match response_times(&tasks, set.cpus(), Ranking::Edf, &none, &deadlines, limits) {
        Ok(bounds) => Outcome::Schedulable(Evidence::ResponseTimes(bounds)),
        Err(Unbounded::Task(task)) => Outcome::NotProven(Reason::ResponseTime { task, deadline: tasks[task].deadline }),
        Err(Unbounded::OutOfSteps) => Outcome::ResourceLimit { what: "steps", limit: limits.steps },
    };
    Verdict::new(Test::SuspensionAware, outcome)
}

/// The least response times, in ticks, that confirm one another, from `known` on: what jobs may be pending for at least.
/// No bound exceeds that of `longest` for its task.
///
/// # Errors
/// [`Unbounded`]: whose exceeds that, or that [`Limits::steps`] evaluations of a task's part did not suffice.
pub fn response_times(
    tasks: &[SuspendingTask],
    cpus: u32,
    ranking: Ranking,
    known: &[u64],
    longest: &[u64],
    limits: &Limits,
) -> Result<Vec<u64>, Unbounded> {
    let responses = known.iter().zip(tasks).map(|(&known, task)| known.max(task.own).max(task.cpu)).collect();
    let mut analysis = Analysis { tasks, cpus: cpus.max(1) as usize, ranking, responses, steps: limits.steps };
    loop {
        let mut bounds = Vec::with_capacity(tasks.len());
        let mut is_settled = true;
        for (task, &longest) in longest.iter().enumerate() {
            let bound = analysis.response(task, longest)?;
            let now = &mut analysis.responses[task];
            is_settled &= bound <= *now;
            *now = bound.max(*now);
            bounds.push(bound);
        }
        if is_settled {
            return Ok(bounds);
        }
    }
}

struct Analysis<'a> {
    tasks: &'a [SuspendingTask],
    cpus: usize,
    ranking: Ranking,
    /// Lower bounds on the least ones that confirm one another.
    responses: Vec<u64>,
    steps: u64,
}

impl Analysis<'_> {
    /// Of `task`, if the others respond as it is now believed.
    fn response(&mut self, task: usize, longest: u64) -> Result<u64, Unbounded> {
        let SuspendingTask { own, period, .. } = self.tasks[task];
        let mut bound = 0;
        for jobs in 1..=JOBS_MAX {
            let before = (jobs - 1).saturating_mul(period);
            let finish = self.finish(task, jobs, own.saturating_mul(jobs), before.saturating_add(longest))?;
            bound = bound.max(finish - before.min(finish));
            if finish <= jobs.saturating_mul(period) {
                return Ok(bound);
            }
        }
        Err(Unbounded::Task(task))
    }

    /// When the last of so many jobs of `task` is complete, counted from the arrival of the first, before which none is
    /// pending.
    fn finish(&mut self, task: usize, jobs: u64, own: u64, latest: u64) -> Result<u64, Unbounded> {
        let mut finish = own;
        while finish <= latest {
            self.steps = self.steps.checked_sub(self.tasks.len() as u64).ok_or(Unbounded::OutOfSteps)?;
            let others = (0..self.tasks.len()).filter(|&other| other != task);
            let mut values: Vec<u64> = others.map(|other| self.kept(task, other, jobs, finish)).collect();
            // The least number of instants, from those known on, beyond which others do not suffice to keep all CPUs.
            let lacking = least_beside(0, &mut values, self.cpus, finish - own + 1) - 1;
            let next = own.saturating_add(lacking);
            if next == finish {
                return Ok(finish);
            }
            finish = next;
        }
        Err(Unbounded::Task(task))
    }

    /// For how long jobs of `other` may keep CPUs from one of `task` in a window of that length.
    fn kept(&self, task: usize, other: usize, jobs: u64, window: u64) -> u64 {
        let (own, urgent, response) = (&self.tasks[task], &self.tasks[other], self.responses[other]);
        let count = |length: u64| length.saturating_add(urgent.early).div_ceil(urgent.period);
        let all = count(window.saturating_add(response - urgent.cpu)).saturating_mul(urgent.cpu);
        if !own.is_followed {
            return all;
        }
        let sections = || count(window.saturating_add(response)).saturating_mul(urgent.sections);
        match self.ranking {
            Ranking::Listed if other < task => all,
            Ranking::Listed => all.min(sections()),
            // What is due later than the last of several jobs is not known of the first.
            Ranking::Edf if jobs > 1 => all,
            Ranking::Edf => {
                let due = own.deadline.saturating_add(response).saturating_sub(urgent.deadline);
                let rest = urgent.cpu.min(due % urgent.period);
                let in_time = (due / urgent.period).saturating_mul(urgent.cpu).saturating_add(rest);
                all.min(in_time.saturating_add(sections()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(own: u64, cpu: u64, period: u64) -> SuspendingTask {
        let set = AnalysisTask::implicit(own, period);
        SuspendingTask { cpu, ..SuspendingTask::from(&set) }
    }

    fn found(tasks: &[SuspendingTask], cpus: u32, ranking: Ranking, longest: u64) -> Result<Vec<u64>, Unbounded> {
        let none = vec![0; tasks.len()];
        response_times(tasks, cpus, ranking, &none, &vec![longest; tasks.len()], &Limits::default())
    }

    #[test]
    fn on_one_cpu_without_waits_bounds_are_those_of_fixed_priorities() {
        let tasks = [task(1, 1, 4), task(2, 2, 6), task(3, 3, 12)];
        assert_eq!(found(&tasks, 1, Ranking::Listed, 12), Ok(vec![1, 3, 10]));
    }

    /// 9 of 10 are waits: ten such tasks need nine CPUs if waits count as execution, and one if they do not.
    #[test]
    fn what_a_job_waits_for_leaves_its_cpu_to_others() {
        let tasks = [task(10, 1, 40); 10];
        let bounds = found(&tasks, 1, Ranking::Listed, 40).expect("bounds");
        assert_eq!(bounds[..2], [10, 11]);
        assert_eq!(bounds[9], 19, "each of the nine others once");
        // The first may execute at the end of a job, and at once in the next: 10 - 1 late.
        assert_eq!(found(&[task(10, 1, 20), task(12, 12, 100)], 1, Ranking::Listed, 100), Ok(vec![10, 14]));
    }

    #[test]
    fn a_job_that_waits_behind_one_that_inherits_nothing_pays_for_all_below() {
        let mut tasks = [task(5, 2, 50), task(8, 6, 50), task(8, 6, 50)];
        assert_eq!(found(&tasks, 1, Ranking::Listed, 50).expect("bounds")[0], 5);
        tasks[0].is_followed = false;
        assert_eq!(found(&tasks, 1, Ranking::Listed, 50).expect("bounds")[0], 5 + 6 + 6);
        tasks[0].is_followed = true;
        tasks[2].sections = 1;
        assert_eq!(found(&tasks, 1, Ranking::Listed, 50).expect("bounds")[0], 6, "a section may have its priority");
    }

    /// Two jobs of 26 every 70 above one of 62 every 100 (Lehoczky, RTSS 1990): the longest response is not the first.
    #[test]
    fn jobs_that_are_pending_together_are_regarded_together() {
        let tasks = [task(26, 26, 70), task(62, 62, 100)];
        assert_eq!(found(&tasks, 1, Ranking::Listed, 1_000), Ok(vec![26, 118]));
        assert_eq!(found(&tasks, 1, Ranking::Listed, 117), Err(Unbounded::Task(1)));
        assert_eq!(found(&[task(7, 7, 6)], 1, Ranking::Listed, 1_000), Err(Unbounded::Task(0)), "an overload");
    }

    #[test]
    fn under_edf_jobs_that_are_due_later_are_in_nobodys_way() {
        let tasks = [task(2, 2, 10), task(9, 9, 100)];
        assert_eq!(found(&tasks, 1, Ranking::Edf, 100).expect("bounds")[0], 2);
        // On one CPU, 2 of 10 and 9 of 100: two jobs of the first are due before the second is complete.
        assert_eq!(found(&tasks, 1, Ranking::Edf, 100).expect("bounds")[1], 13);
    }
}
