//! Budgets: a task that has one is a bandwidth server, charged for the CPU time of its jobs, as simulated ones are.
//!
//! ```text
//!  begin: wake           a step used CPU time: charge       exhausted, and no section: suspended until replenished
//! (no job) -----> (has budget) <------------------> (has budget) -----------> (throttled) -----> (has budget)
//!                      |    ^
//!                      '----'  exhausted, and there is another one: the job goes on, ranked by a later deadline
//! ```
//!
//! The thread knows by its own clock what it used, however often it was preempted: a step executes no longer than there is
//! budget, and no timer of Linux is needed, which would look at ticks only (up to 4 ms late). Code of the user has a
//! [supervisor](super::supervisor).

use laxity_model::{Instant, Nanos};
use laxity_plan::{ServerLevel, ServerPlan};
use laxity_policy::server::{Action, Server};
use laxity_sys::clock;

use super::{Cut, Jobs};
use crate::log::{JobStep, Writer};

/// The budget of a task.
#[derive(Debug)]
pub(super) struct Budget {
    server: Box<dyn Server>,
    pub level: ServerLevel,
    /// What is left before it is exhausted.
    pub left: Nanos,
    /// Until when there is none.
    pub throttled: Option<Instant>,
    /// The deadline with which it competes.
    deadline: Instant,
    /// Whether the job that goes on is still ranked by an earlier one.
    pub is_postponed: bool,
    /// When something last happened to it: its time never goes back.
    last: Instant,
    /// What the log does not have yet: budgets that it was given, and their deadlines.
    replenished: Vec<(Nanos, Instant)>,
}

impl Budget {
    /// That of `plan`, without a job.
    ///
    /// # Errors
    /// That there is none.
    pub fn new(plan: &ServerPlan) -> Result<Budget, String> {
        Ok(Budget {
            server: plan.config.build().map_err(|error| error.to_string())?,
            level: plan.level,
            left: plan.config.budget,
            throttled: None,
            deadline: Instant::ZERO,
            is_postponed: false,
            last: Instant::ZERO,
            replenished: Vec::new(),
        })
    }

