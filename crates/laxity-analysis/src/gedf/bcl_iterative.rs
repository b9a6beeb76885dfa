//! Iterative BCL: slacks improve each other. Bertogna, Cirinei & Lipari, TPDS 20(4), 2009, the theorem for EDF.

use super::{check_constrained, settle};
use crate::exact::Divisor;
use crate::{Evidence, Limits, Outcome, Reason, TaskSet, Test, Verdict};

/// Starts from slack `S = 0` for every task and sweeps over the tasks in order, with the newest slacks:
///
/// ```text
/// s = D_k - C_k - floor( sum_{i != k} min(W_i, D_k - C_k + 1) / m ),     S_k := max(S_k, s)
/// W_i = floor(D_k / T_i) * C_i + min(C_i, [D_k mod T_i - S_i]+)
/// ```
///
/// Accepts at the first sweep in which every `s >= 0`; gives up when a sweep changes nothing, and with a resource
/// limit after [`Limits::rounds`] sweeps. Constrained deadlines, integer time. The evidence is the slacks.
///
/// The same operator applied to upper bounds, from `S = D - C` downwards, bounds what the sweeps can ever reach: a
/// task without slack there never gets any. It ends most hopeless sets after one or two sweeps, with the same verdict.
pub fn bcl_iterative(set: &TaskSet, limits: &Limits) -> Verdict {
    let outcome = check_constrained(set).map(|()| iterate(set, limits));
    Verdict::new(Test::BclIterative, settle(outcome))
}

fn iterate(set: &TaskSet, limits: &Limits) -> Outcome {
    let tasks = set.tasks();
    let periods: Vec<Divisor> = tasks.iter().map(|task| Divisor::new(task.period)).collect();
    let mut slacks = vec![0u64; tasks.len()];
    let mut bounds: Vec<u64> = tasks.iter().map(|task| task.deadline - task.wcet).collect();
    for _ in 0..limits.rounds {
        let mut failure = None;
        let mut changed = false;
        for task in 0..slacks.len() {
            match slack(set, &periods, &slacks, task) {
                Ok(slack) if slack > slacks[task] => {
                    slacks[task] = slack;
                    changed = true;
                }
                Ok(_) => {}
                Err(reason) => {
                    if let Err(reason) = slack(set, &periods, &bounds, task) {
                        return Outcome::NotProven(reason);
                    }
                    failure = failure.or(Some(reason));
                }
            }
        }
        match failure {
            None => return Outcome::Schedulable(Evidence::Slacks(slacks)),
            Some(reason) if !changed => return Outcome::NotProven(reason),
            Some(_) => {}
        }
        for task in 0..bounds.len() {
            match slack(set, &periods, &bounds, task) {
                Ok(slack) => bounds[task] = slack,
                Err(reason) => return Outcome::NotProven(reason),
            }
        }
    }
    Outcome::ResourceLimit { what: "rounds", limit: limits.rounds.into() }
}

/// The slack of `index` given the others', or why there is none yet.
fn slack(set: &TaskSet, periods: &[Divisor], slacks: &[u64], index: usize) -> Result<u64, Reason> {
    let task = &set.tasks()[index];
    let spare = task.deadline - task.wcet;
    let mut interference = 0u128;
    for (other_index, other) in set.tasks().iter().enumerate() {
        if other_index != index {
            let (jobs, rest) = periods[other_index].divide(task.deadline);
            let workload = jobs * other.wcet + other.wcet.min(rest.saturating_sub(slacks[other_index]));
            interference += u128::from(workload.min(spare + 1));
        }
    }
    let cpus = u128::from(set.cpus());
    // floor(I / m) <= spare, or equally I < m * (spare + 1).
    let available = cpus * (u128::from(spare) + 1);
    if interference >= available {
        return Err(Reason::Interference { task: index, interference, available });
    }
    Ok(spare - (interference / cpus) as u64)
}
