//! What a job does, as a sequence of steps.

use crate::{ExecutionTime, Factor, Nanos};

/// One step of a job's body; steps run one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Execute on a CPU.
    Cpu(ExecutionTime),
    /// Execute on a CPU without being preempted by another job; interrupts are still taken.
    NonPreemptive(ExecutionTime),
    /// Suspend for a while (an I/O wait, an un-modelled device).
    Suspend(ExecutionTime),
    /// Hold a resource during the inner steps.
    Critical {
        /// Index into [`Workload::resources`](crate::Workload::resources).
        resource: usize,
        /// What is done while holding it.
        body: Vec<Step>,
    },
    /// Hold a GPU during the inner steps, of whichever kinds. Sections do not nest; critical sections may be inside or
    /// outside.
    ///
    /// In a body without sections the GPU is held during the steps of the body from the first that contains a GPU
    /// operation to the last. In a body with sections every operation is in one. The meaning of holding depends on
    /// [`GpuArbitration`](crate::GpuArbitration): nothing where the driver arbitrates.
    GpuSection {
        /// What is done while holding it.
        body: Vec<Step>,
    },
    /// Use a GPU.
    Gpu(GpuOperation),
}

/// One operation on a GPU engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuOperation {
    /// Index into [`Platform::gpus`](crate::Platform::gpus); `None`: any GPU of the task's cluster.
    pub gpu: Option<usize>,
    /// What the engine does.
    pub work: GpuWork,
    /// Whether the job waits for it here.
    pub waiting: Waiting,
    /// Interrupts the device raises when the operation completes.
    pub interrupts: u32,
    /// How sensitive it is to the memory traffic of CPUs, from 0 (not at all) to 1 (as the platform's
    /// [`Contention`](crate::Contention) says).
    pub memory: Factor,
}

/// The work of a GPU operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuWork {
    /// A GPU kernel on the execution engine.
    Kernel(ExecutionTime),
    /// A copy on a copy engine. Its duration follows from the GPU's bandwidth and latency unless given.
    Copy {
        /// Which way.
        direction: CopyDirection,
        /// Size in bytes.
        bytes: u64,
        /// Duration, where it was measured rather than derived.
        time: Option<ExecutionTime>,
    },
}

/// Direction of a copy between host and GPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CopyDirection {
    /// Host to device ("copy in").
    In,
    /// Device to host ("copy out").
    Out,
}

/// Whether a job waits for the GPU operation it issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waiting {
    /// The job goes on only when the operation is complete.
    Synchronous,
    /// The job goes on at once; a later synchronous operation of the job, or its end, waits for it.
    Asynchronous,
}

impl Step {
    /// Worst-case CPU time of the step, inner steps included.
    pub fn cpu_wcet(&self) -> Nanos {
        match self {
            Step::Cpu(time) | Step::NonPreemptive(time) => time.wcet,
            Step::Suspend(_) | Step::Gpu(_) => Nanos::ZERO,
            Step::Critical { body, .. } | Step::GpuSection { body } => body.iter().map(Step::cpu_wcet).sum(),
        }
    }

    /// Longest self-suspension of the step, inner steps included; GPU waits are not counted.
    pub fn suspension(&self) -> Nanos {
        match self {
            Step::Suspend(time) => time.wcet,
            Step::Critical { body, .. } | Step::GpuSection { body } => body.iter().map(Step::suspension).sum(),
            Step::Cpu(_) | Step::NonPreemptive(_) | Step::Gpu(_) => Nanos::ZERO,
        }
    }
}