    /// A job that was released at `release` is to begin. It must wait while there is no budget.
    pub fn begin(&mut self, release: Instant) {
        if release > self.last {
            // The last job was complete by then; one that was released earlier found work.
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

    /// Tells the log what it does not have yet, as of job `index`.
    pub fn note_to(&mut self, log: &mut Writer, index: u32) {
        for (amount, deadline) in self.replenished.drain(..) {
            log.note(index, JobStep::Amount(amount.0));
            log.note(index, JobStep::Replenish(deadline.0));
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

impl Jobs {
    /// A job that was released at `release` and is due at `deadline` waits until there is budget; answers the deadline by
    /// which it is ranked.
    pub(super) fn begin_budget(&mut self, release: Instant, deadline: Instant) -> Result<Instant, Cut> {
        let Some(budget) = &mut self.budget else { return Ok(deadline) };
        // A job of a node may begin before the release that its deadline is counted from.
        budget.begin(release.min(clock::now()));
        while let Some(until) = self.budget.as_ref().and_then(|budget| budget.throttled) {
            if !self.stop.suspend_until(until) {
                return Err(Cut::Stopped);
            }
            self.budget.iter_mut().for_each(|budget| budget.replenish(until));
        }
        self.note_budgets();
        let ranked = self.budget.as_mut().map_or(deadline, |budget| {
            budget.is_postponed = false;
            budget.ranked(deadline)
        });
        if ranked != deadline && self.scheduled.is_some() {
            self.note(JobStep::Priority(ranked.0));
        }
        Ok(ranked)
    }

    /// Uses the CPU for `span`, as far as there is budget; waits for more where that is exhausted.
    pub(super) fn execute(&mut self, span: Nanos) -> Result<(), Cut> {
        let mut rest = span;
        loop {
            let left = self.budget.as_ref().filter(|budget| budget.throttled.is_none()).map(|budget| budget.left);
            let part = left.map_or(rest, |left| left.min(rest));
            let before = clock::thread_cpu_time();
            if !self.work.execute(part, &self.stop) {
                return Err(Cut::Stopped);
            }
            let Some(budget) = &mut self.budget else { return Ok(()) };
            let used = clock::thread_cpu_time() - before;
            budget.charge(used, clock::now());
            self.note_budgets();
            rest = Nanos(rest.0.saturating_sub(used.0.max(part.0)));
            if rest.is_zero() {
                return Ok(());
            }
            self.await_budget()?;
        }
    }

    /// Charges for what the job used since its CPU time was `before`, outside of its steps of computation.
    pub(super) fn charge_since(&mut self, before: Nanos) {
        self.charge(clock::thread_cpu_time() - before);
    }

    /// Charges for what the job used until now.
    pub(super) fn charge(&mut self, used: Nanos) {
        if let Some(budget) = &mut self.budget {
            budget.charge(used, clock::now());
            self.note_budgets();
        }
    }

    /// Whether the job has no budget, and is in no section, which would come to its end first.
    pub(super) fn must_wait(&self) -> bool {
        let is_throttled = self.budget.as_ref().is_some_and(|budget| budget.throttled.is_some());
        is_throttled && self.sections == 0 && self.held.is_empty()
    }

    /// Suspends the job while it has no budget, unless it is in a section, which comes to its end first. One that has got
    /// another budget already goes on.
    pub(super) fn await_budget(&mut self) -> Result<(), Cut> {
        self.go_on_postponed()?;
        let until = |jobs: &Jobs| jobs.budget.as_ref().and_then(|budget| budget.throttled);
        if self.sections > 0 || !self.held.is_empty() {
            return Ok(());
        }
        while let Some(until) = until(self) {
            self.suspended(|jobs| {
                if !jobs.stop.suspend_until(until) {
                    return Err(Cut::Stopped);
                }
                jobs.budget.iter_mut().for_each(|budget| budget.replenish(until));
                jobs.note_budgets();
                jobs.follow_deadline()
            })??;
        }
        Ok(())
    }

    /// The job, which goes on, is ranked by the deadline of the budget that it has got, and may lose its CPU by that. In a
    /// non-preemptive section, which it has to itself, it is ranked anew when the section ends.
    fn go_on_postponed(&mut self) -> Result<(), Cut> {
        let (Some(budget), Some(task)) = (&mut self.budget, &self.scheduled) else { return Ok(()) };
        if self.sections > 0 || budget.throttled.is_some() || !std::mem::take(&mut budget.is_postponed) {
            return Ok(());
        }
        if let ServerLevel::Deadline { .. } = budget.level {
            let mut watch = self.log.decisions(self.index, None);
            task.postpone_watched(budget.ranked(Instant::NEVER), &mut watch).map_err(super::JobError::from)?;
            self.note(JobStep::Executes);
        }
        Ok(())
    }

    /// The suspended job is ranked by the deadline of its new budget.
    fn follow_deadline(&mut self) -> Result<(), Cut> {
        let (Some(budget), Some(task)) = (&mut self.budget, &self.scheduled) else { return Ok(()) };
        budget.is_postponed = false;
        if let ServerLevel::Deadline { .. } = budget.level {
            let level = budget.ranked(Instant::NEVER).0;
            task.postpone(Instant(level)).map_err(super::JobError::from)?;
            self.note(JobStep::Priority(level));
        }
        Ok(())
    }

    fn note_budgets(&mut self) {
        if let Some(budget) = &mut self.budget {
            budget.note_to(&mut self.log, self.index);
        }
    }
}

#[cfg(test)]
mod tests {
    use laxity_policy::server::{Config, Kind};

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
        Budget::new(&ServerPlan { config: Config { budget, period, kind }, level }).expect("a budget")
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
