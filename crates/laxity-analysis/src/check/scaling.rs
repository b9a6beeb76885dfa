//! By how much may all execution times grow before the criterion is no longer proven?

use std::cell::Cell;

use super::analysis::{Analysis, Found};
use super::{Criterion, Options, Scaling, chains};
use crate::Limits;

/// The largest factor that is tried, in thousandths.
const PERMILLE_MAX: u64 = 100_000;

/// Bisection over thousandths. `is_proven`: the verdict with execution times as they are.
///
/// The tests are not monotone: one may accept longer execution times and reject shorter ones. The schedulers are: a job
/// that needs less delays no other job (the guard that makes bisection sound). So each acceptance holds for all smaller
/// factors, too, and the answer is the largest one that was accepted; what lies above it is not claimed to fail. Tasks
/// stay on the clusters that they are on at factor 1. Deadlines of chains are among those that are to be met, and replicas of
/// data must suffice.
///
/// Each factor is asked what the verdict is asked, so that an answer of 1 or more and a proven verdict are the same. The limits of
/// other factors are lower, as there are many of them.
pub(super) fn scaling(analysis: &Analysis<'_>, options: &Options, is_proven: bool) -> Scaling {
    let fewer = |limit: u64| (limit / 8).max(1);
    let limits = Limits { points: fewer(options.limits.points), steps: fewer(options.limits.steps), ..options.limits };
    let latest_not_proven = Cell::new(0);
    let holds = |permille: u64| match permille {
        1_000 => is_proven,
        _ if analysis.is_apart() => {
            let cluster = analysis.not_proven(permille, options.criterion, &limits, latest_not_proven.get());
            cluster.inspect(|&cluster| latest_not_proven.set(cluster)).is_none()
        }
        _ => analysis.is_proven(permille, options.criterion, &limits),
    };
    let (permille, is_capped) = largest(holds, PERMILLE_MAX);
    Scaling { criterion: options.criterion, permille, is_capped }
}

impl Criterion {
    fn is_proven_of(self, found: &Found) -> bool {
        match self {
            Criterion::Soft => found.soft.is_schedulable(),
            Criterion::Hard => found.hard.is_schedulable(),
        }
    }
}

impl Analysis<'_> {
    /// A cluster of which the criterion is not proven, where each is judged [apart](Analysis::is_apart), with execution times of
    /// `permille` thousandths. Those beyond it are not looked at, and `first` is the first: often the same one again.
    fn not_proven(&self, permille: u64, criterion: Criterion, limits: &Limits, first: usize) -> Option<usize> {
        let tasks = self.scaled(permille);
        let apart = self.apart(&tasks);
        let clusters = (first..self.clusters.len()).chain(0..first);
        clusters.into_iter().find(|&cluster| !criterion.is_proven_of(&apart.find(cluster, limits, false)))
    }

    /// Whether the criterion is proven of all clusters and chains together, with execution times of `permille` thousandths.
    fn is_proven(&self, permille: u64, criterion: Criterion, limits: &Limits) -> bool {
        let solution = self.solve(permille, limits, self.is_coupled());
        let in_time = || {
            let tasks = self.task_reports(&solution);
            chains::chains(self.workload, &tasks, &solution.together).iter().all(chains::is_in_time)
        };
        solution.found.iter().all(|found| criterion.is_proven_of(found)) && (criterion == Criterion::Soft || in_time())
    }
}

/// The largest of `1..=most` for which `holds` was seen, starting from 1000; and whether that is `most`.
fn largest(holds: impl Fn(u64) -> bool, most: u64) -> (Option<u64>, bool) {
    // Invariant: `holds(low)`, or low is 0; not `holds(high)`.
    let (mut low, mut high) = if holds(1_000) { (1_000, 2_000) } else { (0, 1_000) };
    while low > 0 && high <= most && holds(high) {
        (low, high) = (high, high * 2);
    }
    if high > most {
        if holds(most) {
            return (Some(most), true);
        }
        high = most;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    ((low > 0).then_some(low), false)
}

#[cfg(test)]
mod tests {
    use super::largest;

    #[test]
    fn the_largest_factor_is_found_exactly_and_the_cap_is_told() {
        for border in [1, 2, 870, 999, 1_000, 1_001, 1_999, 2_000, 2_001, 4_567, 63_999, 64_001, 99_999] {
            assert_eq!(largest(|permille| permille <= border, 100_000), (Some(border), false), "{border}");
        }
        assert_eq!(largest(|_| true, 100_000), (Some(100_000), true));
        assert_eq!(largest(|_| false, 100_000), (None, false));
    }

    #[test]
    fn an_answer_is_never_larger_than_what_was_accepted() {
        // Accepts 1.2 and 1.4 to 1.5, but nothing between: both answers are true of a monotone scheduler.
        let holds = |permille: u64| permille <= 1_200 || (1_400..=1_500).contains(&permille);
        let (Some(found), false) = largest(holds, 100_000) else { panic!("some factor holds") };
        assert!(found == 1_200 || found == 1_500, "{found}");
    }
}
