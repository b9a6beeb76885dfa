//! Whether no job of a cluster ever misses its deadline: any of the tests, on inflated execution times.

use std::cmp::Ordering;

use laxity_model::{Nanos, PriorityRule};

use super::accounting::Lateness;
use super::analysed_task::AnalysedTask;
use super::context::{Context, Inflation};
use super::counted_once::counted_once;
use super::explain;
use super::{Accounting, BoundSource, Failure, Finding, Status};
use crate::gedf::{rta, run_test, uniprocessor_edf_interrupts};
use crate::soft::check_bounded;
use crate::{
    AnalysisTask, Infeasibility, Limits, Outcome, Reason, TaskSet, TaskSetError, Test, Verdict, fixed_priority,
};

/// What was found about a cluster.
pub(super) struct Hard {
    pub finding: Finding,
    /// Response-time bounds of the members in ticks, counted from the arrival; `None` where no test gives one.
    pub bounds: Option<(Vec<u64>, BoundSource)>,
    /// The accounting by which it is proven, if that is not the one that was asked about.
    pub inflation: Option<Inflation>,
}

impl Hard {
    /// No scheduler could do it.
    pub fn infeasible(failure: Failure) -> Hard {
        Hard { finding: Finding::failed(Status::Infeasible, vec![failure]), bounds: None, inflation: None }
    }
}

/// A test and the form of the set that it may be asked about.
type Attempt = (Test, Lateness);

/// Sets of a cluster in each form, built when they are needed.
pub(super) struct Sets<'a> {
    pub context: &'a Context<'a>,
    pub inflation: &'a Inflation,
    /// The analysed in the order of the set.
    pub order: Vec<usize>,
}

/// Decides; response-time bounds only if `with_bounds`.
pub(super) fn hard(context: &Context<'_>, inflation: &Inflation, limits: &Limits, with_bounds: bool) -> Hard {
    if let Some(failure) = infeasible(context) {
        return Hard::infeasible(failure);
    }
    let order = context.machine.by_priority(&context.cluster.members, context.analysed);
    let sets = Sets { context, inflation, order };
    let mut failures = Vec::new();
    for (test, lateness) in attempts(context, inflation) {
        let (set, verdict) = match sets.ask(test, lateness, limits) {
            Ok(answer) => answer,
            Err(failure) => {
                failures.push(failure);
                continue;
            }
        };
        if verdict.is_schedulable() {
            let bounds = with_bounds.then(|| sets.bounds(&verdict, lateness, limits)).flatten();
            return Hard { finding: Finding::proven(test), bounds, inflation: None };
        }
        if verdict.test != Test::Trivial || !matches!(verdict.outcome, Outcome::NotApplicable(_)) {
            let told = if is_exact(context, inflation) { verdict.clone() } else { as_unproven(&verdict) };
            failures.push(explain::of_verdict(context, &told, &set, &sets.order));
        }
        if matches!(verdict.outcome, Outcome::Infeasible(_)) {
            if is_exact(context, inflation) {
                return Hard { finding: Finding::failed(Status::Infeasible, failures), bounds: None, inflation: None };
            }
            if lateness != Lateness::Charged {
                break;
            }
        }
    }
    match by_interrupts_once(context, inflation, limits, with_bounds) {
        Some(Ok(hard)) => return hard,
        Some(Err(failure)) => failures.push(failure),
        None => {}
    }
    // The most telling first: with an interval, then with a task; what did not apply last.
    failures.sort_by_key(|failure| (failure.interval.is_none(), failure.task.is_none()));
    Hard { finding: Finding::failed(Status::NotProven, failures), bounds: None, inflation: None }
}

/// What a test that is exact says of tasks whose execution times contain what does not execute: a response time that exceeds a
/// deadline there may be shorter.
fn as_unproven(verdict: &Verdict) -> Verdict {
    match verdict.outcome {
        Outcome::Infeasible(Infeasibility::ResponseTime { task, deadline }) => {
            Verdict { outcome: Outcome::NotProven(Reason::ResponseTime { task, deadline }), ..*verdict }
        }
        _ => verdict.clone(),
    }
}

