//! CPUs that take threads from others.

use laxity_model::{Instant, TaskId};

use super::Fair;

/// A CPU takes threads only from one with a quarter more (`imbalance_pct`), in percent.
const IMBALANCE_PERCENT: u128 = 125;

impl Fair {
    /// The busy `cpu` takes threads from the one that has most to do, as long as it has less than that even then.
    pub(super) fn balance(&mut self, now: Instant, cpu: u16) {
        while let Some(busiest) = self.loads.busiest().filter(|&busiest| busiest != cpu) {
            let [theirs, own] = [busiest, cpu].map(|cpu| self.queues[usize::from(cpu)].load);
            let is_imbalanced = u128::from(theirs) * 100 > u128::from(own) * IMBALANCE_PERCENT;
            let Some(task) = self.first_movable(busiest).filter(|_| is_imbalanced) else { return };
            let weight = self.threads[task.index()].entity.weight();
            if own + weight > theirs.saturating_sub(weight) {
                return;
            }
            self.migrate(now, task, busiest, cpu);
        }
    }

    /// The thread that has waited most for `cpu` among those that may go elsewhere: all but the one whose process is still there.
    pub(super) fn first_movable(&self, cpu: u16) -> Option<TaskId> {
        let waiting = self.queues[usize::from(cpu)].waiting.iter().map(|key| key.task);
        waiting.into_iter().find(|task| self.threads[task.index()].occupies.is_none())
    }

    /// The idle `cpu` takes a thread from the one that has most to do (`newidle_balance`).
    pub(super) fn pull(&mut self, now: Instant, cpu: u16, busiest: u16) {
        if let Some(task) = self.first_movable(busiest) {
            return self.migrate(now, task, busiest, cpu);
        }
        // Only one waits there, the preempted one that still occupies the CPU: the other, which has not started yet,
        // moves, and it goes on.
        let queue = &self.queues[usize::from(busiest)];
        let linked = queue.linked.expect("a CPU on which threads wait is linked to one");
        let occupant = queue.waiting.first().expect("threads wait on an overloaded CPU").task;
        let key = self.key(occupant);
        self.queues[usize::from(busiest)].waiting.remove(&key);
        self.set_linked(busiest, Some(occupant));
        self.enqueue(busiest, linked);
        self.migrate(now, linked, busiest, cpu);
    }

    /// The waiting `task` goes from one CPU to another.
    pub(super) fn migrate(&mut self, now: Instant, task: TaskId, from: u16, to: u16) {
        self.charge(now, from);
        self.charge(now, to);
        let key = self.key(task);
        let was_there = self.queues[usize::from(from)].waiting.remove(&key);
        assert!(was_there, "a thread that moves waits where it comes from");
        self.subtract(from, task);
        let clocks = [from, to].map(|cpu| self.queues[usize::from(cpu)].clock());
        self.threads[task.index()].entity.translate(clocks[0], clocks[1]);
        self.enqueue(to, task);
        self.add(to, task);
        self.preempt_if_behind(to, task);
    }
}
