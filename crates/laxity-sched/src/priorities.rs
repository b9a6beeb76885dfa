//! Priorities that a job is given after its release.

use laxity_model::Instant;
use laxity_policy::cpu::Event;

use crate::decision::{Change, Decision, Watch};
use crate::state_lock::ClusterGuard;
use crate::task::{Phase, Task, TaskError};

impl Task {
    /// The present job has this priority from now on: (absolute deadline in nanoseconds or level, tie).
    ///
    /// # Errors
    /// [`TaskError`]; there must be a job.
    pub fn prioritize(&self, level: (u64, u32)) -> Result<Decision, TaskError> {
        let phase = self.phase.get();
        if phase == Phase::Idle {
            self.expect(Phase::Pending, "a priority", "a job", "wait for one first")?;
        }
        self.charged(|| {
            self.event(&mut (), phase, |state| state.handle(self.id, Event::Prioritized { task: self.id, level }))
        })
    }

    /// The present job, which is not suspended, is above all others (`true`), or has its effective priority again; `watch`
    /// hears of the decision before the thread may have to wait for its CPU. It stays above them whatever happens to the
    /// locks that it holds or requests, until it says so or is complete.
    ///
    /// # Errors
    /// [`TaskError`]; there must be a job that is not suspended.
    pub fn top_priority_watched(&self, is_above: bool, watch: &mut impl Watch) -> Result<(), TaskError> {
        self.charged(|| self.top_priority_now(is_above, watch))
    }

    fn top_priority_now(&self, is_above: bool, watch: &mut impl Watch) -> Result<(), TaskError> {
        self.expect(Phase::Pending, "a priority", "a job that is not suspended", "wait for one first")?;
        let (shared, task) = (self.shared(), self.id);
        if is_above || shared.config.locks.is_empty() {
            let event = |state: &mut ClusterGuard<'_>| {
                shared.set_above(task, is_above);
                state.change(Change::Prioritized { task, level: shared.own_level(task) });
            };
            return self.event(watch, Phase::Pending, event).map(drop);
        }
        // It may have inherited a priority meanwhile.
        self.change_locks(watch, |locks| {
            shared.set_above(task, false);
            locks.touch(task);
            Ok(())
        })
        .map(drop)
    }

    /// The present job is due at `deadline` from now on, and goes by that under EDF: it has another budget.
    ///
    /// # Errors
    /// [`TaskError`]; there must be a job.
    pub fn postpone(&self, deadline: Instant) -> Result<Decision, TaskError> {
        self.charged(|| self.postpone_now(deadline))
    }

    pub(crate) fn postpone_now(&self, deadline: Instant) -> Result<Decision, TaskError> {
        let phase = self.phase.get();
        if phase == Phase::Idle {
            self.expect(Phase::Pending, "a deadline", "a job", "wait for one first")?;
        }
        let job = self.job();
        self.event(&mut (), phase, |state| {
            self.shared().begin_job(self.id, job.index, job.release, deadline);
            state.handle(self.id, Event::Prioritized { task: self.id, level: self.shared().own_level(self.id) });
        })
    }

    /// The same of a job that is not suspended and goes on; `watch` hears of the decision before the thread may have to wait
    /// for its CPU. It keeps the priority that it inherits by locks which it holds.
    ///
    /// # Errors
    /// [`TaskError`]; there must be a job that is not suspended.
    pub fn postpone_watched(&self, deadline: Instant, watch: &mut impl Watch) -> Result<(), TaskError> {
        self.charged(|| self.postpone_going_on(deadline, watch))
    }

    pub(crate) fn postpone_going_on(&self, deadline: Instant, watch: &mut impl Watch) -> Result<(), TaskError> {
        self.expect(Phase::Pending, "a deadline", "a job that is not suspended", "wait for one first")?;
        let (shared, task, job) = (self.shared(), self.id, self.job());
        if shared.config.locks.is_empty() {
            let event = |state: &mut ClusterGuard<'_>| {
                shared.begin_job(task, job.index, job.release, deadline);
                state.change(Change::Prioritized { task, level: shared.own_level(task) });
            };
            return self.event(watch, Phase::Pending, event).map(drop);
        }
        self.change_locks(watch, |locks| {
            shared.begin_job(task, job.index, job.release, deadline);
            locks.rebase(task);
            Ok(())
        })
        .map(drop)
    }
}
