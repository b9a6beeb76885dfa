//! The state of locks as a list of numbers: to be kept where values of Rust cannot be, as in memory that processes
//! share.
//!
//! Only what decides is saved, no more: [`Arbiter::save`](super::Arbiter::save) says what follows from the rest.

use std::fmt;

use laxity_model::{LockId, Nanos, ReplicaId, TaskId};

use super::discipline::Request;

/// What was saved is not the state of these locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The position of the number that cannot be.
    pub position: usize,
    /// What it was to be.
    pub expected: &'static str,
}

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damaged { position, expected } = self;
        write!(f, "number {position} of the saved state of the locks is not {expected}; the state cannot be used")
    }
}

impl std::error::Error for Damaged {}

/// Nothing, or a number and one more than it: for what may be absent.
pub(super) fn optional(number: Option<impl Into<u64>>) -> u64 {
    number.map_or(0, |number| 1 + number.into())
}

/// A task, or nothing.
pub(super) fn optional_task(task: Option<TaskId>) -> u64 {
    optional(task.map(|task| task.0))
}

/// Takes saved numbers in the order in which they were saved; every one is checked.
#[derive(Debug)]
pub struct Numbers<'a> {
    numbers: &'a [u64],
    position: usize,
    /// How many tasks there are.
    tasks: usize,
    /// What follows the numbers, for ever.
    rest: Option<u64>,
}

impl<'a> Numbers<'a> {
    pub(super) fn new(numbers: &'a [u64], tasks: usize) -> Self {
        Numbers { numbers, position: 0, tasks, rest: None }
    }

    /// As many zeros as are asked for: the state in which nobody holds or waits.
    pub(super) fn zeros(tasks: usize) -> Self {
        Numbers { numbers: &[], position: 0, tasks, rest: Some(0) }
    }

    /// The next number, whatever it is.
    pub(super) fn any(&mut self) -> Result<u64, Damaged> {
        let number = self.numbers.get(self.position).copied().or(self.rest);
        self.position += 1;
        number.ok_or_else(|| self.damaged("there"))
    }

    /// The next number, below `bound`.
    pub(super) fn below(&mut self, bound: usize, expected: &'static str) -> Result<usize, Damaged> {
        let number = self.any()?;
        usize::try_from(number).ok().filter(|&number| number < bound).ok_or_else(|| self.damaged(expected))
    }

    /// The next number as what says of how many things the next numbers are.
    pub(super) fn count(&mut self, most: usize) -> Result<usize, Damaged> {
        self.below(most.saturating_add(1), "a possible count")
    }

    pub(super) fn task(&mut self) -> Result<TaskId, Damaged> {
        Ok(TaskId(self.below(self.tasks, "a task")? as u32))
    }

    pub(super) fn optional_task(&mut self) -> Result<Option<TaskId>, Damaged> {
        let number = self.below(self.tasks.saturating_add(1), "a task or none")?;
        Ok(number.checked_sub(1).map(|task| TaskId(task as u32)))
    }

    pub(super) fn optional_u16(&mut self) -> Result<Option<u16>, Damaged> {
        let number = self.below(1 << 16 | 1, "a GPU or none")?;
        Ok(number.checked_sub(1).map(|number| number as u16))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Damaged> {
        let number = self.any()?;
        u32::try_from(number).map_err(|_| self.damaged("a number of 32 bits"))
    }

    pub(super) fn nanos(&mut self) -> Result<Nanos, Damaged> {
        self.any().map(Nanos)
    }

    pub(super) fn lock(&mut self, locks: usize) -> Result<LockId, Damaged> {
        Ok(LockId(self.below(locks, "a lock")? as u16))
    }

    pub(super) fn replica(&mut self, replicas: usize) -> Result<ReplicaId, Damaged> {
        Ok(ReplicaId(self.below(replicas, "a replica of the lock")? as u16))
    }

    pub(super) fn request(&mut self) -> Result<Request, Damaged> {
        Ok(Request { task: self.task()?, length: self.nanos()?, only: self.optional_u16()? })
    }

    /// How many tasks there are.
    pub(super) fn tasks(&self) -> usize {
        self.tasks
    }

    /// That the number taken last is not what was expected.
    pub(super) fn damaged(&self, expected: &'static str) -> Damaged {
        Damaged { position: self.position.saturating_sub(1), expected }
    }
}

impl Request {
    /// How many numbers a request is saved as.
    pub(super) const SAVED: usize = 3;

    pub(super) fn save(&self, numbers: &mut Vec<u64>) {
        numbers.extend([self.task.0.into(), self.length.0, optional(self.only)]);
    }
}
