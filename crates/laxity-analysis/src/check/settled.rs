//! Response times and waits that depend on one another: how long a job waits depends on how long jobs of others are pending,
//! which is no longer than their response times.

use laxity_model::{Nanos, PriorityRule};

use super::accounting::Lateness;
use super::context::{Context, Inflation};
use super::explain;
use super::hard::{Hard, Sets, infeasible};
use super::levels::are_told_apart;
use super::{Accounting, BoundSource, Failure, Finding, Status};
use crate::suspension::{Queues, Ranking, SuspendingTask, Unbounded, response_times_across};
use crate::{LONGEST_TICKS, Limits, Test};

/// Rounds in which response times and waits settle; in practice a handful.
const ROUNDS_MAX: u32 = 100;

/// The longest response time beyond the deadline that is looked for, in deadlines and periods.
const LATE_MAX: u64 = 50;

/// Tasks of a cluster whose bounds beyond deadlines are looked for, at most.
const LATE_TASKS_MAX: usize = 500;

/// Bounds that confirm one another.
pub(super) struct Settled {
    /// Response times of the members, in ticks.
    pub times: Vec<u64>,
    /// The tests that they come from, one or two.
    pub tests: Vec<Test>,
    /// The accounting under which they hold.
    pub inflation: Inflation,
}

/// The least vector of bounds that response-time analysis confirms under the waits that follow from it, from below: by waits
/// that count as execution, or by [`suspension`](crate::suspension), whichever is less for each. No bound exceeds that
/// of `longest`.
///
/// Sound: let some job be the first that is pending for longer than its bound. Until then none was, so that what it waited
/// for is charged to it and to all others; but then response-time analysis is right about it.
fn settle(context: &Context<'_>, limits: &Limits, longest: &[u64]) -> Result<Settled, Failure> {
    let machine = context.machine;
    let test = match (machine.rule, context.cpus()) {
        (PriorityRule::Edf, _) => Test::Rta,
        (_, 1) => Test::UniprocessorFixedPriority,
        _ => Test::GlobalFixedPriority,
    };
    let order = machine.by_priority(&context.cluster.members, context.analysed);
    let mut pending: Vec<u64> = context.members().map(|task| task.wcet).collect();
    for _ in 0..ROUNDS_MAX {
        let inflation = context.inflate(Some(&pending))?;
        let as_execution = (!context.keeps_waits_apart())
            .then(|| {
                let sets = Sets { context, inflation: &inflation, order: order.clone() };
                let (_, verdict) = sets.ask(test, Lateness::Shortens, limits).ok()?;
                verdict.response_times()?;
                Some(sets.bounds(&verdict, Lateness::Shortens, limits)?.0)
            })
            .flatten();
        let mut answers: Vec<(Test, Vec<u64>)> = as_execution.into_iter().map(|bounds| (test, bounds)).collect();
        let mut failures = Vec::new();
        let mut ask = |test: Test, answer: Result<Vec<u64>, Failure>| match answer {
            Ok(bounds) => answers.push((test, bounds)),
            Err(failure) => failures.push(failure),
        };
        if let Some(levels) = &inflation.levels {
            ask(Test::LevelBusyPeriod, levels.bounds(context, &order, longest, limits));
        }
        ask(Test::SuspensionAware, waits_apart(context, &inflation, &order, &pending, longest, limits));
        if answers.is_empty() {
            return Err(failures.remove(0));
        }
        let (bounds, tests) = least(answers);
        if bounds.iter().zip(&pending).all(|(bound, pending)| bound <= pending) {
            let levels = inflation.levels.as_ref().filter(|_| tests == [Test::LevelBusyPeriod]);
            let inflation = levels.map(|levels| levels.accounting(&inflation)).unwrap_or(inflation);
            return Ok(Settled { times: bounds, tests, inflation });
        }
        for (pending, bound) in pending.iter_mut().zip(bounds) {
            *pending = bound.max(*pending);
        }
    }
    let message = format!("response times and waits did not settle within {ROUNDS_MAX} rounds");
    Err(explain::of_cluster(context, message))
}

/// The least bound on each member, and the tests that it takes: one, or all that give the least for some.
fn least(mut answers: Vec<(Test, Vec<u64>)>) -> (Vec<u64>, Vec<Test>) {
    let of = |member: usize| answers.iter().map(|(_, bounds)| bounds[member]).min().unwrap_or(u64::MAX);
    let bounds: Vec<u64> = (0..answers[0].1.len()).map(of).collect();
    if let Some((test, _)) = answers.iter().find(|(_, own)| *own == bounds) {
        return (bounds, vec![*test]);
    }
    answers.retain(|(_, own)| own.iter().zip(&bounds).any(|(own, least)| own == least));
    (bounds, answers.into_iter().map(|(test, _)| test).collect())
}

