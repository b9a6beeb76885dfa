//! The tardiness bound of Devi & Anderson, Real-Time Systems 38(2), 2008.

use super::check_bounded;
use crate::exact::{Rational, ceil_ticks, exact_sum, rational, whole};
use crate::{DeadlineClass, Outcome, Precondition, TaskSet};

/// The bound: every job of a task completes at most `x + C` after its deadline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviAnderson {
    /// What is common to all tasks, in ticks; never negative.
    pub x: Rational,
}

/// The bound for implicit deadlines and at least two CPUs:
///
/// ```text
/// x = [ sum of the L largest C - C_min ]+ / ( m - sum of the L - 1 largest u )       L = ceil(U) - 1
/// ```
///
/// # Errors
/// [`Outcome::Infeasible`] if tardiness is unbounded, [`Outcome::NotApplicable`] for other deadlines or one CPU
/// (where `U <= 1` means no tardiness at all).
pub fn devi_anderson(set: &TaskSet) -> Result<DeviAnderson, Outcome> {
    check_bounded(set).map_err(Outcome::Infeasible)?;
    if set.class() != DeadlineClass::Implicit {
        return Err(Outcome::NotApplicable(Precondition::ImplicitDeadlines));
    }
    if set.cpus() < 2 {
        return Err(Outcome::NotApplicable(Precondition::SeveralCpus));
    }
    let tasks = set.tasks();
    let others = set.utilization_ceiling().saturating_sub(1) as usize;
    let mut costs: Vec<u64> = tasks.iter().map(|task| task.wcet).collect();
    costs.sort_unstable_by(|a, b| b.cmp(a));
    let mut shares: Vec<(u64, u64)> = tasks.iter().map(|task| (task.wcet, task.period)).collect();
    shares.sort_by(|a, b| (u128::from(b.0) * u128::from(a.1)).cmp(&(u128::from(a.0) * u128::from(b.1))));
    let carried: u128 = costs.iter().take(others).map(|&cost| u128::from(cost)).sum();
    let excess = carried.saturating_sub(costs.last().copied().unwrap_or(0).into());
    let heavy = exact_sum(shares.iter().take(others.saturating_sub(1)).map(|&(c, t)| (c.into(), t.into())));
    // L <= m - 1, so the denominator is at least 2.
    Ok(DeviAnderson { x: rational(excess, 1) / (whole(set.cpus()) - heavy) })
}

impl DeviAnderson {
    /// The tardiness bound of a task of the given wcet, rounded up to the tick.
    pub fn tardiness(&self, wcet: u64) -> u64 {
        ceil_ticks(&self.x).saturating_add(wcet)
    }

    /// The response-time bound of a task, `T + C + x`, in ticks.
    pub fn response_time(&self, task: &crate::AnalysisTask) -> Rational {
        &self.x + whole(task.period) + whole(task.wcet)
    }
}
