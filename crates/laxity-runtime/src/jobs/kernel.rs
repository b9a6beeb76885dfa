//! Jobs that Laxity's scheduler in the kernel releases and schedules.

use std::thread;

use laxity_model::{Instant, LockId, TaskId};
use laxity_policy::cpu::Priority;
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
    /// Whether its jobs rank by the priority of the request, rather than by their deadlines.
    is_fixed: bool,
    /// The priority of the present job in its own right, as locks have it.
    pub(super) base: Priority,
}

impl KernelTask {
    /// That of task `number` of the run.
    pub fn new(number: usize, request: TaskRequest, is_fixed: bool) -> KernelTask {
        let base = Priority::of(u64::MAX, TaskId(number as u32));
        KernelTask { number, request, task: None, start: Instant::ZERO, is_fixed, base }
    }

    /// The present job is due at `deadline`.
    pub fn begin_job(&mut self, deadline: Instant) {
        // As the simulator ranks it: level 0 is above all jobs.
        let major = if self.is_fixed { self.request.priority + 1 } else { deadline.0 };
        self.base = Priority { major, ..self.base };
    }

    /// Of the task in the run.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The section ends in which the job changed locks, and the scheduler knows by then for which tasks others sleep.
    pub fn leave_section(&self) {
        let Some(task) = &self.task else { return };
        task.leave_section();
        // A lock that became free, or a request that was granted, woke no task.
        if task.waits().are_unheard() && task.is_scheduled() {
            thread::yield_now();
        }
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
