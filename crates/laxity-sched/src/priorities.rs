//! Priorities that a job is given after its release.

use laxity_model::Instant;
use laxity_policy::cpu::Event;

use crate::decision::{Decision, Watch};
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
        self.event(&mut (), phase, |state| state.handle(self.id, Event::Prioritized { task: self.id, level }))
    }

    /// The present job, which is not suspended, is above all others (`true`), or has its own priority again; `watch` hears of
    /// the decision before the thread may have to wait for its CPU.
    ///
    /// # Errors
    /// [`TaskError`]; there must be a job that is not suspended.
    pub fn top_priority_watched(&self, is_above: bool, watch: &mut impl Watch) -> Result<Decision, TaskError> {
        self.expect(Phase::Pending, "a priority", "a job that is not suspended", "wait for one first")?;
        let level = if is_above { (0, self.id.0) } else { self.shared().base(self.id).level() };
        self.event(watch, Phase::Pending, |state| state.handle(self.id, Event::Prioritized { task: self.id, level }))
    }

    /// The present job is due at `deadline` from now on, and goes by that under EDF: it has another budget.
    ///
    /// # Errors
    /// [`TaskError`]; there must be a job.
    pub fn postpone(&self, deadline: Instant) -> Result<Decision, TaskError> {
        let phase = self.phase.get();
        if phase == Phase::Idle {
            self.expect(Phase::Pending, "a deadline", "a job", "wait for one first")?;
        }
        let job = self.job();
        self.event(&mut (), phase, |state| {
            self.shared().begin_job(self.id, job.index, job.release, deadline);
            state.handle(self.id, Event::Prioritized { task: self.id, level: self.shared().base(self.id).level() });
        })
    }
}
