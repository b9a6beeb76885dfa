//! Budgets: a task that has one is a bandwidth server, charged for the CPU time of its jobs, as simulated ones are.
//!
//! The thread knows by its own clock what it used, however often it was preempted: a step executes no longer than there is
//! budget, and no timer of Linux is needed, which would look at ticks only (up to 4 ms late). Code of the user has a
//! [supervisor](laxity_sched::Supervisor).

use laxity_model::{Instant, Nanos};
use laxity_policy::server::Budget;
use laxity_sched::{Ledger, Throttling, Watch};
use laxity_sys::clock;

use super::{Cut, Jobs};
use crate::log::{JobStep, Writer};
use crate::worker::Interrupted;

/// What a supervisor does is noted in the log of its task.
impl Ledger for Writer {
    fn replenished(&mut self, job: u64, budget: Nanos, deadline: Instant) {
        self.note(job as u32, JobStep::Amount(budget.0));
        self.note(job as u32, JobStep::Replenish(deadline.0));
    }

    fn decisions(&mut self, job: u64, why: Option<Throttling>) -> impl Watch {
        let step = why.map(|why| match why {
            Throttling::Begins => JobStep::Throttled,
            Throttling::Ends => JobStep::Resumed,
        });
        Writer::decisions(self, job as u32, step)
    }
}

impl Jobs {
    /// A job that was released at `release` and is due at `deadline` waits until there is budget; answers the deadline by
    /// which it is ranked.
    pub(super) fn begin_budget(&mut self, release: Instant, deadline: Instant) -> Result<Instant, Cut> {
        let Some(budget) = &mut self.budget else { return Ok(deadline) };
        // A job of a node may begin before the release that its deadline is counted from.
        budget.begin(release.min(clock::now()));
        while let Some(until) = self.budget.as_ref().and_then(Budget::throttled) {
            if !self.stop.suspend_until(until) {
                return Err(Cut::Stopped);
            }
            self.budget.iter_mut().for_each(|budget| budget.replenish(until));
        }
        self.note_budgets();
        Ok(self.budget.as_mut().map_or(deadline, |budget| {
            budget.take_postponed();
            budget.ranked(deadline)
        }))
    }

    /// Uses the CPU for `span`, as far as there is budget; waits for more where that is exhausted.
    pub(super) fn execute(&mut self, span: Nanos) -> Result<(), Cut> {
        let mut rest = span;
        loop {
            let left = self.budget.as_ref().filter(|budget| budget.throttled().is_none()).map(Budget::left);
            let part = left.map_or(rest, |left| left.min(rest));
            let before = clock::thread_cpu_time();
            let mut place = self.place();
            if !self.work.execute(part, &self.stop, || place.look(&mut self.log, self.index)) {
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
        let is_throttled = self.budget.as_ref().is_some_and(|budget| budget.throttled().is_some());
        is_throttled && self.sections == 0 && self.held.is_empty()
    }

    /// Suspends the job while it has no budget, unless it is in a section, which comes to its end first. One that has got
    /// another budget already goes on.
    pub(super) fn await_budget(&mut self) -> Result<(), Cut> {
        self.go_on_postponed()?;
        let until = |jobs: &Jobs| jobs.budget.as_ref().and_then(Budget::throttled);
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
        if self.sections > 0 || budget.throttled().is_some() {
            return Ok(());
        }
        if let Some(deadline) = budget.take_postponed() {
            let mut watch = self.log.decisions(self.index, None);
            task.postpone_watched(deadline, &mut watch).map_err(super::JobError::from)?;
            self.note(JobStep::Executes);
        }
        Ok(())
    }

    /// The suspended job is ranked by the deadline of its new budget.
    fn follow_deadline(&mut self) -> Result<(), Cut> {
        let (Some(budget), Some(task)) = (&mut self.budget, &self.scheduled) else { return Ok(()) };
        if let Some(deadline) = budget.take_postponed() {
            task.postpone(deadline).map_err(super::JobError::from)?;
            self.note(JobStep::Priority(deadline.0));
        }
        Ok(())
    }

    fn note_budgets(&mut self) {
        for (amount, deadline) in self.budget.iter_mut().flat_map(Budget::take_replenished) {
            self.log.note(self.index, JobStep::Amount(amount.0));
            self.log.note(self.index, JobStep::Replenish(deadline.0));
        }
    }

    /// The job goes into the user's code. Its budget is supervised from here on, unless it is in a section, which is not
    /// interrupted. Answers the thread's CPU time.
    pub(super) fn lend_budget(&mut self) -> Nanos {
        let before = clock::thread_cpu_time();
        let is_in_section = self.sections > 0 || !self.held.is_empty();
        if let Some(supervisor) = self.supervisor.as_ref().filter(|_| !is_in_section)
            && let Some(budget) = self.budget.take_if(|budget| budget.throttled().is_none())
        {
            supervisor.lend(budget, before, self.index.into());
        }
        before
    }

    /// It is back, and charged for what it used since its CPU time was `before`.
    pub(super) fn take_budget_back(&mut self, before: Nanos) -> Result<(), Cut> {
        match &self.supervisor {
            Some(supervisor) if self.budget.is_none() => {
                let returned = supervisor.take_back(|| !self.stop.is_stopped()).ok_or(Interrupted::Stopped)?;
                self.budget = Some(returned.budget);
                returned.outcome.map_err(super::JobError::from)?;
                self.charge_since(returned.charged);
            }
            _ => self.charge_since(before),
        }
        Ok(())
    }
}
