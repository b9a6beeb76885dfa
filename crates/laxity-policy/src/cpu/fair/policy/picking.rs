//! Slices that end, the next thread of a CPU, and the links that follow.

use laxity_model::{CpuId, Instant, TaskId};

use super::Fair;
use crate::cpu::fair::run_queue::Key;
use crate::cpu::{Action, Priority};

impl Fair {
    pub(super) fn tick(&mut self, now: Instant, cpu: u16) {
        self.charge(now, cpu);
        self.end_slice(cpu);
        let queue = &mut self.queues[usize::from(cpu)];
        if now >= queue.next_balance {
            queue.next_balance = now + self.balance_interval;
            self.balance(now, cpu);
        }
    }

    /// The linked thread gives way if its slice is over, or if another is behind it by more than that
    /// (`check_preempt_tick`).
    pub(super) fn end_slice(&mut self, cpu: u16) {
        let queue = &mut self.queues[usize::from(cpu)];
        let (Some(linked), Some(first)) = (queue.linked, queue.first_fair()) else { return };
        let linked = &self.threads[linked.index()];
        if linked.is_above {
            return;
        }
        let slice = self.parameters.slice(linked.entity.weight(), queue.load, queue.runnable());
        let executed = linked.entity.in_slice();
        let ahead = linked.entity.virtual_time().saturating_sub(first.virtual_time);
        let is_far_ahead = executed >= self.parameters.min_granularity && ahead > slice.0 as i64;
        if executed > slice || is_far_ahead {
            queue.needs_reschedule = true;
            self.touched.push(cpu);
        }
    }

    /// Gives `cpu` to the first of the threads that want it (`pick_next_task_fair`).
    pub(super) fn pick(&mut self, now: Instant, cpu: u16) {
        self.charge(now, cpu);
        let at = usize::from(cpu);
        self.queues[at].needs_reschedule = false;
        let before = self.queues[at].linked.take();
        if let Some(before) = before {
            self.enqueue(cpu, before);
        }
        let Some(first) = self.queues[at].waiting.pop_first() else { return };
        self.set_linked(cpu, Some(first.task));
        if before != Some(first.task) {
            self.threads[first.task.index()].entity.begin_slice();
        }
        self.changed(cpu);
    }

    /// Picks a thread where one must be picked, and pulls until no CPU idles while threads wait.
    pub(super) fn settle(&mut self, now: Instant) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for &cpu in &touched {
            let queue = &self.queues[usize::from(cpu)];
            if !queue.blocked.at_all() && (queue.needs_reschedule || queue.linked.is_none()) {
                self.pick(now, cpu);
            }
        }
        self.touched.append(&mut touched);
        while let (Some(idle), Some(busiest)) = (self.loads.first_idle(), self.loads.busiest()) {
            self.pull(now, idle, busiest);
            self.pick(now, idle);
        }
    }

    /// Appends the links that differ from those announced before, by CPU.
    pub(super) fn announce(&mut self, actions: &mut Vec<Action>) {
        self.touched.sort_unstable();
        self.touched.dedup();
        for cpu in self.touched.drain(..) {
            let at = usize::from(cpu);
            let task = self.queues[at].linked;
            if self.announced[at] != task {
                self.announced[at] = task;
                actions.push(Action::Link { cpu: CpuId(cpu), task });
            }
        }
    }

    /// What stands for the priority of `task` where one is asked for: its place in the queue.
    pub(super) fn standing(&self, task: TaskId) -> Priority {
        let Key { is_fair, virtual_time, .. } = self.key(task);
        let (major, tie) = Priority::HIGHEST;
        let fair = (virtual_time as u64) ^ (1 << 63);
        Priority { major: if is_fair { fair.max(1) } else { major }, tie: if is_fair { task.0 } else { tie }, task }
    }
}
