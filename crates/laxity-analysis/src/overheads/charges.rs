//! Inflated tasks, and the terms that make them up.

use super::OverheadError;
use crate::{AnalysisTask, LONGEST_TICKS, TaskSet, TaskSetError};

/// What is added to a task's wcet, term by term, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Charges {
    /// Two scheduling decisions, timer re-arming included.
    pub scheduling: u64,
    /// Two context switches.
    pub context_switches: u64,
    /// Cache-related delay of the job it preempts.
    pub cache: u64,
    /// An inter-processor interrupt.
    pub ipi: u64,
    /// The interrupt that releases it.
    pub own_release: u64,
    /// Release interrupts of other tasks.
    pub other_releases: u64,
    /// Tick interrupts.
    pub ticks: u64,
    /// The rest: rounding up to whole quanta, and what a proportional accounting cannot attribute.
    pub rounding: u64,
}

/// A task set with overheads accounted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inflated {
    /// CPUs that run jobs.
    pub cpus: u32,
    /// The tasks to test in place of the given ones.
    pub tasks: Vec<AnalysisTask>,
    /// For each task, what was added to its wcet.
    pub charges: Vec<Charges>,
}

impl Charges {
    /// The sum of all terms, `None` if it cannot be written.
    pub fn total(&self) -> Option<u64> {
        [
            self.scheduling,
            self.context_switches,
            self.cache,
            self.ipi,
            self.own_release,
            self.other_releases,
            self.ticks,
            self.rounding,
        ]
        .into_iter()
        .try_fold(0u64, u64::checked_add)
    }
}

impl Inflated {
    /// The set to test.
    ///
    /// # Errors
    /// If a parameter is out of range, which a successful accounting of a valid set excludes.
    pub fn task_set(&self) -> Result<TaskSet, TaskSetError> {
        TaskSet::new(self.cpus, self.tasks.clone())
    }
}

/// `charges` added to a task whose period and deadline are shortened by `lost`.
pub(super) fn inflate(
    index: usize,
    task: &AnalysisTask,
    charges: &Charges,
    lost: u64,
) -> Result<AnalysisTask, OverheadError> {
    let wcet = charges.total().and_then(|total| task.wcet.checked_add(total));
    let wcet = wcet.filter(|&wcet| wcet <= LONGEST_TICKS).ok_or(OverheadError::TooLong { task: index })?;
    let window = task.window();
    if window <= lost {
        return Err(OverheadError::NoWindow { task: index, lost, window });
    }
    Ok(AnalysisTask { wcet, period: task.period - lost, deadline: task.deadline - lost, ..*task })
}

/// `count * cost`, saturating: a saturated charge is refused later.
pub(super) fn times(count: u64, cost: u64) -> u64 {
    count.saturating_mul(cost)
}
