//! The members of a cluster with their waits apart from what they keep CPUs for: what the test needs that does not count
//! waits as execution ([`suspension`](crate::suspension)).

use super::analysed_task::AnalysedTask;
use super::context::Context;
use super::terms::{Term, Terms};
use super::waiting::{Waiting, Waits};
use crate::suspension::SuspendingTask;

/// What passes while a job keeps no CPU, unless it spins.
const WAITS: [Term; 6] =
    [Term::Suspension, Term::Gpu, Term::Jitter, Term::LockWaiting, Term::GpuWaiting, Term::EngineWaiting];

/// The members, whose inflated execution times consist of `terms`.
pub(super) fn apart(
    context: &Context<'_>,
    terms: &[Terms],
    waiting: Option<&Waiting<'_>>,
    windows: &[u64],
) -> Vec<SuspendingTask> {
    let sharing = &context.machine.sharing;
    let of = |(member, task): (usize, &AnalysedTask)| {
        let waits = waiting.map_or_else(Waits::default, |waiting| waiting.in_any_order(member, windows[member]));
        let charged = [Term::LockWaiting, Term::GpuWaiting, Term::EngineWaiting];
        let alone = charged.into_iter().fold(terms[member], Terms::without).total();
        let own = [waits.locks, waits.gpus, waits.engines].into_iter().fold(alone, u64::saturating_add);
        let executes = |term: &Term| match term {
            Term::Gpu | Term::EngineWaiting => sharing.spins,
            // On one CPU only what is below all of them delays jobs, and that once.
            Term::Blocking => !context.tests_blocking(),
            term => !WAITS.contains(term),
        };
        let kept = terms[member].iter().filter(|(term, _)| executes(term));
        let cpu = kept.fold(0, |sum: u64, (_, time)| sum.saturating_add(time.0));
        let sections = waiting.map_or(0, |waiting| waiting.sections_on_cpus(member));
        SuspendingTask {
            own,
            cpu,
            sections: sections.min(cpu),
            is_followed: !sharing.leaves_behind(context.index, task),
            early: task.early,
            period: task.period,
            deadline: task.deadline,
        }
    };
    context.members().enumerate().map(of).collect()
}
