//! Tasks that are bandwidth servers: what their budgets ask of the CPUs, and when their jobs are complete. Proof:
//! `docs/decisions/0102-throttled-jobs.md`.
//!
//! ```text
//!   job       a--g=============================c      g: when it begins, up to the jitter and L after its arrival a
//!   budgets      |###.....|###.....|###.....|#        n = ceil(C / Q) of them, P apart, each used up within R
//!                                                     c <= a + J + L + (n - 1) P + R
//! ```
//!
//! Where all budgets of a job are over before the next job begins, each job finds the server idle with a full budget. Then the
//! budgets are jobs of a sporadic task (Q, P), due P after each begins, whatever the kind of the server.

use laxity_model::{Nanos, PriorityRule, ServerKind, Step, TaskServer};

use super::analysed_task::AnalysedTask;
use super::assign::Cluster;
use super::context::{Context, Machine};
use super::hard::Hard;
use super::interrupts::releases;
use super::{Accounting, BoundSource, Failure, Finding, Status, devices, explain, safe};
use crate::Test;

/// Rounds in which the lateness of releases settles; in practice two or three.
const ROUNDS_MAX: u32 = 100;

/// The server that a task is. Times in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    kind: ServerKind,
    budget: u64,
    /// Of its own.
    period: Option<u64>,
    /// Whether its jobs arrive exactly a period apart and wait for no tokens.
    is_periodic: bool,
    /// Whether tokens release its jobs, that of a job after its predecessor is complete.
    awaits_tokens: bool,
    /// The least that a job executes.
    shortest: u64,
}

/// The jobs of a task whose budgets are analysed in its place.
#[derive(Clone, Debug)]
pub(super) struct Jobs {
    pub wcet: u64,
    pub period: u64,
    pub deadline: u64,
    pub fate: Fate,
}

/// What becomes of the jobs of a server.
#[derive(Clone, Debug)]
pub(super) enum Fate {
    /// A job is complete when the last of so many budgets is used up, which begins `offset` after its arrival.
    Served { budgets: u64, offset: u64 },
    /// They may need more than there is, so that nothing bounds them; others see no more than the budgets. Why, in words.
    Outrun(String),
    /// Nothing bounds them, and no budget is known to be used up in time; others see no more than any such server may
    /// execute in a window. Why, in words.
    Isolated(String),
    /// Nothing is known, of others either. Why, in words.
    Unknown(String),
}

/// What was found about the jobs of a cluster.
pub(super) struct Judged {
    pub finding: Finding,
    /// Response-time bounds of the members, counted from the arrival; of one that has none `None`.
    pub bounds: Option<(Vec<Option<u64>>, BoundSource)>,
    /// Whether there are tasks beside the members, which have no bounds.
    has_isolated: bool,
}

/// What a server keeps from a job of another task in a window, whatever schedules it.
pub(super) struct ServerDelay {
    pub execution: u64,
    /// How often it is given a CPU.
    pub dispatches: u64,
}

impl Server {
    /// That of a task or node whose jobs do `body`.
    pub fn new(server: TaskServer, body: &[Step], is_periodic: bool, awaits_tokens: bool) -> Server {
        let TaskServer { kind, budget, period } = server;
        let shortest = |step: &Step| if let Step::Cpu(time) = step { devices::shortest(time) } else { 0 };
        Server {
            kind,
            budget: budget.0.max(1),
            period: period.map(|period| period.0.max(1)),
            is_periodic,
            awaits_tokens,
            shortest: body.iter().map(shortest).fold(0, u64::saturating_add),
        }
    }

