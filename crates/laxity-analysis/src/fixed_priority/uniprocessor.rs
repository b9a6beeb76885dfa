//! Response-time analysis for fixed priorities on one CPU. Joseph & Pandya 1986; Audsley et al. 1993; with blocking as
//! in BWLOCK++ (paper 004, eq. 4).

use crate::interference::indexed::INDEXED_MIN;
use crate::interference::jobs::{Jobs, Shape, Stream};
use crate::overheads::InterruptStream;
use crate::{Evidence, Infeasibility, Limits, Outcome, Precondition, Reason, TaskSet, Test, Verdict};

/// What interferes from above: `(C, T)` of a task of higher priority, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedPriorityTask {
    /// Worst-case execution time.
    pub wcet: u64,
    /// Minimum separation of arrivals.
    pub period: u64,
}

/// The least fixed point of `R = C + B + sum_hp ceil(R / T) * C` from `R = C + B`; `Ok(None)` if it exceeds `bound`.
///
/// A safe bound on the response time where it is at most the task's own period (and then it is attained, with B = 0):
/// beyond that a second job of the task could be delayed by the first.
///
/// # Errors
/// [`Outcome::ResourceLimit`] after [`Limits::steps`] iterations.
pub fn response_time(
    wcet: u64,
    blocking: u64,
    higher: &[FixedPriorityTask],
    bound: u64,
    limits: &Limits,
) -> Result<Option<u64>, Outcome> {
    let own = u128::from(wcet) + u128::from(blocking);
    least_response(own, |length| demand(higher, length), bound, limits)
}

/// What tasks of higher priority execute in a window of `length`.
fn demand(higher: &[FixedPriorityTask], length: u64) -> u128 {
    let of = |task: &FixedPriorityTask| u128::from(task.wcet) * u128::from(length.div_ceil(task.period));
    higher.iter().map(of).sum()
}

/// `interfering`: what a window of a length contains beside the job itself.
fn least_response(
    own: u128,
    mut interfering: impl FnMut(u64) -> u128,
    bound: u64,
    limits: &Limits,
) -> Result<Option<u64>, Outcome> {
    let mut response = own;
    for _ in 0..limits.steps {
        if response > u128::from(bound) {
            return Ok(None);
        }
        let length = response as u64;
        let next = own + interfering(length);
        if next == response {
            return Ok(Some(length));
        }
        response = next;
    }
    Err(Outcome::ResourceLimit { what: "steps", limit: limits.steps })
}

/// Exact without blocking, for constrained deadlines: every task's response time is at most its deadline.
///
/// `blocking[i]` is the longest that lower priorities may delay one job of task i, in ticks (0 where the slice is
/// shorter). With blocking the test is sufficient, and so it is of jobs that [end with a wait](crate::AnalysisTask::ends_waiting).
pub fn uniprocessor(set: &TaskSet, blocking: &[u64], limits: &Limits) -> Verdict {
    Verdict::new(Test::UniprocessorFixedPriority, decide(set, blocking, &[], limits))
}

/// The same on a CPU that handles interrupts, too, whose handlers count once in each response time, as tasks of higher
/// priority: sufficient.
pub fn uniprocessor_interrupts(
    set: &TaskSet,
    blocking: &[u64],
    streams: &[InterruptStream],
    limits: &Limits,
) -> Verdict {
    Verdict::new(Test::UniprocessorFixedPriorityInterrupts, decide(set, blocking, streams, limits))
}

fn decide(set: &TaskSet, blocking: &[u64], streams: &[InterruptStream], limits: &Limits) -> Outcome {
    if set.cpus() != 1 {
        return Outcome::NotApplicable(Precondition::OneCpu);
    }
    let mut higher: Vec<FixedPriorityTask> = Vec::with_capacity(set.tasks().len());
    let mut bounds = Vec::with_capacity(set.tasks().len());
    // Many are summed all at once, as long as they do not have too many jobs.
    let mut jobs = (set.tasks().len() >= INDEXED_MIN).then(|| Jobs::of(set.tasks().len(), Shape::Steps));
    for (task, &parameters) in set.tasks().iter().enumerate() {
        if parameters.deadline > parameters.period {
            return Outcome::NotApplicable(Precondition::ConstrainedDeadlines);
        }
        let delay = blocking.get(task).copied().unwrap_or(0);
        let deadline = parameters.deadline;
        let own = u128::from(parameters.wcet) + u128::from(delay);
        let interfering = |response: u64| {
            let length = parameters.arrivals_within(response);
            let handlers: u128 = streams.iter().map(|stream| stream.time(length)).sum();
            let summed = jobs.as_mut().and_then(|jobs| jobs.sum(length));
            summed.unwrap_or_else(|| demand(&higher, length)) + handlers
        };
        match least_response(own, interfering, deadline, limits) {
            Ok(Some(bound)) => bounds.push(bound),
            Ok(None) if delay == 0 && streams.is_empty() => {
                return Outcome::Infeasible(Infeasibility::ResponseTime { task, deadline });
            }
            Ok(None) => return Outcome::NotProven(Reason::ResponseTime { task, deadline }),
            Err(limit) => return limit,
        }
        higher.push(FixedPriorityTask { wcet: parameters.wcet, period: parameters.period });
        let stream = Stream { first: 0, period: parameters.period, wcet: parameters.wcet };
        jobs.iter_mut().for_each(|jobs| jobs.add(stream));
    }
    Outcome::Schedulable(Evidence::ResponseTimes(bounds))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::AnalysisTask;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn bounds_of_many_tasks_are_those_task_by_task(
            tasks in prop::collection::vec((100u64..100_000, 1u64..1_000), INDEXED_MIN..200),
            blocking in prop::collection::vec(0u64..2_000, 200),
        ) {
            let task = |&(period, part): &(u64, u64)| AnalysisTask::new((period / 150 * part / 1_000).max(1), period, period);
            let mut tasks: Vec<AnalysisTask> = tasks.iter().map(task).collect();
            tasks.sort_by_key(|task| task.period);
            let limits = Limits::default();
            let mut higher = Vec::new();
            let mut expected = Vec::new();
            for (task, &delay) in tasks.iter().zip(&blocking) {
                let bound = response_time(task.wcet, delay, &higher, task.deadline, &limits).expect("there are steps enough");
                higher.push(FixedPriorityTask { wcet: task.wcet, period: task.period });
                expected.push(bound);
            }
            let set = TaskSet::new(1, tasks).expect("in range");
            match uniprocessor(&set, &blocking, &limits).outcome {
                Outcome::Schedulable(Evidence::ResponseTimes(bounds)) => {
                    prop_assert_eq!(bounds.into_iter().map(Some).collect::<Vec<_>>(), expected);
                }
                outcome => {
                    prop_assert!(matches!(outcome, Outcome::NotProven(_) | Outcome::Infeasible(_)), "{outcome:?}");
                    prop_assert!(expected.contains(&None));
                }
            }
        }
    }
}
