//! How far the job of each task is: a process that is killed may leave a job in the middle, and the process that takes
//! its place executes that job again, from its beginning.

use laxity_model::{CpuId, JobId};
use laxity_trace::Event;

use crate::log::JobStep;

/// How far the jobs of a task are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Jobs that are complete.
    completed: u32,
    state: State,
}

/// What the next job does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    NotBegun,
    Executes,
    IsNonPreemptive,
    IsSuspended,
}

impl Progress {
    /// Whether job `index` is the one that is not complete. A process may be killed after it noted that a job is complete
    /// and before its consumers have the tokens; then the job is executed again, and the trace has it already.
    pub fn is_at(self, index: u32) -> bool {
        index == self.completed
    }

    /// The job that is not complete.
    pub fn current(self) -> u32 {
        self.completed
    }

    /// Whether the job has begun before.
    pub fn has_begun(self) -> bool {
        self.state != State::NotBegun
    }

    /// Whether the job is in a non-preemptive section.
    pub fn is_non_preemptive(self) -> bool {
        self.state == State::IsNonPreemptive
    }

    /// What ends, of a job that was on `cpu`, before it begins again.
    pub fn end_of_killed(self, job: JobId, cpu: CpuId) -> Option<Event> {
        match self.state {
            State::NotBegun | State::Executes => None,
            State::IsNonPreemptive => Some(Event::NonPreemptiveEnd { cpu, job }),
            State::IsSuspended => Some(Event::Resume { cpu, job }),
        }
    }

    /// The job did `step`.
    pub fn advance(&mut self, step: JobStep) {
        self.state = match step {
            JobStep::NonPreemptiveBegin => State::IsNonPreemptive,
            JobStep::Suspend | JobStep::Throttled => State::IsSuspended,
            JobStep::Complete | JobStep::Ended => State::NotBegun,
            JobStep::Begin
            | JobStep::Serves
            | JobStep::Ready
            | JobStep::NonPreemptiveEnd
            | JobStep::Resume
            | JobStep::Resumed => State::Executes,
            // Processes neither lock nor use GPUs.
            JobStep::Request(_)
            | JobStep::Wait(_)
            | JobStep::Grant(..)
            | JobStep::Unlock(..)
            | JobStep::SpinBegin
            | JobStep::SpinEnd
            | JobStep::Executes
            | JobStep::Linked(..)
            | JobStep::Carried(..)
            | JobStep::Granted(..)
            | JobStep::Prioritized(..)
            | JobStep::Waits(_)
            | JobStep::GoesOn(_)
            | JobStep::Regulate(_)
            | JobStep::Throttle(_)
            | JobStep::Unthrottle(..)
            | JobStep::Amount(_)
            | JobStep::Replenish(_)
            | JobStep::Priority(_)
            | JobStep::Released(_)
            | JobStep::TopHalf(..)
            | JobStep::Stolen(_) => return,
        };
        if matches!(step, JobStep::Complete | JobStep::Ended) {
            self.completed = self.completed.wrapping_add(1);
        }
    }
}
