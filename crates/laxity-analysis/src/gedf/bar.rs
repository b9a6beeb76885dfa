//! BAR. Baruah, RTSS 2007, in four variants that are different tests.

use super::bar_sweep::{Points, Rule, Sweep};
use super::{check_constrained, settle};
use crate::exact::{Rational, floor_ticks, rational, whole};
use crate::{AnalysisTask, Evidence, Limits, Outcome, Precondition, TaskSet, Test, Verdict};
use std::cmp::Ordering;

/// Which comparison BAR makes. For each task k, each interval `t = A + D_k` with `A >= 0`, and `X = t - C_k`:
///
/// ```text
/// i != k:  I1 = min(dbf_i(t), cap)          I2 = min(dbc_i(t), cap)
/// i = k:   I1 = min(dbf_k(t) - C_k, A)      I2 = min(dbc_k(t) - C_k, A)
/// sum = sum(I1) + the m - 1 largest of I2 - I1                 dbc: demand with carry-in
/// ```
///
/// `NonStrict` accepts a subset of `Dense`, `Dense` of `Integer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarVariant {
    /// Passes if `sum < m * (X + 1)` with `cap = X + 1`. Sound where all times are whole ticks. The default: a job
    /// that misses executes at most `C_k - 1` before its deadline, so there are `X + 1` ticks in which m others run.
    Integer,
    /// Passes if `sum < m * X` with `cap = X`, or if it is equal and grows by fewer than m per unit of cap. Sound for
    /// real-valued times and scale-invariant.
    Dense,
    /// Passes if `sum <= m * X` with `cap = X + 1`, tested only where a demand bound steps: what a well-known
    /// toolkit does. Sound, pessimistic on coarse ticks, and not monotone in the number of CPUs.
    NonStrict,
    /// Passes if `sum <= m * X` with `cap = X`, as printed. **Unsound**: it accepts (2, 10, 2), (2, 10, 2),
    /// (1, 10, 2) on two CPUs, which misses at 3. For comparisons only.
    PrintedUnsound,
}

/// BAR for constrained deadlines and a utilization strictly below the number of CPUs.
///
/// Beyond an interval computed from the set no task can fail (see [`bar_horizon`]); up to there every kink of the
/// piece-wise linear sums is tested, which is equivalent to testing every interval. Pseudo-polynomial: the horizon
/// diverges as U approaches m, so [`Limits::points`] bounds the work.
pub fn bar(set: &TaskSet, variant: BarVariant, limits: &Limits) -> Verdict {
    let outcome = check_constrained(set).and_then(|()| {
        if set.compare_utilization_to_cpus() != Ordering::Less {
            return Err(Outcome::NotApplicable(Precondition::UtilizationBelowCpus));
        }
        Ok(match Sweep::new(set, variant.rule(), &horizons(set, variant), limits).run() {
            Ok(()) => Outcome::Schedulable(Evidence::Condition),
            Err(failure) => failure,
        })
    });
    Verdict::new(variant.test(), settle(outcome))
}

impl BarVariant {
    /// The name the variant answers under.
    pub const fn test(self) -> Test {
        match self {
            BarVariant::Integer => Test::Bar,
            BarVariant::Dense => Test::BarDense,
            BarVariant::NonStrict => Test::BarLe,
            BarVariant::PrintedUnsound => Test::BarPrintedUnsound,
        }
    }

    fn rule(self) -> Rule {
        let integer = Rule {
            cap_offset: 1,
            supply_offset: 1,
            allowance: 0,
            growth_at_equality: false,
            points: Points::All,
            scale: 1,
        };
        match self {
            BarVariant::Integer => integer,
            // Twice the resolution puts a whole tick between any two kinks, for the equality case on a plateau.
            BarVariant::Dense => {
                Rule { cap_offset: 0, supply_offset: 0, growth_at_equality: true, scale: 2, ..integer }
            }
            // sum <= m * X is sum < m * X + 1.
            BarVariant::NonStrict => Rule { supply_offset: 0, allowance: 1, points: Points::DemandSteps, ..integer },
            BarVariant::PrintedUnsound => Rule { cap_offset: 0, supply_offset: 0, allowance: 1, ..integer },
        }
    }
}

