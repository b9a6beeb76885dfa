//! EDF on one CPU, exactly: QPA. Zhang & Burns, IEEE Transactions on Computers 58(9), 2009.

use std::cmp::Ordering;

use super::demand::demand_bound;
use super::{check_feasible, settle};
use crate::overheads::InterruptStream;
use crate::{
    AnalysisTask, DeadlineClass, Evidence, Infeasibility, Limits, Outcome, Precondition, Reason, TaskSet, Test, Verdict,
};

/// Exact for any deadlines: EDF on one CPU misses no deadline iff `U <= 1` and the demand bound of no interval exceeds
/// its length (Baruah, Mok & Rosier 1990).
///
/// Only intervals shorter than the synchronous busy period need testing. QPA walks down from there: at an interval t
/// whose demand is less than t, everything down to the demand passes too.
pub fn uniprocessor_edf(set: &TaskSet, limits: &Limits) -> Verdict {
    Verdict::new(Test::UniprocessorEdf, decide(set, &[], limits))
}

/// The same on a CPU that handles interrupts, too: sufficient for any deadlines. EDF misses no deadline if in no interval the
/// demand bound and the time of all handlers together exceed its length.
///
/// Let a job miss its deadline `d`, and let `t` be the last instant before at which no job was pending that is due by `d`. From
/// `t` to `d` the CPU executed jobs that arrived from `t` on and are due by `d`, or handled interrupts. (Jeffay & Stone,
/// RTSS 1993, count handlers so; what jobs cost beside is in their execution times.)
pub fn uniprocessor_edf_interrupts(set: &TaskSet, streams: &[InterruptStream], limits: &Limits) -> Verdict {
    Verdict::new(Test::UniprocessorEdfInterrupts, decide(set, streams, limits))
}

fn decide(set: &TaskSet, streams: &[InterruptStream], limits: &Limits) -> Outcome {
    if set.cpus() != 1 {
        return Outcome::NotApplicable(Precondition::OneCpu);
    }
    settle(check_feasible(set).and_then(|()| leaves_time(set, streams)).and_then(|()| walk(set, streams, limits)))
}

/// Without some time that neither jobs nor handlers need, a busy period may have no end.
fn leaves_time(set: &TaskSet, streams: &[InterruptStream]) -> Result<(), Outcome> {
    let costly = streams.iter().filter(|stream| stream.cost > 0);
    let handlers: Vec<AnalysisTask> =
        costly.map(|stream| AnalysisTask::new(stream.cost, stream.period, stream.period)).collect();
    if handlers.is_empty() {
        return Ok(());
    }
    let full = Err(Outcome::NotApplicable(Precondition::UtilizationBelowCpus));
    let all = TaskSet::new(1, set.tasks().iter().copied().chain(handlers).collect());
    match all.map(|all| all.compare_utilization_to_cpus()) {
        Ok(Ordering::Less) => Ok(()),
        _ => full,
    }
}

fn walk(set: &TaskSet, streams: &[InterruptStream], limits: &Limits) -> Result<Outcome, Outcome> {
    let accept = Outcome::Schedulable(Evidence::Condition);
    let late = set.tasks().iter().all(|task| task.deadline >= task.period);
    if streams.is_empty() && (set.class() == DeadlineClass::Implicit || late) {
        // dbf(t) <= u * t for D >= T, so U <= 1 suffices.
        return Ok(accept);
    }
    let shortest = set.tasks().iter().map(|task| task.deadline).min().unwrap_or(0);
    let mut steps = limits.steps;
    let end = busy_period(set, streams, limits, &mut steps)?;
    let mut t = last_deadline_before(set, end);
    while let Some(interval) = t {
        spend(&mut steps, limits)?;
        let jobs: u128 = set.tasks().iter().map(|task| demand_bound(task, interval)).sum();
        let demand = jobs + handlers(streams, interval);
        if demand > u128::from(interval) {
            return Ok(exceeded(set, streams, interval, demand));
        }
        if demand <= u128::from(shortest) {
            break;
        }
        // Neither grows where the interval shrinks, and only intervals that end at a deadline count.
        let below = if demand < u128::from(interval) { demand as u64 + 1 } else { interval };
        t = last_deadline_before(set, below);
    }
    Ok(accept)
}

/// More is asked of an interval than it has.
fn exceeded(set: &TaskSet, streams: &[InterruptStream], interval: u64, demand: u128) -> Outcome {
    if streams.is_empty() {
        return Outcome::Infeasible(Infeasibility::Demand { interval, demand });
    }
    let ends =
        |task: &AnalysisTask| interval >= task.deadline && (interval - task.deadline).is_multiple_of(task.period);
    let task = set.tasks().iter().position(ends).unwrap_or(0);
    let own = u128::from(set.tasks()[task].wcet);
    let (demand, available) = (demand.saturating_sub(own), (u128::from(interval) + 1).saturating_sub(own));
    Outcome::NotProven(Reason::Interval { task, interval, demand, available })
}

fn handlers(streams: &[InterruptStream], length: u64) -> u128 {
    streams.iter().map(|stream| stream.time(length)).sum()
}

/// Length of the synchronous busy period: the least `w > 0` with `w = sum(ceil(w / T) * C)`, and the time of handlers.
fn busy_period(set: &TaskSet, streams: &[InterruptStream], limits: &Limits, steps: &mut u64) -> Result<u64, Outcome> {
    let mut length: u128 = set.tasks().iter().map(|task| u128::from(task.wcet)).sum::<u128>() + handlers(streams, 1);
    loop {
        spend(steps, limits)?;
        let too_long = Outcome::ResourceLimit { what: "ticks of a busy period", limit: u64::MAX };
        let within = u64::try_from(length).map_err(|_| too_long)?;
        let jobs = |task: &AnalysisTask| length.div_ceil(u128::from(task.period)) * u128::from(task.wcet);
        let next = set.tasks().iter().map(jobs).sum::<u128>() + handlers(streams, within);
        if next == length {
            return Ok(within);
        }
        length = next;
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
