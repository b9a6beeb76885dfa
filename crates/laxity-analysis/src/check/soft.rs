//! Whether tardiness is bounded, and by how much: a fixed point of tardiness and inflation, because a tardy job is
//! pending for longer and so delayed by more interrupts. The idea is that of paper 000, appendix B.

use laxity_model::PriorityRule;

use super::accounting::Lateness;
use super::context::{Context, Inflation};
use super::edf;
use super::explain;
use super::hard::unbounded;
use super::served::{shared_when_tardy, shares_when_late};
use super::settled::{Settled, late, may_be_late};
use super::{Accounting, BoundSource, Failure, Finding, Status};
use crate::soft::{devi_anderson, tardiness, tardiness_ticks};
use crate::{LONGEST_TICKS, Limits, Outcome, TaskSet, Test, Verdict};

/// Rounds allowed; in practice a handful.
const ROUNDS_MAX: u32 = 100;

/// What was found about a cluster.
pub(super) struct Soft {
    pub finding: Finding,
    /// What is bounded, and the inflation under which it is.
    pub bounds: Option<(Late, Inflation)>,
}

/// Bounds of the members in ticks.
pub(super) struct Late {
    /// Response times.
    pub times: Vec<u64>,
    /// Where they come from.
    pub source: BoundSource,
}

/// Decides for a cluster that is not known to be hard schedulable.
pub(super) fn soft(context: &Context<'_>, limits: &Limits) -> Soft {
    let soft = whatever_is_shared(context, limits);
    let shared = soft.bounds.as_ref().and_then(|(late, _)| shares_when_late(context, &late.times));
    match shared {
        Some(failure) => Soft { finding: Finding::failed(Status::NotProven, vec![failure]), bounds: None },
        None => soft,
    }
}

/// The same as if late jobs of servers shared no budgets.
fn whatever_is_shared(context: &Context<'_>, limits: &Limits) -> Soft {
    let failed = |status, failure| Soft { finding: Finding::failed(status, vec![failure]), bounds: None };
    if let Some(failure) = unbounded(context) {
        return failed(Status::Infeasible, failure);
    }
    if let Some((times, inflation)) = edf::late(context, limits) {
        let test = Test::UniprocessorEdfResponse;
        let late = Late { times, source: BoundSource::Test(test) };
        return Soft { finding: Finding::proven(test), bounds: Some((late, inflation)) };
    }
    let first = match as_execution(context, limits) {
        Ok((tardiness, inflation)) => {
            let times =
                context.members().zip(&tardiness).map(|(task, &late)| task.deadline.saturating_add(late)).collect();
            let late = Late { times, source: BoundSource::Tardiness };
            return Soft { finding: Finding::proven(Test::BoundedTardiness), bounds: Some((late, inflation)) };
        }
        Err(failure) => failure,
    };
    if !may_be_late(context) {
        return failed(Status::NotProven, first);
    }
    match late(context, limits) {
        Ok(Settled { times, tests, inflation }) => {
            let source = BoundSource::Test(tests[tests.len() - 1]);
            let finding = Finding { tests, ..Finding::proven(Test::SuspensionAware) };
            Soft { finding, bounds: Some((Late { times, source }, inflation)) }
        }
        Err(failure) => {
            let failures = if failure.test.is_some() { vec![failure, first] } else { vec![first, failure] };
            Soft { finding: Finding::failed(Status::NotProven, failures), bounds: None }
        }
    }
}

/// Tardiness bounds of the members in ticks, and the inflation they hold under, if all waits count as execution.
fn as_execution(context: &Context<'_>, limits: &Limits) -> Result<(Vec<u64>, Inflation), Failure> {
    if context.machine.rule != PriorityRule::Edf {
        let message = "no tardiness bound is known for fixed priorities where waits count as execution".to_owned();
        return Err(explain::of_cluster(context, message));
    }
    if let Some(failure) = shared_when_tardy(context) {
        return Err(failure);
    }
    if context.keeps_waits_apart() {
        let message = "no tardiness bound is known for waits behind what does not become as urgent at once".to_owned();
        return Err(explain::of_cluster(context, message));
    }
    settle(context, limits)
}

/// From tardiness 0 upwards until inflation under the bounds yields bounds that are no larger.
fn settle(context: &Context<'_>, limits: &Limits) -> Result<(Vec<u64>, Inflation), Failure> {
    let members = &context.cluster.members;
    let mut now = vec![0u64; members.len()];
    for _ in 0..ROUNDS_MAX {
        let pending: Vec<u64> =
            context.members().zip(&now).map(|(task, &late)| task.deadline.saturating_add(late)).collect();
        let inflation = context.inflate(Some(&pending))?;
        let set = context.task_set(&inflation, members, Lateness::Ignored)?;
        let next = match bounds(&set, limits) {
            Ok(bounds) => bounds,
            Err(outcome) => {
                let verdict = Verdict { test: Test::BoundedTardiness, outcome };
                return Err(explain::of_verdict(context, &verdict, &set, members));
            }
        };
        // Acting late is acting as ever, but all of it later.
        let next: Vec<u64> = next.into_iter().map(|bound| bound.saturating_add(inflation.late)).collect();
        // The published accounting of soft deadlines does not depend on tardiness, but for that of GPU interrupts.
        let is_fixed = context.machine.accounting == Accounting::Published && !context.shares();
        if is_fixed || next.iter().zip(&now).all(|(next, now)| next <= now) {
            return Ok((if is_fixed { next } else { now }, inflation));
        }
        for (now, next) in now.iter_mut().zip(next) {
            *now = next.max(*now).min(LONGEST_TICKS);
        }
    }
    Err(explain::of_cluster(context, format!("tardiness bounds did not settle within {ROUNDS_MAX} rounds")))
}

/// The best bound of each task. The compliant vector's exact fractions are costly with many periods; in whole ticks
/// they mostly are not needed.
pub(super) fn bounds(set: &TaskSet, limits: &Limits) -> Result<Vec<u64>, Outcome> {
    if set.cpus() == 1 {
        return Ok(tardiness(set, limits)?.bounds);
    }
    let mut bounds = tardiness_ticks(set)?;
    if let Ok(other) = devi_anderson(set) {
        for (bound, task) in bounds.iter_mut().zip(set.tasks()) {
            *bound = (*bound).min(other.tardiness(task.wcet));
        }
    }
    Ok(bounds)
}
