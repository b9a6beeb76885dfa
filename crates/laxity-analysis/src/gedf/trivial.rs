//! Every task has a CPU of its own.

use super::{check_feasible, settle};
use crate::{Evidence, Outcome, Precondition, TaskSet, Test, Verdict};

/// Accepts if there are no more tasks than CPUs: each job starts when it arrives and runs for C <= min(D, T).
///
/// Several published tests reject such sets, so it comes first wherever tests are combined.
pub fn trivial(set: &TaskSet) -> Verdict {
    let outcome = check_feasible(set).map(|()| {
        if set.tasks().len() <= set.cpus() as usize {
            let bounds = set.tasks().iter().map(|task| task.wcet).collect();
            Outcome::Schedulable(Evidence::ResponseTimes(bounds))
        } else {
            Outcome::NotApplicable(Precondition::NoMoreTasksThanCpus)
        }
    });
    Verdict::new(Test::Trivial, settle(outcome))
}
