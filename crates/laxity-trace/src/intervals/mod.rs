//! What the records of a trace add up to: who executed where from when to when, what took the CPU from them, and how
//! every job fared. Every exporter draws and tabulates these, never the records themselves.
//!
//! [`Timeline::of`] takes a whole trace; [`Tracker`] follows one record after the other in memory that grows with the
//! number of pending jobs only. Both accept any sequence of records that names existing CPUs and tasks and whose time
//! does not run backwards; whether the schedule is *legal* is for the checkers to say.

mod job;
mod timeline;
mod tracker;

use std::fmt;

use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadKind};

pub use job::{JobHistory, Released};
pub use timeline::{Ipi, Timeline};
pub use tracker::Tracker;

/// Something that lasted. Never empty: `from < to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// When it began.
    pub from: Instant,
    /// When it ended.
    pub to: Instant,
    /// What it was.
    pub activity: Activity,
}

/// What fills an [`Interval`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// A job executed. A dispatch that overhead interrupts yields a piece before and a piece after it.
    Execution {
        /// Where.
        cpu: CpuId,
        /// Which job.
        job: JobId,
        /// How the job came to execute here.
        begin: Begin,
        /// Why it stopped.
        end: Stop,
    },
    /// The CPU executed scheduler or interrupt code.
    Overhead {
        /// Where.
        cpu: CpuId,
        /// Which.
        kind: OverheadKind,
    },
    /// The CPU waited, spinning, for the scheduler lock.
    LockWait {
        /// Where.
        cpu: CpuId,
    },
    /// A job was suspended.
    Suspension {
        /// Which.
        job: JobId,
    },
    /// A job was in a non-preemptive section. Overlaps its execution.
    NonPreemptive {
        /// Where.
        cpu: CpuId,
        /// Which job.
        job: JobId,
    },
}

/// How a job came to execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// Its first dispatch.
    First,
    /// A later dispatch on the CPU where it last executed.
    Again,
    /// A dispatch on another CPU than the one where it last executed.
    Migrated {
        /// Where it last executed.
        from: CpuId,
    },
    /// The same dispatch goes on after overhead.
    AfterOverhead,
}

/// Why a job stopped executing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Overhead took the CPU; the dispatch goes on after it.
    Overhead,
    /// It was preempted.
    Preempted,
    /// It suspended itself.
    Suspended,
    /// It completed.
    Completed,
    /// It had not stopped when the trace ended.
    TraceEnded,
}

impl Interval {
    /// How long it lasted.
    pub fn duration(&self) -> Nanos {
        self.to.saturating_since(self.from)
    }
}

impl Activity {
    /// The name in tables: `execution`, the overhead's name, `lock_wait`, `suspension`, `non_preemptive`.
    pub const fn name(&self) -> &'static str {
        match self {
            Activity::Execution { .. } => "execution",
            Activity::Overhead { kind, .. } => kind.name(),
            Activity::LockWait { .. } => "lock_wait",
            Activity::Suspension { .. } => "suspension",
            Activity::NonPreemptive { .. } => "non_preemptive",
        }
    }

    /// The CPU it is about.
    pub const fn cpu(&self) -> Option<CpuId> {
        match *self {
            Activity::Execution { cpu, .. }
            | Activity::Overhead { cpu, .. }
            | Activity::LockWait { cpu }
            | Activity::NonPreemptive { cpu, .. } => Some(cpu),
            Activity::Suspension { .. } => None,
        }
    }

    /// The job it is about.
    pub const fn job(&self) -> Option<JobId> {
        match *self {
            Activity::Execution { job, .. } | Activity::Suspension { job } | Activity::NonPreemptive { job, .. } => {
                Some(job)
            }
            Activity::Overhead { .. } | Activity::LockWait { .. } => None,
        }
    }
}

/// The records do not belong to the header they came with. The trace cannot be drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrackError {
    /// A record names a CPU the header does not have.
    UnknownCpu {
        /// When.
        at: Instant,
        /// The CPU named.
        cpu: CpuId,
        /// How many the header has.
        cpus: usize,
    },
    /// A record names a task the header does not have.
    UnknownTask {
        /// When.
        at: Instant,
        /// The job named.
        job: JobId,
        /// How many tasks the header has.
        tasks: usize,
    },
    /// A record is earlier than the one before it.
    OutOfOrder {
        /// Its time.
        at: Instant,
        /// The time of the record before it.
        previous: Instant,
    },
}

impl fmt::Display for TrackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TrackError::UnknownCpu { at, cpu, cpus } => write!(
                f,
                "record at {at}: {cpu} does not exist, the header has {cpus} CPUs counted from 0; pass the header that \
                 was written with these records"
            ),
            TrackError::UnknownTask { at, job, tasks } => write!(
                f,
                "record at {at}: job {job} is of no known task, the header has {tasks} tasks counted from 0; pass the \
                 header that was written with these records"
            ),
            TrackError::OutOfOrder { at, previous } => write!(
                f,
                "record at {at} follows a record at {previous}; sort the records by time, keeping the order of equals"
            ),
        }
    }
}

impl std::error::Error for TrackError {}
