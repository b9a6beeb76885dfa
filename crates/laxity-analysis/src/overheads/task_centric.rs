//! Task-centric interrupt accounting, event-driven: every job pays for every interrupt that may arrive while it is
//! pending. Brandenburg, Leontyev & Anderson, RTCSA 2009.

use super::charges::{inflate, times};
use super::{Charges, Inflated, InterruptLag, OverheadError, System, Windows, interrupt_backlog};
use crate::AnalysisTask;
use crate::exact::sign_of_sum;
use std::cmp::Ordering;
use std::collections::BTreeMap;

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
    let mut releases = Releases::new(tasks);
    let mut inflated = Inflated { cpus, tasks: Vec::new(), charges: Vec::new() };
    for (index, task) in tasks.iter().enumerate() {
        let window = windows.of(index, task).saturating_add(lag);
        let charges = Charges {
            ipi: if system.cpus > 1 { costs.ipi_latency.0 } else { 0 },
            other_releases: if system.is_dedicated() {
                0
            } else {
                times(releases.of_others(task, window), costs.release.0)
            },
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

/// Counts releases in windows. Tasks share periods and windows, so each pair of the two is divided once.
pub(super) struct Releases {
    /// Periods and how many tasks have them.
    periods: Vec<(u64, u64)>,
    /// Releases of all tasks in the windows asked for so far.
    counted: BTreeMap<u64, u64>,
}

impl Releases {
    pub(super) fn new(tasks: &[AnalysisTask]) -> Self {
        let mut sorted: Vec<u64> = tasks.iter().map(|task| task.period).collect();
        sorted.sort_unstable();
        let periods = sorted.chunk_by(|a, b| a == b).map(|equal| (equal[0], equal.len() as u64)).collect();
        Releases { periods, counted: BTreeMap::new() }
    }

    /// The most releases of all tasks but `own` within `window`, saturating.
    pub(super) fn of_others(&mut self, own: &AnalysisTask, window: u64) -> u64 {
        let periods = &self.periods;
        let count = |&(period, tasks): &(u64, u64)| times(window.div_ceil(period), tasks);
        let all = self.counted.entry(window).or_insert_with(|| periods.iter().map(count).fold(0, u64::saturating_add));
        *all - window.div_ceil(own.period)
    }
}

/// A dedicated interrupt CPU must keep up: `sum(release / T) < 1`. A task without a period or deadline is refused, too:
/// no accounting can divide by it.
pub(super) fn check_interrupt_cpu(system: &System, tasks: &[AnalysisTask]) -> Result<(), OverheadError> {
    if let Some(task) = tasks.iter().position(|task| task.window() == 0) {
        return Err(OverheadError::NoWindow { task, lost: 0, window: 0 });
    }
    let release = i128::from(system.costs.release.0);
    let load = tasks.iter().map(|task| (release, u128::from(task.period))).chain([(-1, 1)]);
    if system.is_dedicated() && sign_of_sum(load) != Ordering::Less {
        return Err(OverheadError::InterruptCpuOverloaded);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_counted_as_if_each_task_were_looked_at() {
        let periods = [3u64, 7, 7, 10, 3, 3, 41];
        let tasks: Vec<AnalysisTask> = periods.iter().map(|&period| AnalysisTask::implicit(1, period)).collect();
        let mut releases = Releases::new(&tasks);
        for window in [1u64, 3, 4, 7, 20, 4, 41, 1 << 59] {
            for (own, task) in tasks.iter().enumerate() {
                let others = periods.iter().enumerate().filter(|&(other, _)| other != own);
                let expected: u64 = others.map(|(_, period)| window.div_ceil(*period)).sum();
                assert_eq!(releases.of_others(task, window), expected, "window {window}, task {own}");
            }
        }
    }
}