/// Bounds of the members, if jobs are pending for at least so long; which of them has none.
fn waits_apart(
    context: &Context<'_>,
    inflation: &Inflation,
    order: &[usize],
    pending: &[u64],
    longest: &[u64],
    limits: &Limits,
) -> Result<Vec<u64>, Failure> {
    let Some(apart) = &inflation.waiting else {
        let message = "waits are kept apart from execution under the safe accounting only, and not beside tasks with budgets \
                       that jobs may exhaust";
        return Err(explain::of_cluster(context, message.to_owned()));
    };
    let members: Vec<usize> = order.iter().map(|&index| context.member(index)).collect();
    let in_order = |values: &[u64]| members.iter().map(|&member| values[member]).collect::<Vec<u64>>();
    let tasks: Vec<SuspendingTask> = members.iter().map(|&member| apart.tasks[member]).collect();
    let reach: Vec<Vec<usize>> = members.iter().map(|&member| apart.reach[member].clone()).collect();
    let of: Vec<usize> = reach.iter().map(|reach| reach[0]).collect();
    let cpus: Vec<u32> = context.cluster.parts.iter().map(|part| part.cpus.len() as u32).collect();
    let queues = Queues { cpus: &cpus, of: &of, reach: &reach };
    let ranking = if context.machine.rule == PriorityRule::Edf { Ranking::Edf } else { Ranking::Listed };
    let found = response_times_across(&tasks, queues, ranking, &in_order(pending), &in_order(longest), limits);
    let found = found.map_err(|unbounded| match unbounded {
        Unbounded::OutOfSteps => {
            explain::of_cluster(context, format!("gave up after {} steps; raise the limit", limits.steps))
        }
        Unbounded::Task(at) => {
            let task = &tasks[at];
            let within = Nanos(longest[members[at]]);
            let message = match task.own > longest[members[at]] {
                true => format!("it may take {} with its waits, and has {within}", Nanos(task.own)),
                false => format!("no response-time bound within {within}; it takes {} alone", Nanos(task.own)),
            };
            Failure { test: Some(Test::SuspensionAware), ..explain::of_task(context, order[at], message) }
        }
    })?;
    let mut bounds = vec![0; found.len()];
    members.iter().zip(found).for_each(|(&member, bound)| bounds[member] = bound);
    Ok(bounds)
}

/// Whether response times and waits are to be found together.
pub(super) fn waits(context: &Context<'_>) -> bool {
    pends_longer(context) || are_told_apart(context)
}

/// Whether jobs wait for what other tests count as execution, or may be pending beyond their period.
pub(super) fn pends_longer(context: &Context<'_>) -> bool {
    let machine = context.machine;
    let may_wait = || context.members().any(|task| task.suspensions > 0 || task.deadline > task.period);
    let is_late = || !context.has_servers() && may_wait();
    machine.accounting == Accounting::Safe && (context.shares() || !machine.is_quantum_driven && is_late())
}

/// Whether bounds beyond deadlines are looked for: not of so many tasks that it takes long.
pub(super) fn may_be_late(context: &Context<'_>) -> bool {
    let machine = context.machine;
    let is_small = context.members().len() <= LATE_TASKS_MAX;
    let is_apart = context.shares() || !machine.is_quantum_driven;
    machine.accounting == Accounting::Safe && is_apart && is_small && !context.has_servers()
}

/// Whether all deadlines are met, of members that may wait.
pub(super) fn hard_by_response_times(context: &Context<'_>, limits: &Limits) -> Result<(Hard, Inflation), Failure> {
    if let Some(failure) = infeasible(context) {
        return Err(failure);
    }
    let deadlines: Vec<u64> = context.members().map(|task| task.deadline).collect();
    let Settled { times, tests, inflation } = settle(context, limits, &deadlines)?;
    let source = BoundSource::Test(tests[tests.len() - 1]);
    let finding = Finding { tests, ..Finding::proven(Test::SuspensionAware) };
    Ok((Hard { finding, bounds: Some((times, source)), inflation: None }, inflation))
}

/// Response times beyond deadlines.
pub(super) fn late(context: &Context<'_>, limits: &Limits) -> Result<Settled, Failure> {
    let longest = |task: &super::analysed_task::AnalysedTask| {
        task.deadline.max(task.period).saturating_mul(LATE_MAX).min(LONGEST_TICKS)
    };
    let longest: Vec<u64> = context.members().map(longest).collect();
    settle(context, limits, &longest)
}

/// What there is to say if nothing is proven.
pub(super) fn unproven(failure: Failure) -> Hard {
    Hard { finding: Finding::failed(Status::NotProven, vec![failure]), bounds: None, inflation: None }
}
