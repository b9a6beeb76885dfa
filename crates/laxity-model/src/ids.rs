//! Names for tasks, jobs and CPUs: small integers that index dense arrays.

use std::fmt;

/// A task: its index in [`Workload::tasks`](crate::Workload::tasks).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct TaskId(pub u32);

/// One instance of a task; `index` counts from 0. Ordered by task, then index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct JobId {
    /// The task it is an instance of.
    pub task: TaskId,
    /// Which instance; the first is 0.
    pub index: u32,
}

/// A CPU of the platform, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct CpuId(pub u16);

impl TaskId {
    /// The position in arrays with one entry a task.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl CpuId {
    /// The position in arrays with one entry a CPU.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}.{}", self.task.0, self.index)
    }
}

impl fmt::Display for CpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cpu{}", self.0)
    }
}
