//! The state of job scheduling as a list of numbers, for memory that processes share.
//!
//! ```text
//! how many | for each task that has a job, a process on a CPU or an interrupt thread: 4 numbers | last CPUs, 4 a number
//! ```
//!
//! The ready queue follows from the tasks that are ready: ready jobs are totally ordered, so it does not matter how the
//! queue came about. So do the links, and which process is on which CPU.

use laxity_model::{CpuId, TaskId};

use super::entities::EntityLinks;
use super::{Core, State, TaskState};
use crate::cpu::Priority;
use crate::cpu::ready::ReadyQueue;
use crate::lock::Damaged;

/// Numbers of each task that is saved.
const OF_TASK: usize = 4;
/// Last CPUs in a number.
const CPUS_OF_NUMBER: usize = 4;

const INACTIVE: u64 = 0;
const READY: u64 = 1;
const LINKED: u64 = 2;
const SUSPENDED: u64 = 3;
const HELD: u64 = 4;

impl<Q: ReadyQueue> Core<Q> {
    /// Appends the state to `numbers`, at most [`Core::saved_max`] of them. Panics unless a decision came after the last
    /// event.
    pub fn save(&self, numbers: &mut Vec<u64>) {
        assert!(self.arrived.is_empty() && self.touched.is_empty(), "a state is saved after a decision");
        let count = numbers.len();
        numbers.push(0);
        for (index, task) in self.tasks.iter().enumerate() {
            let links = self.entities.get(index).copied().unwrap_or_default();
            let is_idle = task.state == State::Inactive && task.scheduled_on.is_none();
            if is_idle && links.owner.is_none() && links.occupant.is_none() {
                continue;
            }
            numbers[count] += 1;
            let (state, linked) = match task.state {
                State::Inactive => (INACTIVE, 0),
                State::Ready => (READY, 0),
                State::Linked(cpu) => (LINKED, cpu),
                State::Suspended => (SUSPENDED, 0),
                State::Held => (HELD, 0),
            };
            let on = task.scheduled_on.map_or(0, |cpu| u64::from(cpu) + 1);
            numbers.extend([
                index as u64 | state << 32 | u64::from(linked) << 40,
                task.priority.major,
                u64::from(task.priority.tie) | on << 32,
                optional(links.owner) | optional(links.occupant) << 32,
            ]);
        }
        let pack = |cpus: &[TaskState]| cpus.iter().rev().fold(0, |word, task| word << 16 | u64::from(task.last_cpu));
        numbers.extend(self.tasks.chunks(CPUS_OF_NUMBER).map(pack));
    }

    /// The most numbers that are saved.
    pub fn saved_max(&self) -> usize {
        1 + OF_TASK * self.tasks.len() + self.tasks.len().div_ceil(CPUS_OF_NUMBER)
    }

    /// Takes on the state that a scheduler of as many tasks and CPUs saved. Levels of fixed priorities are not part of
    /// it.
    ///
    /// # Errors
    /// [`Damaged`] if `numbers` are not such a state; no job is pending then.
    pub fn load(&mut self, numbers: &[u64]) -> Result<(), Damaged> {
        self.clear();
        let loaded = self.try_load(numbers);
        if loaded.is_err() {
            self.clear();
        }
        loaded
    }

    fn try_load(&mut self, numbers: &[u64]) -> Result<(), Damaged> {
        let (tasks, cpus) = (self.tasks.len(), self.scheduled.len());
        let damaged = |position, expected| Damaged { position, expected };
        let count = numbers.first().copied().filter(|&count| count <= tasks as u64);
        let count = count.ok_or(damaged(0, "a possible count"))? as usize;
        let packed = &numbers[1..];
        if packed.len() != OF_TASK * count + tasks.div_ceil(CPUS_OF_NUMBER) {
            return Err(damaged(0, "the count of what follows"));
        }
        let (saved, last_cpus) = packed.split_at(OF_TASK * count);
        for (index, task) in self.tasks.iter_mut().enumerate() {
            let cpu = (last_cpus[index / CPUS_OF_NUMBER] >> (16 * (index % CPUS_OF_NUMBER))) as u16;
            if usize::from(cpu) >= cpus {
                return Err(damaged(1 + saved.len() + index / CPUS_OF_NUMBER, "four CPUs"));
            }
            task.last_cpu = cpu;
        }
        let mut next = 0;
        for (at, words) in saved.chunks_exact(OF_TASK).enumerate() {
            let at = 1 + OF_TASK * at;
            let index = (words[0] as u32) as usize;
            if index < next || index >= tasks {
                return Err(damaged(at, "a later task"));
            }
            next = index + 1;
            self.load_task(index, words).map_err(|(word, expected)| damaged(at + word, expected))?;
        }
        // Once all of them are known.
        self.check().map_err(|expected| damaged(0, expected))
    }

