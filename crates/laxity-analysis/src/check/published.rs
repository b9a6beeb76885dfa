//! Accounting as published: [`overheads`](crate::overheads), with what it leaves to the caller added before; for
//! clusters that use GPUs that of [`klmirqd`](crate::klmirqd).

use laxity_model::{Nanos, OverheadCosts, Quanta, ReleaseInterrupts};

use super::analysed_task::AnalysedTask;
use super::context::{Context, Inflation};
use super::published_gpu;
use super::safe::longest_sections;
use super::terms::{Term, Terms};
use super::waiting::{Holding, Waiting};
use crate::AnalysisTask;
use crate::overheads::{
    Charges, InterruptLag, QuantumInterrupts, QuantumTiming, System, Windows, preemption_centric, quantum, task_centric,
};

/// Hard: task-centric. Soft: preemption-centric, and quantum-centric under quanta. Blocking, self-suspensions, waits for
/// resources and jitter count as execution; what a suspension costs in scheduling is not in these formulas, and
/// overheads within critical sections are not, either.
pub(super) fn inflate(context: &Context<'_>, tardiness: Option<&[u64]>) -> Result<Inflation, String> {
    let machine = context.machine;
    let own = before_overheads(context, tardiness.unwrap_or(&[]));
    if context.uses_gpus() {
        return Ok(published_gpu::inflate(context, own, tardiness));
    }
    let is_soft = tardiness.is_some();
    let tasks: Vec<AnalysisTask> = own
        .iter()
        .zip(context.members())
        .map(|(terms, task)| AnalysisTask::new(terms.total().max(1), task.period, task.deadline))
        .collect();
    let interrupts = if machine.is_dedicated { ReleaseInterrupts::Dedicated } else { ReleaseInterrupts::Global };
    let (distance, costs) = match machine.is_quantum_driven {
        true => {
            let tick = Nanos(machine.ticks_per_quantum());
            (machine.quantum, OverheadCosts { tick, ..machine.costs })
        }
        false => (machine.tick, machine.costs),
    };
    let system = System {
        cpus: context.cpus() + u32::from(machine.is_dedicated),
        interrupts,
        costs,
        quantum: Nanos(distance),
        event_latency: Nanos::ZERO,
    };
    let lag = InterruptLag::None;
    let inflated = if machine.is_quantum_driven {
        let interrupts = if is_soft { QuantumInterrupts::QuantumCentric } else { QuantumInterrupts::TaskCentric(lag) };
        // The lateness of quanta is applied by the tests here, so periods and deadlines stay for now.
        let (quanta, timing) = (Quanta::Aligned, QuantumTiming::Soft);
        quantum(&system, &tasks, Windows::Deadlines, quanta, timing, interrupts, machine.cpus)
    } else if is_soft {
        preemption_centric(&system, &tasks)
    } else {
        task_centric(&system, &tasks, Windows::Deadlines, lag, false)
    };
    let inflated = inflated.map_err(|error| error.to_string())?;
    let terms = own.into_iter().zip(&inflated.charges).map(|(own, charges)| with(own, charges, context)).collect();
    let late = machine.lateness();
    Ok(Inflation { terms, waiting: None, levels: None, late, beside: Vec::new(), sections: Vec::new() })
}

fn before_overheads(context: &Context<'_>, tardiness: &[u64]) -> Vec<Terms> {
    let late = |member: usize| tardiness.get(member).copied().unwrap_or(0);
    let pending: Vec<u64> =
        context.members().enumerate().map(|(member, task)| task.deadline.saturating_add(late(member))).collect();
    let waiting = Waiting::new(context, &pending, Holding::default());
    let sections = longest_sections(context);
    let of = |(member, task): (usize, &AnalysedTask)| {
        let window = pending[member];
        let mut terms = Terms::default();
        terms.add(Term::Execution, task.wcet);
        terms.add(Term::Suspension, task.suspension);
        terms.add(Term::Jitter, task.jitter);
        terms.add(Term::Blocking, task.wakeups().saturating_mul(sections[member]));
        terms.add(Term::LockWaiting, waiting.of(member, window).locks);
        terms
    };
    context.members().enumerate().map(of).collect()
}

fn with(mut terms: Terms, charges: &Charges, context: &Context<'_>) -> Terms {
    // The published term covers decisions and re-arming together, twice.
    let rearming = context.machine.costs.timer_rearming.0.saturating_mul(2).min(charges.scheduling);
    terms.add(Term::Scheduling, charges.scheduling - rearming);
    terms.add(Term::TimerRearming, rearming);
    terms.add(Term::ContextSwitches, charges.context_switches);
    terms.add(Term::IpiLatency, charges.ipi);
    terms.add(Term::OwnReleases, charges.own_release);
    terms.add(Term::OtherReleases, charges.other_releases);
    terms.add(Term::Ticks, charges.ticks);
    terms.add(Term::Cache, charges.cache);
    terms.add(Term::Rounding, charges.rounding);
    terms
}
