//! Preemption-centric interrupt accounting: interrupts are charged in proportion to execution. Brandenburg's
//! dissertation 2011, chapter 3. Needs no response times, hence is handy for soft deadlines.

use std::iter;

use super::charges::inflate;
use super::interrupts::check_periods;
use super::proportional::Proportional;
use super::{Charges, Inflated, OverheadError, System};
use crate::exact::{Rational, ceil_ticks, exact_sum, floor_ticks, rational, whole};
use crate::{AnalysisTask, LONGEST_TICKS};

/// Costs of one system as exact fractions of a tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExactCosts {
    /// Release interrupt.
    pub release: Rational,
    /// Scheduling decision, timer re-arming included.
    pub scheduling: Rational,
    /// Context switch.
    pub context_switch: Rational,
    /// Inter-processor interrupt latency.
    pub ipi_latency: Rational,
    /// Tick interrupt.
    pub tick: Rational,
    /// Delay until a release is noticed.
    pub event_latency: Rational,
    /// Distance of ticks.
    pub quantum: Rational,
    /// For each task the cache-related delay its jobs suffer when preempted; empty for none.
    pub cache_delays: Vec<Rational>,
    /// For each task what loading its working set costs at the start of a job, if not in its wcet; empty for none.
    pub initial_loads: Vec<Rational>,
    /// Tasks whose releases raise no interrupt, because their jobs may start early; empty for none.
    pub early_releasing: Vec<bool>,
}

/// The exact result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreemptionCentric {
    /// The share of a CPU that interrupts leave.
    pub left: Rational,
    /// What one preemption by an interrupt costs, `c_pre`.
    pub preemption: Rational,
    /// `(e', T', D')` of each task.
    pub tasks: Vec<[Rational; 3]>,
}

/// With `u_tick = tick / Q` and, unless a CPU is dedicated, `u_rel = sum(release / T)` and `n` releases at once:
///
/// ```text
/// left  = 1 - u_tick - u_rel
/// c_pre = (tick + n * release + latency * (u_tick + u_rel)) / left
/// e'    = (e + load + 2 (scheduling + timer + switch) + cache) / left + 2 c_pre + ipi (+ release if dedicated)
/// T'    = T - latency,  D' = D - latency
/// ```
///
/// The cache delay charged is the largest among the *other* tasks: a job pays for the job it preempts. The IPI is
/// charged where `cpus > 1` or a CPU is dedicated.
///
/// # Errors
/// [`OverheadError::NoCapacity`] if interrupts use up a CPU, [`OverheadError::NoWindow`] of a task whose period is 0.
pub fn preemption_centric_exact(
    costs: &ExactCosts,
    tasks: &[AnalysisTask],
    cpus: u32,
    dedicated: bool,
) -> Result<PreemptionCentric, OverheadError> {
    check_periods(tasks)?;
    if costs.quantum <= whole(0) {
        return Err(OverheadError::NoCapacity);
    }
    let zero = || whole(0);
    let tick_share = &costs.tick / &costs.quantum;
    let (release_share, releases) = if dedicated {
        (zero(), zero())
    } else {
        let interrupting = |index: &usize| !costs.early_releasing.get(*index).copied().unwrap_or(false);
        let periods: Vec<u64> = (0..tasks.len()).filter(interrupting).map(|index| tasks[index].period).collect();
        let rate = exact_sum(periods.iter().map(|&period| (1, period.into())));
        (&costs.release * rate, &costs.release * whole(periods.len()))
    };
    let interrupts = tick_share + release_share;
    let left = whole(1) - &interrupts;
    if left <= whole(0) {
        return Err(OverheadError::NoCapacity);
    }
    let preemption = (&costs.tick + releases + &costs.event_latency * interrupts) / &left;
    let dispatch = (&costs.scheduling + &costs.context_switch) * whole(2);
    let ipi = if dedicated || cpus > 1 { costs.ipi_latency.clone() } else { zero() };
    let own_release = if dedicated { costs.release.clone() } else { zero() };
    let constant = &preemption * whole(2) + ipi + own_release;
    let caches = largest_of_others(&costs.cache_delays, tasks.len());
    let inflate = |(index, (task, cache)): (usize, (&AnalysisTask, Rational))| {
        let load = costs.initial_loads.get(index).cloned().unwrap_or_else(zero);
        let wcet = (whole(task.wcet) + load + &dispatch + cache) / &left + &constant;
        [wcet, whole(task.period) - &costs.event_latency, whole(task.deadline) - &costs.event_latency]
    };
    let tasks = tasks.iter().zip(caches).enumerate().map(inflate).collect();
    Ok(PreemptionCentric { left, preemption, tasks })
}

