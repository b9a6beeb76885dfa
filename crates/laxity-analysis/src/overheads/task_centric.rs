//! Task-centric interrupt accounting, event-driven: every job pays for every interrupt that may arrive while it is
//! pending. Brandenburg, Leontyev & Anderson, RTCSA 2009.

use super::charges::{inflate, times};
use super::{Charges, Inflated, InterruptLag, OverheadError, System, Windows, interrupt_backlog};
use crate::AnalysisTask;
use crate::exact::sign_of_sum;
use std::cmp::Ordering;

/// With windows W (how long a job may be pending) and interrupt lag J:
///
/// ```text
/// e' = e + 2 (scheduling + timer + switch) + cache + ipi + release
///        + sum_{j != i} ceil((W + J) / T_j) * release          unless a CPU is dedicated to interrupts
///        + ceil((W + J) / Q) * tick
/// T' = T - event latency,   D' = D - event latency
/// ```
///
/// `ceil(L / T)` is exactly the largest number of sporadic arrivals in a half-open interval of length L. With
/// `backlog`, periods and deadlines also lose how long a release may queue on a dedicated interrupt CPU.
///
/// # Errors
/// [`OverheadError`] if no CPU, capacity or window is left. That an inflated wcet exceeds its window is left to the
/// tests, which call it infeasible.
pub fn task_centric(
    system: &System,
    tasks: &[AnalysisTask],
    windows: Windows<'_>,
    lag: InterruptLag,
    backlog: bool,
) -> Result<Inflated, OverheadError> {
    windows.check(tasks.len())?;
    let cpus = system.capacity()?;
    check_interrupt_cpu(system, tasks)?;
    let lag = lag.of(system, tasks)?;
    let queueing = if backlog && system.is_dedicated() { interrupt_backlog(system, tasks)? } else { 0 };
    let lost = system.event_latency.0.saturating_add(queueing);
    let costs = &system.costs;
    let mut inflated = Inflated { cpus, tasks: Vec::new(), charges: Vec::new() };
    for (index, task) in tasks.iter().enumerate() {
        let window = windows.of(index, task).saturating_add(lag);
        let charges = Charges {
            ipi: if system.cpus > 1 { costs.ipi_latency.0 } else { 0 },
            other_releases: if system.is_dedicated() { 0 } else { releases(tasks, index, window, costs.release.0) },
            ticks: times(window.div_ceil(system.quantum.0.max(1)), costs.tick.0),
            ..dispatch(system)
        };
        inflated.tasks.push(inflate(index, task, &charges, lost)?);
        inflated.charges.push(charges);
    }
    Ok(inflated)
}

/// What every job pays for being released, started and completed.
pub(super) fn dispatch(system: &System) -> Charges {
    let costs = &system.costs;
    Charges {
        scheduling: times(2, costs.scheduling.0.saturating_add(costs.timer_rearming.0)),
        context_switches: times(2, costs.context_switch.0),
        cache: system.cache_delay(),
        own_release: costs.release.0,
        ..Charges::default()
    }
}

/// Cost of the releases of all tasks but `index` within `window`.
pub(super) fn releases(tasks: &[AnalysisTask], index: usize, window: u64, cost: u64) -> u64 {
    let others = tasks.iter().enumerate().filter(|&(other, _)| other != index);
    let count = others.map(|(_, task)| window.div_ceil(task.period)).fold(0, u64::saturating_add);
    times(count, cost)
}

/// A dedicated interrupt CPU must keep up: `sum(release / T) < 1`.
pub(super) fn check_interrupt_cpu(system: &System, tasks: &[AnalysisTask]) -> Result<(), OverheadError> {
    let release = i128::from(system.costs.release.0);
    let load = tasks.iter().map(|task| (release, u128::from(task.period))).chain([(-1, 1)]);
    if system.is_dedicated() && sign_of_sum(load) != Ordering::Less {
        return Err(OverheadError::InterruptCpuOverloaded);
    }
    Ok(())
}
