//! The budget of a thread whose jobs are a server's: charged for the CPU time that the thread used, whenever that is looked
//! at.
//!
//! ```text
//!  begin: wake             it used CPU time: charge          exhausted                    replenish
//! (no job) -----> (has budget) <------------------> (has budget) ----> (throttled) -----> (has budget)
//!                      |    ^
//!                      '----'  exhausted, and there is another one: the job goes on, ranked by a later deadline
//! ```

use laxity_model::{Instant, Nanos};
use serde::{Deserialize, Serialize};

use super::{Action, Config, ConfigError, Server};

/// The level at which a server competes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum ServerLevel {
    /// Under fixed priorities.
    Fixed(u64),
    /// That of its deadline, which is a period after its budget began. A task whose relative deadline is another keeps
    /// that.
    Deadline {
        /// The server's period.
        period: Nanos,
        /// The relative deadline of its task.
        relative: Nanos,
    },
}

/// The budget of a task.
#[derive(Debug)]
pub struct Budget {
    server: Box<dyn Server>,
    level: ServerLevel,
    left: Nanos,
    throttled: Option<Instant>,
    /// The deadline with which it competes.
    deadline: Instant,
    /// Whether the job that goes on is still ranked by an earlier one.
    is_postponed: bool,
    /// When something last happened to it: its time never goes back.
    last: Instant,
    /// Budgets that it was given and that were not asked for yet, and their deadlines.
    replenished: Vec<(Nanos, Instant)>,
}

