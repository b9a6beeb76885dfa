//! BCL. Bertogna, Cirinei & Lipari, ECRTS 2005.

use super::{check_constrained, settle};
use crate::{AnalysisTask, Evidence, Outcome, Reason, TaskSet, Test, Verdict};
use std::cmp::Ordering;

/// Accepts if for every task k the others cannot keep it from running for more than `D_k - C_k`:
///
/// ```text
/// sum_{i != k} min(beta_i, 1 - lambda) < m * (1 - lambda)
///              or equal, and some 0 < beta_i <= 1 - lambda                              lambda = C_k / D_k
/// beta_i * D_k = N * C_i + min(C_i, [D_k - N * T_i]+),  N = max(0, floor((D_k - D_i) / T_i) + 1)
/// ```
///
/// Everything is multiplied by `D_k`, so integers decide. Constrained deadlines. Quadratic time.
pub fn bcl(set: &TaskSet) -> Verdict {
    let outcome = check_constrained(set).map(|()| match (0..set.tasks().len()).find_map(|task| failure(set, task)) {
        Some(reason) => Outcome::NotProven(reason),
        None => Outcome::Schedulable(Evidence::Condition),
    });
    Verdict::new(Test::Bcl, settle(outcome))
}

fn failure(set: &TaskSet, index: usize) -> Option<Reason> {
    let task = &set.tasks()[index];
    let spare = task.deadline - task.wcet;
    let mut interference = 0u128;
    let mut fits = false;
    for (other_index, other) in set.tasks().iter().enumerate() {
        if other_index == index {
            continue;
        }
        let workload = workload(other, task.deadline);
        fits |= 0 < workload && workload <= spare;
        interference += u128::from(workload.min(spare));
    }
    let available = u128::from(set.cpus()) * u128::from(spare);
    match interference.cmp(&available) {
        Ordering::Less => None,
        Ordering::Equal if fits => None,
        _ => Some(Reason::Interference { task: index, interference, available }),
    }
}

/// Execution of `other` in a window that ends at one of its own deadlines. At most `window + C`, as C <= T.
fn workload(other: &AnalysisTask, window: u64) -> u64 {
    // floor((D_k - D_i) / T_i) is -1 or less where D_k < D_i, since D_i - D_k < D_i <= T_i.
    let jobs = match window.checked_sub(other.deadline) {
        None => 0,
        Some(rest) if rest < other.period => 1,
        Some(rest) => rest / other.period + 1,
    };
    jobs * other.wcet + other.wcet.min(window.saturating_sub(jobs * other.period))
}
