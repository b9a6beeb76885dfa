//! The queue of one CPU.

use std::collections::BTreeSet;

use laxity_model::{Instant, TaskId};

use super::Entity;

/// The order of a queue: interrupt threads, which have real-time priority, before all others; then the least virtual
/// time; then the task listed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub is_fair: bool,
    pub virtual_time: i64,
    pub task: TaskId,
}

/// Why a CPU is not to be had by the fair class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Blocked {
    /// A job of a class above has it.
    pub taken: bool,
    /// It is throttled.
    pub throttled: bool,
}

impl Blocked {
    pub fn at_all(self) -> bool {
        self.taken || self.throttled
    }
}

/// The runnable threads of a CPU.
#[derive(Clone, Debug)]
pub(super) struct RunQueue {
    /// The threads that wait.
    pub waiting: BTreeSet<Key>,
    /// The thread that has the CPU, and its place among the waiting ones if it had not.
    pub linked: Option<TaskId>,
    /// Whether another may have to have the CPU: decided at the end of the instant.
    pub needs_reschedule: bool,
    /// The weight of all of them.
    pub load: u64,
    /// Why its CPU is not to be had.
    pub blocked: Blocked,
    /// The thread that had the CPU when that was blocked.
    pub displaced: Option<TaskId>,
    /// When it next looks for queues with more to do.
    pub next_balance: Instant,
    /// `min_vruntime`: never goes back, and is never ahead of a runnable thread but for those that woke late.
    clock: i64,
}

impl RunQueue {
    pub fn new(next_balance: Instant) -> RunQueue {
        let waiting = BTreeSet::new();
        RunQueue {
            waiting,
            linked: None,
            needs_reschedule: false,
            load: 0,
            blocked: Blocked::default(),
            displaced: None,
            next_balance,
            clock: 0,
        }
    }

    /// How many are runnable.
    pub fn runnable(&self) -> usize {
        self.waiting.len() + usize::from(self.linked.is_some())
    }

    pub fn clock(&self) -> i64 {
        self.clock
    }

    /// The thread of the fair class that has waited most.
    pub fn first_fair(&self) -> Option<Key> {
        let after_interrupt_threads = Key { is_fair: true, virtual_time: i64::MIN, task: TaskId(0) };
        self.waiting.range(after_interrupt_threads..).next().copied()
    }

    /// The clock shows the least virtual time among the runnable, of which `linked` is the one of the fair class that has
    /// the CPU; but never less than it has shown.
    pub fn advance_clock(&mut self, linked: Option<&Entity>) {
        let waiting = self.first_fair().map(|key| key.virtual_time);
        let least = linked.map(Entity::virtual_time).into_iter().chain(waiting).min();
        self.clock = self.clock.max(least.unwrap_or(self.clock));
    }
}

#[cfg(test)]
mod tests {
    use super::super::NICE_0_WEIGHT;
    use super::*;
    use laxity_model::Nanos;

    #[test]
    fn the_clock_follows_the_least_virtual_time_and_never_goes_back() {
        let mut queue = RunQueue::new(Instant::ZERO);
        let mut linked = Entity::new(NICE_0_WEIGHT);
        linked.charge(Nanos(30));
        queue.advance_clock(Some(&linked));
        assert_eq!(queue.clock(), 30);
        queue.waiting.insert(Key { is_fair: false, virtual_time: 0, task: TaskId(7) });
        queue.waiting.insert(Key { is_fair: true, virtual_time: 10, task: TaskId(1) });
        queue.advance_clock(Some(&linked));
        assert_eq!(queue.clock(), 30, "a woken thread is behind");
        queue.waiting.insert(Key { is_fair: true, virtual_time: 40, task: TaskId(2) });
        assert_eq!(queue.waiting.pop_first().map(|key| key.task), Some(TaskId(7)), "real-time priority goes first");
        queue.waiting.pop_first();
        queue.advance_clock(None);
        assert_eq!(queue.clock(), 40);
        queue.waiting.clear();
        queue.advance_clock(None);
        assert_eq!(queue.clock(), 40, "an empty queue keeps its clock");
    }
}
