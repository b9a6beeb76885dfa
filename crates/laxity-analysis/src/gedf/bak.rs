//! BAK. Baker, RTSS 2003.

use num_bigint::BigInt;
use num_traits::One;

use super::{check_constrained, check_feasible, settle};
use crate::exact::{Rational, rational, whole};
use crate::{AnalysisTask, Evidence, Outcome, Reason, TaskSet, Test, Verdict};

/// Accepts if for every task k, with `lambda = C_k / min(D_k, T_k)`,
///
/// ```text
/// sum_i min(1, beta_i) <= m * (1 - lambda) + lambda                                  (i = k included)
/// beta_i = u_i * (1 + [T_i - D_i]+ / D_k) + [C_i - lambda * T_i]+ / D_k
/// ```
///
/// As published for constrained deadlines; others are refused (see [`bak_any_deadline`]). Quadratic time.
///
/// Lowering a wcet can turn acceptance into rejection: the test is not sustainable.
pub fn bak(set: &TaskSet) -> Verdict {
    let outcome = check_constrained(set).map(|()| decide(set));
    Verdict::new(Test::Bak, settle(outcome))
}

/// [`bak`] for any deadlines, with the clip `[T_i - D_i]+`. For `D > T` this is an extrapolation without a proof: no
/// violation was seen in 4,300 random sets it accepts. Without the clip it would accept sets that miss deadlines.
pub fn bak_any_deadline(set: &TaskSet) -> Verdict {
    let outcome = check_feasible(set).map(|()| decide(set));
    Verdict::new(Test::Bak, settle(outcome))
}

/// A task in floating point, for the filter.
struct Approximate {
    wcet: f64,
    period: f64,
    utilization: f64,
    /// `u * [T - D]+`.
    excess: f64,
}

fn decide(set: &TaskSet) -> Outcome {
    let cpus = f64::from(set.cpus());
    let tasks: Vec<Approximate> = set.tasks().iter().map(approximate).collect();
    let total = |value: fn(&Approximate) -> f64| tasks.iter().map(value).sum::<f64>();
    let (utilization, excess, wcet) = (total(|t| t.utilization), total(|t| t.excess), total(|t| t.wcet));
    for (index, task) in set.tasks().iter().enumerate() {
        let lambda = task.wcet as f64 / task.window() as f64;
        let per_deadline = 1.0 / task.deadline as f64;
        let load: f64 = tasks
            .iter()
            .map(|other| {
                // The printed condition u_i > lambda is the sign of C_i - lambda * T_i, so a clip at 0 replaces it.
                let carried = (other.wcet - lambda * other.period).max(0.0);
                (other.utilization + (other.excess + carried) * per_deadline).min(1.0)
            })
            .sum();
        let available = cpus - (cpus - 1.0) * lambda;
        // Every term is computed with an error below 12 units of 2^-53 of its uncancelled magnitude
        // u_i + (excess_i + C_i) / D_k; the n additions add n such units. Twice that is left in the bound.
        let magnitude = utilization + (excess + wcet) * per_deadline + cpus;
        let tolerance = (tasks.len() as f64 + 16.0) * f64::EPSILON * magnitude;
        let gap = available - load;
        if gap < -tolerance || (gap <= tolerance && !passes_exactly(set, task)) {
            return Outcome::NotProven(Reason::Load { task: index });
        }
    }
    Outcome::Schedulable(Evidence::Condition)
}

fn approximate(task: &AnalysisTask) -> Approximate {
    let (wcet, period) = (task.wcet as f64, task.period as f64);
    let utilization = wcet / period;
    let excess = utilization * task.period.saturating_sub(task.deadline) as f64;
    Approximate { wcet, period, utilization, excess }
}

fn passes_exactly(set: &TaskSet, task: &AnalysisTask) -> bool {
    let lambda = rational(task.wcet, task.window());
    let one = Rational::one();
    let load: Rational = set
        .tasks()
        .iter()
        .map(|other| {
            let excess = other.period.saturating_sub(other.deadline);
            let spread = rational(
                BigInt::from(other.wcet) * (BigInt::from(task.deadline) + excess),
                BigInt::from(other.period) * task.deadline,
            );
            let carried = (whole(other.wcet) - &lambda * whole(other.period)).max(whole(0));
            (spread + carried / whole(task.deadline)).min(one.clone())
        })
        .sum();
    load <= whole(set.cpus()) * (&one - &lambda) + lambda
}
