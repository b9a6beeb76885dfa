//! How jobs are ranked: earliest deadline first, or a fixed rank per task.

use laxity_model::{Instant, PriorityRule, Task, TaskId};

use super::Priority;

/// Turns a job into its [`Priority`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// Earliest absolute deadline first; ties go to the task listed first (paper 002, footnote 4).
    EarliestDeadline,
    /// One rank per task, 0 the most urgent. The level of a job is its rank + 1: level 0 is above all jobs.
    Fixed(Vec<u32>),
}

impl Ranking {
    /// The ranking of `rule` over `tasks`, ties to the task listed first. Tasks without a given priority rank last.
    pub fn new<'a>(rule: PriorityRule, tasks: impl IntoIterator<Item = &'a Task>) -> Self {
        let key: fn(&Task) -> u64 = match rule {
            PriorityRule::Edf => return Ranking::EarliestDeadline,
            PriorityRule::RateMonotonic => |task| task.period.as_nanos(),
            PriorityRule::DeadlineMonotonic => |task| task.deadline.as_nanos(),
            PriorityRule::Given => |task| task.priority.map_or(u64::MAX, u64::from),
        };
        let keys: Vec<u64> = tasks.into_iter().map(key).collect();
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(|&task| (keys[task], task));
        let mut ranks = vec![0; keys.len()];
        for (rank, &task) in order.iter().enumerate() {
            ranks[task] = rank as u32;
        }
        Ranking::Fixed(ranks)
    }

    /// The ranking among `members` alone, which are numbered anew in the order given. Ranks stay as they are, so that
    /// those of different clusters can be compared.
    pub fn among(&self, members: &[TaskId]) -> Ranking {
        match self {
            Ranking::EarliestDeadline => Ranking::EarliestDeadline,
            Ranking::Fixed(ranks) => Ranking::Fixed(members.iter().map(|task| ranks[task.index()]).collect()),
        }
    }

    /// The rank of `task` under fixed priorities; its position in the list under EDF, where it breaks ties.
    pub fn rank(&self, task: TaskId) -> u32 {
        match self {
            Ranking::EarliestDeadline => task.0,
            Ranking::Fixed(ranks) => ranks[task.index()],
        }
    }

    /// The priority of a job of `task` due at `deadline`.
    pub fn priority(&self, task: TaskId, deadline: Instant) -> Priority {
        let major = match self {
            Ranking::EarliestDeadline => deadline.as_nanos(),
            Ranking::Fixed(ranks) => u64::from(ranks[task.index()]) + 1,
        };
        Priority::of(major, task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use laxity_model::Nanos;

    #[test]
    fn rate_monotonic_ranks_by_period_and_breaks_ties_by_order() {
        let task = |period| Task::periodic("t", Nanos(1), Nanos(period));
        let ranking = Ranking::new(PriorityRule::RateMonotonic, &[task(30), task(10), task(30), task(20)]);
        assert_eq!(ranking, Ranking::Fixed(vec![2, 0, 3, 1]));
    }

    #[test]
    fn given_priorities_rank_the_smaller_number_first() {
        let task = |priority| Task { priority, ..Task::periodic("t", Nanos(1), Nanos(9)) };
        let ranking = Ranking::new(PriorityRule::Given, &[task(None), task(Some(7)), task(Some(2))]);
        assert_eq!(ranking, Ranking::Fixed(vec![2, 1, 0]));
    }
}
