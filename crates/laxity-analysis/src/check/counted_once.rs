//! Interrupts counted once, on a CPU that is scheduled alone.
//!
//! The safe accounting charges each job for all interrupts within its window, so that an interrupt counts for every job that
//! is pending when it comes. On one CPU all these jobs are delayed by it together: it is counted once in each interval,
//! beside their demand. All other terms stay charged to jobs. Decision 132 has the argument.

use super::Accounting;
use super::context::{Context, Inflation};
use super::safe;
use super::terms::Term;
use crate::overheads::InterruptStream;

/// The same accounting with interrupts that release jobs, and ticks, beside the jobs; `None` where that is not argued, or where
/// neither costs anything.
pub(super) fn counted_once(context: &Context<'_>, inflation: &Inflation) -> Option<Inflation> {
    let machine = context.machine;
    let is_alone = context.cpus() == 1 && context.cluster.parts.len() == 1;
    let is_plain = machine.accounting == Accounting::Safe && !machine.is_quantum_driven;
    // What depends on others beside the CPU, or arrives by no clock, has windows of its own.
    let is_shared = context.shares() || context.has_servers();
    let are_alike = context.members().all(|task| task.node.is_none() && task.suspensions == 0 && task.early == 0);
    let costs = &machine.costs;
    if !is_alone || !is_plain || is_shared || !are_alike || costs.release.is_zero() && costs.tick.is_zero() {
        return None;
    }
    let deadlines: Vec<u64> = context.members().map(|task| task.deadline).collect();
    // No job is pending for longer than its deadline until the first one misses it.
    let lag = safe::lag(context, &deadlines).ok()?;
    let tick = InterruptStream { cost: costs.tick.0, period: machine.tick, ahead: lag };
    let mut beside = vec![tick];
    let mut terms = inflation.terms.clone();
    terms.iter_mut().for_each(|terms| *terms = terms.without(Term::Ticks).without(Term::OtherReleases));
    if !machine.is_dedicated {
        beside.extend(context.members().map(|task| InterruptStream {
            cost: costs.release.0,
            period: task.period,
            ahead: lag.saturating_add(task.released_late(task.deadline)),
        }));
        terms.iter_mut().for_each(|terms| *terms = terms.without(Term::OwnReleases));
    }
    beside.retain(|stream| stream.cost > 0);
    Some(Inflation { terms, beside, ..inflation.clone() })
}
