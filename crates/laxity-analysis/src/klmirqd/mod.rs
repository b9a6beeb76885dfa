//! GPU interrupt handling and k-FMLP blocking: paper 000, appendices A, B and D.
//!
//! Suspension-oblivious throughout: GPU time and blocking count as execution. A cluster has m CPUs and k GPUs.

mod accounting;
mod fixpoint;
mod kfmlp;
mod machine_covering;

pub use accounting::{Costs, Handling, Stages, inflate, interrupts};
pub use fixpoint::{ClusterResult, Round, Unschedulable, analyze_blocked, analyze_cluster, blocking_ticks};
pub use kfmlp::{Blocking, BlockingBound, blocking};

/// A task of a cluster, in ticks (nanoseconds).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GpuTask {
    /// CPU execution e, without GPU time.
    pub cpu: u64,
    /// GPU time s, its own top and bottom halves included.
    pub gpu: u64,
    /// Length l of the critical section in which it holds a GPU; 0 if it uses none.
    pub critical_section: u64,
    /// GPU uses eta per job, each of which raises an interrupt; 0 if it uses no GPU.
    pub uses: u32,
    /// Period, and relative deadline.
    pub period: u64,
}

impl GpuTask {
    /// Whether the task uses a GPU.
    pub const fn uses_gpu(&self) -> bool {
        self.uses > 0
    }

    /// Suspension-oblivious utilization `(e + s) / p`, with which tasks are packed onto clusters.
    pub fn utilization(&self) -> crate::Rational {
        crate::rational(u128::from(self.cpu) + u128::from(self.gpu), self.period)
    }

    /// Effective utilization `(e + R * s) / p` where a GPU does the work of R CPUs: what the figures' x axes show.
    pub fn effective_utilization(&self, speedup: u32) -> crate::Rational {
        crate::rational(u128::from(self.cpu) + u128::from(speedup) * u128::from(self.gpu), self.period)
    }
}
