//! Response-time analysis for global fixed priorities. Bertogna & Cirinei, RTSS 2007, the theorem for fixed priority.

use crate::interference::{Fixed, Interfering, Recurrence};
use crate::{DeadlineClass, Evidence, Limits, Outcome, Precondition, Reason, TaskSet, Test, Verdict};

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
    for (k, task) in tasks.iter().enumerate() {
        match recurrence.least(k, &slacks, task.wcet, &mut steps) {
            Fixed::At(bound) => {
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
