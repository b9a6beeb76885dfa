//! Response-time analysis for global EDF. Bertogna & Cirinei, RTSS 2007; the theorem behind the ascending form is
//! machine-checked in Prosa (`classic/analysis/global/basic/bertogna_edf_theory.v`).

use super::rta_index::{Raised, raise};
use super::{check_constrained, settle};
use crate::interference::indexed::INDEXED_MIN;
use crate::interference::{Fixed, Interfering, Recurrence};
use crate::{Evidence, Limits, Outcome, Reason, TaskSet, Test, Verdict};

/// The simultaneous least fixed point from below: `R_k := C_k` for all tasks, then
///
/// ```text
/// R_k := C_k + floor( sum_{i != k} min( W_i(R_k), Wd_i, R_k - C_k + 1 ) / m )     with slacks S_i = D_i - R_i
/// ```
///
/// until nothing changes. Any vector that is a fixed point with `R <= D` is a safe bound, the least one the best;
/// what the iteration passes through is not. Accepts whatever [`rta_slack`] accepts, with bounds no larger, and more.
///
/// Constrained deadlines, integer time. The evidence is the response-time bounds.
pub fn rta(set: &TaskSet, limits: &Limits) -> Verdict {
    let outcome = check_constrained(set).map(|()| ascend(set, limits));
    Verdict::new(Test::Rta, settle(outcome))
}

fn ascend(set: &TaskSet, limits: &Limits) -> Outcome {
    let tasks = set.tasks();
    let mut recurrence = Recurrence::new(set, Interfering::ByDeadline);
    let mut bounds: Vec<u64> = tasks.iter().map(|task| task.wcet).collect();
    let mut steps = limits.steps;
    if tasks.len() >= INDEXED_MIN {
        match raise(set, &mut recurrence, &mut bounds, &mut steps) {
            Raised::Settled => return Outcome::Schedulable(Evidence::ResponseTimes(bounds)),
            Raised::Beyond { task } => return not_proven(set, task),
            Raised::OutOfSteps => return out_of_steps(limits),
            Raised::Unsuited => {}
        }
    }
    let mut slacks: Vec<u64> = tasks.iter().zip(&bounds).map(|(task, bound)| task.deadline - bound).collect();
    loop {
        let mut changed = false;
        for (k, task) in tasks.iter().enumerate() {
            match recurrence.least(k, &slacks, bounds[k], &mut steps) {
                Fixed::At(bound) if bound > bounds[k] => {
                    bounds[k] = bound;
                    slacks[k] = task.deadline - bound;
                    changed = true;
                }
                Fixed::At(_) => {}
                Fixed::BeyondDeadline => return not_proven(set, k),
                Fixed::OutOfSteps => return out_of_steps(limits),
            }
        }
        if !changed {
            return Outcome::Schedulable(Evidence::ResponseTimes(bounds));
        }
    }
}

/// The published loop, from slack 0: sweep over the tasks, each with the least fixed point under the newest slacks,
/// then `S_k := D_k - R_k`. Accepts at the first sweep in which all pass; gives up when a sweep changes nothing.
///
/// `rounds`, if given, ends it undecided after so many sweeps; a well-known toolkit uses 25.
pub fn rta_slack(set: &TaskSet, rounds: Option<u32>, limits: &Limits) -> Verdict {
    let outcome = check_constrained(set).map(|()| sweep(set, rounds, limits));
    Verdict::new(Test::RtaSlack, settle(outcome))
}

fn sweep(set: &TaskSet, rounds: Option<u32>, limits: &Limits) -> Outcome {
    let tasks = set.tasks();
    let mut recurrence = Recurrence::new(set, Interfering::ByDeadline);
    let mut slacks = vec![0u64; tasks.len()];
    let mut bounds = vec![0u64; tasks.len()];
    let mut steps = limits.steps;
    for _ in 0..rounds.unwrap_or(limits.rounds) {
        let (mut changed, mut failed) = (false, None);
        for (k, task) in tasks.iter().enumerate() {
            match recurrence.least(k, &slacks, task.wcet, &mut steps) {
                Fixed::At(bound) => {
                    bounds[k] = bound;
                    let slack = task.deadline - bound;
                    changed |= slack > slacks[k];
                    slacks[k] = slack.max(slacks[k]);
                }
                Fixed::BeyondDeadline => failed = failed.or(Some(k)),
                Fixed::OutOfSteps => return out_of_steps(limits),
            }
        }
        match failed {
            None => return Outcome::Schedulable(Evidence::ResponseTimes(bounds)),
            Some(task) if !changed => return not_proven(set, task),
            Some(_) => {}
        }
    }
    match rounds {
        Some(rounds) => Outcome::NotProven(Reason::Rounds { rounds }),
        None => Outcome::ResourceLimit { what: "rounds", limit: limits.rounds.into() },
    }
}

fn not_proven(set: &TaskSet, task: usize) -> Outcome {
    Outcome::NotProven(Reason::ResponseTime { task, deadline: set.tasks()[task].deadline })
}

fn out_of_steps(limits: &Limits) -> Outcome {
    Outcome::ResourceLimit { what: "steps", limit: limits.steps }
}
