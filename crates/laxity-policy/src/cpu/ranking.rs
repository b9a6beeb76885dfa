//! How jobs are ranked: earliest deadline first, or a fixed rank per task. The fair class ranks no jobs; locks of GPUs,
//! which ask for a rank all the same, go by deadlines there.

use laxity_model::{Instant, PriorityRule, Task, TaskId};

use super::Priority;

/// Turns a job into its [`Priority`]. Ties go to the task listed first (paper 002, footnote 4), and "listed" means the
/// list of all tasks: a scheduler of some of them, which numbers its own anew, breaks ties like one of all, so that
/// priorities of different clusters compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranking {
    /// Under fixed priorities the level of each task, 1 the most urgent; `None`: the earliest deadline comes first.
    levels: Option<Vec<u64>>,
    /// The position of each task in the list of all.
    positions: Vec<u32>,
}

impl Ranking {
    /// The ranking of `rule` over `tasks`, ties to the task listed first. Tasks without a given priority rank last.
    pub fn new<'a>(rule: PriorityRule, tasks: impl IntoIterator<Item = &'a Task>) -> Self {
        let key: fn(&Task) -> u64 = match rule {
            PriorityRule::Edf | PriorityRule::Fair => |_| 0,
            PriorityRule::RateMonotonic => |task| task.ranked_by().0.as_nanos(),
            PriorityRule::DeadlineMonotonic => |task| task.ranked_by().1.as_nanos(),
            PriorityRule::Given => |task| task.priority.map_or(u64::MAX, u64::from),
        };
        let keys: Vec<u64> = tasks.into_iter().map(key).collect();
        let positions = (0..keys.len() as u32).collect();
        let levels = (!rule.goes_by_deadline()).then(|| levels(&keys));
        Ranking { levels, positions }
    }

    /// The ranking of `rule` over `tasks` tasks that are not known yet: under fixed priorities each has the least urgent
    /// level until [`Ranking::set_level`].
    pub fn of_unknown(rule: PriorityRule, tasks: usize) -> Self {
        let levels = (!rule.goes_by_deadline()).then(|| vec![u64::MAX; tasks]);
        Ranking { levels, positions: (0..tasks as u32).collect() }
    }

    /// The level of all later jobs of `task` under fixed priorities. Level 0 is above all jobs.
    pub fn set_level(&mut self, task: TaskId, level: u64) {
        if let Some(levels) = &mut self.levels {
            levels[task.index()] = level.max(1);
        }
    }

    /// The ranking among `members` alone, which are numbered anew in the order given. Ranks and ties stay as they are,
    /// so that those of different clusters can be compared.
    pub fn among(&self, members: &[TaskId]) -> Ranking {
        let levels = |levels: &Vec<u64>| members.iter().map(|task| levels[task.index()]).collect();
        let positions = members.iter().map(|task| self.positions[task.index()]).collect();
        Ranking { levels: self.levels.as_ref().map(levels), positions }
    }

    /// The rank of `task` under fixed priorities; its position in the list under EDF, where it breaks ties.
    pub fn rank(&self, task: TaskId) -> u32 {
        match &self.levels {
            Some(levels) => (levels[task.index()] - 1) as u32,
            None => self.positions[task.index()],
        }
    }

    /// The level of all jobs of `task` under fixed priorities: its rank + 1, for level 0 is above all jobs. `None` under
    /// EDF, where each job's deadline is its level.
    pub fn fixed_level(&self, task: TaskId) -> Option<u64> {
        self.levels.as_ref().map(|levels| levels[task.index()])
    }

    /// The priority of a job of `task` due at `deadline`.
    pub fn priority(&self, task: TaskId, deadline: Instant) -> Priority {
        let major = self.fixed_level(task).unwrap_or(deadline.as_nanos());
        Priority { major, tie: self.positions[task.index()], task }
    }
}

/// One more than the place of each key in the order of all, ties in the order given.
fn levels(keys: &[u64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by_key(|&task| (keys[task], task));
    let mut levels = vec![0; keys.len()];
    for (rank, &task) in order.iter().enumerate() {
        levels[task] = rank as u64 + 1;
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::Nanos;

    #[test]
    fn rate_monotonic_ranks_by_period_and_breaks_ties_by_order() {
        let task = |period| Task::periodic("t", Nanos(1), Nanos(period));
        let ranking = Ranking::new(PriorityRule::RateMonotonic, &[task(30), task(10), task(30), task(20)]);
        assert_eq!(ranking.levels, Some(vec![3, 1, 4, 2]));
    }

    #[test]
    fn given_priorities_rank_the_smaller_number_first() {
        let task = |priority| Task { priority, ..Task::periodic("t", Nanos(1), Nanos(9)) };
        let ranking = Ranking::new(PriorityRule::Given, &[task(None), task(Some(7)), task(Some(2))]);
        assert_eq!(ranking.levels, Some(vec![3, 2, 1]));
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
