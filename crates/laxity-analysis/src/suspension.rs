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
//!
//! *Several ready queues* (`docs/decisions/0131-waits-across-ready-queues.md`). The job that i waits for may be scheduled by another queue,
//! with priorities that compare. Then X is the sum of instants X_q, one for each queue q, at which what i waits for is ready there
//! and does not execute; and `m_q * X_q <= sum over j of q of min( N_j(R_i) * cpu_j, X_q )`. For another queue than its own that is
//! so while i waits for a lock: in each of its waits, none of which is longer than B, the least `B = waits_i + sum of X_q(B)`.
//!
//! *Quanta* (`docs/decisions/0130-waits-under-quanta.md`). A job that is complete amid a quantum keeps its CPU to the end of it,
//! `after` its response; and where quanta are staggered the rest of a quantum may pass while the job has another CPU, so that it
//! is not limited by X.

use crate::interference::indexed::least_beside;
use crate::{AnalysisTask, Evidence, Limits, Outcome, Reason, TaskSet, Test, Verdict};

/// Jobs of one task that may be pending together, at most; more are taken to be without bound.
const JOBS_MAX: u64 = 1_000;

/// A task whose jobs may wait. Times in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspendingTask {
    /// The longest that a job takes if it has a CPU whenever it wants one, and so has what it waits for.
    pub own: u64,
    /// The part of `own` that may pass while it waits for locks.
    pub waits: u64,
    /// How often it may wait for a lock.
    pub requests: u64,
    /// The longest for which a job keeps a CPU from others; no more than `own`, but where jobs keep CPUs while they wait.
    pub cpu: u64,
    /// The part of that during which its priority may be higher than its base priority: its critical sections.
    pub sections: u64,
    /// Under fixed priorities: the first in the list for whose jobs that may be so.
    pub raised_from: usize,
    /// Time beyond `cpu` that CPUs stay with a job after it has left them, perhaps while it has another.
    pub rest: u64,
    /// The part of that which follows its critical sections.
    pub rest_of_sections: u64,
    /// How long after its response a CPU may stay with a job.
    pub after: u64,
    /// Whether all that it may wait for is at least as urgent as the job while it waits.
    pub is_followed: bool,
    /// How long before its arrival a job may be pending.
    pub early: u64,
    /// Minimum separation of arrivals.
    pub period: u64,
    /// Relative deadline.
    pub deadline: u64,
    /// As of an [`AnalysisTask`].
    pub ends_waiting: bool,
}

/// The ready queues of tasks, among which priorities compare.
#[derive(Clone, Copy, Debug)]
pub struct Queues<'a> {
    /// The CPUs of each.
    pub cpus: &'a [u32],
    /// The queue of each task.
    pub of: &'a [usize],
    /// For each task: the queues that may schedule it, and what it may wait for.
    pub reach: &'a [Vec<usize>],
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
            waits: 0,
            requests: 0,
            cpu: task.wcet,
            sections: 0,
            raised_from: 0,
            rest: 0,
            rest_of_sections: 0,
            after: 0,
            is_followed: true,
            early: 0,
            period: task.period,
            deadline: task.deadline,
            ends_waiting: task.ends_waiting,
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
    let (of, reach) = (vec![0; tasks.len()], vec![vec![0]; tasks.len()]);
    let queues = Queues { cpus: &[cpus], of: &of, reach: &reach };
    response_times_across(tasks, queues, ranking, known, longest, limits)
}

