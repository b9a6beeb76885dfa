//! What threads have executed, and the queues that are ordered by it.

use laxity_model::{Instant, TaskId};

use super::{Fair, ThreadState};
use crate::cpu::fair::run_queue::Key;

impl Fair {
    /// Charges the thread that occupies `cpu` up to `now` (`update_curr`). If it was preempted and is not switched out yet,
    /// it waits already: its place in the queue moves.
    pub(super) fn charge(&mut self, now: Instant, cpu: u16) {
        let at = usize::from(cpu);
        if let Some((task, until)) = &mut self.executing[at] {
            let (task, executed) = (*task, now - std::mem::replace(until, now));
            let waits = self.threads[task.index()].state == ThreadState::Waiting(cpu);
            let before = self.key(task);
            self.threads[task.index()].entity.charge(executed);
            if waits && !executed.is_zero() {
                self.queues[at].waiting.remove(&before);
                let after = self.key(task);
                self.queues[at].waiting.insert(after);
            }
        }
        let linked = self.queues[at].linked.map(|task| &self.threads[task.index()]);
        self.queues[at].advance_clock(linked.filter(|thread| !thread.is_above).map(|thread| &thread.entity));
    }

    pub(super) fn key(&self, task: TaskId) -> Key {
        let thread = &self.threads[task.index()];
        Key { is_fair: !thread.is_above, virtual_time: thread.entity.virtual_time(), task }
    }

    pub(super) fn enqueue(&mut self, cpu: u16, task: TaskId) {
        let thread = &mut self.threads[task.index()];
        (thread.state, thread.cpu) = (ThreadState::Waiting(cpu), cpu);
        let key = self.key(task);
        self.queues[usize::from(cpu)].waiting.insert(key);
    }

    pub(super) fn set_linked(&mut self, cpu: u16, task: Option<TaskId>) {
        self.queues[usize::from(cpu)].linked = task;
        if let Some(task) = task {
            self.threads[task.index()].state = ThreadState::Linked(cpu);
        }
        self.touched.push(cpu);
    }

    /// `task` is one of the runnable threads of `cpu` from now on. Interrupt threads are no load of the fair class.
    pub(super) fn add(&mut self, cpu: u16, task: TaskId) {
        self.queues[usize::from(cpu)].load += self.weight(task);
        self.changed(cpu);
    }

    pub(super) fn subtract(&mut self, cpu: u16, task: TaskId) {
        self.queues[usize::from(cpu)].load -= self.weight(task);
        self.changed(cpu);
    }

    pub(super) fn weight(&self, task: TaskId) -> u64 {
        let thread = &self.threads[task.index()];
        if thread.is_above { 0 } else { thread.entity.weight() }
    }

    pub(super) fn changed(&mut self, cpu: u16) {
        let may_go = self.may_go(cpu);
        self.loads.update(cpu, &self.queues[usize::from(cpu)], may_go);
        self.touched.push(cpu);
    }
}
