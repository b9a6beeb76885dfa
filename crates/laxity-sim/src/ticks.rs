//! The periodic timer interrupt of each CPU.

use std::ops::Range;

use laxity_model::{Instant, Invocation, PriorityRule, Quanta};
use laxity_plan::Plan;

/// The ticks to come: tick number `count`, on all CPUs (aligned) or on `cpu` (staggered).
pub(crate) struct Ticks {
    /// When the next one is due.
    pub next: Instant,
    count: u64,
    cpu: usize,
    /// A scheduling quantum begins every so many ticks; `None`: the scheduler is event-driven.
    per_quantum: Option<u64>,
    /// The distance of two ticks of a CPU.
    period: u64,
    quantum: u64,
    quanta: Quanta,
}

impl Ticks {
    /// `None` if ticks would neither cost nor decide anything.
    pub fn new(plan: &Plan) -> Option<Ticks> {
        let scheduler = &plan.header.scheduler;
        let (tick, quantum) = (plan.tick.as_nanos(), plan.header.quantum.as_nanos());
        let quantum_driven = scheduler.invocation == Invocation::QuantumDriven;
        let (period, per_quantum) = match (plan.header.costs.tick.is_zero(), quantum_driven) {
            // Slices of the fair class end at ticks.
            _ if scheduler.rule == PriorityRule::Fair => (tick, Some(1)),
            // And so do those of best-effort tasks.
            (_, false) if !plan.best_effort.is_empty() => (tick, None),
            (_, true) if !plan.best_effort.is_empty() => (tick, Some(quantum / tick)),
            (true, false) => return None,
            (true, true) => (quantum, Some(1)),
            (false, false) => (tick, None),
            (false, true) => (tick, Some(quantum / tick)),
        };
        Some(Ticks { next: Instant::ZERO, count: 0, cpu: 0, per_quantum, period, quantum, quanta: scheduler.quanta })
    }

    /// The CPUs whose tick is due and the scheduling quantum that begins there; moves on to the next tick.
    pub fn take(&mut self, cpus: usize) -> (Range<usize>, Option<u64>) {
        let quantum =
            self.per_quantum.filter(|&every| self.count.is_multiple_of(every)).map(|every| self.count / every);
        let due = match self.quanta {
            Quanta::Aligned => 0..cpus,
            Quanta::Staggered => self.cpu..self.cpu + 1,
        };
        self.cpu = due.end % cpus;
        if self.cpu == 0 {
            self.count += 1;
        }
        // CPU c of m lags c/m of a quantum (of a tick where ticks are shorter, so that their order stays).
        let offset = self.quantum.min(self.period) as u128 * self.cpu as u128 / cpus as u128;
        self.next = Instant(self.count * self.period + offset as u64);
        (due, quantum)
    }
}
