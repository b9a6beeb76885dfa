//! Response-time analysis for fixed priorities on one CPU. Joseph & Pandya 1986; Audsley et al. 1993; with blocking as
//! in BWLOCK++ (paper 004, eq. 4).

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
    least_response(own, higher, &[], bound, limits)
}

fn least_response(
    own: u128,
    higher: &[FixedPriorityTask],
    streams: &[InterruptStream],
    bound: u64,
    limits: &Limits,
) -> Result<Option<u64>, Outcome> {
    let mut response = own;
    for _ in 0..limits.steps {
        if response > u128::from(bound) {
            return Ok(None);
        }
        let length = response as u64;
        let demand = |task: &FixedPriorityTask| u128::from(task.wcet) * u128::from(length.div_ceil(task.period));
        let handlers: u128 = streams.iter().map(|stream| stream.time(length)).sum();
        let next = own + higher.iter().map(demand).sum::<u128>() + handlers;
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
/// shorter). With blocking the test is sufficient.
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
    for (task, &parameters) in set.tasks().iter().enumerate() {
        if parameters.deadline > parameters.period {
            return Outcome::NotApplicable(Precondition::ConstrainedDeadlines);
        }
        let delay = blocking.get(task).copied().unwrap_or(0);
        let deadline = parameters.deadline;
        let own = u128::from(parameters.wcet) + u128::from(delay);
        match least_response(own, &higher, streams, deadline, limits) {
            Ok(Some(bound)) => bounds.push(bound),
            Ok(None) if delay == 0 && streams.is_empty() => {
                return Outcome::Infeasible(Infeasibility::ResponseTime { task, deadline });
            }
            Ok(None) => return Outcome::NotProven(Reason::ResponseTime { task, deadline }),
            Err(limit) => return limit,
        }
        higher.push(FixedPriorityTask { wcet: parameters.wcet, period: parameters.period });
    }
    Outcome::Schedulable(Evidence::ResponseTimes(bounds))
}
