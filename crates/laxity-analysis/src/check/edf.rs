//! EDF on one CPU that is scheduled alone: blocking once in each busy period, and jitter as jitter ([`edf`](crate::edf)).
//!
//! The accounting charges each job for what may delay it while it is the most urgent one, so that the charges of all jobs of an
//! interval cover all that happens in it: it is true of blocking and waits, too, but far more than happens. On one CPU less urgent
//! jobs keep it only in sections that they were in, or waited for, when the interval began. So these terms are taken out of
//! execution times here, and so is jitter: a job is not pending before it is released. Decision 155 has the argument.

use laxity_model::{OverheadCosts, PriorityRule};

use super::accounting::Lateness;
use super::analysed_task::AnalysedTask;
use super::context::{Context, Inflation};
use super::counted_once::counted_once;
use super::hard::{Hard, Sets, infeasible, is_exact};
use super::terms::{Term, Terms};
use super::uses::Request;
use super::waiting::Waiting;
use super::{Accounting, BoundSource, Failure, Finding, Status, explain};
use crate::edf::{Blocking, Load, Responses, Section, demand, response_times};
use crate::gedf::uniprocessor_edf;
use crate::{Evidence, Infeasibility, Limits, Outcome, TaskSet, Test, Verdict};

/// Rounds in which bounds shorten the windows that overheads are counted in, and so themselves.
const REFINEMENTS: u32 = 2;

/// Rounds in which bounds beyond deadlines settle.
const ROUNDS_MAX: u32 = 30;

/// Tasks of a cluster whose bounds are refined, or looked for beyond deadlines, at most.
const TASKS_MAX: usize = 500;

/// A section of a member that jobs due earlier may have to wait for.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnSection {
    member: usize,
    /// The shortest interval by whose end a job may be due that it keeps waiting.
    from: u64,
    time: u64,
    /// Whether one of these at most has begun when an interval begins.
    is_once: bool,
}

/// What was decided.
pub(super) type Decision = Result<(Hard, Inflation), (Finding, Inflation)>;

/// Whether the argument holds: jobs leave the CPU to less urgent ones only when they are complete, or wait for one of these.
pub(super) fn applies(context: &Context<'_>) -> bool {
    let machine = context.machine;
    let is_alone = context.cpus() == 1 || is_lone(context);
    let is_apart = context.cluster.parts.len() == 1 && !context.has_servers();
    let is_plain =
        machine.accounting == Accounting::Safe && machine.rule == PriorityRule::Edf && !machine.is_quantum_driven;
    let never_leaves = |task: &AnalysedTask| {
        task.node.is_none()
            && task.early == 0
            && task.suspension == 0
            && task.suspensions == task.uses.demand.requests
            && task.jitter < task.deadline
    };
    is_alone
        && is_apart
        && is_plain
        && !context.uses_gpus()
        && context.members().all(never_leaves)
        && (!context.keeps_waits_apart() || has_floors_alone(context))
}

/// A task alone on several CPUs has one of them whenever it wants; where tests for several say less than for one.
fn is_lone(context: &Context<'_>) -> bool {
    let is_late = |task: &AnalysedTask| task.jitter > 0 || task.deadline > task.period;
    context.members().len() == 1 && context.members().all(is_late)
}

/// Whether all that is shared has a deadline floor, and no more urgent job finds it taken: each job is seen when it arrives, so that none
/// is kept from the CPU while another asks for a lock. A job may ask for one right where its section ends, before others are seen.
fn has_floors_alone(context: &Context<'_>) -> bool {
    let machine = context.machine;
    let asks_once =
        |task: &AnalysedTask| task.uses.requests.iter().enumerate().all(|(at, request)| request.depth == at);
    let is_seen = context.members().all(|task| task.jitter == 0 && task.section == 0 && asks_once(task))
        && machine.costs == OverheadCosts::default();
    let mut requests = context.members().flat_map(|task| &task.uses.requests);
    is_seen
        && machine.sharing.devices.is_empty()
        && requests.all(|request| machine.sharing.is_lone_ceiling(request.lock))
}

