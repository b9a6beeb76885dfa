//! One CPU under fixed priorities, busy period by busy period: what the analysis of
//! [`level_busy_period`](crate::fixed_priority::level_busy_period) needs, and where it is argued. Proof:
//! `docs/decisions/0156-busy-periods-of-a-priority.md`.
//!
//! The other tests charge jitter as execution, and a wait for each job of another task that may hold a lock. On one CPU whose jobs
//! never suspend themselves but to wait for locks, more is known. In a busy period of level i (some job of task i or above is
//! pending) the CPU always executes such a job, or a job below for whose lock one of these waits.
//! A job below asks for nothing outside of that, so that it has only what it asked for before the busy period began:
//!
//! - **one outermost section of each task below**, whatever the protocol, whose locks jobs of i or above ask for;
//! - **no ceilings**: these are left to the other tests;
//! - **sections that follow one another at once count as one**: a job that unlocks one resource and asks for another at that
//!   very instant has the other before anything else can run. So does one that asks at the end of a non-preemptive section.
//!
//! That jobs of level i or above wait for one another adds nothing, for the CPU executes one of them.

use laxity_model::{Nanos, OverheadCosts, PriorityRule};

use super::context::{Context, Inflation};
use super::explain;
use super::lock_groups::LockGroups;
use super::terms::{Term, Terms};
use super::uses::{Lock, Request};
use super::{Accounting, Failure};
use crate::fixed_priority::{LevelTask, level_response_times};
use crate::suspension::Unbounded;
use crate::{Limits, Test};

/// The members of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Levels {
    /// Each of them.
    tasks: Vec<LevelTask>,
    /// What makes up the execution time of each, if only this analysis is asked.
    terms: Vec<Terms>,
}

/// Whether a cluster is such a CPU.
pub(super) fn are_argued(context: &Context<'_>) -> bool {
    let machine = context.machine;
    let sharing = &machine.sharing;
    let is_alone = context.cpus() == 1 && context.cluster.parts.len() == 1 && sharing.devices.is_empty();
    let is_fixed = !matches!(machine.rule, PriorityRule::Edf | PriorityRule::Fair) && !machine.is_quantum_driven;
    let is_safe = machine.accounting == Accounting::Safe && !context.has_servers() && !context.keeps_waits_apart();
    // A ceiling does not keep all others out in the simulator; see the decision.
    let is_resource = |request: &Request| {
        let is_argued = !sharing.has_ceiling(request.lock);
        matches!(request.lock, Lock::Resource(_)) && !sharing.has_replicas(request.lock) && is_argued
    };
    is_alone
        && is_fixed
        && is_safe
        && context.members().all(|task| {
            let is_plain = task.node.is_none() && task.early == 0 && task.suspension == 0 && task.server.is_none();
            let waits_for_locks_only = task.suspensions == task.lock_requests && !task.uses_gpu();
            is_plain && waits_for_locks_only && task.uses.requests.iter().all(is_resource)
        })
}

/// Whether a cluster is such a CPU, and has what other tests know less of.
pub(super) fn are_told_apart(context: &Context<'_>) -> bool {
    let is_free = is_free(context);
    let more = || context.members().any(|task| task.jitter > 0 || is_free && task.uses.ending > 0);
    are_argued(context) && (context.shares() || more())
}

/// Whether nothing costs anything but jobs.
fn is_free(context: &Context<'_>) -> bool {
    context.machine.costs == OverheadCosts::default()
}

