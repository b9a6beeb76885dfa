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
use crate::soft::{devi_anderson, response_time_ticks, tardiness};
use crate::{AnalysisTask, LONGEST_TICKS, Limits, Outcome, TaskSet, Test, Verdict};

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
        Ok((times, inflation)) => {
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

/// Response-time bounds of the members in ticks, and the inflation they hold under, if all waits count as execution.
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

/// From tardiness 0 upwards until inflation under the bounds yields bounds that are no larger. Jobs are pending for up to their
/// deadlines and tardiness; response times that follow are less where deadlines are beyond periods.
fn settle(context: &Context<'_>, limits: &Limits) -> Result<(Vec<u64>, Inflation), Failure> {
    let members = &context.cluster.members;
    let mut now = vec![0u64; members.len()];
    for _ in 0..ROUNDS_MAX {
        let pending: Vec<u64> =
            context.members().zip(&now).map(|(task, &late)| task.deadline.saturating_add(late)).collect();
        let inflation = context.inflate(Some(&pending))?;
        let set = context.task_set(&inflation, members, Lateness::Ignored)?;
        let times = match response_times(&set, limits) {
            Ok(times) => times,
            Err(outcome) => {
                let verdict = Verdict { test: Test::BoundedTardiness, outcome };
                return Err(explain::of_verdict(context, &verdict, &set, members));
            }
        };
        // Acting late is acting as ever, but all of it later.
        let late =
            |(task, time): (&AnalysisTask, &u64)| time.saturating_sub(task.deadline).saturating_add(inflation.late);
        let next: Vec<u64> = set.tasks().iter().zip(&times).map(late).collect();
        // The published accounting of soft deadlines does not depend on tardiness, but for that of GPU interrupts.
        let is_fixed = context.machine.accounting == Accounting::Published && !context.shares();
        if is_fixed || next.iter().zip(&now).all(|(next, now)| next <= now) {
            return Ok((times.into_iter().map(|time| time.saturating_add(inflation.late)).collect(), inflation));
        }
        for (now, next) in now.iter_mut().zip(next) {
            *now = next.max(*now).min(LONGEST_TICKS);
        }
    }
    Err(explain::of_cluster(context, format!("tardiness bounds did not settle within {ROUNDS_MAX} rounds")))
}

/// The best bound on each task's response time: `R_i = Y_i - min(Y) + x_i + C_i` of the compliant vector with `Y = D` (Erickson, Guan &
/// Baruah, OPODIS 2010; Erickson & Anderson, ECRTS 2012), which may be less than the deadline, or the deadline and a bound on
/// tardiness. The compliant vector's exact fractions are costly with many periods; in whole ticks they mostly are not needed.
pub(super) fn response_times(set: &TaskSet, limits: &Limits) -> Result<Vec<u64>, Outcome> {
    let within = |task: &AnalysisTask, late: u64| task.deadline.saturating_add(late);
    if set.cpus() == 1 {
        let late = tardiness(set, limits)?.bounds;
        return Ok(set.tasks().iter().zip(late).map(|(task, late)| within(task, late)).collect());
    }
    let mut times = response_time_ticks(set)?;
    if let Ok(other) = devi_anderson(set) {
        for (time, task) in times.iter_mut().zip(set.tasks()) {
            *time = (*time).min(within(task, other.tardiness(task.wcet)));
        }
    }
    Ok(times)
}
