//! Locks that one arbiter grants, where a run has one for all of them: resources, tokens and engines.

use laxity_model::{LockId, ReplicaId};
use laxity_sched::LockRequest;

use super::{Cut, Jobs};
use crate::kernel::InKernel;
use crate::log::JobStep;

impl Jobs {
    /// Whether there is one: that of Laxity's scheduler, or the one beside its scheduler in the kernel.
    pub(super) fn has_arbiter(&self) -> bool {
        self.scheduled.is_some() || self.shared.kernel.as_ref().and_then(InKernel::arbitrated).is_some()
    }

    /// Waits for a lock; the job is suspended while it waits.
    pub(super) fn lock_arbitrated(&mut self, request: LockRequest) -> Result<ReplicaId, Cut> {
        if self.scheduled.is_some() {
            return self.lock_scheduled(request);
        }
        let Jobs { kernel, shared, log, index, .. } = self;
        let own = kernel.as_ref().expect("the scheduler in the kernel schedules it");
        let task = own.task().expect("its job has begun");
        let locks = shared.kernel.as_ref().and_then(InKernel::arbitrated).expect("asked before");
        let lock = request.lock;
        task.enter_section();
        let granted = locks.request(task, own.base, request, || log.note(*index, JobStep::Request(lock)));
        let replica = granted.unwrap_or_else(|| {
            if locks.is_resource(lock) {
                log.note(*index, JobStep::Wait(lock));
            }
            locks.wait(own.base.task)
        });
        own.leave_section();
        self.note(JobStep::Grant(lock, replica));
        Ok(replica)
    }

    /// Gives up `replica` of a lock by step `at`. If that is the last step, no other job comes between it and the completion.
    pub(super) fn unlock_arbitrated_at(&mut self, at: usize, lock: LockId, replica: ReplicaId) -> Result<(), Cut> {
        if self.scheduled.is_some() {
            return self.unlock_scheduled_at(at, lock, replica);
        }
        self.unlock_in_section(lock, replica);
        if at + 1 < self.plan.ops.len() {
            self.kernel.as_ref().into_iter().for_each(|own| own.leave_section());
        }
        Ok(())
    }

    /// Gives up `replica` of a lock.
    pub(super) fn unlock_arbitrated(&mut self, lock: LockId, replica: ReplicaId) -> Result<(), Cut> {
        if self.scheduled.is_some() {
            return self.unlock_scheduled(lock, replica);
        }
        self.unlock_in_section(lock, replica);
        self.kernel.as_ref().into_iter().for_each(|own| own.leave_section());
        Ok(())
    }

    /// Gives it up by the arbiter beside the scheduler in the kernel, and stays in the section in which it does.
    fn unlock_in_section(&mut self, lock: LockId, replica: ReplicaId) {
        let Jobs { kernel, shared, log, index, .. } = self;
        let own = kernel.as_ref().expect("the scheduler in the kernel schedules it");
        let task = own.task().expect("its job has begun");
        let locks = shared.kernel.as_ref().and_then(InKernel::arbitrated).expect("asked before");
        task.enter_section();
        locks.unlock(task, own.base, lock, || log.note(*index, JobStep::Unlock(lock, replica)));
    }
}
