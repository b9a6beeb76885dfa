//! The periodic timer interrupt of each CPU.

use std::ops::Range;

use laxity_model::{Instant, Invocation, PriorityRule, Quanta};
use laxity_plan::Plan;

/// The ticks to come: those of number `count`, from the CPU at `place` on.
pub(crate) struct Ticks {
    /// When the next one is due.
    pub next: Instant,
    count: u64,
    place: usize,
    /// The CPUs in the order of their ticks.
    order: Vec<CpuTicks>,
    /// A scheduling quantum begins every so many ticks; `None`: the scheduler is event-driven.
    per_quantum: Option<u64>,
    /// The distance of two ticks of a CPU.
    period: u64,
}

/// The ticks of one CPU; of all, if quanta are aligned.
struct CpuTicks {
    cpus: Range<usize>,
    /// How late its ticks are.
    phase: u64,
    /// The number of the tick with which its first quantum begins.
    first: u64,
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
        let cpus = plan.header.cpus;
        let mut order = match scheduler.quanta {
            Quanta::Aligned => vec![CpuTicks { cpus: 0..cpus, phase: 0, first: 0 }],
            Quanta::Staggered => (0..cpus).map(|cpu| CpuTicks::staggered(cpu, cpus, (period, per_quantum))).collect(),
        };
        order.sort_by_key(|ticks| ticks.phase);
        let next = order.first().map_or(Instant::NEVER, |ticks| Instant(ticks.phase));
        Some(Ticks { next, count: 0, place: 0, order, per_quantum, period })
    }

    /// The CPUs whose tick is due and the scheduling quantum that begins there; moves on to the next tick.
    pub fn take(&mut self) -> (Range<usize>, Option<u64>) {
        let CpuTicks { cpus, first, .. } = &self.order[self.place];
        let since_first = self.count.checked_sub(*first);
        let quantum = self.per_quantum.zip(since_first).filter(|&(every, count)| count.is_multiple_of(every));
        let due = (cpus.clone(), quantum.map(|(every, count)| count / every));
        self.place = (self.place + 1) % self.order.len();
        self.count += u64::from(self.place == 0);
        self.next = Instant(self.count * self.period + self.order[self.place].phase);
        due
    }
}

impl CpuTicks {
    /// Of CPU `cpu` of `cpus`, whose quanta are that share of a quantum late, rounded down; without quanta its ticks.
    fn staggered(cpu: usize, cpus: usize, (period, per_quantum): (u64, Option<u64>)) -> CpuTicks {
        let quantum = u128::from(period) * u128::from(per_quantum.unwrap_or(1));
        let late = (quantum * cpu as u128 / cpus as u128) as u64;
        CpuTicks { cpus: cpu..cpu + 1, phase: late % period, first: late / period }
    }
}

#[cfg(test)]
mod tests {
    use laxity_model::{Nanos, OverheadCosts, OverheadProfile, Platform, Scheduler, Task, Workload};

    use super::*;

    #[test]
    fn staggered_quanta_are_a_share_of_a_quantum_apart_where_ticks_are_shorter() {
        let mut platform = Platform::identical(3);
        platform.tick = Nanos(100);
        platform.quantum = Nanos(200);
        let costs = OverheadCosts { tick: Nanos(1), ..OverheadCosts::default() };
        platform.overheads = OverheadProfile::constant("ticks", costs);
        let workload = Workload::new("ticks", platform, vec![Task::periodic("t", Nanos(1), Nanos(10_000))]);
        let scheduler: Scheduler = "G-EDF/S-CQm".parse().expect("a scheduler");
        let mut ticks = Ticks::new(&Plan::new(&workload, &scheduler, 0).expect("a plan")).expect("they cost something");
        let seen: Vec<(u64, usize, Option<u64>)> = (0..9)
            .map(|_| {
                let at = ticks.next.0;
                let (cpus, quantum) = ticks.take();
                (at, cpus.start, quantum)
            })
            .collect();
        let first = [(0, 0, Some(0)), (33, 2, None), (66, 1, Some(0))];
        let second = [(100, 0, None), (133, 2, Some(0)), (166, 1, None)];
        let third = [(200, 0, Some(1)), (233, 2, None), (266, 1, Some(1))];
        assert_eq!(seen, [first, second, third].concat());
    }
}
