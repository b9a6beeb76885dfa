//! Response-time analysis for global fixed priorities. Bertogna & Cirinei, RTSS 2007, the theorem for fixed priority.

use crate::interference::indexed::{INDEXED_MIN, Interferers, ascend};
use crate::interference::jobs::{Jobs, Shape, Stream};
use crate::interference::{Fixed, Interfering, Recurrence};
use crate::{AnalysisTask, DeadlineClass, Evidence, Limits, Outcome, Precondition, Reason, TaskSet, Test, Verdict};

/// For each task k in order of priority, with the response times R of those above it:
///
/// ```text
/// R_k := least R >= C_k with R = C_k + floor( sum_{i in hp(k)} min(W_i(R), R - C_k + 1) / m )
/// W_i(L) = N * C_i + min(C_i, L + R_i - C_i - N * T_i),  N = floor((L + R_i - C_i) / T_i)
/// ```
///
/// Constrained deadlines, integer time. Only higher priorities matter, so one pass is enough. The evidence is the
/// response-time bounds. A task among the m highest priorities never waits: `R = C`.
pub fn global(set: &TaskSet, limits: &Limits) -> Verdict {
    let outcome = if set.class() == DeadlineClass::Arbitrary {
        Outcome::NotApplicable(Precondition::ConstrainedDeadlines)
    } else {
        decide(set, limits)
    };
    Verdict::new(Test::GlobalFixedPriority, outcome)
}

fn decide(set: &TaskSet, limits: &Limits) -> Outcome {
    let tasks = set.tasks();
    let mut recurrence = Recurrence::new(set, Interfering::ListedBefore);
    let mut bounds = Vec::with_capacity(tasks.len());
    let mut slacks = vec![0; tasks.len()];
    let mut steps = limits.steps;
    let mut above = (tasks.len() >= INDEXED_MIN).then(|| Above::new(set));
    for (k, task) in tasks.iter().enumerate() {
        let found = above.as_mut().map_or(Err(task.wcet), |above| above.least(task, &bounds));
        match found.unwrap_or_else(|reached| recurrence.least(k, &slacks, reached, &mut steps)) {
            Fixed::At(bound) => {
                above.iter_mut().for_each(|above| above.add(k, bound));
                bounds.push(bound);
                slacks[k] = task.deadline - bound;
            }
            Fixed::BeyondDeadline => {
                return Outcome::NotProven(Reason::ResponseTime { task: k, deadline: task.deadline });
            }
            Fixed::OutOfSteps => return Outcome::ResourceLimit { what: "steps", limit: limits.steps },
        }
    }
    Outcome::Schedulable(Evidence::ResponseTimes(bounds))
}

/// The tasks above one, as a sum.
struct Above<'a> {
    tasks: &'a [AnalysisTask],
    interferers: Interferers<'a>,
    jobs: Jobs,
}

impl<'a> Above<'a> {
    fn new(set: &'a TaskSet) -> Self {
        let jobs = Jobs::of(set.tasks().len(), Shape::Ramps);
        Above { tasks: set.tasks(), interferers: Interferers::new(set), jobs }
    }

    fn add(&mut self, index: usize, bound: u64) {
        let task = &self.tasks[index];
        self.interferers.add(index, bound);
        self.jobs.add(Stream {
            first: i128::from(task.wcet) - i128::from(bound),
            period: task.period,
            wcet: task.wcet,
        });
    }

    /// The least fixed point of `task`, which is below all that have `bounds`; `Err` with a lower bound on it if that is
    /// not found soon.
    fn least(&mut self, task: &AnalysisTask, bounds: &[u64]) -> Result<Fixed, u64> {
        let Above { tasks, interferers, jobs } = self;
        ascend(task, task.wcet, |response, x| {
            let response = task.arrivals_within(response);
            let value = |index: usize| {
                let (other, bound) = (&tasks[index], bounds[index]);
                let z = response + bound - other.wcet;
                z / other.period * other.wcet + other.wcet.min(z % other.period)
            };
            interferers.least(jobs.sum(response)?, None, value, response, x)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Task by task.
    fn plain(set: &TaskSet) -> Option<Vec<u64>> {
        let tasks = set.tasks();
        let mut recurrence = Recurrence::new(set, Interfering::ListedBefore);
        let mut slacks = vec![0; tasks.len()];
        let mut bounds = Vec::new();
        for (k, task) in tasks.iter().enumerate() {
            let Fixed::At(bound) = recurrence.least(k, &slacks, task.wcet, &mut { u64::MAX }) else { return None };
            slacks[k] = task.deadline - bound;
            bounds.push(bound);
        }
        Some(bounds)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        #[test]
        fn bounds_from_sums_are_those_task_by_task(
            tasks in prop::collection::vec((20u64..400, 1u64..100, 1u64..=100), INDEXED_MIN..200),
            lighter in 1u64..60,
            cpus in 1u32..6,
        ) {
            let task = |&(period, share, shorter): &(u64, u64, u64)| {
                let wcet = (period * share / 100 / lighter).max(1);
                let task = AnalysisTask::new(wcet, period, wcet + (period - wcet) * shorter / 100);
                AnalysisTask { ends_waiting: shorter % 3 == 0, ..task }
            };
            let set = TaskSet::new(cpus, tasks.iter().map(task).collect()).expect("in range");
            match (global(&set, &Limits::default()).outcome, plain(&set)) {
                (Outcome::Schedulable(Evidence::ResponseTimes(bounds)), Some(expected)) => prop_assert_eq!(bounds, expected),
                (Outcome::NotProven(Reason::ResponseTime { .. }), None) => {}
                (outcome, expected) => prop_assert!(false, "{outcome:?}, expected {expected:?}"),
            }
        }
    }
}