/// The same in whole ticks, for a system with one cache delay: e' rounded up, T' and D' down.
///
/// # Errors
/// [`OverheadError`] if no CPU, capacity or window is left.
pub fn preemption_centric(system: &System, tasks: &[AnalysisTask]) -> Result<Inflated, OverheadError> {
    let cpus = system.capacity()?;
    super::task_centric::check_interrupt_cpu(system, tasks)?;
    let costs = &system.costs;
    // A lone task preempts no other.
    let cache = if tasks.len() > 1 { system.cache_delay() } else { 0 };
    let exact = ExactCosts {
        release: whole(costs.release.0),
        scheduling: whole(costs.scheduling.0) + whole(costs.timer_rearming.0),
        context_switch: whole(costs.context_switch.0),
        ipi_latency: whole(costs.ipi_latency.0),
        tick: whole(costs.tick.0),
        event_latency: whole(system.event_latency.0),
        quantum: whole(system.quantum.0),
        cache_delays: if cache == 0 { Vec::new() } else { vec![whole(cache); tasks.len()] },
        initial_loads: Vec::new(),
        early_releasing: Vec::new(),
    };
    let dispatch = (&exact.scheduling + &exact.context_switch) * whole(2) + whole(cache);
    let ipi = if system.cpus > 1 { costs.ipi_latency.0 } else { 0 };
    let own_release = if system.is_dedicated() { costs.release.0 } else { 0 };
    let filter = Proportional::new(system, tasks, &dispatch, &(whole(ipi) + whole(own_release)));
    let solve = || preemption_centric_exact(&exact, tasks, system.cpus, system.is_dedicated());
    // Solved at once where it may fail, else where the filter leaves a doubt.
    let mut result = if filter.is_none() { Some(solve()?) } else { None };
    let mut inflated = Inflated { cpus, tasks: Vec::new(), charges: Vec::new() };
    for (index, task) in tasks.iter().enumerate() {
        let wcet = match filter.and_then(|filter| filter.ceil(task.wcet)) {
            Some(wcet) => wcet,
            None => {
                let exact = match result.take() {
                    Some(solved) => solved,
                    None => solve()?,
                };
                ceil_ticks(&result.insert(exact).tasks[index][0])
            }
        };
        let charges = attribute(system, task, cache, wcet, index)?;
        inflated.tasks.push(inflate(index, task, &charges, system.event_latency.0)?);
        inflated.charges.push(charges);
    }
    Ok(inflated)
}

impl PreemptionCentric {
    /// Rounded to ticks: e' up, T' and D' down. `None` where a task is left without a window or exceeds all limits.
    pub fn rounded(&self) -> Option<Vec<AnalysisTask>> {
        let round = |[wcet, period, deadline]: &[Rational; 3]| {
            let task = AnalysisTask::new(ceil_ticks(wcet), floor_ticks(period), floor_ticks(deadline));
            (task.window() > 0 && task.wcet <= LONGEST_TICKS).then_some(task)
        };
        self.tasks.iter().map(round).collect()
    }
}

/// The terms that can be named; interrupts and the inflation by their share end up in `rounding`.
fn attribute(
    system: &System,
    task: &AnalysisTask,
    cache: u64,
    wcet: u64,
    index: usize,
) -> Result<Charges, OverheadError> {
    let mut charges = super::task_centric::dispatch(system);
    charges.ipi = if system.cpus > 1 { system.costs.ipi_latency.0 } else { 0 };
    charges.cache = cache;
    if !system.is_dedicated() {
        charges.own_release = 0;
    }
    let named = charges.total().and_then(|total| total.checked_add(task.wcet));
    charges.rounding = named.and_then(|named| wcet.checked_sub(named)).ok_or(OverheadError::TooLong { task: index })?;
    Ok(charges)
}

/// For each task the largest delay among the others, 0 if there is none.
fn largest_of_others(delays: &[Rational], tasks: usize) -> Vec<Rational> {
    if delays.len() != tasks {
        return iter::repeat_with(|| rational(0, 1)).take(tasks).collect();
    }
    let mut order: Vec<usize> = (0..tasks).collect();
    order.sort_by(|&a, &b| delays[b].cmp(&delays[a]));
    let second = order.get(1).map_or_else(|| whole(0), |&index| delays[index].clone());
    (0..tasks)
        .map(|index| match order[0] == index {
            true => second.clone(),
            false => delays[order[0]].clone(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::rng::SplitMix64;
    use laxity_model::{Nanos, OverheadCosts, ReleaseInterrupts};

    /// The filter decides nearly every task; that it decides as the exact fractions do is what is tested.
    #[test]
    fn whole_ticks_are_the_exact_result_rounded_up() {
        let mut rng = SplitMix64::new(11);
        for round in 0..200 {
            let count = 1 + rng.below(60) as usize;
            let mut task = || {
                let period = (3 + rng.below(250)) * 1_000_000;
                AnalysisTask::implicit(1 + rng.below(period), period)
            };
            let tasks: Vec<AnalysisTask> = (0..count).map(|_| task()).collect();
            let dedicated = round % 2 == 0;
            let mut cost = || Nanos(rng.below(40_000));
            let costs = OverheadCosts {
                release: cost(),
                scheduling: cost(),
                context_switch: cost(),
                ipi_latency: cost(),
                tick: cost(),
                ..OverheadCosts::default()
            };
            let interrupts = if dedicated { ReleaseInterrupts::Dedicated } else { ReleaseInterrupts::Global };
            let (quantum, event_latency) = (Nanos::from_millis(1), cost());
            let system = System { cpus: 4, interrupts, costs, quantum, event_latency };
            let exact = ExactCosts {
                release: whole(costs.release.0),
                scheduling: whole(costs.scheduling.0),
                context_switch: whole(costs.context_switch.0),
                ipi_latency: whole(costs.ipi_latency.0),
                tick: whole(costs.tick.0),
                event_latency: whole(event_latency.0),
                quantum: whole(quantum.0),
                cache_delays: Vec::new(),
                initial_loads: Vec::new(),
                early_releasing: Vec::new(),
            };
            let exact = preemption_centric_exact(&exact, &tasks, 4, dedicated);
            match preemption_centric(&system, &tasks) {
                Ok(inflated) => assert_eq!(Some(inflated.tasks), exact.expect("solvable").rounded(), "round {round}"),
                Err(OverheadError::InterruptCpuOverloaded) => {}
                Err(error) => assert_eq!(exact, Err(error), "round {round}"),
            }
        }
    }
}
