//! Response-time analysis for fixed priorities on one CPU that regards every job of a busy period: with release jitter that is not
//! execution, deadlines beyond periods, and jobs whose last part nothing preempts.
//!
//! A busy period of level i begins when a job of task i or above is released and none was pending, and lasts as long as one is. The
//! q-th job of i in it (from 0) is complete after
//!
//! ```text
//! w(q) = B + (q + 1) C + sum over j above i of ceil( (w(q) + J_j) / T_j ) * C_j          (Tindell, Burns & Wellings 1994, eq. 4)
//! R    = max over q of w(q) + J - q T
//! ```
//!
//! and the busy period is over where `w(q) <= (q + 1) T - J`: the next job is not released before. A job whose last part of length
//! `l` is not preempted begins that part no later than
//!
//! ```text
//! s(q) = B + (q + 1) C - l + sum over j above i of ( floor( (s(q) + J_j) / T_j ) + 1 ) * C_j     (Davis et al. 2007, eq. 16 to 20)
//! ```
//!
//! and is complete `l` later. That counts a job which is released at the very instant, and none after it. Jobs of i that follow must
//! be regarded as long as the busy period lasts, even if each is complete before the next arrives: what was kept out by a last part
//! delays them (Davis, Burns, Bril & Lukkien, *Controller Area Network (CAN) schedulability analysis*, 2007; George, Rivierre &
//! Spuri, *Preemptive and non-preemptive real-time uniprocessor scheduling*, 1996).
//!
//! A part that takes less than `l` only makes all of it earlier, and so does one before it.

use crate::suspension::Unbounded;
use crate::{Evidence, Limits, Outcome, Reason, TaskSet, Test, Verdict};

/// Jobs of one task in a busy period, at most; more are taken to be without bound.
const JOBS_MAX: u64 = 1_000;

/// A task of one CPU. Times in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelTask {
    /// What a job executes, `last` included.
    pub wcet: u64,
    /// The part of `wcet` that comes last and that nothing preempts.
    pub last: u64,
    /// How long what is below may keep the CPU in a busy period of this level.
    pub blocking: u64,
    /// How long after its arrival a job may be released.
    pub jitter: u64,
    /// Minimum separation of arrivals.
    pub period: u64,
}

/// Response times of `tasks`, the most urgent first, counted from the arrival. None exceeds that of `longest` for its task.
///
/// # Errors
/// [`Unbounded`]: whose exceeds that, or that [`Limits::steps`] evaluations of a task's part did not suffice.
pub fn level_response_times(tasks: &[LevelTask], longest: &[u64], limits: &Limits) -> Result<Vec<u64>, Unbounded> {
    let mut steps = limits.steps;
    (0..tasks.len())
        .map(|index| {
            let mut level = Level { own: tasks[index], above: &tasks[..index], steps: &mut steps };
            level.response(longest[index])?.ok_or(Unbounded::Task(index))
        })
        .collect()
}

/// Whether the tasks of `set`, in order of their priorities and never blocked, meet their deadlines.
pub fn level_busy_period(set: &TaskSet, limits: &Limits) -> Verdict {
    let task = |task: &crate::AnalysisTask| LevelTask { wcet: task.wcet, period: task.period, ..LevelTask::default() };
    let tasks: Vec<LevelTask> = set.tasks().iter().map(task).collect();
    let deadlines: Vec<u64> = set.tasks().iter().map(|task| task.deadline).collect();
    let outcome = match level_response_times(&tasks, &deadlines, limits) {
        _ if set.cpus() != 1 => Outcome::NotApplicable(crate::Precondition::OneCpu),
        Ok(bounds) => Outcome::Schedulable(Evidence::ResponseTimes(bounds)),
        Err(Unbounded::Task(task)) => Outcome::NotProven(Reason::ResponseTime { task, deadline: deadlines[task] }),
        Err(Unbounded::OutOfSteps) => Outcome::ResourceLimit { what: "steps", limit: limits.steps },
    };
    Verdict::new(Test::LevelBusyPeriod, outcome)
}

/// A task and those above it.
struct Level<'a> {
    own: LevelTask,
    above: &'a [LevelTask],
    steps: &'a mut u64,
}

