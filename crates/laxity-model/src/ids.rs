//! Names for tasks, jobs and CPUs: small integers that index dense arrays.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A task: its index in [`Workload::tasks`](crate::Workload::tasks).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
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
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct CpuId(pub u16);

/// A GPU of the platform: its index in [`Platform::gpus`](crate::Platform::gpus).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct GpuId(pub u16);

/// A lock: a resource of the workload, or one that manages GPUs. The header of a trace lists them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct LockId(pub u16);

/// One of the holders a lock may have at once, counted from 0; with GPUs, which one (see the lock's kind).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct ReplicaId(pub u16);

/// An edge of a graph. The header of a trace lists the edges of all graphs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct EdgeId(pub u32);

/// An engine of a GPU.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Engine {
    /// Runs GPU kernels.
    Execution,
    /// Copies between host and GPU memory: engine 0, which takes both directions where it is the only one, or 1, which
    /// takes copies out of the GPU.
    Copy(u8),
}

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

macro_rules! index {
    ($($id:ident: $what:literal),*) => {
        $(impl $id {
            #[doc = concat!("The position in arrays with one entry ", $what, ".")]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        })*
    };
}

index!(GpuId: "a GPU", LockId: "a lock", ReplicaId: "a replica of a lock", EdgeId: "an edge");

impl Engine {
    /// Every engine a GPU may have.
    pub const ALL: [Engine; 3] = [Engine::Execution, Engine::Copy(0), Engine::Copy(1)];

    /// The position in [`Engine::ALL`].
    pub const fn index(self) -> usize {
        match self {
            Engine::Execution => 0,
            Engine::Copy(number) => 1 + number as usize,
        }
    }

    /// The name in files, traces and pictures, as in GPUSync.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::Execution => "EE",
            Engine::Copy(0) => "CE0",
            Engine::Copy(_) => "CE1",
        }
    }
}

impl fmt::Display for GpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gpu{}", self.0)
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
