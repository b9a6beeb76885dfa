//! The event vocabulary.
//!
//! A job's life: `Release` (eligible: arrival plus jitter), `Ready` (the release was handled and the job entered the
//! ready queue), `Link` (the processor mapping gives it a CPU), `Dispatch` (its process runs there), `Preempt` and
//! `Dispatch` again, `Suspend` and `Resume`, `Complete`.
//!
//! Between `Dispatch` and the `Preempt`, `Suspend` or `Complete` that ends it, a job executes on its CPU except during
//! the `Overhead` and `LockWait` intervals recorded for that CPU. The sum of its execution is its cost plus its
//! `CacheDelay`s.

use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadKind};

/// One event and when it happened. Records of a trace are ordered by `at`; among equal times the order of the records
/// is the order of cause and effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// When.
    pub at: Instant,
    /// What.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The job is eligible to run: its arrival plus its jitter. Jobs of a task are released in index order.
    Release {
        /// The job.
        job: JobId,
        /// Absolute deadline: arrival plus relative deadline. Hence arrival = deadline - the task's deadline.
        deadline: Instant,
    },
    /// The job entered the ready queue: its release interrupt was handled, or its predecessor completed after its
    /// release.
    Ready {
        /// The job.
        job: JobId,
        /// Where that happened.
        cpu: CpuId,
    },
    /// The processor mapping changed: `job` should run on `cpu`; `None`: nothing should. A job that completes or
    /// suspends loses its link without a record.
    Link {
        /// The CPU.
        cpu: CpuId,
        /// What it should run.
        job: Option<JobId>,
    },
    /// The job's process was switched in and executes from now on.
    Dispatch {
        /// Where.
        cpu: CpuId,
        /// The job.
        job: JobId,
    },
    /// The job's process was switched out though the job could go on.
    Preempt {
        /// Where.
        cpu: CpuId,
        /// The job.
        job: JobId,
    },
    /// The job suspended itself.
    Suspend {
        /// Where it had run.
        cpu: CpuId,
        /// The job.
        job: JobId,
    },
    /// The job's suspension ended and it entered the ready queue again.
    Resume {
        /// Where that was noticed.
        cpu: CpuId,
        /// The job.
        job: JobId,
    },
    /// The job executed its last instruction.
    Complete {
        /// Where.
        cpu: CpuId,
        /// The job.
        job: JobId,
    },
    /// The job entered a non-preemptive section.
    NonPreemptiveBegin {
        /// Where.
        cpu: CpuId,
        /// The job.
        job: JobId,
    },
    /// The job left its non-preemptive section.
    NonPreemptiveEnd {
        /// Where.
        cpu: CpuId,
        /// The job.
        job: JobId,
    },
    /// From now on and for `duration` the CPU executes scheduler or interrupt code and no job.
    Overhead {
        /// The CPU.
        cpu: CpuId,
        /// Which: `Release`, `Scheduling`, `ContextSwitch`, `Tick` or `TimerRearming`.
        kind: OverheadKind,
        /// How long.
        duration: Nanos,
    },
    /// From now on and for `duration` the CPU waits, spinning, for the cluster's scheduler lock.
    LockWait {
        /// The CPU.
        cpu: CpuId,
        /// How long.
        duration: Nanos,
    },
    /// The job, just dispatched after a preemption, must refill its cache: its demand grew by `duration`.
    CacheDelay {
        /// Where.
        cpu: CpuId,
        /// The job.
        job: JobId,
        /// `CachePreemption` or `CacheMigration`.
        kind: OverheadKind,
        /// How much.
        duration: Nanos,
    },
    /// `from` asked `to` to reschedule; the interrupt arrives after `latency`.
    Ipi {
        /// Sender.
        from: CpuId,
        /// Receiver.
        to: CpuId,
        /// Time on the way.
        latency: Nanos,
    },
    /// The trace ends here, deliberately. A trace without it was cut off.
    End,
}
