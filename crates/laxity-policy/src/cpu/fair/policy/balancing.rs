//! CPUs that take threads from others.

use laxity_model::{Instant, TaskId};

use super::{Fair, ThreadState};

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

    /// Whether a thread that waits for `cpu` may go elsewhere, or changes places with the one that has it.
    pub(super) fn may_go(&self, cpu: u16) -> bool {
        let queue = &self.queues[usize::from(cpu)];
        if !self.is_restricted {
            return !queue.waiting.is_empty();
        }
        let linked_may = |task: TaskId| self.threads[task.index()].pinned.is_none();
        self.first_movable(cpu).is_some()
            || !queue.waiting.is_empty()
                && queue.linked.is_some_and(|task| linked_may(task) && self.occupant_waits(cpu))
    }

    /// Whether the process that is on `cpu` is that of a thread that waits for it.
    fn occupant_waits(&self, cpu: u16) -> bool {
        let waits = ThreadState::Waiting(cpu);
        self.executing[usize::from(cpu)].is_some_and(|(task, _)| self.threads[task.index()].state == waits)
    }

    /// The thread that has waited most for `cpu` among those that may go elsewhere: all but those bound to it and the one
    /// whose process is still there.
    pub(super) fn first_movable(&self, cpu: u16) -> Option<TaskId> {
        let waiting = self.queues[usize::from(cpu)].waiting.iter().map(|key| key.task);
        waiting.into_iter().find(|task| {
            let thread = &self.threads[task.index()];
            thread.occupies.is_none() && thread.pinned.is_none()
        })
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
        let (occupant, _) =
            self.executing[usize::from(busiest)].expect("only the process of an occupant is kept there");
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
