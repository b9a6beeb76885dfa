//! The best tardiness bound per task.

use super::{PriorityPoints, check_bounded, compliant_vector, devi_anderson};
use crate::gedf::uniprocessor_edf;
use crate::{DeadlineClass, Limits, Outcome, TaskSet};

/// Tardiness bounds under global EDF, in ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TardinessBounds {
    /// A bound per task, rounded up.
    pub bounds: Vec<u64>,
}

/// The least of the applicable bounds for each task: 0 on one CPU where EDF meets all deadlines; else the compliant
/// vector and, for implicit deadlines, Devi & Anderson's, which are incomparable per task.
///
/// A caller that knows the set to be hard schedulable need not ask: tardiness is then 0.
///
/// # Errors
/// [`Outcome::Infeasible`] if tardiness is unbounded.
pub fn tardiness(set: &TaskSet, limits: &Limits) -> Result<TardinessBounds, Outcome> {
    check_bounded(set).map_err(Outcome::Infeasible)?;
    let punctual =
        set.cpus() == 1 && (set.class() == DeadlineClass::Implicit || uniprocessor_edf(set, limits).is_schedulable());
    if punctual {
        return Ok(TardinessBounds { bounds: vec![0; set.tasks().len()] });
    }
    let mut bounds = compliant_vector(set, PriorityPoints::Edf)?.tardiness_ticks();
    if let Ok(other) = devi_anderson(set) {
        for (bound, task) in bounds.iter_mut().zip(set.tasks()) {
            *bound = (*bound).min(other.tardiness(task.wcet));
        }
    }
    Ok(TardinessBounds { bounds })
}
