//! The life of a job, as checkers tell of it: what it does, and where it is.

use std::fmt;

/// Something a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It enters the ready queue.
    Ready,
    /// It is linked to a CPU.
    Link,
    /// It is switched in.
    Dispatch,
    /// It is switched out.
    Preempt,
    /// It suspends itself.
    Suspend,
    /// Its suspension ends.
    Resume,
    /// It completes.
    Complete,
    /// It enters a non-preemptive section.
    NonPreemptiveBegin,
    /// It leaves it.
    NonPreemptiveEnd,
    /// It incurs cache-related delay.
    CacheDelay,
}

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before its release.
    Unreleased,
    /// Released, not yet in the ready queue.
    Released,
    /// Ready, on no CPU.
    Ready,
    /// On a CPU.
    Running,
    /// On a CPU and not to be preempted.
    NonPreemptive,
    /// Suspended.
    Suspended,
    /// Complete.
    Complete,
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Act::Ready => "becomes ready",
            Act::Link => "is linked",
            Act::Dispatch => "is dispatched",
            Act::Preempt => "is preempted",
            Act::Suspend => "suspends itself",
            Act::Resume => "resumes",
            Act::Complete => "completes",
            Act::NonPreemptiveBegin => "enters a non-preemptive section",
            Act::NonPreemptiveEnd => "leaves a non-preemptive section",
            Act::CacheDelay => "incurs cache-related delay",
        })
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Unreleased => "not yet released",
            Phase::Released => "released but not ready",
            Phase::Ready => "ready and not running",
            Phase::Running => "running",
            Phase::NonPreemptive => "in a non-preemptive section",
            Phase::Suspended => "suspended",
            Phase::Complete => "complete",
        })
    }
}
