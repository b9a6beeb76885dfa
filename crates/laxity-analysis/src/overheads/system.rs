//! What an accounting reads: the machine, its costs, and for how long a job may be pending.

use laxity_model::{Nanos, OverheadCosts, ReleaseInterrupts};

use crate::AnalysisTask;

/// The machine and what scheduling costs on it, for one task set. One tick is a nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct System {
    /// All CPUs, a dedicated interrupt CPU included.
    pub cpus: u32,
    /// Which CPUs take release interrupts.
    pub interrupts: ReleaseInterrupts,
    /// The costs at this number of tasks.
    pub costs: OverheadCosts,
    /// Distance of a CPU's ticks, and length of the scheduling quantum.
    pub quantum: Nanos,
    /// Delay until a release is noticed that occupies no CPU: shortens periods and deadlines.
    pub event_latency: Nanos,
}

/// For how long a job may be pending, and so be delayed by interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows<'a> {
    /// Up to its deadline: hard deadlines, self-consistent.
    Deadlines,
    /// Up to its deadline plus a tardiness bound per task, in ticks.
    Tardiness(&'a [u64]),
}

/// Why a task set cannot be accounted for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverheadError {
    /// A dedicated interrupt CPU leaves none for jobs.
    #[error("{cpus} cpu, and it is dedicated to interrupts; add a cpu or handle interrupts globally")]
    NoCpuLeft {
        /// All CPUs.
        cpus: u32,
    },
    /// Ticks and interrupts leave no time of a CPU, or of a quantum, to jobs.
    #[error("ticks and interrupts leave no time to jobs; lower their costs")]
    NoCapacity,
    /// The dedicated interrupt CPU cannot keep up with the releases.
    #[error("the interrupt cpu cannot keep up with the releases; lower their cost or lengthen periods")]
    InterruptCpuOverloaded,
    /// Latencies use up a task's period or deadline.
    #[error("task {task}: latencies of {lost} ticks use up its period or deadline of {window} ticks")]
    NoWindow {
        /// Index of the task.
        task: usize,
        /// What is lost, in ticks.
        lost: u64,
        /// The shorter of period and deadline, in ticks.
        window: u64,
    },
    /// An inflated time exceeds what can be represented.
    #[error("task {task}: the inflated execution time exceeds 36 years; lower the overheads")]
    TooLong {
        /// Index of the task.
        task: usize,
    },
    /// A tardiness bound per task is needed.
    #[error("{given} tardiness bounds for {tasks} tasks; give one for each task")]
    MissingTardiness {
        /// Bounds given.
        given: usize,
        /// Tasks.
        tasks: usize,
    },
}

impl System {
    /// CPUs that run jobs.
    ///
    /// # Errors
    /// [`OverheadError::NoCpuLeft`] if the only CPU is dedicated to interrupts.
    pub fn capacity(&self) -> Result<u32, OverheadError> {
        match self.interrupts {
            ReleaseInterrupts::Global => Ok(self.cpus),
            ReleaseInterrupts::Dedicated if self.cpus > 1 => Ok(self.cpus - 1),
            ReleaseInterrupts::Dedicated => Err(OverheadError::NoCpuLeft { cpus: self.cpus }),
        }
    }

    /// Whether a CPU is set aside for release interrupts.
    pub fn is_dedicated(&self) -> bool {
        self.interrupts == ReleaseInterrupts::Dedicated
    }

    /// The larger of the delays of a preempted job that resumes on its own and on another CPU.
    pub fn cache_delay(&self) -> u64 {
        self.costs.cache_preemption.max(self.costs.cache_migration).0
    }
}

impl Windows<'_> {
    /// How long a job of task `index` may be pending, in ticks.
    pub(super) fn of(self, index: usize, task: &AnalysisTask) -> u64 {
        match self {
            Windows::Deadlines => task.deadline,
            Windows::Tardiness(bounds) => task.deadline.saturating_add(bounds[index]),
        }
    }

    pub(super) fn check(self, tasks: usize) -> Result<(), OverheadError> {
        match self {
            Windows::Tardiness(bounds) if bounds.len() != tasks => {
                Err(OverheadError::MissingTardiness { given: bounds.len(), tasks })
            }
            _ => Ok(()),
        }
    }
}
