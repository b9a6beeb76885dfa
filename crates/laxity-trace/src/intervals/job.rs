//! How one job fared.

use laxity_model::{CpuId, Instant, JobId, Nanos, SignedNanos};

/// A job's history: complete once it completed, up to the end of the trace otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobHistory {
    /// Which job.
    pub job: JobId,
    /// Its release; `None` where the trace begins later.
    pub released: Option<Released>,
    /// Whether it has a deadline of its own: a job of an interrupt thread has that of the job that it serves, and a
    /// best-effort job none.
    pub has_deadline: bool,
    /// The CPU that handled its release.
    pub ready_on: Option<CpuId>,
    /// Where it executed last.
    pub last_cpu: Option<CpuId>,
    /// Where and when it completed; `None` if it was pending when the trace ended.
    pub completed: Option<(CpuId, Instant)>,
    /// Times it was switched out though it could go on.
    pub preemptions: u32,
    /// Dispatches on another CPU than the one where it last executed.
    pub migrations: u32,
    /// Time it executed, cache refills included, overheads not.
    pub executed: Nanos,
}

/// A job's release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Released {
    /// When it was triggered: deadline minus the task's relative deadline.
    pub arrival: Instant,
    /// When it became eligible to run: arrival plus jitter.
    pub release: Instant,
    /// Its absolute deadline.
    pub deadline: Instant,
}

impl JobHistory {
    pub(super) fn new(job: JobId, has_deadline: bool) -> Self {
        JobHistory {
            job,
            released: None,
            has_deadline,
            ready_on: None,
            last_cpu: None,
            completed: None,
            preemptions: 0,
            migrations: 0,
            executed: Nanos::ZERO,
        }
    }

    /// When it completed.
    pub fn completion(&self) -> Option<Instant> {
        self.completed.map(|(_, at)| at)
    }

    /// Completion minus arrival; `None` until both are known.
    pub fn response_time(&self) -> Option<Nanos> {
        Some(self.completion()?.saturating_since(self.released?.arrival))
    }

    /// Completion minus deadline, negative where early; `None` until both are known.
    pub fn lateness(&self) -> Option<SignedNanos> {
        Some(self.completion()?.signed_since(self.released?.deadline))
    }

    /// `max(0, lateness)`.
    pub fn tardiness(&self) -> Option<Nanos> {
        Some(self.completion()?.saturating_since(self.released?.deadline))
    }

    /// Whether it completed after its own deadline, or was incomplete when the trace ended at `end`, no earlier than that.
    /// The same rule as that of metrics and checkers.
    pub fn is_missed(&self, end: Instant) -> bool {
        let Some(Released { deadline, .. }) = self.released.filter(|_| self.has_deadline) else { return false };
        match self.completion() {
            Some(completion) => completion > deadline,
            None => deadline <= end,
        }
    }
}
