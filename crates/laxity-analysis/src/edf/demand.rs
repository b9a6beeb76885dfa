//! Whether deadlines are met: processor demand. Baruah, Mok & Rosier, RTSS 1990; with jitter and blocking Spuri 1996.

use super::{Load, due, spend};
use crate::gedf::check_feasible;
use crate::{Evidence, Infeasibility};
use crate::{Limits, Outcome, Reason, Test, Verdict};

/// EDF on one CPU misses no deadline if for each `d` at which jobs may be due
///
/// ```text
/// B(d) + H(d) + sum of (floor((d + J - D) / T) + 1) * C  <=  d
/// ```
///
/// over the tasks with `d + J >= D`, where B is the time of less urgent jobs and H that of handlers. Exact where there is nothing
/// beside the jobs, and with jitter alone.
///
/// The walk from the end of the longest busy period downwards is QPA (Zhang & Burns, IEEE Transactions on Computers 58(9),
/// 2009). Blocking falls where the rest grows: below an interval no other has more than the most of those up to it.
pub fn demand(load: Load<'_>, limits: &Limits) -> Verdict {
    Verdict::new(Test::UniprocessorEdfDemand, decide(load, limits).unwrap_or_else(|early| early))
}

fn decide(load: Load<'_>, limits: &Limits) -> Result<Outcome, Outcome> {
    if load.set.cpus() != 1 {
        return Err(Outcome::NotApplicable(crate::Precondition::OneCpu));
    }
    check_feasible(load.set)?;
    let too_late =
        |task: usize| Outcome::NotProven(Reason::ResponseTime { task, deadline: load.set.tasks()[task].deadline });
    let firsts = load.firsts().map_err(too_late)?;
    let mut steps = limits.steps;
    let end = horizon(load, &firsts, limits, &mut steps)?;
    let tasks = || load.set.tasks().iter().zip(&firsts);
    let last_before = |end: u64| {
        let last = |(task, &first): (&crate::AnalysisTask, &u64)| {
            let room = end.checked_sub(1)?.checked_sub(first)?;
            Some(first + room / task.period * task.period)
        };
        tasks().filter_map(last).max()
    };
    let unblocked = load.blocking.end();
    let mut next = last_before(end);
    while let Some(interval) = next {
        spend(&mut steps, 1, limits)?;
        let jobs = tasks().map(|(task, &first)| u128::from(due(first, task.period, interval)) * u128::from(task.wcet));
        let own = jobs.sum::<u128>() + load.handlers(interval);
        let all = own + u128::from(load.blocking.at(interval));
        if all > u128::from(interval) {
            return Ok(exceeded(load, &firsts, interval, all));
        }
        // Intervals from there up to this one have no more to do than they are long.
        let most = if interval > unblocked {
            own.max(u128::from(unblocked))
        } else {
            own + u128::from(load.blocking.most_up_to(interval))
        };
        next = last_before(if most < u128::from(interval) { most as u64 + 1 } else { interval });
    }
    Ok(Outcome::Schedulable(Evidence::Condition))
}

/// No longer interval needs to be looked at.
fn horizon(load: Load<'_>, firsts: &[u64], limits: &Limits, steps: &mut u64) -> Result<u64, Outcome> {
    let is_within_utilization = load.set.tasks().iter().zip(firsts).all(|(task, &first)| first >= task.period);
    if is_within_utilization && load.streams.is_empty() {
        // The jobs due by d need at most U * d then.
        return Ok(load.blocking.end());
    }
    load.busy_period(false, &mut steps.saturating_mul(load.set.tasks().len() as u64), limits)
}

fn exceeded(load: Load<'_>, firsts: &[u64], interval: u64, demand: u128) -> Outcome {
    if load.is_plain() {
        return Outcome::Infeasible(Infeasibility::Demand { interval, demand });
    }
    let ends = |(task, &first): (&crate::AnalysisTask, &u64)| {
        interval >= first && (interval - first).is_multiple_of(task.period)
    };
    let task = load.set.tasks().iter().zip(firsts).position(ends).unwrap_or(0);
    let own = u128::from(load.set.tasks()[task].wcet);
    let (demand, available) = (demand.saturating_sub(own), (u128::from(interval) + 1).saturating_sub(own));
    Outcome::NotProven(Reason::Interval { task, interval, demand, available })
}
