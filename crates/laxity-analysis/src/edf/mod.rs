//! EDF on one CPU, where jobs are released late, find sections that cannot be preempted, and share the CPU with handlers.
//!
//! All of it regards an interval that begins at an instant `t0` before which no job was pending that is due by `d`, counted
//! from `t0`. From then on, until all of those are complete, the CPU executes jobs that are due by `d`, handlers, or what
//! some less urgent job began before `t0`:
//!
//! - of task j at most `floor((d + J - D) / T) + 1` jobs are due by `d` and released from `t0` on, with release jitter J:
//!   the first of them arrived J before (Spuri, INRIA RR-2772, 1996);
//! - jobs that are due later block once in all, not once per job ([`Blocking`]);
//! - handlers count by the length of the interval.
//!
//! [`demand`] decides whether deadlines are met, [`response_times`] bounds response times.

mod blocking;
mod demand;
mod response;

pub use blocking::{Blocking, Section};
pub use demand::demand;
pub use response::{Responses, response_times};

use crate::overheads::InterruptStream;
use crate::{AnalysisTask, Evidence, Limits, Outcome, Precondition, TaskSet, Test, Verdict};
use std::cmp::Ordering;

/// What one CPU has to do. Times in ticks.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// The tasks, on one CPU.
    pub set: &'a TaskSet,
    /// How long after its arrival a job of each task may be released; 0 where the slice is shorter.
    pub jitter: &'a [u64],
    /// What less urgent jobs keep the CPU for.
    pub blocking: &'a Blocking,
    /// Interrupts that are handled beside the jobs.
    pub streams: &'a [InterruptStream],
}

impl Load<'_> {
    /// Whether there is nothing beside the jobs.
    pub fn is_plain(&self) -> bool {
        self.streams.is_empty() && self.blocking.is_none() && self.jitter.iter().all(|&jitter| jitter == 0)
    }

    fn tasks(&self) -> impl Iterator<Item = (&AnalysisTask, u64)> {
        let jitter = self.jitter.iter().copied().chain(std::iter::repeat(0));
        self.set.tasks().iter().zip(jitter)
    }

    fn handlers(&self, length: u64) -> u128 {
        self.streams.iter().map(|stream| stream.time(length)).sum()
    }

    /// When the first job of each task is due at the earliest, if each is released from 0 on.
    ///
    /// # Errors
    /// A task whose jobs may be released when they are due.
    fn firsts(&self) -> Result<Vec<u64>, usize> {
        let first = |(index, (task, jitter)): (usize, (&AnalysisTask, u64))| {
            task.deadline.checked_sub(jitter).filter(|&first| first > 0).ok_or(index)
        };
        self.tasks().enumerate().map(first).collect()
    }

    /// A busy period may have no end if the CPU has too much to do; or just enough, where something comes beside the jobs, or they are
    /// pending for an instant when all else is complete.
    fn leaves_time(&self, closed: bool) -> Result<(), Outcome> {
        let costly = self.streams.iter().filter(|stream| stream.cost > 0);
        let handlers = costly.map(|stream| AnalysisTask::new(stream.cost, stream.period, stream.period));
        let all = TaskSet::new(1, self.set.tasks().iter().copied().chain(handlers).collect());
        match all.map(|all| all.compare_utilization_to_cpus()) {
            Ok(Ordering::Less) => Ok(()),
            Ok(Ordering::Equal) if self.is_plain() && !closed => Ok(()),
            _ => Err(Outcome::NotApplicable(Precondition::UtilizationBelowCpus)),
        }
    }

    /// The longest time for which the CPU is busy without a break: the least `L > 0` with
    /// `L = B + sum of ceil((L + J) / T) * C`, and the time of handlers. If it is `closed`, the jobs that arrive just when it
    /// would be over belong to it.
    ///
    /// # Errors
    /// There may be none, or `steps` evaluations of a task's part did not suffice.
    fn busy_period(&self, closed: bool, steps: &mut u64, limits: &Limits) -> Result<u64, Outcome> {
        self.leaves_time(closed)?;
        let most = u128::from(self.blocking.most());
        let mut length = most + self.tasks().map(|(task, _)| u128::from(task.wcet)).sum::<u128>() + self.handlers(1);
        loop {
            spend(steps, self.set.tasks().len() as u64, limits)?;
            let within = u64::try_from(length).ok().filter(|&within| within <= crate::LONGEST_TICKS);
            let within = within.ok_or(Outcome::ResourceLimit { what: "ticks of a busy period", limit: u64::MAX })?;
            let window = within + u64::from(closed);
            let jobs = |(task, jitter): (&AnalysisTask, u64)| {
                u128::from((window + jitter).div_ceil(task.period)) * u128::from(task.wcet)
            };
            let next = most + self.tasks().map(jobs).sum::<u128>() + self.handlers(window);
            if next <= length {
                return Ok(within);
            }
            length = next;
        }
    }
}

/// What they say of a set with nothing beside its jobs.
pub(crate) fn of_set(set: &TaskSet, test: Test, limits: &Limits) -> Verdict {
    let load = Load { set, jitter: &[], blocking: &Blocking::default(), streams: &[] };
    let decided = demand(load, limits);
    if test != Test::UniprocessorEdfResponse || !decided.is_schedulable() {
        return Verdict::new(test, decided.outcome);
    }
    let outcome = match response_times(load, limits) {
        Ok(Responses { times, .. }) => {
            let times = times.iter().zip(set.tasks()).map(|(&time, task)| time.min(task.deadline)).collect();
            Outcome::Schedulable(Evidence::ResponseTimes(times))
        }
        Err(limit) => limit,
    };
    Verdict::new(test, outcome)
}

fn spend(steps: &mut u64, count: u64, limits: &Limits) -> Result<(), Outcome> {
    *steps = steps.checked_sub(count).ok_or(Outcome::ResourceLimit { what: "steps", limit: limits.steps })?;
    Ok(())
}

/// How many jobs are due by `end`, the first of them at `first` and the others a `period` apart.
fn due(first: u64, period: u64, end: u64) -> u64 {
    end.checked_sub(first).map_or(0, |room| room / period + 1)
}