/// The sections of the members; none where this is not argued.
pub(super) fn sections(context: &Context<'_>, waiting: Option<&Waiting<'_>>) -> Vec<OwnSection> {
    if !applies(context) {
        return Vec::new();
    }
    let mut sections = Vec::new();
    for (member, task) in context.members().enumerate() {
        let asks = waiting.is_some() && !task.uses.requests.is_empty();
        if task.section > 0 && !asks {
            let time = task.section.saturating_add(context.machine.cache_delay());
            sections.push(OwnSection { member, from: 0, time, is_once: true });
        }
        if let Some(waiting) = waiting {
            if context.keeps_waits_apart() {
                sections.extend(task.uses.requests.iter().map(|request| under_floor(context, member, request)));
            } else {
                sections.extend(inherited(waiting, member, task));
            }
        }
    }
    sections
}

/// From the grant on it is due no later than a job that arrives with the shortest deadline of all users.
fn under_floor(context: &Context<'_>, member: usize, request: &Request) -> OwnSection {
    let uses = |task: &&AnalysedTask| task.uses.requests.iter().any(|other| other.lock == request.lock);
    let floor = context.members().filter(uses).map(|task| task.deadline).min().unwrap_or(0);
    OwnSection { member, from: floor, time: request.demand.wcet, is_once: true }
}

/// Its outermost sections that others may wait for: it is in one of them, or waits for it; and where one ends it may ask for the next, or
/// begin a section that cannot be preempted, before others are seen. With such sections that may be all of the job.
fn inherited(waiting: &Waiting<'_>, member: usize, task: &AnalysedTask) -> Option<OwnSection> {
    if task.section > 0 && !task.uses.requests.is_empty() {
        let time = waiting.hold_at_once(member, &task.uses.demand);
        return Some(OwnSection { member, from: 0, time, is_once: false });
    }
    let of = |request: &Request| {
        let from = waiting.first_due_of_others(member, request)?;
        Some(OwnSection { member, from, time: waiting.hold_at_once(member, &request.demand), is_once: false })
    };
    let join = |one: OwnSection, other: OwnSection| OwnSection {
        from: one.from.min(other.from),
        time: one.time.saturating_add(other.time),
        ..one
    };
    task.uses.outermost().filter_map(of).reduce(join)
}

/// The members without what is counted apart from execution.
struct Form {
    inflation: Inflation,
    set: TaskSet,
    jitter: Vec<u64>,
    blocking: Blocking,
}

impl Form {
    fn new(context: &Context<'_>, inflation: &Inflation) -> Result<Form, Failure> {
        let apart = |terms: &Terms| terms.without(Term::Blocking).without(Term::Jitter).without(Term::LockWaiting);
        let inflation = Inflation { terms: inflation.terms.iter().map(apart).collect(), ..inflation.clone() };
        let set = context.task_set(&inflation, &context.cluster.members, Lateness::Ignored)?;
        let set = set.on(1).map_err(|error| explain::of_cluster(context, error.to_string()))?;
        let jitter: Vec<u64> = context.members().map(|task| task.jitter).collect();
        let section = |own: &OwnSection| {
            let task = set.tasks()[own.member];
            // Where its job is due in the interval, that counts in full instead: no less, unless overheads are in the way.
            let early = if own.time <= task.wcet { jitter[own.member] } else { 0 };
            Section { from: own.from, until: task.deadline.saturating_sub(early), time: own.time }
        };
        let those = |is_once: bool| -> Vec<Section> {
            inflation.sections.iter().filter(|own| own.is_once == is_once).map(section).collect()
        };
        let blocking = Blocking::new(&those(true), &those(false));
        Ok(Form { inflation, set, jitter, blocking })
    }

    /// As it is, and with interrupts counted once.
    fn all(context: &Context<'_>, inflation: &Inflation) -> Result<Vec<Form>, Failure> {
        let first = Form::new(context, inflation)?;
        let second = counted_once(context, &first.inflation).map(|inflation| Form::new(context, &inflation));
        Ok([first].into_iter().chain(second.transpose()?).collect())
    }

    fn load(&self) -> Load<'_> {
        let Form { inflation, set, jitter, blocking } = self;
        Load { set, jitter, blocking, streams: &inflation.beside }
    }

    fn decide(&self, limits: &Limits) -> Verdict {
        let load = self.load();
        if load.is_plain() {
            return uniprocessor_edf(&self.set, limits);
        }
        let Verdict { test, outcome } = demand(load, limits);
        let test = if self.inflation.beside.is_empty() { test } else { Test::UniprocessorEdfInterrupts };
        Verdict { test, outcome }
    }
}

