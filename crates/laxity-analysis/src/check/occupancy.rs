//! The members of a cluster with their waits apart from what they keep CPUs for: what the test needs that does not count
//! waits as execution ([`suspension`](crate::suspension)).
//!
//! Under quanta ([`Apart`], `docs/decisions/0130-waits-under-quanta.md`) a job keeps a CPU from the boundary at which it is linked to
//! one: if it leaves amid a quantum, for the rest of that, too. And the scheduler acts on what becomes ready or more urgent no
//! sooner than at the next boundary of each CPU.

use laxity_model::PriorityRule;

use super::analysed_task::AnalysedTask;
use super::context::Context;
use super::terms::{Term, Terms};
use super::waiting::{Waiting, Waits};
use crate::suspension::SuspendingTask;

/// What passes while a job keeps no CPU, unless it spins.
const WAITS: [Term; 6] =
    [Term::Suspension, Term::Gpu, Term::Jitter, Term::LockWaiting, Term::GpuWaiting, Term::EngineWaiting];

/// Waits for what others hold.
const FOR_HOLDERS: [Term; 3] = [Term::LockWaiting, Term::GpuWaiting, Term::EngineWaiting];

/// What passes while a job executes, suspends itself or has a GPU, or before it is released: not while it waits for a holder.
const OF_ITS_OWN: [Term; 4] = [Term::Execution, Term::Suspension, Term::Gpu, Term::Jitter];

/// The members of a cluster.
#[derive(Clone, Debug)]
pub(super) struct Apart {
    /// Each of them.
    pub tasks: Vec<SuspendingTask>,
    /// Of each: the parts of the cluster whose jobs may keep a CPU from it, or from what it waits for; its own first.
    pub reach: Vec<Vec<usize>>,
}

/// The members, whose inflated execution times consist of `terms`.
pub(super) fn apart(context: &Context<'_>, terms: &[Terms], waiting: Option<&Waiting<'_>>, windows: &[u64]) -> Apart {
    let machine = context.machine;
    let order = machine.by_priority(&context.cluster.members, context.analysed);
    let mut places = vec![0; order.len()];
    order.iter().enumerate().for_each(|(place, &index)| places[context.member(index)] = place);
    let of = |(member, task): (usize, &AnalysedTask)| {
        let waits = waiting.map_or_else(Waits::default, |waiting| waiting.in_any_order(member, windows[member]));
        let waits = [waits.locks, waits.gpus, waits.engines].into_iter().fold(0, u64::saturating_add);
        let raised_from = match machine.rule {
            PriorityRule::Edf | PriorityRule::Fair => 0,
            _ => waiting.map_or(0, |waiting| waiting.raised_from(member, &places)),
        };
        let member = Member { context, task, terms: &terms[member], waits, waiting, member, raised_from };
        if machine.is_quantum_driven { member.under_quanta() } else { member.event_driven() }
    };
    let tasks = context.members().enumerate().map(of).collect();
    let own = |member: usize| vec![context.cluster.part_of(context.cluster.members[member])];
    let reach = |member| waiting.map_or_else(|| own(member), |waiting| waiting.reach(member));
    Apart { tasks, reach: (0..terms.len()).map(reach).collect() }
}

struct Member<'a, 'w> {
    context: &'a Context<'a>,
    task: &'a AnalysedTask,
    terms: &'a Terms,
    /// For what others hold, as long as something that it waits for makes progress.
    waits: u64,
    waiting: Option<&'w Waiting<'a>>,
    member: usize,
    raised_from: usize,
}

impl Member<'_, '_> {
    /// The sum of those terms that `counts`.
    fn sum(&self, counts: impl Fn(Term) -> bool) -> u64 {
        let counted = self.terms.iter().filter(|&(term, _)| counts(term));
        counted.fold(0, |sum: u64, (_, time)| sum.saturating_add(time.0))
    }

    /// Whether a job keeps its CPU meanwhile.
    fn executes(&self, term: Term) -> bool {
        match term {
            Term::Gpu | Term::EngineWaiting => self.context.machine.sharing.spins,
            // On one CPU only what is below all of them delays jobs, and that once.
            Term::Blocking => !self.context.tests_blocking(),
            term => !WAITS.contains(&term),
        }
    }

    fn event_driven(&self) -> SuspendingTask {
        let own = self.sum(|term| !FOR_HOLDERS.contains(&term)).saturating_add(self.waits);
        let cpu = self.sum(|term| self.executes(term));
        let sections = self.waiting.map_or(0, |waiting| waiting.sections_on_cpus(self.member));
        let waits = own.saturating_sub(self.sum(|term| OF_ITS_OWN.contains(&term)));
        self.with(own, waits, cpu, sections.min(cpu))
    }

    fn under_quanta(&self) -> SuspendingTask {
        let (machine, quantum) = (self.context.machine, self.context.machine.quantum);
        // Ticks and rounding are those of what is counted here.
        let is_own = |term: Term| !matches!(term, Term::Ticks | Term::Rounding);
        let (sections, dispatches, nested) = self.waiting.map_or((0, 0, 0), |waiting| {
            let dispatches = waiting.dispatches_in_sections(self.member);
            (waiting.sections_on_cpus(self.member), dispatches, waiting.nested_requests(self.member))
        });
        let notices = 1u64.saturating_add(self.task.suspensions).saturating_add(nested);
        let alone = self.sum(|term| is_own(term) && !FOR_HOLDERS.contains(&term));
        let late = notices.saturating_mul(machine.lateness());
        let own = alone.saturating_add(self.waits).saturating_add(late);
        let waits = machine.in_quanta(own.saturating_sub(self.sum(|term| OF_ITS_OWN.contains(&term))));
        let own = machine.in_quanta(own);
        let cpu = machine.in_quanta(self.sum(|term| is_own(term) && self.executes(term)));
        // A section is displaced no more often than its job is.
        let displaced = self.sum(|term| matches!(term, Term::Cache | Term::Displacement));
        let sections = if sections > 0 { machine.in_quanta(sections.saturating_add(displaced)) } else { 0 };
        let rests = |departures: u64| departures.saturating_mul(quantum);
        let (rest, rest_of_sections) = (rests(1 + self.task.suspensions), rests(dispatches));
        let may_overlap = machine.is_staggered && self.context.cpus() > 1;
        if may_overlap {
            // It may be given a CPU while another still has the rest of its quantum.
            let task = self.with(own, waits, cpu, sections.min(cpu));
            return SuspendingTask { rest, rest_of_sections: rest_of_sections.min(rest), after: quantum, ..task };
        }
        // What is left of the last quantum is in `cpu` already, as it is in whole quanta.
        let cpu = cpu.saturating_add(rest - quantum);
        let sections = sections.saturating_add(rest_of_sections).min(cpu);
        SuspendingTask { after: quantum, ..self.with(own, waits, cpu, sections) }
    }

    fn with(&self, own: u64, waits: u64, cpu: u64, sections: u64) -> SuspendingTask {
        SuspendingTask {
            own,
            waits,
            requests: self.task.lock_requests,
            cpu,
            sections,
            raised_from: self.raised_from,
            rest: 0,
            rest_of_sections: 0,
            after: 0,
            is_followed: !self.context.machine.sharing.leaves_behind(self.context.index, self.task),
            early: self.task.early,
            period: self.task.period,
            deadline: self.task.deadline,
            ends_waiting: !self.task.uses.ends_executing,
        }
    }
}