/// The same of tasks of several ready queues.
///
/// # Errors
/// As [`response_times`].
pub fn response_times_across(
    tasks: &[SuspendingTask],
    queues: Queues<'_>,
    ranking: Ranking,
    known: &[u64],
    longest: &[u64],
    limits: &Limits,
) -> Result<Vec<u64>, Unbounded> {
    let responses = known.iter().zip(tasks).map(|(&known, task)| known.max(task.own).max(task.cpu)).collect();
    let mut analysis = Analysis { tasks, queues, ranking, responses, steps: limits.steps };
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
    queues: Queues<'a>,
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
        let most = self.elsewhere(task, jobs, latest)?;
        let mut lacking = vec![0; most.len()];
        let Queues { reach, .. } = self.queues;
        while finish <= latest {
            self.steps = self.steps.checked_sub(self.tasks.len() as u64).ok_or(Unbounded::OutOfSteps)?;
            let window = finish.saturating_add(self.tasks[task].ends_waiting.into());
            let mut next = own;
            for ((lacking, &queue), &most) in lacking.iter_mut().zip(&reach[task]).zip(&most) {
                if *lacking < most {
                    *lacking = self.lacking(task, queue, jobs, window, *lacking).min(most);
                }
                next = next.saturating_add(*lacking);
            }
            if next == finish {
                return Ok(finish);
            }
            finish = next;
        }
        Err(Unbounded::Task(task))
    }

    /// For each queue that `task` reaches: for how long others may keep its CPUs in all waits of so many jobs; without limit for its
    /// own queue, where they may do so at any time.
    fn elsewhere(&mut self, task: usize, jobs: u64, latest: u64) -> Result<Vec<u64>, Unbounded> {
        let Queues { reach, .. } = self.queues;
        let reach = &reach[task];
        let mut lacking = vec![0; reach.len()];
        if reach.len() == 1 {
            return Ok(vec![u64::MAX]);
        }
        // One more than the time in which something makes progress: as long as it waits that is not over.
        let progress = self.tasks[task].waits.saturating_add(1);
        let mut wait = progress;
        loop {
            self.steps = self.steps.checked_sub(self.tasks.len() as u64).ok_or(Unbounded::OutOfSteps)?;
            for (lacking, &queue) in lacking.iter_mut().zip(reach) {
                *lacking = self.lacking(task, queue, jobs, wait, *lacking);
            }
            let next = lacking.iter().fold(progress, |sum: u64, &one| sum.saturating_add(one));
            if next > latest {
                return Ok(vec![u64::MAX; reach.len()]);
            }
            if next == wait {
                break;
            }
            wait = next;
        }
        let waits = self.tasks[task].requests.saturating_mul(jobs);
        let mut most: Vec<u64> = lacking.into_iter().map(|one| one.saturating_mul(waits)).collect();
        most[0] = u64::MAX;
        Ok(most)
    }

    /// The least number of instants of a window, from those known on, beyond which others do not suffice to keep all CPUs of
    /// `queue`.
    fn lacking(&self, task: usize, queue: usize, jobs: u64, window: u64, known: u64) -> u64 {
        let others = || (0..self.tasks.len()).filter(|&other| other != task && self.queues.of[other] == queue);
        let mut values: Vec<u64> = others().map(|other| self.kept(task, other, jobs, window)).collect();
        let rests = others().map(|other| u128::from(self.rest(task, other, jobs, window))).sum();
        let cpus = self.queues.cpus[queue].max(1) as usize;
        least_beside(rests, &mut values, cpus, known.saturating_add(1)) - 1
    }

    /// How much of CPUs that jobs of `other` have left may stay with these in such a window.
    fn rest(&self, task: usize, other: usize, jobs: u64, window: u64) -> u64 {
        let (own, urgent) = (&self.tasks[task], &self.tasks[other]);
        if urgent.rest == 0 {
            return 0;
        }
        let until = self.responses[other].saturating_add(urgent.after);
        let count = window.saturating_add(until).saturating_add(urgent.early).div_ceil(urgent.period);
        let (all, sections) = (count.saturating_mul(urgent.rest), count.saturating_mul(urgent.rest_of_sections));
        match self.ranking {
            _ if !own.is_followed => all,
            Ranking::Listed if other < task => all,
            Ranking::Listed if task < urgent.raised_from => 0,
            Ranking::Listed => sections,
            Ranking::Edf if jobs > 1 => all,
            Ranking::Edf => {
                let due = own.deadline.saturating_add(until).saturating_sub(urgent.deadline);
                let in_time = (due / urgent.period + 1).saturating_mul(urgent.rest);
                all.min(in_time.saturating_add(sections))
            }
        }
    }

    /// For how long jobs of `other` may keep CPUs from one of `task` in a window of that length.
    fn kept(&self, task: usize, other: usize, jobs: u64, window: u64) -> u64 {
        let (own, urgent) = (&self.tasks[task], &self.tasks[other]);
        let response = self.responses[other].saturating_add(urgent.after);
        let count = |length: u64| length.saturating_add(urgent.early).div_ceil(urgent.period);
        let all = count(window.saturating_add(response - urgent.cpu)).saturating_mul(urgent.cpu);
        if !own.is_followed {
            return all;
        }
        let sections = || count(window.saturating_add(response)).saturating_mul(urgent.sections);
        match self.ranking {
            Ranking::Listed if other < task => all,
            Ranking::Listed if task < urgent.raised_from => 0,
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