/// Whether all deadlines are met; response-time bounds only if `with_bounds`. `None` where this is not argued, or no test is
/// needed to see that they are not.
pub(super) fn hard(context: &Context<'_>, limits: &Limits, with_bounds: bool) -> Option<Decision> {
    if !applies(context) || infeasible(context).is_some() {
        return None;
    }
    let inflation = context.inflate(None).ok()?;
    let forms = Form::all(context, &inflation).ok()?;
    let mut failures = Vec::new();
    for form in &forms {
        let verdict = form.decide(limits);
        if verdict.is_schedulable() {
            let bounds = with_bounds.then(|| bounds(context, limits, &forms, &inflation)).flatten();
            let hard = Hard { finding: Finding::proven(verdict.test), bounds, inflation: None };
            return Some(Ok((hard, form.inflation.clone())));
        }
        let failure = explain::of_verdict(context, &verdict, &form.set, &context.cluster.members);
        if matches!(verdict.outcome, Outcome::Infeasible(_)) && is_exact(context, &inflation) {
            let finding = Finding::failed(Status::Infeasible, vec![failure]);
            return Some(Err((finding, form.inflation.clone())));
        }
        // That interrupts leave no time says less than what the other form says.
        let is_of_use = form.inflation.beside.is_empty() || !matches!(verdict.outcome, Outcome::NotApplicable(_));
        if is_of_use || matches!(verdict.outcome, Outcome::Infeasible(Infeasibility::Window { .. })) {
            failures.push(failure);
        }
    }
    failures.sort_by_key(|failure| (failure.interval.is_none(), failure.task.is_none()));
    let inflation = forms.into_iter().next()?.inflation;
    Some(Err((Finding::failed(Status::NotProven, failures), inflation)))
}

/// Bounds on response times where all deadlines are met.
fn bounds(
    context: &Context<'_>,
    limits: &Limits,
    forms: &[Form],
    inflation: &Inflation,
) -> Option<(Vec<u64>, BoundSource)> {
    let deadlines: Vec<u64> = context.members().map(|task| task.deadline).collect();
    let mut best = deadlines.clone();
    let mut is_complete = shorten(&mut best, forms, limits);
    let costs = context.machine.costs != OverheadCosts::default();
    let rounds = if costs && best.len() <= TASKS_MAX { REFINEMENTS } else { 0 };
    for _ in 0..rounds {
        // No job is pending for longer, so that no more falls within its window.
        let Ok(forms) = context.inflate(Some(&best)).and_then(|inflation| Form::all(context, &inflation)) else {
            break;
        };
        let before = best.clone();
        is_complete |= shorten(&mut best, &forms, limits);
        if best == before {
            break;
        }
    }
    let mut test = Test::UniprocessorEdfResponse;
    if !is_complete {
        let sets = Sets { context, inflation, order: context.cluster.members.clone() };
        let proven = Verdict { test: Test::UniprocessorEdf, outcome: Outcome::Schedulable(Evidence::Condition) };
        if let Some((times, BoundSource::Test(by))) = sets.bounds(&proven, Lateness::Shortens, limits) {
            best.iter_mut().zip(times).for_each(|(best, time)| *best = time.min(*best));
            test = by;
        }
    }
    (is_complete || best != deadlines).then_some((best, BoundSource::Test(test)))
}

/// Answers whether some analysis looked at all candidates.
fn shorten(best: &mut [u64], forms: &[Form], limits: &Limits) -> bool {
    let mut is_complete = false;
    for form in forms {
        if let Ok(Responses { times, is_complete: all }) = response_times(form.load(), limits) {
            is_complete |= all;
            best.iter_mut().zip(times).for_each(|(best, time)| *best = time.min(*best));
        }
    }
    is_complete
}

/// Bounds on response times where not all deadlines are met, and the accounting under which they hold.
pub(super) fn late(context: &Context<'_>, limits: &Limits) -> Option<(Vec<u64>, Inflation)> {
    if !applies(context) || context.members().len() > TASKS_MAX {
        return None;
    }
    let mut pending: Vec<u64> = context.members().map(|task| task.deadline).collect();
    for _ in 0..ROUNDS_MAX {
        let form = Form::new(context, &context.inflate(Some(&pending)).ok()?).ok()?;
        let times = response_times(form.load(), limits).ok()?.times;
        if times.iter().zip(&pending).all(|(time, pending)| time <= pending) {
            return Some((times, form.inflation));
        }
        pending.iter_mut().zip(times).for_each(|(pending, time)| *pending = time.max(*pending));
    }
    None
}
