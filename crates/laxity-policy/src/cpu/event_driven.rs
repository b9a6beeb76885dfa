//! Event-driven scheduling (paper 002: S1): a job is linked as soon as fewer than m more urgent ones are pending.

use laxity_model::{CpuId, Instant};

use super::core::Core;
use super::policy::{Action, CpuPolicy, Event};
use super::ready::ReadyQueue;
use super::{Priority, Ranking};

/// Links the m most urgent ready jobs at every instant at which something happened.
#[derive(Clone, Debug)]
pub struct EventDriven<Q> {
    core: Core<Q>,
}

impl<Q: ReadyQueue> EventDriven<Q> {
    /// A scheduler of `tasks` tasks on `cpus` CPUs.
    pub fn new(ranking: Ranking, tasks: usize, cpus: usize) -> Self {
        EventDriven { core: Core::new(ranking, tasks, cpus) }
    }
}

impl<Q: ReadyQueue> CpuPolicy for EventDriven<Q> {
    fn handle(&mut self, _now: Instant, event: Event) {
        self.core.handle(event);
    }

    fn decide(&mut self, _now: Instant, actions: &mut Vec<Action>) {
        self.core.merge_arrived();
        self.core.assign_all();
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
