//! A task and the interrupt threads that work for it are one entity, of which one member runs at a time.

use laxity_model::{CpuId, TaskId};

use super::{Core, State, TaskState};
use crate::cpu::Priority;
use crate::cpu::ready::ReadyQueue;

/// What makes a task and the interrupt threads that work for it one entity.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EntityLinks {
    /// Of an active interrupt thread: the task it works for.
    pub(super) owner: Option<TaskId>,
    /// The interrupt thread that goes before this task's job.
    pub(super) occupant: Option<TaskId>,
}

impl<Q: ReadyQueue> Core<Q> {
    pub(super) fn wake(&mut self, cpu: CpuId, thread: TaskId, owner: Option<TaskId>, level: (u64, u32)) {
        let (major, tie) = level;
        let state = &mut self.tasks[thread.index()];
        assert_eq!(state.state, State::Inactive, "a thread has one piece of work at a time");
        state.priority = Priority { major, tie, task: thread };
        let Some(owner) = owner else { return self.make_ready(cpu, thread) };
        self.entities.resize(self.tasks.len(), EntityLinks::default());
        self.entities[thread.index()].owner = Some(owner);
        if self.occupant(owner).is_some() {
            self.tasks[thread.index()].state = State::Held;
        } else {
            self.go_before(cpu, thread, owner);
        }
    }

    pub fn owner(&self, thread: TaskId) -> Option<TaskId> {
        self.entities.get(thread.index())?.owner
    }

    pub fn occupant(&self, owner: TaskId) -> Option<TaskId> {
        self.entities.get(owner.index())?.occupant
    }

    /// `thread` becomes the member of its entity that runs; a ready owner is held back, and a linked one hands over its
    /// CPU.
    pub(super) fn go_before(&mut self, cpu: CpuId, thread: TaskId, owner: TaskId) {
        self.entities[owner.index()].occupant = Some(thread);
        let state = &mut self.tasks[owner.index()];
        match state.state {
            State::Linked(linked) => {
                state.state = State::Held;
                self.set_link(usize::from(linked), Some(self.tasks[thread.index()].priority));
            }
            State::Ready => {
                state.state = State::Held;
                self.withdraw(owner);
                self.make_ready(cpu, thread);
            }
            State::Inactive | State::Suspended | State::Held => self.make_ready(cpu, thread),
        }
    }

    /// `thread` has no work any more: the next member of its entity may run.
    pub(super) fn retire(&mut self, cpu: CpuId, thread: TaskId) {
        let Some(owner) = self.entities.get_mut(thread.index()).and_then(|it| it.owner.take()) else { return };
        if self.entities[owner.index()].occupant != Some(thread) {
            // It was held back by another one, which goes on.
            return;
        }
        self.entities[owner.index()].occupant = None;
        let waits = |(it, task): (&EntityLinks, &TaskState)| it.owner == Some(owner) && task.state == State::Held;
        if let Some(next) = self.entities.iter().zip(&self.tasks).position(waits) {
            self.go_before(cpu, TaskId(next as u32), owner);
        } else if self.tasks[owner.index()].state == State::Held {
            self.make_ready(cpu, owner);
        }
    }

    /// The CPU that the process of `task` occupies, or that of the job it works for: they cannot run elsewhere before
    /// it is switched out.
    pub(super) fn occupied_by(&self, task: TaskId) -> Option<u16> {
        self.tasks[task.index()].scheduled_on.or_else(|| self.tasks[self.owner(task)?.index()].scheduled_on)
    }
}
