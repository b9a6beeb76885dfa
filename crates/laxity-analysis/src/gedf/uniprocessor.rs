//! EDF on one CPU, exactly: QPA. Zhang & Burns, IEEE Transactions on Computers 58(9), 2009.

use super::demand::demand_bound;
use super::{check_feasible, settle};
use crate::{
    AnalysisTask, DeadlineClass, Evidence, Infeasibility, Limits, Outcome, Precondition, TaskSet, Test, Verdict,
};

/// Exact for any deadlines: EDF on one CPU misses no deadline iff `U <= 1` and the demand bound of no interval exceeds
/// its length (Baruah, Mok & Rosier 1990).
///
/// Only intervals shorter than the synchronous busy period need testing. QPA walks down from there: at an interval t
/// whose demand is less than t, everything down to the demand passes too.
pub fn uniprocessor_edf(set: &TaskSet, limits: &Limits) -> Verdict {
    let outcome = if set.cpus() != 1 {
        Outcome::NotApplicable(Precondition::OneCpu)
    } else {
        settle(check_feasible(set).and_then(|()| decide(set, limits)))
    };
    Verdict::new(Test::UniprocessorEdf, outcome)
}

fn decide(set: &TaskSet, limits: &Limits) -> Result<Outcome, Outcome> {
    let accept = Outcome::Schedulable(Evidence::Condition);
    let late = set.tasks().iter().all(|task| task.deadline >= task.period);
    if set.class() == DeadlineClass::Implicit || late {
        // dbf(t) <= u * t for D >= T, so U <= 1 suffices.
        return Ok(accept);
    }
    let shortest = set.tasks().iter().map(|task| task.deadline).min().unwrap_or(0);
    let mut steps = limits.steps;
    let end = busy_period(set, limits, &mut steps)?;
    let mut t = last_deadline_before(set, end);
    while let Some(interval) = t {
        spend(&mut steps, limits)?;
        let demand: u128 = set.tasks().iter().map(|task| demand_bound(task, interval)).sum();
        if demand > u128::from(interval) {
            return Ok(Outcome::Infeasible(Infeasibility::Demand { interval, demand }));
        }
        if demand <= u128::from(shortest) {
            break;
        }
        t = if demand < u128::from(interval) { Some(demand as u64) } else { last_deadline_before(set, interval) };
    }
    Ok(accept)
}

/// Length of the synchronous busy period: the least `w > 0` with `w = sum(ceil(w / T) * C)`.
fn busy_period(set: &TaskSet, limits: &Limits, steps: &mut u64) -> Result<u64, Outcome> {
    let mut length: u128 = set.tasks().iter().map(|task| u128::from(task.wcet)).sum();
    loop {
        spend(steps, limits)?;
        let jobs = |task: &AnalysisTask| length.div_ceil(u128::from(task.period)) * u128::from(task.wcet);
        let next: u128 = set.tasks().iter().map(jobs).sum();
        if next == length {
            return Ok(u64::try_from(length).unwrap_or(u64::MAX));
        }
        length = next;
        if length > u128::from(u64::MAX) {
            return Err(Outcome::ResourceLimit { what: "ticks of a busy period", limit: u64::MAX });
        }
    }
}

/// The last absolute deadline of the synchronous arrival sequence before `end`.
fn last_deadline_before(set: &TaskSet, end: u64) -> Option<u64> {
    let last = |task: &AnalysisTask| {
        let room = end.checked_sub(1)?.checked_sub(task.deadline)?;
        Some(task.deadline + room / task.period * task.period)
    };
    set.tasks().iter().filter_map(last).max()
}

fn spend(steps: &mut u64, limits: &Limits) -> Result<(), Outcome> {
    *steps = steps.checked_sub(1).ok_or(Outcome::ResourceLimit { what: "steps", limit: limits.steps })?;
    Ok(())
}
