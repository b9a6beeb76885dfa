//! What the jobs of a task do, one thing after the other: a body made flat.

use laxity_model::{CopyDirection, Engine, ExecutionTime, Factor, GpuId, LockId, Nanos};
use laxity_policy::gpu::copy_engine;

/// A step of a job. Steps that take no time are carried out while the job has the CPU. A step that may suspend the job is
/// followed by one that has it dispatched again: `Run`, `NonPreemptive` or `Dispatch`.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// Execute.
    Run(ExecutionTime),
    /// Execute without being preempted by a job.
    NonPreemptive(ExecutionTime),
    /// Wait for something that is not modelled.
    Suspend(ExecutionTime),
    /// The job has the CPU from here on.
    Dispatch,
    /// Request a lock, and wait until it is granted.
    Lock {
        /// The lock.
        lock: LockId,
        /// Bound on how long it will be held.
        length: Nanos,
        /// The only GPU of the pool that will do, by its position there.
        only: Option<u16>,
    },
    /// Unlock a lock.
    Unlock(LockId),
    /// Skip the given number of steps if the GPU just granted is that of the last time.
    UnlessMoved(u32),
    /// Request the lock of an engine.
    LockEngine(EngineTarget),
    /// Unlock it.
    UnlockEngine(EngineTarget),
    /// Take the bandwidth lock, if the job does not hold it: it is about to use a GPU.
    HoldBandwidth,
    /// Unlock it, if the job holds it: it has waited for all that it issued.
    EndBandwidth,
    /// Hand an operation to a GPU.
    Issue(Box<Operation>),
    /// Wait until all operations that the job issued are complete.
    Wait,
}

/// An engine of a GPU that is known only when the job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineKind {
    /// The one that runs GPU kernels.
    Execution,
    /// The one that copies in this direction.
    Copy(CopyDirection),
}

/// An engine to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineTarget {
    /// An engine of the GPU whose token the job holds.
    Own(EngineKind),
    /// One of the two copy engines of a copy from the GPU that the job left to the GPU whose token it holds: that of the
    /// GPU of lower number. Jobs lock it first, so that no two of them wait for each other.
    LowerPeer,
    /// The other of the two.
    UpperPeer,
}

/// The GPU that carries out an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuChoice {
    /// This one.
    Gpu(GpuId),
    /// The one that the job was granted.
    Granted,
    /// The one that the job was granted the time before.
    Left,
}

/// A GPU operation.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// The GPU that carries it out.
    pub gpu: GpuChoice,
    /// The engine of that GPU.
    pub engine: EngineKind,
    /// How long it takes.
    pub time: OperationTime,
    /// How often it interrupts a CPU.
    pub interrupts: u32,
    /// How sensitive it is to the memory traffic of CPUs, from 0 to 1.
    pub memory: Factor,
    /// Whether it copies the task's state, as a part of a migration.
    pub is_state: bool,
}

/// How long an operation takes.
#[derive(Clone, Debug, PartialEq)]
pub enum OperationTime {
    /// A time that was measured, or is drawn.
    Given(ExecutionTime),
    /// The time of a copy of so many bytes, which depends on the GPU.
    Bytes(u64),
}

impl EngineKind {
    /// The engine on a GPU with that many copy engines.
    pub fn on(self, copy_engines: u8) -> Engine {
        match self {
            EngineKind::Execution => Engine::Execution,
            EngineKind::Copy(direction) => copy_engine(copy_engines, direction),
        }
    }
}
