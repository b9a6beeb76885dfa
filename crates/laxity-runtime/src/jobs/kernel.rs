//! Jobs that Laxity's scheduler in the kernel releases and schedules.

use laxity_model::{Instant, LockId};
use laxity_scx::{Releases, Task, TaskRequest};

use super::{Cut, JobError, Jobs};
use crate::log::JobStep;

/// A task of the scheduler in the kernel.
pub(super) struct KernelTask {
    pub(super) number: usize,
    pub(super) request: TaskRequest,
    /// From its first release on.
    pub(super) task: Option<Task>,
    /// Time 0 of the run, as nodes of graphs know it.
    pub(super) start: Instant,
}

impl KernelTask {
    /// That of task `number` of the run.
    pub fn new(number: usize, request: TaskRequest) -> KernelTask {
        KernelTask { number, request, task: None, start: Instant::ZERO }
    }

    /// Of the task in the run.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Once it has begun.
    pub fn task(&self) -> Option<&Task> {
        self.task.as_ref()
    }
}

impl Jobs {
    /// Waits for the job that is released at `release` and due at `deadline`, and for a CPU. Whether there is one: else the run
    /// is stopped.
    pub(super) fn await_in_kernel(&mut self, release: Instant, deadline: Instant) -> Result<bool, JobError> {
        let (Some(own), Some(kernel)) = (&mut self.kernel, &self.shared.kernel) else { return Ok(false) };
        let is_told = matches!(own.request.releases, Releases::Told { .. });
        if own.task.is_none() {
            let releases = if is_told { Releases::Told { due: Some(deadline) } } else { own.request.releases };
            let request = TaskRequest { release: Some(release), releases, ..own.request.clone() };
            own.task = kernel.begin(own.number, &request, &self.stop)?;
        }
        let Some(task) = &mut own.task else { return Ok(false) };
        let sleep = |until| self.stop.suspend_until(until);
        let job = if is_told { task.next_job_at(release, deadline, sleep) } else { task.next_job_by(sleep) };
        let Some(job) = job.filter(|_| !self.stop.is_stopped()) else { return Ok(false) };
        if !job.is_scheduled {
            kernel.count_by_linux();
        }
        Ok(true)
    }

    /// Locks a resource, whose holder inherits. Whether the scheduler in the kernel schedules this task.
    pub(super) fn lock_in_kernel(&mut self, lock: LockId) -> Result<bool, Cut> {
        let Some(task) = self.kernel.as_ref().and_then(KernelTask::task) else { return Ok(false) };
        let Some(kernel) = &self.shared.kernel else { return Ok(false) };
        let own = kernel.lock(lock.index());
        if !own.try_take(task) {
            self.log.note(self.index, JobStep::Wait(lock));
            own.take(task);
        }
        Ok(true)
    }

    /// Gives a resource up. Whether the scheduler in the kernel schedules this task.
    pub(super) fn unlock_in_kernel(&self, lock: LockId) -> bool {
        let kernel = self.shared.kernel.as_ref().filter(|_| self.kernel.is_some());
        kernel.map(|kernel| kernel.lock(lock.index()).give_up()).is_some()
    }
}
