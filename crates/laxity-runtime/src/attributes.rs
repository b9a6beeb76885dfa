//! How Linux schedules the thread of a worker.

use std::io;

use laxity_graph::Spec;
use laxity_graph::hooks::{Fifo, Hooks};
use laxity_model::{Nanos, Task};
use laxity_sys::scheduling;

/// How Linux schedules the thread of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attributes {
    /// `SCHED_OTHER`.
    #[default]
    Other,
    /// `SCHED_FIFO`.
    Fifo {
        /// Its priority.
        priority: u8,
        /// The priority that the thread of a node has while it tells several consumers that they have tokens: the highest
        /// of theirs and its own, so that none of them preempts it before all are told.
        ceiling: u8,
    },
    /// `SCHED_DEADLINE`.
    Deadline {
        /// CPU time that Linux reserves in each period.
        runtime: Nanos,
        /// The relative deadline.
        deadline: Nanos,
        /// The period.
        period: Nanos,
    },
}

/// CPU time that Linux counts as the thread's and the model does not count as the job's: waking, logging, switching. A
/// budget without it would run out in every job that needs its worst case, and Linux would suspend the thread until the
/// next period.
const OVERHEAD_MIN: Nanos = Nanos::from_micros(100);

/// The same for each step at which a job may be suspended: requesting, waking up and going to sleep.
const OVERHEAD_OF_WAIT: Nanos = Nanos::from_micros(50);

impl Attributes {
    /// `SCHED_FIFO` for a thread that tells no consumers.
    pub fn fifo(priority: u8) -> Attributes {
        Attributes::Fifo { priority, ceiling: priority }
    }

    /// `SCHED_FIFO` for `node` of `spec`, whose nodes have these `priorities`; 0 stands for nodes of other classes.
    ///
    /// Panics unless the node's priority is between 1 and [`Fifo::PRIORITY_MAX`], and none is above.
    pub fn fifo_among(spec: &Spec, node: usize, priorities: &[u8]) -> Attributes {
        Fifo::among(spec, node, priorities).into()
    }

    /// `SCHED_DEADLINE` for `node` of `spec`, whose jobs need `runtime` of CPU time.
    pub fn deadline_of(spec: &Spec, node: usize, runtime: Nanos) -> Attributes {
        let rule = spec.plan().nodes()[node];
        Attributes::Deadline { runtime, deadline: rule.deadline, period: rule.period.floor() }
    }

    /// `SCHED_DEADLINE` with a budget for the worst case of `task`, a twentieth or 100 us more, and 50 us for each of the
    /// `waits` of a job, as far as its deadline has room.
    pub(crate) fn deadline(task: &Task, waits: usize) -> Attributes {
        let overhead = OVERHEAD_MIN.max(Nanos(task.wcet().0 / 20));
        let overhead = Nanos(overhead.0.saturating_add(OVERHEAD_OF_WAIT.0.saturating_mul(waits as u64)));
        let runtime = Nanos(task.wcet().0.saturating_add(overhead.0)).min(task.deadline);
        Attributes::Deadline { runtime, deadline: task.deadline, period: task.period }
    }

    /// The priority under `SCHED_FIFO`.
    pub fn priority(self) -> Option<u8> {
        match self {
            Attributes::Fifo { priority, .. } => Some(priority),
            Attributes::Other | Attributes::Deadline { .. } => None,
        }
    }

    /// Schedules the calling thread so.
    ///
    /// # Errors
    /// What Linux says.
    pub fn apply(self) -> io::Result<()> {
        match self {
            Attributes::Other => Ok(()),
            Attributes::Fifo { priority, .. } => scheduling::set_fifo(priority),
            Attributes::Deadline { runtime, deadline, period } => scheduling::set_deadline(runtime, deadline, period),
        }
    }

    /// Whether a node has to know them while it tells its consumers.
    pub(crate) fn boosts(self) -> bool {
        matches!(self, Attributes::Fifo { priority, ceiling } if priority != ceiling)
    }

    /// A thread that got its priority gets this one, too, unless it was forbidden meanwhile; then it goes on as it is.
    fn switch_to(self, wanted: impl Fn(u8, u8) -> u8) {
        if let Attributes::Fifo { priority, ceiling } = self
            && self.boosts()
        {
            let _ = scheduling::set_fifo(wanted(priority, ceiling));
        }
    }
}

impl From<Fifo> for Attributes {
    fn from(fifo: Fifo) -> Attributes {
        Attributes::Fifo { priority: fifo.priority(), ceiling: fifo.ceiling() }
    }
}

impl Hooks for Attributes {
    fn enter(&mut self) -> io::Result<()> {
        self.apply()
    }

    fn boost(&mut self) {
        self.switch_to(|_, ceiling| ceiling);
    }

    fn restore(&mut self) {
        self.switch_to(|priority, _| priority);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_have_room_for_what_linux_adds_but_end_at_the_deadline() {
        let runtime = |wcet, period, waits| match Attributes::deadline(&Task::periodic("t", wcet, period), waits) {
            Attributes::Deadline { runtime, .. } => runtime,
            other => panic!("{other:?}"),
        };
        let ms = Nanos::from_millis;
        assert_eq!(runtime(ms(1), ms(10), 0), Nanos::from_micros(1_100));
        assert_eq!(runtime(ms(1), ms(10), 4), Nanos::from_micros(1_300));
        assert_eq!(runtime(ms(100), ms(1_000), 0), ms(105));
        assert_eq!(runtime(ms(10), ms(10), 0), ms(10));
    }
}
