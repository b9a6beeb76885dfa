//! The longest time for which a machine is busy without a break, and what follows from it for any scheduler that leaves no CPU idle
//! while a job is ready.

use crate::task_set::TaskSet;
use crate::{Evidence, LONGEST_TICKS, Limits, Outcome, Reason, Test, Verdict};

/// Whatever is pending is complete when a busy period ends: while a job is pending at least one CPU executes. So no job responds
/// later than the longest time for which that may go on, the least `B > 0` with `B = sum of ceil(B / T) * C`. A job that has
/// [nothing left but an instant](crate::AnalysisTask::ends_waiting) when all else is complete is still pending then: jobs that
/// arrive just then belong to it.
///
/// On one CPU that is how long the set keeps it busy; on several it is of use where they have little to do, or where jobs cannot use
/// them side by side.
pub fn busy_period(set: &TaskSet, limits: &Limits) -> Verdict {
    let tasks = set.tasks();
    let is_closed = tasks.iter().any(|task| task.ends_waiting);
    let demand = |length: u64| {
        let length = length.saturating_add(is_closed.into());
        let of = |task: &crate::AnalysisTask| length.div_ceil(task.period).saturating_mul(task.wcet);
        tasks.iter().map(of).fold(0, u64::saturating_add)
    };
    let outcome = match least(demand, limits.rounds) {
        None => Outcome::NotProven(Reason::NoHorizon),
        Some(busy) => match tasks.iter().position(|task| task.deadline < busy) {
            Some(task) => Outcome::NotProven(Reason::ResponseTime { task, deadline: tasks[task].deadline }),
            None => Outcome::Schedulable(Evidence::ResponseTimes(vec![busy; tasks.len()])),
        },
    };
    Verdict::new(Test::BusyPeriod, outcome)
}

/// The least `L > 0` with `L = demand(L)`, for a `demand` that never falls; 0 if it asks for nothing. `None` if there is no such
/// time within reach, or so many rounds do not find it.
pub(crate) fn least(demand: impl Fn(u64) -> u64, rounds: u32) -> Option<u64> {
    let mut length = demand(1);
    for _ in 0..rounds {
        let next = demand(length.max(1));
        if next > LONGEST_TICKS {
            return None;
        }
        if next <= length {
            return Some(length);
        }
        length = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{busy_period, least};
    use crate::{AnalysisTask, Limits, TaskSet};

    const ROUNDS: u32 = 1_000;

    #[test]
    fn handlers_that_need_all_of_a_cpu_are_never_done() {
        let every = |cost: u64, period: u64| move |length: u64| length.div_ceil(period).saturating_mul(cost);
        assert_eq!(least(every(0, 10), ROUNDS), Some(0));
        assert_eq!(least(every(9, 10), ROUNDS), Some(9));
        assert_eq!(least(every(10, 10), ROUNDS), Some(10), "done when the next one comes");
        assert_eq!(least(every(11, 10), ROUNDS), None);
        let two = |length: u64| length.div_ceil(4) + 3 * length.div_ceil(6);
        assert_eq!(least(two, ROUNDS), Some(4));
        assert_eq!(least(|length| length.saturating_mul(2), ROUNDS), None, "no sum is mistaken for the longest time");
    }

    #[test]
    fn jobs_respond_before_the_busy_period_ends() {
        let set = |deadline| TaskSet::new(2, vec![AnalysisTask::new(3, 10, deadline), AnalysisTask::implicit(4, 12)]);
        let answer = |deadline| busy_period(&set(deadline).expect("a task set"), &Limits::default());
        assert_eq!(answer(10).response_times(), Some([7, 7].as_slice()));
        assert!(answer(7).is_schedulable() && !answer(6).is_schedulable());
    }
}
