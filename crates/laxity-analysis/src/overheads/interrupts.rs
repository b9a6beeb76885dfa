//! How long interrupts themselves may wait and delay.

use super::{OverheadError, System};
use crate::AnalysisTask;
use crate::busy_period::least;

/// What is added to a job's window for interrupts that arrived before it and are still being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum InterruptLag {
    /// Nothing: the usual formula.
    #[default]
    None,
    /// The longest busy period of interrupt handlers on one CPU: provably safe.
    BusyPeriod,
}

/// Interrupts that keep a CPU from its jobs, whichever job it would execute: in any interval of length `L` at most
/// `ceil((L + ahead) / period)` of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InterruptStream {
    /// How long a handler takes, in ticks.
    pub cost: u64,
    /// The least separation of two interrupts, at least 1 tick.
    pub period: u64,
    /// How long one may have been due before it is handled, in ticks.
    pub ahead: u64,
}

impl InterruptStream {
    /// How long its handlers keep the CPU in any interval of `length` ticks, at most.
    pub fn time(&self, length: u64) -> u128 {
        let count = (u128::from(length) + u128::from(self.ahead)).div_ceil(u128::from(self.period.max(1)));
        count * u128::from(self.cost)
    }
}

const ROUNDS_MAX: u32 = 1_000_000;

impl InterruptLag {
    /// The lag in ticks.
    pub(super) fn of(self, system: &System, tasks: &[AnalysisTask]) -> Result<u64, OverheadError> {
        match self {
            InterruptLag::None => Ok(0),
            InterruptLag::BusyPeriod => interrupt_busy_period(system, tasks),
        }
    }
}

/// The longest busy period of release and tick handlers on one CPU: the least `L > 0` with
/// `L = sum(ceil(L / T)) * release + ceil(L / Q) * tick`, in ticks. 0 if both cost nothing.
///
/// # Errors
/// [`OverheadError::NoCapacity`] if the handlers alone keep a CPU busy for ever, [`OverheadError::NoWindow`] of a task
/// whose period is 0.
pub fn interrupt_busy_period(system: &System, tasks: &[AnalysisTask]) -> Result<u64, OverheadError> {
    check_periods(tasks)?;
    let (release, tick) = (system.costs.release.0, system.costs.tick.0);
    busy_period(tasks, release, Some((system.quantum.0, tick))).ok_or(OverheadError::NoCapacity)
}

/// How long a release may wait on a dedicated interrupt CPU for others: `L - release` with the least `L > 0` that
/// satisfies `L = sum(ceil(L / T)) * release`, in ticks.
///
/// # Errors
/// [`OverheadError::InterruptCpuOverloaded`] if the releases alone keep it busy for ever, [`OverheadError::NoWindow`] of
/// a task whose period is 0.
pub fn interrupt_backlog(system: &System, tasks: &[AnalysisTask]) -> Result<u64, OverheadError> {
    check_periods(tasks)?;
    let release = system.costs.release.0;
    let busy = busy_period(tasks, release, None).ok_or(OverheadError::InterruptCpuOverloaded)?;
    Ok(busy.saturating_sub(release))
}

/// Rates are over periods, so none may be 0.
pub(super) fn check_periods(tasks: &[AnalysisTask]) -> Result<(), OverheadError> {
    match tasks.iter().position(|task| task.period == 0) {
        Some(task) => Err(OverheadError::NoWindow { task, lost: 0, window: 0 }),
        None => Ok(()),
    }
}

fn busy_period(tasks: &[AnalysisTask], release: u64, tick: Option<(u64, u64)>) -> Option<u64> {
    let demand = |length: u64| -> u64 {
        let releases: u128 = tasks.iter().map(|task| u128::from(length.div_ceil(task.period))).sum();
        let ticks = tick.map_or(0, |(quantum, cost)| u128::from(length.div_ceil(quantum.max(1))) * u128::from(cost));
        let sum = releases.saturating_mul(u128::from(release)).saturating_add(ticks);
        u64::try_from(sum).unwrap_or(u64::MAX)
    };
    least(demand, ROUNDS_MAX)
}
