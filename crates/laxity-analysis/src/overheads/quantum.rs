//! Quantum-driven scheduling: jobs start and stop at quantum boundaries only (paper 002, section 4.2).

use laxity_model::Quanta;

use super::charges::times;
use super::task_centric::{Releases, check_interrupt_cpu, dispatch};
use super::{Charges, Inflated, InterruptLag, OverheadError, System, Windows};
use crate::{AnalysisTask, LONGEST_TICKS};

/// Which tasks pay for release interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuantumInterrupts {
    /// Every job, for those that may arrive while it is pending.
    TaskCentric(InterruptLag),
    /// Every quantum, for those that may arrive in it; jobs then do not pay, not even for their own.
    QuantumCentric,
}

/// What the delay to the next boundary does to periods and deadlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum QuantumTiming {
    /// Hard, as in the paper: both are a quantum shorter, with staggered quanta nearly two.
    Hard,
    /// Hard, beyond the paper: where a period is a multiple of the quantum, releases at boundaries are still a period
    /// apart, so it is only rounded down to a multiple; the deadline alone gets shorter.
    HardTight,
    /// Soft: neither changes; the delay is a constant part of tardiness.
    Soft,
}

/// With the quantum Q less its tick (and, quantum-centric, less the releases in it) as `Q_eff`:
///
/// ```text
/// e' = Q * ceil( (e + 2 (scheduling + timer + switch) + cache + release
///                   + sum_{j != i} ceil((W + J) / T_j) * release) / Q_eff )      the sum only with global interrupts
/// T' = T - Q, D' = D - Q                               the release is noticed up to Q late
/// staggered: a further Q * (m - 1) / m                 the completion is noticed up to that much later
/// ```
///
/// m is `staggered_cpus`, normally all CPUs. No inter-processor interrupts are charged.
///
/// # Errors
/// [`OverheadError`] if no CPU, capacity or window is left.
pub fn quantum(
    system: &System,
    tasks: &[AnalysisTask],
    windows: Windows<'_>,
    quanta: Quanta,
    timing: QuantumTiming,
    interrupts: QuantumInterrupts,
    staggered_cpus: u32,
) -> Result<Inflated, OverheadError> {
    windows.check(tasks.len())?;
    let cpus = system.capacity()?;
    check_interrupt_cpu(system, tasks)?;
    let effective = effective_quantum(system, tasks, interrupts)?;
    let lag = match interrupts {
        QuantumInterrupts::TaskCentric(lag) => lag.of(system, tasks)?,
        QuantumInterrupts::QuantumCentric => 0,
    };
    let late = noticed_late(system.quantum.0, quanta, staggered_cpus);
    let mut releases = Releases::new(tasks);
    let mut inflated = Inflated { cpus, tasks: Vec::new(), charges: Vec::new() };
    for (index, task) in tasks.iter().enumerate() {
        let window = windows.of(index, task).saturating_add(lag);
        let mut charges = dispatch(system);
        match interrupts {
            QuantumInterrupts::QuantumCentric => charges.own_release = 0,
            QuantumInterrupts::TaskCentric(_) if system.is_dedicated() => {}
            QuantumInterrupts::TaskCentric(_) => {
                charges.other_releases = times(releases.of_others(task, window), system.costs.release.0);
            }
        }
        let wcet = round_up(system, index, task, &mut charges, effective)?;
        let (period, deadline) = shorten(index, task, late, system.quantum.0, timing)?;
        inflated.tasks.push(AnalysisTask { wcet, period, deadline, ..*task });
        inflated.charges.push(charges);
    }
    Ok(inflated)
}

/// What a quantum leaves to jobs.
fn effective_quantum(
    system: &System,
    tasks: &[AnalysisTask],
    interrupts: QuantumInterrupts,
) -> Result<u64, OverheadError> {
    let quantum = system.quantum.0;
    let releases = match interrupts {
        QuantumInterrupts::QuantumCentric if !system.is_dedicated() => {
            let count: u64 = tasks.iter().map(|task| quantum.div_ceil(task.period)).fold(0, u64::saturating_add);
            times(count, system.costs.release.0)
        }
        _ => 0,
    };
    let used = system.costs.tick.0.saturating_add(releases);
    quantum.checked_sub(used).filter(|&left| left > 0).ok_or(OverheadError::NoCapacity)
}

/// How late a release or completion may be noticed, rounded up.
fn noticed_late(quantum: u64, quanta: Quanta, staggered_cpus: u32) -> u64 {
    let cpus = u128::from(staggered_cpus.max(1));
    let stagger = match quanta {
        Quanta::Aligned => 0,
        Quanta::Staggered => (u128::from(quantum) * (cpus - 1)).div_ceil(cpus) as u64,
    };
    quantum.saturating_add(stagger)
}

/// Rounds up to whole quanta; the difference to the charges so far becomes the `rounding` charge.
fn round_up(
    system: &System,
    index: usize,
    task: &AnalysisTask,
    charges: &mut Charges,
    effective: u64,
) -> Result<u64, OverheadError> {
    let too_long = OverheadError::TooLong { task: index };
    let total = charges.total().and_then(|total| total.checked_add(task.wcet)).ok_or(too_long.clone())?;
    let quanta = total.div_ceil(effective);
    let wcet = quanta.checked_mul(system.quantum.0).filter(|&wcet| wcet <= LONGEST_TICKS).ok_or(too_long)?;
    charges.ticks = times(quanta, system.costs.tick.0);
    charges.rounding = wcet - total - charges.ticks;
    Ok(wcet)
}

fn shorten(
    index: usize,
    task: &AnalysisTask,
    late: u64,
    quantum: u64,
    timing: QuantumTiming,
) -> Result<(u64, u64), OverheadError> {
    let shorter = |value: u64| {
        let no_window = OverheadError::NoWindow { task: index, lost: late, window: value };
        value.checked_sub(late).filter(|&left| left > 0).ok_or(no_window)
    };
    match timing {
        QuantumTiming::Soft => Ok((task.period, task.deadline)),
        QuantumTiming::Hard => Ok((shorter(task.period)?, shorter(task.deadline)?)),
        QuantumTiming::HardTight => {
            let period = task.period / quantum * quantum;
            let no_window = OverheadError::NoWindow { task: index, lost: quantum, window: task.period };
            let period = Some(period).filter(|&period| period > 0).ok_or(no_window)?;
            Ok((period, shorter(task.deadline)?))
        }
    }
}
