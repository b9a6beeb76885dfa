//! What regulators did to CPUs.

use laxity_model::{Nanos, TaskId};
use laxity_trace::{Event, Sink};

use super::Collector;
use crate::log::{Entry, JobStep};

impl Collector {
    /// What a regulator did to its CPU, if `entry` is that.
    pub(super) fn regulation(&mut self, entry: Entry, sink: &mut impl Sink) -> bool {
        let at = self.reached;
        let cpu = self.cpu(entry.cpu);
        match entry.step {
            JobStep::Regulate(budget) => sink.record(at, Event::Regulate { cpu, budget }),
            JobStep::Throttle(task) => {
                // They say themselves when they are back.
                let is_best_effort = |task: TaskId| task.index() >= self.first_best_effort;
                self.occupancy.clear(cpu, is_best_effort, &mut |event| sink.record(at, event));
                sink.record(at, Event::Throttle { cpu, task });
            }
            JobStep::Unthrottle(task, lost) => sink.record(at, Event::Unthrottle { cpu, task, lost: Nanos(lost) }),
            _ => return false,
        }
        true
    }
}
