//! The fair class below others: CPUs that real-time jobs take, or that a regulator throttles.
//!
//! ```text
//!               take, throttle                       give back and not throttled, or unthrottle and not taken
//!   a CPU's thread --------> waits there, or elsewhere --------> the CPU's thread of least virtual time
//! ```
//!
//! Throttling is what paper 004 does (section V-B): a thread of a class above that idles. So the thread that had the CPU is
//! put back into its queue, and when the CPU is there again, the one of least virtual time gets it, whichever that is.

use laxity_model::{CpuId, Instant, Nanos, TaskId};

use super::{Fair, ThreadState};
use crate::cpu::fair::NICE_0_WEIGHT;
use crate::cpu::fair::run_queue::Blocked;

/// A thread of the fair class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FairThread {
    /// Its share is in proportion to this; at least 1.
    pub weight: u64,
    /// The only CPU that it may be on; `None`: any.
    pub cpu: Option<CpuId>,
}

impl Default for FairThread {
    /// One of nice value 0 that may be on any CPU.
    fn default() -> Self {
        FairThread { weight: NICE_0_WEIGHT, cpu: None }
    }
}

impl Fair {
    /// A job of a class above takes `cpu`.
    pub fn take(&mut self, now: Instant, cpu: CpuId) {
        self.block(now, cpu, |blocked| blocked.taken = true);
    }

    /// No job of a class above wants `cpu` any longer.
    pub fn give_back(&mut self, now: Instant, cpu: CpuId) {
        self.unblock(now, cpu, |blocked| blocked.taken = false);
    }

    /// `cpu` is throttled from now on, because of the thread that has it, or had it when a class above took it. Answers
    /// which thread that is, if any.
    pub fn throttle(&mut self, now: Instant, cpu: CpuId) -> Option<TaskId> {
        self.block(now, cpu, |blocked| blocked.throttled = true);
        let queue = &self.queues[cpu.index()];
        queue.displaced.filter(|task| self.threads[task.index()].state == ThreadState::Waiting(cpu.0))
    }

    /// `cpu` is throttled no longer: it was, for `lost`, because of `task`, which is charged for that under TFS.
    pub fn unthrottle(&mut self, now: Instant, cpu: CpuId, task: Option<TaskId>, lost: Nanos) {
        if let Some(task) = task {
            self.punish(now, task, lost);
        }
        self.unblock(now, cpu, |blocked| blocked.throttled = false);
    }

    /// Its place in a queue follows from its virtual time: it leaves its queue for the change.
    fn punish(&mut self, now: Instant, task: TaskId, lost: Nanos) {
        let punishment = self.punishment;
        match self.threads[task.index()].state {
            ThreadState::Asleep(_) => {}
            ThreadState::Linked(cpu) => {
                self.charge(now, cpu);
                self.threads[task.index()].entity.punish(lost, punishment);
            }
            ThreadState::Waiting(cpu) => {
                self.charge(now, cpu);
                let before = self.key(task);
                self.queues[usize::from(cpu)].waiting.remove(&before);
                self.threads[task.index()].entity.punish(lost, punishment);
                let after = self.key(task);
                self.queues[usize::from(cpu)].waiting.insert(after);
            }
        }
    }

    fn block(&mut self, now: Instant, cpu: CpuId, why: impl FnOnce(&mut Blocked)) {
        self.charge(now, cpu.0);
        self.is_restricted = true;
        why(&mut self.queues[cpu.index()].blocked);
        if let Some(linked) = self.queues[cpu.index()].linked.take() {
            self.queues[cpu.index()].displaced = Some(linked);
            self.enqueue(cpu.0, linked);
        }
        self.changed(cpu.0);
    }

    fn unblock(&mut self, now: Instant, cpu: CpuId, why: impl FnOnce(&mut Blocked)) {
        self.charge(now, cpu.0);
        let queue = &mut self.queues[cpu.index()];
        why(&mut queue.blocked);
        if !queue.blocked.at_all() {
            queue.displaced = None;
            queue.needs_reschedule = true;
        }
        self.changed(cpu.0);
    }
}