    /// How many jobs may execute for so long together; any number, if there are jobs that execute nothing.
    fn jobs(&self, execution: u64) -> u64 {
        execution.checked_div(self.shortest).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// The same with execution times of some thousandths, by `scale`.
    pub fn scaled(self, permille: u64) -> Server {
        let shortest = u128::from(self.shortest) * u128::from(permille) / 1_000;
        Server { shortest: u64::try_from(shortest).unwrap_or(u64::MAX), ..self }
    }
}

/// `tasks` with budgets in place of the jobs that use them up, and `clusters` without the isolated ones among their members.
pub(super) fn with_budgets(
    machine: &Machine,
    clusters: &[Cluster],
    tasks: &[AnalysedTask],
) -> (Vec<AnalysedTask>, Vec<Cluster>) {
    let (mut analysed, mut clusters) = (tasks.to_vec(), clusters.to_vec());
    for (index, cluster) in clusters.iter_mut().enumerate() {
        let all = cluster.members.clone();
        if all.iter().all(|&member| tasks[member].server.is_none()) {
            continue;
        }
        // A server has work when the release of its job has been handled, and that may be delayed by interrupts, which
        // budgets cause, too.
        let mut late = 0;
        for round in 0.. {
            for &member in &all {
                analysed[member] = served(&tasks[member], machine, late);
            }
            let is_isolated =
                |member: &&usize| matches!(&analysed[**member].jobs, Some(Jobs { fate: Fate::Isolated(_), .. }));
            cluster.isolated = all.iter().filter(is_isolated).copied().collect();
            cluster.members = all.iter().filter(|member| !is_isolated(member)).copied().collect();
            let needed = lateness(&Context { machine, index, cluster, analysed: &analysed });
            if needed <= late {
                break;
            }
            // Later than any job may be, so that none is analysed.
            late = if round < ROUNDS_MAX { needed } else { u64::MAX };
        }
    }
    (analysed, clusters)
}

/// How long after its release a job may begin at the earliest, at worst; 0 where interrupts leave no time to jobs, of which
/// nothing is proven then.
fn lateness(context: &Context<'_>) -> u64 {
    match context.machine.accounting {
        Accounting::Safe => safe::release_lag(context).unwrap_or(0),
        Accounting::Published => 0,
    }
}

/// `task` as it is analysed if releases are handled up to `late` after they are due.
fn served(task: &AnalysedTask, machine: &Machine, late: u64) -> AnalysedTask {
    let Some(server) = task.server else { return task.clone() };
    let is_edf = machine.rule == PriorityRule::Edf;
    if !is_edf && server.kind == ServerKind::CbsSoft {
        // It never waits, and keeps its priority.
        return task.clone();
    }
    let budgets = budgets(task, server);
    // A job begins up to `delay` after it arrives, and a node's up to `early` before.
    let delay = task.jitter.saturating_add(late).saturating_add(task.node.map_or(0, |tokens| tokens.held));
    let early = task.early;
    let jobs = |fate| Some(Jobs { wcet: task.wcet, period: task.period, deadline: task.deadline, fate });
    // Whatever its jobs do, if all that they do is charged to budgets.
    let is_isolated = server.kind != ServerKind::CbsSoft && in_parts(task, machine).is_none();
    let unknown = |reason| {
        let fate = if is_isolated { Fate::Isolated(reason) } else { Fate::Unknown(reason) };
        AnalysedTask { jobs: jobs(fate), ..task.clone() }
    };
    if let Some(reason) = task.unbounded() {
        return unknown(reason.to_owned());
    }
    let budget = AnalysedTask { is_synchronous: false, ..task.clone() };
    let Some(period) = server.period else {
        if task.deadline > task.period {
            return unknown(
                "its deadline is beyond its period, so that jobs may share budgets, which is not analysed; give \
                            its server a shorter period, or leave it out"
                    .to_owned(),
            );
        }
        if delay > 0 || early > 0 {
            let room = task.period.saturating_sub(delay).saturating_sub(early);
            let before = if early > 0 { format!("up to {} before, and ", Nanos(early)) } else { String::new() };
            let reason = format!(
                "its jobs may begin {before}up to {} after they arrive, so that the budget of the job before may not be over \
                 when one begins, which is not analysed; {}",
                Nanos(delay),
                way_out(room, budgets)
            );
            return unknown(reason);
        }
        if budgets == 1 {
            return task.clone();
        }
        return match cannot_share(task, server, machine) {
            Some(reason) => unknown(reason),
            None => AnalysedTask {
                wcet: server.budget,
                deadline: if is_edf { task.deadline } else { task.period },
                jobs: jobs(Fate::Outrun(outrun(task, server.budget, task.period))),
                ..budget
            },
        };
    };
    let room = task.period.saturating_sub(delay).saturating_sub(early);
    if let Some(reason) = cannot_begin_anew(task, budgets, period, room, machine) {
        return unknown(reason);
    }
    let offset = delay.saturating_add(period.saturating_mul(budgets - 1));
    let is_one = budgets == 1;
    AnalysedTask {
        wcet: if is_one { task.wcet } else { server.budget },
        period: if is_one { room } else { period },
        deadline: period,
        jitter: 0,
        early: if server.kind == ServerKind::CbsSoft { period.saturating_mul(budgets - 1) } else { 0 },
        jobs: jobs(Fate::Served { budgets, offset }),
        ..budget
    }
}

/// How many budgets a job may need, the last of which it may await only to be complete: where it uses one up exactly with
/// the last of its execution, and more than unlocking follows, it goes on when there is another, or by a later deadline.
fn budgets(task: &AnalysedTask, server: Server) -> u64 {
    let whole = task.wcet.div_ceil(server.budget).max(1);
    whole.saturating_add(u64::from(awaits_another(task, server)))
}

/// Whether a job may await one budget more than it executes for.
fn awaits_another(task: &AnalysedTask, server: Server) -> bool {
    task.wcet > 0 && task.wcet.is_multiple_of(server.budget) && !task.uses.ends_executing
}

/// Why the budgets of a server may not begin at its releases, though it has their period and jobs need several.
fn cannot_share(task: &AnalysedTask, server: Server, machine: &Machine) -> Option<String> {
    let reason = outrun(task, server.budget, task.period);
    if !server.is_periodic || server.kind == ServerKind::CbsSoft {
        return Some(reason);
    }
    in_parts(task, machine)
}

/// Why the next job, which begins no sooner than `room` after the one before, may find a budget that that one began.
fn cannot_begin_anew(task: &AnalysedTask, budgets: u64, period: u64, room: u64, machine: &Machine) -> Option<String> {
    if machine.is_quantum_driven || machine.is_dedicated || machine.accounting == Accounting::Published {
        let reason = "servers with a period of their own are analysed for event-driven scheduling with interrupts on all \
                      CPUs, safely accounted; choose that, or leave the period out";
        return Some(reason.to_owned());
    }
    if budgets.saturating_mul(period) > room || room == 0 {
        return Some(format!(
            "its jobs may need {budgets} budgets, the last of which is due {} after the first began, and the next job may \
             begin after {}, so that jobs may share a budget, which is not analysed; {}",
            Nanos(budgets.saturating_mul(period)),
            Nanos(room),
            way_out(room, budgets)
        ));
    }
    if budgets > 1 { in_parts(task, machine) } else { None }
}

/// How the budgets of a job may be over before the next one begins, no sooner than `room` after it.
fn way_out(room: u64, budgets: u64) -> String {
    match room / budgets {
        0 => "lengthen its period, or shorten what delays it".to_owned(),
        longest => format!("give its server a period of {} at most, or a larger budget", Nanos(longest)),
    }
}

/// Why jobs of several budgets are not analysed, if they are not.
fn in_parts(task: &AnalysedTask, machine: &Machine) -> Option<String> {
    if machine.is_quantum_driven || machine.is_dedicated || machine.accounting == Accounting::Published {
        let reason = "jobs of several budgets are analysed for event-driven scheduling with interrupts on all CPUs, safely \
                      accounted; choose that, or raise the budget";
        return Some(reason.to_owned());
    }
    let is_plain = task.suspensions == 0 && task.section == 0 && task.lock_requests == 0 && !task.uses_gpu();
    if let Some(server) = task.server.filter(|server| task.wcet == server.budget && awaits_another(task, *server)) {
        let reason = format!(
            "its jobs use up their budget of {} exactly before they wait or use a GPU for the last time, and then may await \
             another budget, or go on as less urgent, which is not analysed; raise the budget a little above the worst case",
            Nanos(server.budget)
        );
        return (!is_plain).then_some(reason);
    }
    let reason = "its jobs may use up their budget, and do more than execute: they suspend, or are throttled late because of \
                  a section; raise the budget to the worst case";
    (!is_plain).then(|| reason.to_owned())
}

fn outrun(task: &AnalysedTask, budget: u64, period: u64) -> String {
    format!(
        "its jobs may need {} in {}, and its server gives them {}; raise the budget, or shorten the server's period",
        Nanos(task.wcet),
        Nanos(period),
        Nanos(budget)
    )
}

/// The budget and the period of the server of an isolated task.
pub(super) fn share(task: &AnalysedTask) -> (i128, u128) {
    let (budget, own) = task.server.map_or((0, None), |server| (server.budget, server.period));
    (budget.into(), own.unwrap_or(task.period).into())
}

/// Interrupts that release jobs of an isolated task, give it budgets, and follow from its jobs, in a window.
pub(super) fn interrupts(task: &AnalysedTask, length: u64) -> u64 {
    let Some(server) = task.server else { return 0 };
    let period = server.period.unwrap_or(task.period);
    let completions = server.jobs(devices::most(server.kind, server.budget, period, length));
    // A job that tokens release waits for its predecessor, so that those that piled up come as fast as jobs are complete.
    let released = if server.awaits_tokens { completions } else { releases(task, 0, length) };
    let sent = completions.saturating_mul(task.node.map_or(0, |tokens| tokens.sent));
    // A sporadic server's budget comes back in parts, one for each time that a job could begin to use it.
    released.saturating_mul(2).saturating_add(length.div_ceil(period)).saturating_add(2).saturating_add(sent)
}

/// What the server of `other`, an isolated task, keeps from jobs of `task`.
pub(super) fn delay(context: &Context<'_>, task: usize, other: usize, length: u64) -> ServerDelay {
    let (machine, of) = (context.machine, &context.analysed[other]);
    let is_below = machine.rule != PriorityRule::Edf
        && machine.rank(task, context.analysed) < machine.rank(other, context.analysed);
    let Some(server) = of.server.filter(|_| !is_below) else { return ServerDelay { execution: 0, dispatches: 0 } };
    let period = server.period.unwrap_or(of.period);
    let execution = devices::most(server.kind, server.budget, period, length);
    // It is given a CPU for each job, of which any number may be waiting, and for each budget or part of one.
    let dispatches = server.jobs(execution).saturating_mul(2).saturating_add(length / period).saturating_add(2);
    ServerDelay { execution, dispatches }
}

/// Why nothing is known about a cluster with servers, if so.
pub(super) fn unknown(context: &Context<'_>) -> Vec<Failure> {
    let reason = |&index: &usize| match &context.analysed[index].jobs {
        Some(Jobs { fate: Fate::Unknown(reason), .. }) => Some(explain::of_task(context, index, reason.clone())),
        _ => None,
    };
    context.cluster.members.iter().filter_map(reason).collect()
}

/// Whether members share budgets when they are tardy, so that what is known of tardiness does not hold for them.
pub(super) fn shared_when_tardy(context: &Context<'_>) -> Option<Failure> {
    let is_edf = context.machine.rule == PriorityRule::Edf;
    let all = context.cluster.isolated.iter().chain(&context.cluster.members);
    let mut servers = all.filter(|&&index| is_edf && context.analysed[index].server.is_some());
    let server = servers.next()?;
    let message = "its jobs share budgets when they are tardy, and then go by other deadlines than their own; no tardiness \
                   bound is known for that";
    Some(explain::of_task(context, *server, message.to_owned()))
}

/// Whether a member shares budgets under these bounds on response times: each job of a server that has its task's period
/// finds the server idle, and its budget full, only where none is pending beyond that period.
pub(super) fn shares_when_late(context: &Context<'_>, times: &[u64]) -> Option<Failure> {
    let is_edf = context.machine.rule == PriorityRule::Edf;
    let waits = |server: Server| is_edf || server.kind != ServerKind::CbsSoft;
    let mut late = context.cluster.members.iter().zip(times).filter(|&(&index, &time)| {
        let task = &context.analysed[index];
        task.server.is_some_and(waits) && time > task.period
    });
    let (&task, &time) = late.next()?;
    let message = format!(
        "its jobs may be pending for {}, beyond its period, and then share budgets; no tardiness bound is known for that",
        Nanos(time)
    );
    Some(explain::of_task(context, task, message))
}

/// Why isolated tasks have no bounds.
fn unbounded(context: &Context<'_>) -> impl Iterator<Item = Failure> {
    let reason = move |&index: &usize| match &context.analysed[index].jobs {
        Some(Jobs { fate: Fate::Isolated(reason), .. }) => Some(explain::of_task(context, index, reason.clone())),
        _ => None,
    };
    context.cluster.isolated.iter().filter_map(reason)
}

/// What `hard` says of the jobs, once it is known of the budgets.
pub(super) fn judge(context: &Context<'_>, hard: Hard) -> Judged {
    let Hard { mut finding, bounds, .. } = hard;
    let mut failures: Vec<Failure> = unbounded(context).collect();
    let has_isolated = !failures.is_empty();
    if !finding.is_schedulable() {
        // They may be why others are not proven.
        finding.failures.splice(0..0, failures);
        return Judged { finding, bounds: None, has_isolated };
    }
    if !has_isolated && context.members().all(|task| task.jobs.is_none()) {
        return Judged { finding, bounds: bounds.map(known), has_isolated };
    }
    // Each budget is used up in time.
    let deadlines = || (context.members().map(|task| task.deadline).collect(), BoundSource::Deadline);
    let (mut times, by) = known(bounds.unwrap_or_else(deadlines));
    for (&index, time) in context.cluster.members.iter().zip(&mut times) {
        let Some(jobs) = &context.analysed[index].jobs else { continue };
        match &jobs.fate {
            Fate::Served { offset, .. } => {
                *time = time.map(|time| time.saturating_add(*offset));
                if let Some(late) = time.filter(|&time| time > jobs.deadline) {
                    failures.push(explain::of_task(context, index, too_late(late, jobs.deadline)));
                }
            }
            Fate::Outrun(reason) | Fate::Isolated(reason) | Fate::Unknown(reason) => {
                *time = None;
                failures.push(explain::of_task(context, index, reason.clone()));
            }
        }
    }
    let finding = if failures.is_empty() { finding } else { Finding::failed(Status::NotProven, failures) };
    Judged { finding, bounds: Some((times, by)), has_isolated }
}

fn known((times, by): (Vec<u64>, BoundSource)) -> (Vec<Option<u64>>, BoundSource) {
    (times.into_iter().map(Some).collect(), by)
}

fn too_late(bound: u64, deadline: u64) -> String {
    format!(
        "its last budget is used up {} after its arrival at the latest, and it has {}; raise the budget, shorten the \
         server's period, or extend the deadline",
        Nanos(bound),
        Nanos(deadline)
    )
}

impl Judged {
    /// Nothing was found.
    pub fn failed(failures: Vec<Failure>) -> Judged {
        Judged { finding: Finding::failed(Status::NotProven, failures), bounds: None, has_isolated: false }
    }

    /// That every job has a bound, though not all are within their deadlines.
    pub fn soft(&self) -> Option<Finding> {
        let (times, _) = self.bounds.as_ref()?;
        let is_bounded = !self.has_isolated && times.iter().all(Option::is_some);
        is_bounded.then(|| Finding { tests: self.finding.tests.clone(), ..Finding::proven(Test::BoundedTardiness) })
    }
}