    /// Loads one task; an error names the number that cannot be.
    fn load_task(&mut self, index: usize, words: &[u64]) -> Result<(), (usize, &'static str)> {
        let (tasks, id) = (self.tasks.len(), TaskId(index as u32));
        let priority = Priority { major: words[1], tie: words[2] as u32, task: id };
        let linked = words[0] >> 40;
        let state = match words[0] >> 32 & 0xff {
            INACTIVE => State::Inactive,
            READY => State::Ready,
            LINKED => {
                let is_free = self.mapping.cpus() as u64 > linked && self.mapping.linked(linked as usize).is_none();
                if !is_free {
                    return Err((0, "linked to a CPU of its own"));
                }
                self.mapping.set(linked as usize, Some(priority));
                self.announced[linked as usize] = Some(id);
                State::Linked(linked as u16)
            }
            SUSPENDED => State::Suspended,
            HELD => State::Held,
            _ => return Err((0, "a state")),
        };
        self.tasks[index].state = state;
        self.tasks[index].priority = priority;
        if let Some(on) = (words[2] >> 32).checked_sub(1) {
            let place = self.scheduled.get_mut(on as usize).filter(|place| place.is_none());
            *place.ok_or((2, "on a CPU of its own"))? = Some(id);
            self.tasks[index].scheduled_on = Some(on as u16);
        }
        let member = |number: u64| match number.checked_sub(1) {
            Some(task) if task >= tasks as u64 || task == index as u64 => Err((3, "another task or none")),
            task => Ok(task.map(|task| TaskId(task as u32))),
        };
        let links = EntityLinks { owner: member(words[3] & 0xffff_ffff)?, occupant: member(words[3] >> 32)? };
        if links.owner.is_some() || links.occupant.is_some() {
            self.entities.resize(tasks, EntityLinks::default());
            self.entities[index] = links;
        }
        if state == State::Ready {
            self.ready.insert(0, priority);
        }
        Ok(())
    }

    /// Whether the tasks agree with each other.
    fn check(&self) -> Result<(), &'static str> {
        let is = |holds: bool, expected| if holds { Ok(()) } else { Err(expected) };
        for (index, task) in self.tasks.iter().enumerate() {
            let id = TaskId(index as u32);
            if let State::Linked(cpu) = task.state {
                is(
                    self.occupied_by(id).is_none_or(|on| on == cpu),
                    "the start of jobs linked where their processes are",
                )?;
                is(self.occupant(id).is_none(), "the start of owners that are not linked beside their threads")?;
            }
            if let Some(occupant) = self.occupant(id) {
                let state = self.tasks[occupant.index()].state;
                is(self.owner(occupant) == Some(id), "the start of entities that agree")?;
                is(matches!(state, State::Ready | State::Linked(_)), "the start of threads that go first")?;
                is(task.state != State::Ready, "the start of owners that are held back")?;
            }
            if let Some(owner) = self.owner(id) {
                let goes_first = self.occupant(owner) == Some(id);
                is(goes_first != (task.state == State::Held), "the start of threads of which one goes first")?;
                is(self.occupant(owner).is_some(), "the start of threads of which one goes first")?;
            }
        }
        Ok(())
    }

    /// No job is pending.
    fn clear(&mut self) {
        for index in 0..self.tasks.len() {
            let id = TaskId(index as u32);
            if self.tasks[index].state == State::Ready && self.ready.remove(id).is_none() {
                self.arrived.retain(|job| job.task != id);
            }
            self.tasks[index].state = State::Inactive;
            self.tasks[index].scheduled_on = None;
        }
        for cpu in 0..self.scheduled.len() {
            if self.mapping.linked(cpu).is_some() {
                self.mapping.set(cpu, None);
            }
        }
        self.arrived.clear();
        self.touched.clear();
        self.scheduled.fill(None);
        self.announced.fill(None);
        self.entities.fill(EntityLinks::default());
    }

    /// The level of all later jobs of `task`.
    pub fn set_level(&mut self, task: TaskId, level: u64) {
        self.ranking.set_level(task, level);
    }

    /// The task whose process is on `cpu`.
    pub fn scheduled(&self, cpu: CpuId) -> Option<TaskId> {
        self.scheduled[cpu.index()]
    }

    /// Where the job of `task` is, and its priority.
    pub fn standing(&self, task: TaskId) -> (super::Standing, Priority) {
        let TaskState { state, priority, .. } = self.tasks[task.index()];
        let standing = match state {
            State::Inactive => super::Standing::Inactive,
            State::Ready => super::Standing::Ready,
            State::Linked(cpu) => super::Standing::Linked(CpuId(cpu)),
            State::Suspended => super::Standing::Suspended,
            State::Held => super::Standing::Held,
        };
        (standing, priority)
    }
}

fn optional(task: Option<TaskId>) -> u64 {
    task.map_or(0, |task| u64::from(task.0) + 1)
}