impl Level<'_> {
    /// The response time, if it is no longer than `longest`.
    fn response(&mut self, longest: u64) -> Result<Option<u64>, Unbounded> {
        let LevelTask { wcet, last, blocking, jitter, period } = self.own;
        let mut bound = 0;
        // Times of a busy period, counted from its beginning; those of a later job are no earlier.
        let (mut complete, mut begun) = (0, 0);
        for job in 0..JOBS_MAX {
            let arrival = job.saturating_mul(period);
            let demand = blocking.saturating_add(wcet.saturating_mul(job + 1));
            // When the response is the longest that is allowed, and when the next job is released.
            let latest = arrival.saturating_add(longest).checked_sub(jitter);
            let Some(latest) = latest else { return Ok(None) };
            let next = arrival.saturating_add(period).saturating_sub(jitter);
            let last = last.min(wcet);
            let until = if last > 0 { next } else { latest.max(next) };
            let over = self.least(demand, complete.max(demand), until, u64::div_ceil)?;
            let finish = if last > 0 {
                let before = demand - last;
                let begin = self.least(before, begun.max(before), latest, |length, period| length / period + 1)?;
                begun = begin.unwrap_or(begun);
                begin.map(|begin| begin.saturating_add(last))
            } else {
                over
            };
            let Some(finish) = finish.filter(|&finish| finish <= latest) else { return Ok(None) };
            bound = bound.max(finish.saturating_add(jitter) - arrival);
            if over.is_some_and(|over| over <= next) {
                return Ok(Some(bound));
            }
            complete = over.unwrap_or(complete);
        }
        Ok(None)
    }

    /// The least fixed point of `own` and the jobs above, of which there are `count(t + J, T)` in a time t; searched from `first`
    /// on, which is no greater. `None` if it exceeds `most`.
    fn least(
        &mut self,
        own: u64,
        first: u64,
        most: u64,
        count: impl Fn(u64, u64) -> u64,
    ) -> Result<Option<u64>, Unbounded> {
        let mut length = first;
        while length <= most {
            *self.steps = self.steps.checked_sub(self.above.len() as u64 + 1).ok_or(Unbounded::OutOfSteps)?;
            let of =
                |task: &LevelTask| count(length.saturating_add(task.jitter), task.period).saturating_mul(task.wcet);
            let next = self.above.iter().map(of).fold(own, u64::saturating_add);
            if next <= length {
                return Ok(Some(length));
            }
            length = next;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(wcet: u64, period: u64) -> LevelTask {
        LevelTask { wcet, period, ..LevelTask::default() }
    }

    fn found(tasks: &[LevelTask]) -> Result<Vec<u64>, Unbounded> {
        level_response_times(tasks, &vec![1_000; tasks.len()], &Limits::default())
    }

    #[test]
    fn without_jitter_and_within_periods_it_is_plain_response_time_analysis() {
        assert_eq!(found(&[task(1, 4), task(2, 6), task(3, 12)]), Ok(vec![1, 3, 10]));
    }

    /// Tindell, Burns & Wellings 1994: jitter of a task above lets its jobs come closer, and does not execute.
    #[test]
    fn jitter_delays_its_own_jobs_and_lets_those_above_come_closer() {
        let late = |wcet, period, jitter| LevelTask { jitter, ..task(wcet, period) };
        assert_eq!(found(&[late(2, 5, 1), late(3, 10, 2), task(2, 20)]), Ok(vec![3, 9, 14]));
        assert_eq!(found(&[late(4, 20, 10), late(8, 40, 20), late(8, 80, 20)]), Ok(vec![14, 36, 56]));
    }

    /// Lehoczky, RTSS 1990: the longest response is not the first.
    #[test]
    fn jobs_that_are_pending_together_are_regarded_together() {
        assert_eq!(found(&[task(26, 70), task(62, 100)]), Ok(vec![26, 118]));
        assert_eq!(found(&[task(7, 6)]), Err(Unbounded::Task(0)), "an overload");
    }

    /// Davis et al. 2007, table 2, in hundredths of a millisecond: the second job of C is the late one.
    #[test]
    fn what_a_last_part_keeps_out_delays_the_next_job() {
        let whole = |wcet, period, blocking| LevelTask { last: wcet, blocking, ..task(wcet, period) };
        assert_eq!(found(&[whole(100, 250, 100), whole(100, 350, 100), whole(100, 350, 0)]), Ok(vec![200, 300, 350]));
        let almost = [whole(2_000, 5_000, 2_000), whole(2_000, 7_000, 2_000), whole(2_000, 7_001, 0)];
        assert_eq!(level_response_times(&almost, &[9_000; 3], &Limits::default()), Ok(vec![4_000, 6_000, 6_999]));
    }

    /// 3 and then 2 that nothing preempts: a job that is released as these begin is still before them, one after is not.
    #[test]
    fn only_what_is_released_before_the_last_part_preempts() {
        let own = LevelTask { last: 2, ..task(5, 100) };
        assert_eq!(found(&[task(1, 4), own]), Ok(vec![1, 7]));
        assert_eq!(found(&[task(1, 5), own]), Ok(vec![1, 6]));
        assert_eq!(found(&[task(1, 4), task(5, 100)]), Ok(vec![1, 7]));
        assert_eq!(found(&[task(2, 6), task(5, 100)]), Ok(vec![2, 9]));
        assert_eq!(found(&[task(2, 6), own]), Ok(vec![2, 7]));
    }

    #[test]
    fn no_bound_is_longer_than_was_asked_for() {
        let tasks = [task(26, 70), task(62, 100)];
        assert_eq!(level_response_times(&tasks, &[26, 118], &Limits::default()), Ok(vec![26, 118]));
        assert_eq!(level_response_times(&tasks, &[26, 117], &Limits::default()), Err(Unbounded::Task(1)));
        let few = Limits { steps: 3, ..Limits::default() };
        assert_eq!(level_response_times(&tasks, &[26, 118], &few), Err(Unbounded::OutOfSteps));
    }
}