/// The same on a CPU that is scheduled alone, with interrupts beside the jobs; `None` where that is not to be asked.
fn by_interrupts_once(
    context: &Context<'_>,
    inflation: &Inflation,
    limits: &Limits,
    with_bounds: bool,
) -> Option<Result<Hard, Failure>> {
    let inflation = counted_once(context, inflation)?;
    let test = match context.machine.rule {
        PriorityRule::Edf => Test::UniprocessorEdfInterrupts,
        _ => Test::UniprocessorFixedPriorityInterrupts,
    };
    let order = context.machine.by_priority(&context.cluster.members, context.analysed);
    let sets = Sets { context, inflation: &inflation, order };
    let (set, verdict) = match sets.ask(test, Lateness::Shortens, limits) {
        Ok(answer) => answer,
        Err(failure) => return Some(Err(failure)),
    };
    match verdict.outcome {
        Outcome::Schedulable(_) => {
            // Response-time analysis of several CPUs knows no handlers beside jobs.
            let bounds = verdict.response_times().filter(|_| with_bounds).map(|times| sets.of_members(times, 0));
            let bounds = bounds.map(|times| (times, BoundSource::Test(test)));
            Some(Ok(Hard { finding: Finding::proven(test), bounds, inflation: Some(inflation) }))
        }
        Outcome::NotApplicable(_) => None,
        _ => Some(Err(explain::of_verdict(context, &verdict, &set, &sets.order))),
    }
}

/// The tests to ask, in order of cost.
///
/// A quantum-driven scheduler acts late. Tests by demand allow that releases are late while deadlines stay, so they get
/// shorter periods and deadlines. Response-time analysis and Baker's test compare relative deadlines, which then vary
/// from job to job: under the safe accounting they see the lateness as execution.
fn attempts(context: &Context<'_>, inflation: &Inflation) -> Vec<Attempt> {
    use Lateness::{Charged, Shortens};
    let machine = context.machine;
    if machine.rule != PriorityRule::Edf {
        let test = if context.cpus() == 1 { Test::UniprocessorFixedPriority } else { Test::GlobalFixedPriority };
        return vec![(test, Shortens)];
    }
    if context.cpus() == 1 {
        return vec![(Test::UniprocessorEdf, Shortens)];
    }
    let by_relative_deadlines =
        if inflation.late > 0 && machine.accounting == Accounting::Safe { Charged } else { Shortens };
    vec![
        (Test::Trivial, Shortens),
        (Test::Gfb, Shortens),
        (Test::Bak, by_relative_deadlines),
        (Test::Rta, by_relative_deadlines),
        (Test::FfDbf, Shortens),
        (Test::Bar, Shortens),
    ]
}

impl Sets<'_> {
    pub fn ask(&self, test: Test, lateness: Lateness, limits: &Limits) -> Result<(TaskSet, Verdict), Failure> {
        let set = match test {
            Test::Rta => self.context.task_set(&self.with_early_jobs(), &self.order, lateness)?,
            _ => self.context.task_set(self.inflation, &self.order, lateness)?,
        };
        let verdict = match test {
            Test::UniprocessorFixedPriority => fixed_priority::uniprocessor(&set, &self.blocking(), limits),
            Test::UniprocessorEdfInterrupts => uniprocessor_edf_interrupts(&set, &self.inflation.beside, limits),
            Test::UniprocessorFixedPriorityInterrupts => {
                fixed_priority::uniprocessor_interrupts(&set, &self.blocking(), &self.inflation.beside, limits)
            }
            Test::Rta => rta(&set, limits),
            test => run_test(&set, test, limits),
        };
        Ok((set, verdict))
    }

    /// Tests by demand count jobs by their deadlines, which early releases leave as they are. Response-time analysis
    /// counts those that arrive up to the response, and a node may run some more.
    fn with_early_jobs(&self) -> Inflation {
        let mut inflation = self.inflation.clone();
        if self.context.machine.rule != PriorityRule::Edf {
            return inflation;
        }
        let early = |(task, terms): (&AnalysedTask, &super::Terms)| terms.total().saturating_mul(task.early_jobs());
        let early: Vec<u64> = self.context.members().zip(&self.inflation.terms).map(early).collect();
        let all = early.iter().fold(0, |sum: u64, &one| sum.saturating_add(one));
        for (terms, own) in inflation.terms.iter_mut().zip(early) {
            terms.add(super::Term::EarlyJobs, all - own);
        }
        inflation
    }

    /// What lower priorities may delay each task by, in the order of the set, where the set does not contain it.
    fn blocking(&self) -> Vec<u64> {
        if !self.context.tests_blocking() {
            return Vec::new();
        }
        let of = |&index: &usize| self.inflation.terms[self.context.member(index)].get(super::Term::Blocking).0;
        self.order.iter().map(of).collect()
    }

    /// The bounds that the accepting verdict comes with, else those of response-time analysis if it accepts, too.
    pub fn bounds(&self, verdict: &Verdict, lateness: Lateness, limits: &Limits) -> Option<(Vec<u64>, BoundSource)> {
        let late = self.inflation.late;
        let (test, bounds, late) = match verdict.response_times() {
            Some(bounds) => (verdict.test, bounds.to_vec(), if lateness == Lateness::Shortens { late } else { 0 }),
            None => {
                let safe = self.context.machine.accounting == Accounting::Safe;
                let (lateness, late) = if safe { (Lateness::Charged, 0) } else { (Lateness::Shortens, late) };
                let set = self.context.task_set(&self.with_early_jobs(), &self.order, lateness).ok()?;
                (Test::Rta, rta(&set, limits).response_times()?.to_vec(), late)
            }
        };
        Some((self.of_members(&bounds, late), BoundSource::Test(test)))
    }

    /// Bounds in the order of the set, and `late` more, in the order of the members.
    fn of_members(&self, bounds: &[u64], late: u64) -> Vec<u64> {
        let mut of_members = vec![0; bounds.len()];
        for (&index, bound) in self.order.iter().zip(bounds) {
            of_members[self.context.member(index)] = bound.saturating_add(late);
        }
        of_members
    }
}