impl Budget {
    /// Of a server that is idle.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn new(config: Config, level: ServerLevel) -> Result<Budget, ConfigError> {
        Ok(Budget {
            server: config.build()?,
            level,
            left: config.budget,
            throttled: None,
            deadline: Instant::ZERO,
            is_postponed: false,
            last: Instant::ZERO,
            replenished: Vec::new(),
        })
    }

    /// What is left before it is exhausted.
    pub fn left(&self) -> Nanos {
        self.left
    }

    /// Until when there is none; `None`: there is some.
    pub fn throttled(&self) -> Option<Instant> {
        self.throttled
    }

    /// The deadline by which the job is ranked from now on, if it goes by deadlines and its budget has another one since it
    /// was last asked.
    pub fn take_postponed(&mut self) -> Option<Instant> {
        let is_postponed = std::mem::take(&mut self.is_postponed);
        match self.level {
            ServerLevel::Deadline { .. } if is_postponed => Some(self.ranked(Instant::NEVER)),
            _ => None,
        }
    }

    /// The budgets that it was given since it was last asked, and their deadlines.
    pub fn take_replenished(&mut self) -> impl Iterator<Item = (Nanos, Instant)> + '_ {
        self.replenished.drain(..)
    }

    /// A job that was released at `release` is to begin. It must wait while there is no budget.
    pub fn begin(&mut self, release: Instant) {
        if release >= self.last {
            // The last job was complete by then; one that was released earlier found work. Of one instant, idle comes first.
            self.server.idle(self.last);
            self.throttled = None;
            self.last = release;
        }
        let mut actions = Vec::new();
        self.server.wake(self.last, &mut actions);
        self.follow(actions);
    }

    /// The job used `used` of CPU time up to `now`.
    pub fn charge(&mut self, used: Nanos, now: Instant) {
        // In a section that began before the budget was exhausted it goes on, uncharged.
        if self.throttled.is_some() {
            return;
        }
        let now = now.max(self.last);
        let begin = Instant(now.0.saturating_sub(used.0)).max(self.last);
        let mut actions = Vec::new();
        self.server.run(begin);
        self.server.stop(now, &mut actions);
        self.last = now;
        self.left = Nanos(self.left.0.saturating_sub(used.0));
        self.follow(actions);
    }

    /// There is to be a budget again by `now`.
    pub fn replenish(&mut self, now: Instant) {
        self.last = now.max(self.last);
        let mut actions = Vec::new();
        self.server.timeout(self.last, &mut actions);
        self.follow(actions);
    }

    /// The deadline by which a job is ranked that is due at `deadline`.
    pub fn ranked(&self, deadline: Instant) -> Instant {
        match self.level {
            // A period after its budget began: the job's own, unless it used more than one budget.
            ServerLevel::Deadline { period, relative } => {
                Instant(self.deadline.0.saturating_sub(period.0).saturating_add(relative.0))
            }
            ServerLevel::Fixed(_) => deadline,
        }
    }

    fn follow(&mut self, actions: Vec<Action>) {
        for action in actions {
            match action {
                Action::Ready { deadline } => {
                    self.is_postponed |= deadline != self.deadline;
                    (self.deadline, self.throttled) = (deadline, None);
                }
                Action::Throttled { until } => self.throttled = Some(until),
                Action::Replenished { budget, deadline } => {
                    self.left = budget;
                    self.replenished.push((budget, deadline));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::*;

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Nanos::from_millis(millis)
    }

    fn budget() -> Budget {
        of(Kind::HardCbs)
    }

    fn of(kind: Kind) -> Budget {
        let (budget, period) = (Nanos::from_millis(2), Nanos::from_millis(10));
        let level = ServerLevel::Deadline { period, relative: period };
        Budget::new(Config { budget, period, kind }, level).expect("a budget")
    }

    #[test]
    fn a_soft_budget_is_full_at_once_and_due_a_period_later() {
        let mut budget = of(Kind::SoftCbs);
        budget.begin(ms(100));
        budget.is_postponed = false;
        budget.charge(Nanos::from_millis(1), ms(101));
        assert_eq!((budget.throttled, budget.is_postponed), (None, false));
        budget.charge(Nanos::from_millis(1), ms(102));
        assert_eq!((budget.throttled, budget.is_postponed, budget.left), (None, true, Nanos::from_millis(2)));
        assert_eq!(budget.ranked(Instant::NEVER), ms(120));
        // It used a budget and a half too much.
        budget.charge(Nanos::from_millis(5), ms(107));
        assert_eq!((budget.ranked(Instant::NEVER), budget.left), (ms(140), Nanos::from_millis(1)));
    }

    #[test]
    fn a_part_of_a_sporadic_budget_comes_back_a_period_after_its_use_began() {
        let mut budget = of(Kind::Sporadic { replenishments: 4 });
        budget.begin(ms(100));
        budget.charge(Nanos::from_millis(1), ms(103));
        // The job is complete, and the next one comes.
        budget.begin(ms(105));
        assert_eq!((budget.left, budget.ranked(Instant::NEVER)), (Nanos::from_millis(1), ms(115)));
        budget.charge(Nanos::from_millis(1), ms(106));
        assert_eq!(budget.throttled, Some(ms(110)), "what was used from 100 on");
        budget.replenish(ms(110));
        assert_eq!((budget.throttled, budget.left), (None, Nanos::from_millis(1)));
        assert_eq!(budget.ranked(Instant::NEVER), ms(120));
        budget.charge(Nanos::from_millis(1), ms(111));
        assert_eq!(budget.throttled, Some(ms(115)), "what was used from 105 on");
    }

    /// Preempted or not: 2 ms of CPU time in whatever time, then none until the deadline of the budget.
    #[test]
    fn a_budget_is_charged_for_cpu_time_and_comes_back_at_its_deadline() {
        let mut budget = budget();
        budget.begin(ms(100));
        assert_eq!((budget.throttled, budget.ranked(Instant::NEVER)), (None, ms(110)));
        budget.charge(Nanos::from_millis(1), ms(105));
        assert_eq!((budget.throttled, budget.left), (None, Nanos::from_millis(1)));
        budget.charge(Nanos::from_millis(1), ms(108));
        assert_eq!(budget.throttled, Some(ms(110)));
        budget.charge(Nanos::from_millis(1), ms(109));
        budget.replenish(ms(110));
        assert_eq!((budget.throttled, budget.left), (None, Nanos::from_millis(2)), "a section was not charged");
        assert_eq!(budget.ranked(Instant::NEVER), ms(120), "due a period later");
        assert_eq!(budget.replenished, [(Nanos::from_millis(2), ms(110)), (Nanos::from_millis(2), ms(120))]);
    }

    #[test]
    fn a_job_that_used_more_is_paid_back_by_the_next_budget() {
        let mut budget = budget();
        budget.begin(ms(100));
        budget.charge(Nanos::from_millis(3), ms(104));
        budget.replenish(budget.throttled.expect("exhausted"));
        assert_eq!(budget.left, Nanos::from_millis(1));
    }

    #[test]
    fn a_late_job_goes_on_with_the_budget_of_the_one_before() {
        let mut budget = budget();
        budget.begin(ms(100));
        budget.charge(Nanos::from_millis(1), ms(112));
        // Released at 110, before the last one was complete.
        budget.begin(ms(110));
        assert_eq!(budget.left, Nanos::from_millis(1));
        budget.charge(Nanos::from_millis(1), ms(113));
        // Exhausted after its deadline: the next one is there, with a deadline a period later.
        assert_eq!(budget.throttled, None);
        assert_eq!(budget.ranked(Instant::NEVER), ms(123));
    }
}
