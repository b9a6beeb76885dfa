//! When tardiness is bounded at all. Devi & Anderson, RTSS 2005; paper 000, conditions (4) and (5).

use crate::{Evidence, Infeasibility, Outcome, TaskSet, Test, Verdict};
use std::cmp::Ordering;

/// Exact: global EDF has bounded tardiness iff `C <= T` for each task and `U <= m`. Deadlines do not matter for it.
pub fn bounded_tardiness(set: &TaskSet) -> Verdict {
    let outcome = match check_bounded(set) {
        Ok(()) => Outcome::Schedulable(Evidence::Condition),
        Err(reason) => Outcome::Infeasible(reason),
    };
    Verdict::new(Test::BoundedTardiness, outcome)
}

/// The condition of [`bounded_tardiness`].
///
/// # Errors
/// The first task with `C > T`, or that the utilization exceeds the number of CPUs.
pub fn check_bounded(set: &TaskSet) -> Result<(), Infeasibility> {
    for (task, &parameters) in set.tasks().iter().enumerate() {
        if parameters.wcet > parameters.period {
            return Err(Infeasibility::Window { task, wcet: parameters.wcet, window: parameters.period });
        }
    }
    if set.compare_utilization_to_cpus() == Ordering::Greater {
        return Err(Infeasibility::Utilization { cpus: set.cpus() });
    }
    Ok(())
}
