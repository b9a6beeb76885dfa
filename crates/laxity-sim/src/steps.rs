//! What the jobs of a task do, one thing after the other: a body made flat, for whoever carries it out.

use laxity_model::{CopyDirection, Engine, ExecutionTime, GpuId, LockId, Nanos};
use laxity_policy::gpu::copy_engine;

/// A step of a job. Steps that take no time are carried out when the job has the CPU; after one that may suspend the job
/// comes one that has it dispatched again: `Run`, `NonPreemptive` or `Dispatch`.
#[derive(Clone, Debug)]
pub enum Op {
    /// Execute.
    Run(ExecutionTime),
    /// Execute without being preempted by a job.
    NonPreemptive(ExecutionTime),
    /// Wait for something that is not modelled.
    Suspend(ExecutionTime),
    /// The job has the CPU from here on.
    Dispatch,
    /// Ask for a lock, and wait until it is granted.
    Lock {
        /// Which.
        lock: LockId,
        /// Bound on how long it will be held.
        length: Nanos,
        /// The only GPU of the pool that will do, by its position there.
        only: Option<u16>,
    },
    /// Give a lock up.
    Unlock(LockId),
    /// Skips the given number of steps unless the GPU just granted is another than last time.
    UnlessMoved(u32),
    /// The lock of an engine.
    LockEngine(Target),
    /// Give the lock of an engine up.
    UnlockEngine(Target),
    /// Hands an operation to a GPU.
    Issue(Box<Operation>),
    /// Until all operations the job issued are complete.
    Wait,
}

/// Which engine of a GPU that is known only when the job runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// That which runs GPU kernels.
    Execution,
    /// That which copies in this direction.
    Copy(CopyDirection),
}

/// An engine to lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// That of the GPU whose token the job holds.
    Own(Wanted),
    /// The two copy engines of a copy from the GPU that the job left to that whose token it holds: that of the GPU of
    /// lower number first, so that no two jobs wait for each other.
    LowerPeer,
    /// The other of the two.
    UpperPeer,
}

/// Which GPU carries out an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// This one.
    Gpu(GpuId),
    /// That which the job's lock stands for.
    Granted,
    /// That which the job was granted the time before.
    Left,
}

/// A GPU operation.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Who carries it out.
    pub gpu: On,
    /// Which of its engines.
    pub engine: Wanted,
    /// How long it takes.
    pub time: OperationTime,
    /// How often it interrupts a CPU.
    pub interrupts: u32,
}

/// How long an operation takes.
#[derive(Clone, Debug)]
pub enum OperationTime {
    /// What was measured or drawn.
    Given(ExecutionTime),
    /// A copy of so many bytes, which depends on the GPU.
    Bytes(u64),
}

impl Wanted {
    /// The engine on a GPU with that many copy engines.
    pub fn on(self, copy_engines: u8) -> Engine {
        match self {
            Wanted::Execution => Engine::Execution,
            Wanted::Copy(direction) => copy_engine(copy_engines, direction),
        }
    }
}
