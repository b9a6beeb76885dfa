//! A task at run time.

use std::collections::VecDeque;

use laxity_model::{CpuId, Instant};
use laxity_plan::NextRelease;

/// A task's run-time state, in whole cache lines, as tasks take turns: first what a job needs while it executes, then what
/// its release needs.
#[repr(C, align(64))]
pub(crate) struct TaskRun {
    pub state: JobState,
    /// Index of the current job, or of the next if none is pending.
    pub job: u32,
    /// Position in the body.
    pub op: u32,
    /// The CPU on which the job was last dispatched, once it was preempted.
    pub preempted_on: Option<CpuId>,
    /// GPU operations issued by the job that are not complete.
    pub outstanding: u32,
    /// Time left of the current step, in ns.
    pub remaining: u64,
    /// The absolute deadline of the current job.
    pub deadline: Instant,
    /// Of a thread of the system, or a task with a server: the level at which it competes.
    pub level: (u64, u32),
    /// The CPU that takes the task's release interrupt: the one that completed its last job and armed the timer.
    pub timer_cpu: CpuId,
    /// The job to be released next.
    pub next: NextRelease,
    /// Deadlines of released jobs that wait for their predecessor.
    pub backlog: VecDeque<Instant>,
}

const _: () = assert!(size_of::<TaskRun>() == 2 * 64);

/// What the job of a task is about.
///
/// ```text
///            make_ready                     run                      end_of_step
///   Inactive ---------> Pending ---------------------> NonPreemptive -----------> Pending
///      ^                 | | ^
///      +---- complete ---+ | +-- stop_spinning ----- Spinning
///                          | +-- wake -------------- WaitsForLock, WaitsForGpu
///                          +---> suspend, wait_for_gpu: to any of the three
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobState {
    /// No job is pending.
    Inactive,
    /// It executes, competes for a CPU, is suspended for a time, or has no budget.
    Pending,
    /// It is inside a non-preemptive section.
    NonPreemptive,
    /// It spins until its GPU operations are complete.
    Spinning,
    /// It is suspended until a lock is granted.
    WaitsForLock,
    /// It is suspended until its GPU operations are complete.
    WaitsForGpu,
}

impl TaskRun {
    /// A task whose first job is `next`.
    pub fn new(next: NextRelease, timer_cpu: CpuId) -> TaskRun {
        TaskRun {
            state: JobState::Inactive,
            job: 0,
            op: 0,
            preempted_on: None,
            outstanding: 0,
            remaining: 0,
            deadline: Instant::ZERO,
            level: (0, 0),
            timer_cpu,
            next,
            backlog: VecDeque::new(),
        }
    }

    /// Whether a job is pending and known to the policy.
    pub fn is_active(&self) -> bool {
        self.state != JobState::Inactive
    }

    /// A job begins, `remaining` from the end of its first step.
    pub fn begin(&mut self, remaining: u64) {
        self.state = JobState::Pending;
        self.op = 0;
        self.remaining = remaining;
        self.preempted_on = None;
    }

    /// The job is complete.
    pub fn complete(&mut self) {
        self.state = JobState::Inactive;
        self.job += 1;
    }
}
