//! Event-driven scheduling (paper 002: S1): a job is linked as soon as fewer than m more urgent ones are pending.

use laxity_model::{CpuId, Instant, TaskId};

use super::core::{Core, Standing};
use super::policy::{Action, CpuPolicy, Event};
use super::ready::ReadyQueue;
use super::{Priority, Ranking};
use crate::lock::Damaged;

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

    /// Appends the state to `numbers`, at most [`EventDriven::saved_max`] of them: for memory that cannot hold values of
    /// Rust. Panics unless a decision came after the last event.
    pub fn save(&self, numbers: &mut Vec<u64>) {
        self.core.save(numbers);
    }

    /// Takes on the state that a scheduler of as many tasks and CPUs saved. Levels of fixed priorities are not part of
    /// it.
    ///
    /// # Errors
    /// [`Damaged`] if `numbers` are not such a state; no job is pending then.
    pub fn load(&mut self, numbers: &[u64]) -> Result<(), Damaged> {
        self.core.load(numbers)
    }

    /// The most numbers that are saved.
    pub fn saved_max(&self) -> usize {
        self.core.saved_max()
    }

    /// The level of all later jobs of `task` under fixed priorities, at least 1; without effect under EDF.
    pub fn set_level(&mut self, task: TaskId, level: u64) {
        self.core.set_level(task, level);
    }

    /// The task whose process is on `cpu`.
    pub fn scheduled(&self, cpu: CpuId) -> Option<TaskId> {
        self.core.scheduled(cpu)
    }

    /// The task that the active interrupt thread `thread` works for.
    pub fn owner(&self, thread: TaskId) -> Option<TaskId> {
        self.core.owner(thread)
    }

    /// The interrupt thread that goes before the job of `owner`.
    pub fn occupant(&self, owner: TaskId) -> Option<TaskId> {
        self.core.occupant(owner)
    }

    /// Where the job of `task` is, and its priority, which means something only while one is pending.
    pub fn standing(&self, task: TaskId) -> (Standing, Priority) {
        self.core.standing(task)
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