/// What no scheduler could do, overheads or not: a job that cannot complete in time alone, or more work than CPUs.
pub(super) fn infeasible(context: &Context<'_>) -> Option<Failure> {
    for (&index, task) in context.cluster.members.iter().zip(context.members()) {
        let alone = task.wcet.saturating_add(task.suspension);
        // A budget says nothing about other schedulers.
        if task.jobs.is_none() && (alone > task.deadline || task.wcet > task.period) {
            let message = format!(
                "it needs {} and has {}; lower its execution time",
                Nanos(alone),
                Nanos(task.deadline.min(task.period))
            );
            return Some(explain::of_task(context, index, message));
        }
    }
    overload(context)
}

/// More work than CPUs.
pub(super) fn overload(context: &Context<'_>) -> Option<Failure> {
    let set = raw_set(context).ok()?;
    if set.compare_utilization_to_cpus() != Ordering::Greater {
        return None;
    }
    let (utilization, cpus) = (explain::utilization(&set), explain::counted_cpus(context.cpus()));
    Some(explain::of_cluster(context, format!("utilization {utilization} exceeds {cpus}, overheads not counted")))
}

/// What tardiness that grows without bound needs: a task that demands more than its period, or an overload.
pub(super) fn unbounded(context: &Context<'_>) -> Option<Failure> {
    let set = raw_set(context).ok()?;
    match check_bounded(&set) {
        Err(Infeasibility::Window { task, wcet, window }) => {
            let message = format!("it needs {} every {}; lower its execution time", Nanos(wcet), Nanos(window));
            Some(explain::of_task(context, context.cluster.members[task], message))
        }
        Err(_) => overload(context),
        Ok(()) => None,
    }
}

/// The members as they are. Jobs of no CPU time at all count with a tick, which no utilization shows that matters.
fn raw_set(context: &Context<'_>) -> Result<TaskSet, TaskSetError> {
    let tasks = context.members().map(AnalysedTask::raw);
    let tasks = tasks.map(|(wcet, period, deadline)| AnalysisTask::new(wcet.max(1), period, deadline));
    TaskSet::new(context.cpus(), tasks.collect())
}

/// Whether an exact test's "infeasible" is true of the tasks themselves: nothing was added, and all may arrive at once.
pub(super) fn is_exact(context: &Context<'_>, inflation: &Inflation) -> bool {
    let plain = |(task, terms): (&AnalysedTask, &super::Terms)| {
        task.is_synchronous && terms.total() == task.wcet && task.wcet > 0
    };
    context.cpus() == 1 && inflation.late == 0 && context.members().zip(&inflation.terms).all(plain)
}
