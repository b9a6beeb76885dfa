//! Quantum-driven scheduling (paper 002: S2): jobs are linked only where a quantum begins. Released jobs wait in a
//! temporary queue that the tick handler merges; a CPU whose job ends within a quantum idles until the next.

use laxity_model::{CpuId, Instant, Quanta};

use super::core::Core;
use super::policy::{Action, CpuPolicy, Event};
use super::ready::ReadyQueue;
use super::{Priority, Ranking};

/// Links jobs at quantum boundaries.
///
/// Aligned: the first tick handler of a quantum links the m most urgent ready jobs to all CPUs, and each CPU enacts
/// that in its own tick handler. Staggered: each CPU's tick handler decides for its own CPU.
#[derive(Clone, Debug)]
pub struct QuantumDriven<Q> {
    core: Core<Q>,
    quanta: Quanta,
    /// The next quantum that has not been decided yet (aligned).
    next_quantum: u64,
    /// CPUs whose quantum began since the last decision.
    ticked: Vec<CpuId>,
}

impl<Q: ReadyQueue> QuantumDriven<Q> {
    /// A scheduler of `tasks` tasks on `cpus` CPUs.
    pub fn new(ranking: Ranking, tasks: usize, cpus: usize, quanta: Quanta) -> Self {
        QuantumDriven {
            core: Core::new(ranking, tasks, cpus),
            quanta,
            next_quantum: 0,
            ticked: Vec::with_capacity(cpus),
        }
    }
}

impl<Q: ReadyQueue> CpuPolicy for QuantumDriven<Q> {
    fn handle(&mut self, _now: Instant, event: Event) {
        match event {
            // A later tick handler of the same quantum must not link again: the CPUs whose handlers are over would
            // enact it a quantum late.
            Event::Tick { quantum, .. } if self.quanta == Quanta::Aligned && quantum < self.next_quantum => {}
            Event::Tick { cpu, quantum } => {
                self.next_quantum = quantum + 1;
                self.ticked.push(cpu);
            }
            other => self.core.handle(other),
        }
    }

    fn decide(&mut self, _now: Instant, actions: &mut Vec<Action>) {
        if !self.ticked.is_empty() {
            self.core.merge_arrived();
            match self.quanta {
                Quanta::Aligned => self.core.assign_all(),
                Quanta::Staggered => {
                    for &cpu in &self.ticked {
                        self.core.assign(cpu);
                    }
                }
            }
            self.ticked.clear();
        }
        self.core.announce(actions);
    }

    fn lowest(&self) -> (CpuId, Option<Priority>) {
        self.core.lowest()
    }

    fn linked(&self, cpu: CpuId) -> Option<Priority> {
        self.core.linked(cpu)
    }

    fn assert_invariants(&self) {
        self.core.assert_invariants();
    }
}