/// The parts of the horizon that do not depend on the task: the sum of the m - 1 largest wcets, and
/// `(m - 1) * C_k` or for other variants `m * C_k` less a constant.
fn carry_in_max(set: &TaskSet) -> u128 {
    let mut costs: Vec<u64> = set.tasks().iter().map(|task| task.wcet).collect();
    costs.sort_unstable_by(|a, b| b.cmp(a));
    costs.iter().take(set.cpus() as usize - 1).map(|&cost| u128::from(cost)).sum()
}

/// `m * C_k`, less `C_k + m` in integer time.
fn own_share(set: &TaskSet, task: &AnalysisTask, variant: BarVariant) -> i128 {
    let (cpus, wcet) = (i128::from(set.cpus()), i128::from(task.wcet));
    match variant {
        BarVariant::Integer => (cpus - 1) * wcet - cpus,
        _ => cpus * wcet,
    }
}

/// The largest `A` that needs testing for each task; negative where none does.
///
/// ```text
/// A_max(k) = floor( (C_sum - D_k * (m - U) + Y + m * C_k - C_k - m) / (m - U) )
/// C_sum = sum of the m - 1 largest C,  Y = sum((T - D) * u);  without - C_k - m except in integer time
/// ```
///
/// It follows from `dbf(t) <= u * (t - D + T)` and at most `C_i` of carry-in for each of m - 1 tasks. `None` unless
/// the utilization is below the number of CPUs.
pub fn bar_horizon(set: &TaskSet, variant: BarVariant) -> Option<Vec<Rational>> {
    let spare = whole(set.cpus()) - set.utilization();
    if spare <= whole(0) {
        return None;
    }
    let excess: Rational = set
        .tasks()
        .iter()
        .map(|task| rational(i128::from(task.period - task.window()) * i128::from(task.wcet), task.period))
        .sum();
    let common = whole(carry_in_max(set)) + excess;
    let horizon = |task: &AnalysisTask| {
        let numerator = &common + whole(own_share(set, task, variant));
        (numerator / &spare - whole(task.deadline)).floor()
    };
    Some(set.tasks().iter().map(horizon).collect())
}

/// The longest interval to test for each task, `A_max(k) + D_k`, rounded up generously: testing longer ones changes
/// no verdict, because none of them can fail.
fn horizons(set: &TaskSet, variant: BarVariant) -> Vec<u64> {
    let utilization: f64 = set.tasks().iter().map(|task| task.wcet as f64 / task.period as f64).sum();
    let spare = f64::from(set.cpus()) - utilization;
    let error = (set.tasks().len() as f64 + 8.0) * f64::EPSILON * 2.0 * f64::from(set.cpus());
    if spare < 1e6 * error {
        // The error of the floating-point utilization is no longer negligible.
        let exact = bar_horizon(set, variant).expect("the utilization is below the number of cpus");
        return set.tasks().iter().zip(exact).map(|(task, a)| floor_ticks(&(a + whole(task.deadline)))).collect();
    }
    let excess: f64 = set
        .tasks()
        .iter()
        .map(|task| (task.period - task.window()) as f64 * (task.wcet as f64 / task.period as f64))
        .sum();
    let common = carry_in_max(set) as f64 + excess;
    let horizon = |task: &AnalysisTask| {
        // A relative 4e-6 covers the error of `spare` (below 1e-6 of it) and all roundings; `as` saturates.
        ((common + own_share(set, task, variant) as f64) / spare * (1.0 + 4e-6) + 1.0) as u64
    };
    set.tasks().iter().map(horizon).collect()
}
