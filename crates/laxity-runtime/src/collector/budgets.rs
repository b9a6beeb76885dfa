//! Budgets that tasks were given, and the priorities that follow.

use laxity_model::{Instant, JobId, Nanos, TaskId};
use laxity_trace::{Event, Sink};

use super::Collector;
use crate::log::{Entry, JobStep};

impl Collector {
    /// What happened to the budget of `task`, if `entry` is that.
    pub(super) fn budget(&mut self, task: usize, entry: Entry, sink: &mut impl Sink) -> bool {
        let at = self.reached;
        let id = TaskId(task as u32);
        match entry.step {
            JobStep::Amount(budget) => self.amounts[task] = budget,
            JobStep::Replenish(deadline) => {
                let (budget, deadline) = (Nanos(self.amounts[task]), self.since(Instant(deadline)));
                sink.record(at, Event::Replenish { task: id, budget, deadline });
            }
            // By another rule it says nothing about priorities.
            JobStep::Priority(_) if !self.by_deadline => {}
            JobStep::Priority(deadline) => {
                let job = JobId { task: id, index: self.progress[task].current() };
                sink.record(at, Event::Priority { job, level: self.since(Instant(deadline)).0, of: id });
            }
            _ => return false,
        }
        true
    }
}
