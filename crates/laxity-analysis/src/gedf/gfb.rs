//! GFB: the density test. Goossens, Funk & Baruah, Real-Time Systems 25(2-3), 2003.

use super::{check_feasible, settle};
use crate::exact::{rational, sign_of_sum, whole};
use crate::{AnalysisTask, Evidence, Outcome, Rational, Reason, TaskSet, Test, Verdict};
use std::cmp::Ordering;

/// Accepts if `sum(delta) <= m - (m - 1) * delta_max` with densities `delta = C / min(D, T)`.
///
/// Stated for implicit deadlines; the density form for others is the standard generalisation. Linear time.
pub fn gfb(set: &TaskSet) -> Verdict {
    let outcome = check_feasible(set).map(|()| {
        let Some(densest) = densest(set) else { return Outcome::Schedulable(Evidence::Condition) };
        let cpus = i128::from(set.cpus());
        let top = set.tasks()[densest];
        // sum(delta) + (m - 1) * delta_max - m <= 0
        let fixed = [((cpus - 1) * i128::from(top.wcet), u128::from(top.window())), (-cpus, 1)];
        let densities = set.tasks().iter().map(|task| (i128::from(task.wcet), u128::from(task.window())));
        match sign_of_sum(densities.chain(fixed)) {
            Ordering::Greater => Outcome::NotProven(Reason::Density { densest }),
            _ => Outcome::Schedulable(Evidence::Condition),
        }
    });
    Verdict::new(Test::Gfb, settle(outcome))
}

/// The right side of the test, `m - (m - 1) * delta_max`; `m` for an empty set. The left is [`TaskSet::density`].
pub fn gfb_bound(set: &TaskSet) -> Rational {
    let cpus = whole(set.cpus());
    match densest(set).map(|index| set.tasks()[index]) {
        Some(top) => cpus - whole(set.cpus() - 1) * rational(top.wcet, top.window()),
        None => cpus,
    }
}

/// Index of the task of largest density, the first of equals.
pub(super) fn densest(set: &TaskSet) -> Option<usize> {
    let denser = |a: &AnalysisTask, b: &AnalysisTask| {
        u128::from(a.wcet) * u128::from(b.window()) > u128::from(b.wcet) * u128::from(a.window())
    };
    let tasks = set.tasks();
    (0..tasks.len()).reduce(|best, index| if denser(&tasks[index], &tasks[best]) { index } else { best })
}
