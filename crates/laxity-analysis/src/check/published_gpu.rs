//! The published accounting of GPUs: equations 1 to 24 of paper 000 ([`klmirqd`](crate::klmirqd)), term by term.
//!
//! A GPU use of the paper is one interrupt, for which the job suspends itself once; here it is the larger of both
//! numbers. A task's own top and bottom halves are part of its GPU time and of its critical section, as in the paper.

use laxity_model::InterruptHandling;

use super::analysed_task::AnalysedTask;
use super::context::{Context, Inflation};
use super::terms::{Term, Terms};
use super::uses::Lock;
use crate::exact::ceil_ticks;
use crate::klmirqd::{Blocking, GpuTask, blocking, interrupts};

/// Nodes of the search for the exact blocking of a request.
const NODES_MAX: u64 = 100_000;

/// The equations, for the set of a cluster whose terms are `own` before overheads; tardiness 0 for hard deadlines.
pub(super) fn inflate(context: &Context<'_>, own: Vec<Terms>, tardiness: Option<&[u64]>) -> Inflation {
    let none = vec![0; own.len()];
    let tardiness = tardiness.unwrap_or(&none);
    let tasks: Vec<GpuTask> = context.members().map(|task| gpu_task(context, task)).collect();
    let blocking = blocking_bounds(context, &tasks);
    let with = |(member, terms): (usize, Terms)| {
        let others = u64::try_from(interrupts(&tasks, tardiness, member)).unwrap_or(u64::MAX);
        with(context, terms, &tasks[member], blocking[member], others, tardiness[member])
    };
    let terms = own.into_iter().enumerate().map(with).collect();
    Inflation { terms, waiting: None, levels: None, late: 0, beside: Vec::new(), sections: Vec::new() }
}

/// The task of the paper: its critical section is the longest that it asks for a GPU for.
fn gpu_task(context: &Context<'_>, task: &AnalysedTask) -> GpuTask {
    let sharing = &context.machine.sharing;
    let halves = sharing.top_half.saturating_add(sharing.bottom_half);
    let sections = task.uses.requests.iter().filter(|request| request.lock == Lock::Gpu).map(|request| {
        let own = request.demand.interrupts.saturating_mul(halves);
        [request.demand.suspension, request.demand.gpu(), own]
            .into_iter()
            .fold(request.demand.wcet, u64::saturating_add)
    });
    let uses = task.interrupts.max(task.uses.demand.operations.len() as u64);
    GpuTask {
        cpu: task.wcet,
        gpu: task.uses.demand.gpu().saturating_add(task.interrupts.saturating_mul(halves)),
        critical_section: sections.max().unwrap_or(0),
        uses: u32::try_from(uses).unwrap_or(u32::MAX),
        period: task.period,
    }
}

/// Per job: the paper's bound of one request, for each of them.
fn blocking_bounds(context: &Context<'_>, tasks: &[GpuTask]) -> Vec<u64> {
    let sharing = &context.machine.sharing;
    let lengths: Vec<u64> = tasks.iter().map(|task| task.critical_section).collect();
    let kind = if sharing.length_aware() == Some(true) { Blocking::Exact } else { Blocking::ObliviousInteger };
    let replicas = (sharing.pools[context.index].len() as u32).max(1);
    let bounds = blocking(&lengths, replicas, kind, NODES_MAX);
    let requests =
        |task: &AnalysedTask| task.uses.requests.iter().filter(|request| request.lock == Lock::Gpu).count() as u64;
    bounds
        .iter()
        .zip(context.members())
        .map(|(one, task)| ceil_ticks(&one.bound).saturating_mul(requests(task)))
        .collect()
}

/// Equations 6 to 24.
fn with(context: &Context<'_>, mut terms: Terms, task: &GpuTask, blocking: u64, others: u64, tardiness: u64) -> Terms {
    let machine = context.machine;
    let (costs, sharing) = (&machine.costs, &machine.sharing);
    let uses = u64::from(task.uses);
    let dispatches = if task.uses_gpu() { uses + 2 } else { 1 };
    let scheduling = costs.scheduling.0.saturating_add(costs.timer_rearming.0);
    let pair = scheduling.saturating_add(costs.context_switch.0).saturating_mul(2);
    let mut add = |term: Term, count: u64, cost: u64| terms.add(term, count.saturating_mul(cost));
    // 6 to 8.
    add(Term::Scheduling, 2 * dispatches, costs.scheduling.0);
    add(Term::TimerRearming, 2 * dispatches, costs.timer_rearming.0);
    add(Term::ContextSwitches, 2 * dispatches, costs.context_switch.0);
    add(Term::GpuWaiting, 1, blocking);
    add(Term::Gpu, 1, task.gpu);
    // 9, 10.
    add(Term::OwnReleases, dispatches, costs.release.0);
    add(Term::IpiLatency, dispatches, costs.ipi_latency.0);
    match sharing.handling {
        // 12, 13.
        InterruptHandling::Linux | InterruptHandling::PreemptRt(_) => {
            add(Term::TopHalves, others, sharing.top_half);
            add(Term::BottomHalves, others, sharing.bottom_half);
        }
        // 14 to 16.
        InterruptHandling::Klmirqd { .. } => {
            add(Term::TopHalves, others, sharing.top_half.saturating_add(costs.thread_release.0));
            add(Term::HalfScheduling, uses, pair);
            add(Term::IpiLatency, uses, costs.ipi_latency.0);
        }
        // 17 to 23.
        InterruptHandling::ProcessAware => {
            add(Term::TopHalves, others, sharing.top_half.saturating_add(costs.pai_enqueue.0));
            add(Term::BottomHalves, others, sharing.bottom_half);
            add(Term::HalfScheduling, 2 * dispatches, costs.pai_check.0);
            add(Term::IpiLatency, uses, costs.ipi_latency.0);
        }
    }
    // 24.
    add(Term::Ticks, task.period.saturating_add(tardiness).div_ceil(machine.tick), costs.tick.0);
    terms
}