impl Levels {
    /// `terms`: what each execution time consists of; `sections`: the longest non-preemptive section below each; `dispatch`: what
    /// it takes to give the CPU to a holder.
    pub fn new(context: &Context<'_>, terms: &[Terms], sections: &[u64], dispatch: u64) -> Levels {
        let is_free = is_free(context);
        let groups = LockGroups::of(context);
        let order = context.machine.by_priority(&context.cluster.members, context.analysed);
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, &index)| places[context.member(index)] = place);
        let below = Below { context, groups: &groups, places: &places, dispatch };
        let mut levels = Levels { tasks: Vec::new(), terms: Vec::new() };
        for (member, task) in context.members().enumerate() {
            let section = if is_free { sections[member] } else { terms[member].get(Term::Blocking).0 };
            let of_holders = below.sections(places[member], &order);
            // It waits for jobs above, too, and they for it: then the CPU goes to and fro.
            let requests = task.lock_requests.saturating_mul(dispatch);
            let mut own = terms[member].without(Term::Blocking).without(Term::LockWaiting);
            own.add(Term::LockWaiting, requests);
            let jitter = own.get(Term::Jitter).0;
            levels.tasks.push(LevelTask {
                wcet: own.without(Term::Jitter).total().max(1),
                // What overheads do to a job meanwhile is that of others which come later.
                last: if is_free { task.uses.ending } else { 0 },
                blocking: of_holders.saturating_add(section),
                jitter,
                period: task.period,
            });
            own.add(Term::Blocking, section);
            own.add(Term::LockWaiting, of_holders);
            levels.terms.push(own);
        }
        levels
    }

    /// Bounds of the members, each within its `longest`.
    ///
    /// # Errors
    /// Which has none.
    pub fn bounds(
        &self,
        context: &Context<'_>,
        order: &[usize],
        longest: &[u64],
        limits: &Limits,
    ) -> Result<Vec<u64>, Failure> {
        let members: Vec<usize> = order.iter().map(|&index| context.member(index)).collect();
        let tasks: Vec<LevelTask> = members.iter().map(|&member| self.tasks[member]).collect();
        let within: Vec<u64> = members.iter().map(|&member| longest[member]).collect();
        let found = level_response_times(&tasks, &within, limits).map_err(|unbounded| match unbounded {
            Unbounded::OutOfSteps => {
                explain::of_cluster(context, format!("gave up after {} steps; raise the limit", limits.steps))
            }
            Unbounded::Task(at) => {
                let message = format!("no response-time bound within the {} it has", Nanos(within[at]));
                Failure { test: Some(Test::LevelBusyPeriod), ..explain::of_task(context, order[at], message) }
            }
        })?;
        let mut bounds = vec![0; found.len()];
        members.iter().zip(found).for_each(|(&member, bound)| bounds[member] = bound);
        Ok(bounds)
    }

    /// The accounting if bounds are those of this analysis alone.
    pub fn accounting(&self, inflation: &Inflation) -> Inflation {
        Inflation { terms: self.terms.clone(), ..inflation.clone() }
    }
}

/// What jobs below may hold.
struct Below<'a> {
    context: &'a Context<'a>,
    groups: &'a LockGroups,
    /// The place of each member in the order of falling priorities.
    places: &'a [usize],
    dispatch: u64,
}

impl Below<'_> {
    /// For how long jobs below `place` may execute in a busy period of that level because jobs of the level wait for their locks.
    fn sections(&self, place: usize, order: &[usize]) -> u64 {
        order[place + 1..].iter().map(|&index| self.sections_of(place, index)).fold(0, u64::saturating_add)
    }

    /// The longest of a task, of several that follow one another at once if so.
    fn sections_of(&self, place: usize, index: usize) -> u64 {
        let (mut longest, mut row) = (0u64, 0u64);
        for request in self.context.analysed[index].uses.outermost() {
            if !request.follows_at_once {
                row = 0;
            }
            let users = &self.groups.of_request(request).users;
            if users.iter().any(|&user| self.places[user] <= place) {
                row = row.saturating_add(self.hold(request));
                longest = longest.max(row);
            }
        }
        longest
    }

    /// How long a section takes if others keep out; it may have to wait for inner locks.
    fn hold(&self, request: &Request) -> u64 {
        let dispatches = request.demand.suspensions.saturating_add(1).saturating_mul(self.dispatch);
        request.demand.wcet.saturating_add(dispatches)
    }
}
