//! Jobs that Laxity's scheduler schedules: their events become those of its policy.

use laxity_model::{Instant, LockId, ReplicaId, TaskId};
use laxity_sched::{Job, LockRequest, Parameters, Service, System, Task};

use super::kernel::KernelTask;
use super::{Cut, JobError, Jobs};
use crate::log::JobStep;

/// The calling thread becomes the task `parameters` of `system`, with the number that traces and ties go by.
///
/// # Errors
/// Why it cannot, in words.
pub(super) fn begin(system: &System, parameters: &Parameters, number: usize) -> Result<Task, String> {
    system.begin_as(parameters.clone(), TaskId(number as u32)).map_err(|error| error.to_string())
}

impl Jobs {
    /// Job `index`, due at `deadline`, is ready. Where Laxity schedules, it executes when its policy lets it.
    pub(super) fn begin_job(&mut self, index: u32, deadline: Instant) -> Result<(), Cut> {
        self.index = index;
        let release = Instant(deadline.0.saturating_sub(self.plan.deadline.0));
        if self.plan.handles.is_some() && self.budget.is_some() {
            self.note(JobStep::Released(deadline.0));
        }
        let ranked = self.begin_budget(release, deadline)?;
        self.kernel.iter_mut().for_each(|own| own.begin_job(deadline));
        if self.scheduled.is_some() && (ranked != deadline || self.plan.trigger.node().is_some()) {
            self.note(JobStep::Priority(ranked.0));
        }
        let Some(task) = &self.scheduled else {
            self.note(JobStep::Begin);
            return Ok(());
        };
        if let Some(handles) = self.plan.handles.as_ref().filter(|_| self.budget.is_none()) {
            let service = Service { owner: None, urgency: handles.urgency };
            let mut watch = self.log.decisions(index, Some(JobStep::Serves));
            task.serve(index.into(), service, &mut watch).map_err(JobError::from)?;
            self.note(JobStep::Executes);
            return Ok(());
        }
        let job = Job { index: index.into(), release, deadline: ranked };
        let mut watch = self.log.decisions(index, Some(JobStep::Ready));
        task.release_watched(job, &mut watch).map_err(JobError::from)?;
        self.note(JobStep::Executes);
        Ok(())
    }

    /// The job is complete, unless its last unlock said so.
    pub(super) fn end_job(&mut self) -> Result<(), Cut> {
        if std::mem::take(&mut self.is_complete) {
            return Ok(());
        }
        let Some(task) = &self.scheduled else {
            self.note(JobStep::Complete);
            return Ok(());
        };
        let mut watch = self.log.decisions(self.index, Some(JobStep::Complete));
        task.complete_watched(&mut watch).map_err(JobError::from)?;
        Ok(())
    }

    /// The job does `wait`, during which it needs no CPU.
    pub(super) fn suspended<R>(&mut self, wait: impl FnOnce(&mut Self) -> R) -> Result<R, Cut> {
        match &self.scheduled {
            None => self.note(JobStep::Suspend),
            Some(task) => {
                let mut watch = self.log.decisions(self.index, Some(JobStep::Suspend));
                task.suspend_watched(&mut watch).map_err(JobError::from)?;
            }
        }
        let result = wait(self);
        match &self.scheduled {
            None => self.note(JobStep::Resume),
            Some(task) => {
                let mut watch = self.log.decisions(self.index, Some(JobStep::Resumed));
                task.resume_watched(&mut watch).map_err(JobError::from)?;
                self.note(JobStep::Executes);
            }
        }
        Ok(result)
    }

    /// Waits for a lock of the system; the job is suspended while it waits.
    pub(super) fn lock_scheduled(&mut self, request: LockRequest) -> Result<ReplicaId, Cut> {
        let task = self.scheduled.as_ref().expect("Laxity's scheduler schedules it");
        let mut watch = self.log.decisions(self.index, Some(JobStep::Request(request.lock)));
        let replica = task.lock(request, &mut watch).map_err(JobError::from)?;
        self.note(JobStep::Executes);
        Ok(replica)
    }

    /// Gives up `replica` of a lock of the system by step `at`. If that is the last step, the job completes with it, by one
    /// decision, as when it is simulated.
    pub(super) fn unlock_scheduled_at(&mut self, at: usize, lock: LockId, replica: ReplicaId) -> Result<(), Cut> {
        if at + 1 < self.plan.ops.len() {
            return self.unlock_scheduled(lock, replica);
        }
        // Which it would do after its last step.
        self.work.end_job();
        let task = self.scheduled.as_ref().expect("Laxity's scheduler schedules it");
        let mut watch = self.log.decisions(self.index, Some(JobStep::Unlock(lock, replica)));
        task.unlock_and_complete(lock, &mut watch).map_err(JobError::from)?;
        self.is_complete = true;
        Ok(())
    }

    /// Gives up `replica` of a lock of the system.
    pub(super) fn unlock_scheduled(&mut self, lock: LockId, replica: ReplicaId) -> Result<(), Cut> {
        let task = self.scheduled.as_ref().expect("Laxity's scheduler schedules it");
        let mut watch = self.log.decisions(self.index, Some(JobStep::Unlock(lock, replica)));
        task.unlock(lock, &mut watch).map_err(JobError::from)?;
        self.note(JobStep::Executes);
        Ok(())
    }

    /// No other task preempts the job from here on.
    pub(super) fn enter_section(&mut self) -> Result<(), Cut> {
        if let Some(task) = &self.scheduled {
            task.enter_section().map_err(JobError::from)?;
        }
        if let Some(task) = self.kernel.as_ref().and_then(KernelTask::task) {
            task.enter_section();
        }
        self.note(JobStep::NonPreemptiveBegin);
        Ok(())
    }

    /// Until here.
    pub(super) fn leave_section(&mut self) -> Result<(), Cut> {
        self.note(JobStep::NonPreemptiveEnd);
        if let Some(task) = self.kernel.as_ref().and_then(KernelTask::task) {
            task.leave_section();
        }
        if let Some(task) = &self.scheduled {
            let mut watch = self.log.decisions(self.index, None);
            let decision = task.leave_section_watched(&mut watch).map_err(JobError::from)?;
            if decision.is_some() {
                self.note(JobStep::Executes);
            }
        }
        Ok(())
    }
}
