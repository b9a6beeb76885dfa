//! Execution times inflated for scheduling, blocking and GPU interrupts: paper 000, equations 6 to 24.

use super::GpuTask;

/// How bottom halves of GPU interrupts are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Handling {
    /// Standard Linux: split interrupt handling, bottom halves right after top halves.
    Slih,
    /// klmirqd: threads with the priority of the GPU's owner.
    Klmirqd,
    /// Priority-aware interrupts: bottom halves deferred to scheduling points.
    Pai,
}

/// The costs of Table III, in ticks (nanoseconds).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Costs {
    /// One scheduling decision.
    pub scheduling: u64,
    /// One context switch.
    pub context_switch: u64,
    /// Inter-processor interrupt latency.
    pub ipi: u64,
    /// Release interrupt.
    pub release: u64,
    /// Top half of a GPU interrupt.
    pub top_half: u64,
    /// Bottom half of a GPU interrupt.
    pub bottom_half: u64,
    /// Waking a klmirqd thread.
    pub klmirqd_release: u64,
    /// Checking for pending bottom halves at a scheduling point, under PAI.
    pub pai_scheduling: u64,
    /// Queueing a bottom half, under PAI.
    pub pai_release: u64,
    /// Tick interrupt.
    pub tick: u64,
    /// Distance of ticks.
    pub quantum: u64,
}

/// The stages of a task's inflation, in ticks. Each is the execution time after its equations; those that do not
/// apply repeat the stage before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// After scheduling decisions and context switches: equations 6, 7.
    pub dispatched: u128,
    /// After blocking and GPU time: equation 8.
    pub blocked: u128,
    /// After releases and IPIs: equations 9, 10.
    pub released: u128,
    /// After interrupts of other tasks' GPU operations: equations 12 to 23.
    pub interrupted: u128,
    /// After ticks: equation 24.
    pub ticked: u128,
}

impl Costs {
    /// Table III of paper 000: averages measured on its platform.
    pub const PUBLISHED: Costs = Costs {
        scheduling: 630,
        context_switch: 360,
        ipi: 600,
        release: 670,
        top_half: 16_440,
        bottom_half: 29_900,
        klmirqd_release: 1_390,
        pai_scheduling: 130,
        pai_release: 560,
        tick: 860,
        quantum: 1_000_000,
    };

    /// A machine without overheads.
    pub const ZERO: Costs = Costs {
        scheduling: 0,
        context_switch: 0,
        ipi: 0,
        release: 0,
        top_half: 0,
        bottom_half: 0,
        klmirqd_release: 0,
        pai_scheduling: 0,
        pai_release: 0,
        tick: 0,
        quantum: 1_000_000,
    };

    /// `2 * (scheduling + switch)`: stopping one job and starting another.
    fn pair(&self) -> u128 {
        2 * (u128::from(self.scheduling) + u128::from(self.context_switch))
    }

    fn release_and_ipi(&self) -> u128 {
        u128::from(self.release) + u128::from(self.ipi)
    }
}

/// Equation 11: GPU interrupts of other tasks that may occur while a job of task `index` is pending, given tardiness
/// bounds in ticks: `H_i = sum_{j != i} ceil((p_i + x_i + p_j + x_j) / p_j) * eta_j`.
pub fn interrupts(tasks: &[GpuTask], tardiness: &[u64], index: usize) -> u128 {
    let pending = u128::from(tasks[index].period) + u128::from(tardiness[index]);
    let count = |(other, task): (usize, &GpuTask)| {
        let span = pending + u128::from(task.period) + u128::from(tardiness[other]);
        // Division in 128 bits takes several times as long, and this is the innermost loop of a study.
        let arrivals = match u64::try_from(span) {
            Ok(span) => u128::from(span.div_ceil(task.period)),
            Err(_) => span.div_ceil(u128::from(task.period)),
        };
        arrivals * u128::from(task.uses)
    };
    tasks.iter().enumerate().filter(|&(other, task)| other != index && task.uses > 0).map(count).sum()
}

/// The inflated execution time of a task that is blocked for up to `blocking`, with `interrupts` of other tasks and a
/// tardiness bound, all in ticks.
///
/// A GPU-using job suspends once to acquire and once per use, hence 2 + eta dispatches; its own interrupts are in its
/// GPU time.
pub fn inflate(
    task: &GpuTask,
    blocking: u64,
    interrupts: u128,
    tardiness: u64,
    costs: &Costs,
    handling: Handling,
) -> Stages {
    let uses = u128::from(task.uses);
    let dispatches = if task.uses_gpu() { 2 + uses } else { 1 };
    let dispatched = u128::from(task.cpu) + dispatches * costs.pair();
    let gpu = if task.uses_gpu() { u128::from(blocking) + u128::from(task.gpu) } else { 0 };
    let blocked = dispatched + gpu;
    let released = blocked + dispatches * costs.release_and_ipi();
    let [top, bottom] = [costs.top_half, costs.bottom_half].map(u128::from);
    let charged = match handling {
        // Equations 12, 13.
        Handling::Slih => interrupts.saturating_mul(top + bottom),
        // Equations 14 to 16: the bottom half runs at its owner's expense, and switching to it and back costs.
        Handling::Klmirqd => {
            let own = uses * (costs.pair() + u128::from(costs.ipi));
            interrupts.saturating_mul(top + u128::from(costs.klmirqd_release)).saturating_add(own)
        }
        // Equations 17 to 23.
        Handling::Pai => {
            let checks = dispatches * 2 * u128::from(costs.pai_scheduling);
            let each = top + u128::from(costs.pai_release) + bottom;
            interrupts.saturating_mul(each).saturating_add(checks + uses * u128::from(costs.ipi))
        }
    };
    // Tasks by the thousands with times of centuries would be beyond 128 bits.
    let interrupted = released.saturating_add(charged);
    let pending = u128::from(task.period) + u128::from(tardiness);
    let ticks = pending.div_ceil(u128::from(costs.quantum.max(1))).saturating_mul(u128::from(costs.tick));
    let ticked = interrupted.saturating_add(ticks);
    Stages { dispatched, blocked, released, interrupted, ticked }
}
