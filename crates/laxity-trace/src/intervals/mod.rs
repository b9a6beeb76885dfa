//! What the records of a trace add up to: which job executed where and when, what took the CPU from it, and how every
//! job fared. Every exporter draws and tabulates these, never the records themselves.
//!
//! [`Timeline::of`] takes a whole trace; [`Tracker`] follows one record after the other in memory that grows with the
//! number of pending jobs only. Both accept any sequence of records that names existing CPUs and tasks and whose time
//! does not run backwards; whether the schedule is *legal* is for the checkers to say.

mod admit;
mod error;
mod job;
mod timeline;
mod tracker;

use laxity_model::{CpuId, Engine, GpuId, Instant, JobId, LockId, Nanos, OverheadKind, ReplicaId, TaskId};

pub(crate) use admit::admit;
pub use error::TrackError;
pub use job::{JobHistory, Released};
pub use timeline::{Interrupt, Ipi, Timeline};
pub use tracker::Tracker;

use crate::Outsider;
pub use crate::replay::Source;

/// A span of time and what filled it. Never empty: `from < to`.
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
    /// A job executed. A dispatch that overhead, a bottom half or spinning interrupts yields a piece before and a piece
    /// after it.
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
        /// The interrupt that it handles; `None` where the trace does not tell, or it handles none.
        source: Option<Source>,
    },
    /// The CPU waited, spinning, for the scheduler lock.
    LockWait {
        /// Where.
        cpu: CpuId,
    },
    /// A bottom half ran on the stack of the job that was on the CPU. One that overhead interrupts yields a piece before
    /// and a piece after it.
    BottomHalf {
        /// Where.
        cpu: CpuId,
        /// The interrupt that it handles.
        source: Source,
    },
    /// A job had the CPU and waited by spinning.
    Spinning {
        /// Where.
        cpu: CpuId,
        /// Which job.
        job: JobId,
    },
    /// Best-effort jobs stood still on the CPU. Overlaps what other jobs did there.
    Throttled {
        /// Where.
        cpu: CpuId,
        /// Because of which task.
        task: Option<TaskId>,
    },
    /// The CPU carried out no thread: hypervisor, firmware or interrupts had it. Overlaps what jobs were said to do there, and
    /// no other span in which it was stolen.
    Stolen {
        /// Which.
        cpu: CpuId,
    },
    /// The CPU carried out something that is no task of the trace. It interrupts what a job does there.
    Outside {
        /// Which.
        cpu: CpuId,
        /// What it carried out.
        by: Outsider,
    },
    /// An operation occupied an engine of a GPU.
    Operation {
        /// The GPU.
        gpu: GpuId,
        /// Its engine.
        engine: Engine,
        /// Its name, an index into [`TraceHeader::operations`](crate::TraceHeader::operations); `None` if it has none.
        name: Option<u32>,
        /// Whose operation; the job itself may have executed or be complete.
        job: JobId,
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
    /// A job waited for a lock, suspended, spinning or preempted.
    AwaitingLock {
        /// Which job.
        job: JobId,
        /// The lock.
        lock: LockId,
    },
    /// A job held a replica of a lock: its critical section. Overlaps what the job did in it.
    CriticalSection {
        /// Which job.
        job: JobId,
        /// The lock.
        lock: LockId,
        /// The replica.
        replica: ReplicaId,
    },
    /// A job had the priority of another task's job. Overlaps what the job did.
    Inheritance {
        /// Which job.
        job: JobId,
        /// The task whose priority it had.
        of: TaskId,
        /// That priority: see [`Event::Priority`](crate::Event::Priority).
        level: u64,
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
    /// The same dispatch goes on after overhead or a bottom half.
    AfterOverhead,
    /// The same dispatch goes on after the job spun.
    AfterSpinning,
}

/// Why a job stopped executing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Overhead or a bottom half took the CPU; the dispatch goes on after it.
    Overhead,
    /// It began to spin.
    Spinning,
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
    /// The name in tables: `execution`, the name of the overhead, `lock_wait`, `bottom_half`, `spinning`, `throttled`,
    /// `stolen`, `outside`, `operation`, `suspension`, `non_preemptive`, `awaiting_lock`, `critical_section`, `inheritance`.
    pub const fn name(&self) -> &'static str {
        match self {
            Activity::Execution { .. } => "execution",
            Activity::Overhead { kind, .. } => kind.name(),
            Activity::LockWait { .. } => "lock_wait",
            Activity::BottomHalf { .. } => "bottom_half",
            Activity::Spinning { .. } => "spinning",
            Activity::Throttled { .. } => "throttled",
            Activity::Stolen { .. } => "stolen",
            Activity::Outside { .. } => "outside",
            Activity::Operation { .. } => "operation",
            Activity::Suspension { .. } => "suspension",
            Activity::NonPreemptive { .. } => "non_preemptive",
            Activity::AwaitingLock { .. } => "awaiting_lock",
            Activity::CriticalSection { .. } => "critical_section",
            Activity::Inheritance { .. } => "inheritance",
        }
    }

    /// The CPU it is about.
    pub const fn cpu(&self) -> Option<CpuId> {
        match *self {
            Activity::Execution { cpu, .. }
            | Activity::Overhead { cpu, .. }
            | Activity::LockWait { cpu }
            | Activity::BottomHalf { cpu, .. }
            | Activity::Spinning { cpu, .. }
            | Activity::Throttled { cpu, .. }
            | Activity::Stolen { cpu }
            | Activity::Outside { cpu, .. }
            | Activity::NonPreemptive { cpu, .. } => Some(cpu),
            Activity::Operation { .. }
            | Activity::Suspension { .. }
            | Activity::AwaitingLock { .. }
            | Activity::CriticalSection { .. }
            | Activity::Inheritance { .. } => None,
        }
    }

    /// The job it is about; the owner of an interrupt is in its [`source`](Activity::source).
    pub const fn job(&self) -> Option<JobId> {
        match *self {
            Activity::Execution { job, .. }
            | Activity::Spinning { job, .. }
            | Activity::Operation { job, .. }
            | Activity::Suspension { job }
            | Activity::NonPreemptive { job, .. }
            | Activity::AwaitingLock { job, .. }
            | Activity::CriticalSection { job, .. }
            | Activity::Inheritance { job, .. } => Some(job),
            Activity::Overhead { .. }
            | Activity::LockWait { .. }
            | Activity::BottomHalf { .. }
            | Activity::Throttled { .. }
            | Activity::Stolen { .. }
            | Activity::Outside { .. } => None,
        }
    }

    /// The interrupt that it handles.
    pub const fn source(&self) -> Option<Source> {
        match *self {
            Activity::Overhead { source, .. } => source,
            Activity::BottomHalf { source, .. } => Some(source),
            _ => None,
        }
    }
}
