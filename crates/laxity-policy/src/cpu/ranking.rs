//! How jobs are ranked: earliest deadline first, or a fixed rank per task. The fair class ranks no jobs; locks of GPUs,
//! which ask for a rank all the same, go by deadlines there.

use laxity_model::{Instant, PriorityRule, Task, TaskId};

use super::Priority;

/// Turns a job into its [`Priority`]. Ties go to the task listed first (paper 002, footnote 4), and "listed" means the
/// list of all tasks: a scheduler of some of them, which numbers its own anew, breaks ties like one of all, so that
/// priorities of different clusters compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranking {
    /// Under fixed priorities one rank a task, 0 the most urgent; `None`: the earliest deadline comes first.
    ranks: Option<Vec<u32>>,
    /// The position of each task in the list of all.
    positions: Vec<u32>,
}

impl Ranking {
    /// The ranking of `rule` over `tasks`, ties to the task listed first. Tasks without a given priority rank last.
    pub fn new<'a>(rule: PriorityRule, tasks: impl IntoIterator<Item = &'a Task>) -> Self {
        let key: fn(&Task) -> u64 = match rule {
            PriorityRule::Edf | PriorityRule::Fair => |_| 0,
            PriorityRule::RateMonotonic => |task| task.period.as_nanos(),
            PriorityRule::DeadlineMonotonic => |task| task.deadline.as_nanos(),
            PriorityRule::Given => |task| task.priority.map_or(u64::MAX, u64::from),
        };
        let keys: Vec<u64> = tasks.into_iter().map(key).collect();
        let positions = (0..keys.len() as u32).collect();
        let ranks = (!rule.goes_by_deadline()).then(|| ranks(&keys));
        Ranking { ranks, positions }
    }

    /// The ranking among `members` alone, which are numbered anew in the order given. Ranks and ties stay as they are,
    /// so that those of different clusters can be compared.
    pub fn among(&self, members: &[TaskId]) -> Ranking {
        let of_members = |values: &Vec<u32>| members.iter().map(|task| values[task.index()]).collect();
        Ranking { ranks: self.ranks.as_ref().map(of_members), positions: of_members(&self.positions) }
    }

    /// The rank of `task` under fixed priorities; its position in the list under EDF, where it breaks ties.
    pub fn rank(&self, task: TaskId) -> u32 {
        self.ranks.as_ref().unwrap_or(&self.positions)[task.index()]
    }

    /// The level of all jobs of `task` under fixed priorities: its rank + 1, for level 0 is above all jobs. `None` under
    /// EDF, where each job's deadline is its level.
    pub fn fixed_level(&self, task: TaskId) -> Option<u64> {
        self.ranks.as_ref().map(|ranks| u64::from(ranks[task.index()]) + 1)
    }

    /// The priority of a job of `task` due at `deadline`.
    pub fn priority(&self, task: TaskId, deadline: Instant) -> Priority {
        let major = self.fixed_level(task).unwrap_or(deadline.as_nanos());
        Priority { major, tie: self.positions[task.index()], task }
    }
}

/// The place of each key in the order of all, ties in the order given.
fn ranks(keys: &[u64]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|&task| (keys[task], task));
    let mut ranks = vec![0; keys.len()];
    for (rank, &task) in order.iter().enumerate() {
        ranks[task] = rank as u32;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::Nanos;

    #[test]
    fn rate_monotonic_ranks_by_period_and_breaks_ties_by_order() {
        let task = |period| Task::periodic("t", Nanos(1), Nanos(period));
        let ranking = Ranking::new(PriorityRule::RateMonotonic, &[task(30), task(10), task(30), task(20)]);
        assert_eq!(ranking.ranks, Some(vec![2, 0, 3, 1]));
    }

    #[test]
    fn given_priorities_rank_the_smaller_number_first() {
        let task = |priority| Task { priority, ..Task::periodic("t", Nanos(1), Nanos(9)) };
        let ranking = Ranking::new(PriorityRule::Given, &[task(None), task(Some(7)), task(Some(2))]);
        assert_eq!(ranking.ranks, Some(vec![2, 1, 0]));
    }

    #[test]
    fn a_scheduler_of_some_tasks_breaks_ties_as_one_of_all_does() {
        let task = Task::periodic("t", Nanos(1), Nanos(9));
        let all = Ranking::new(PriorityRule::Edf, &[task.clone(), task.clone(), task]);
        let some = all.among(&[TaskId(1), TaskId(2)]);
        let priority = some.priority(TaskId(0), Instant(9));
        assert_eq!(priority, Priority { major: 9, tie: 1, task: TaskId(0) });
        assert!(all.priority(TaskId(0), Instant(9)) < priority, "the task listed first is of the other cluster");
    }
}
