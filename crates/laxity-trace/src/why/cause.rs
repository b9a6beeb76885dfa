//! What a job may spend its time with, and what is to blame for it.

use laxity_model::{CpuId, EdgeId, Engine, GpuId, JobId, LockId, OverheadKind, TaskId};

use crate::replay::Source;
use crate::{DeviceId, Outsider};

/// Why a job does what it does at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// It arrived and is not eligible to run yet.
    Jitter,
    /// Its task's earlier job is not complete.
    Predecessor(JobId),
    /// It waits for tokens of the edge.
    Tokens(EdgeId),
    /// Its release is not handled yet: the interrupt waits, or its thread has not noticed.
    Release,
    /// It executes.
    Execution(CpuId),
    /// It executes only because a preemption or a migration cost it its cache.
    CacheRefill(CpuId, OverheadKind),
    /// Scheduler or interrupt code has the CPU.
    Overhead {
        /// The job's CPU, or the one that it waits for.
        cpu: CpuId,
        /// Which code.
        kind: OverheadKind,
        /// The interrupt that it handles.
        source: Option<Source>,
    },
    /// The CPU waits for the scheduler's lock.
    SchedulerLock(CpuId),
    /// A bottom half has the CPU.
    BottomHalf(CpuId, Source),
    /// Another job has the CPU.
    OtherJob {
        /// The CPU.
        cpu: CpuId,
        /// The other job.
        job: JobId,
        /// Why that one.
        standing: Standing,
    },
    /// It could run on the CPU, where no job of the trace is. In a simulation the scheduler has yet to act: at the next
    /// quantum, or once its interrupt has arrived. Live, another thread of the machine or the hypervisor has the CPU, or it
    /// wakes up.
    Unoccupied(CpuId),
    /// It waits for a lock.
    Lock {
        /// The lock.
        lock: LockId,
        /// A job that holds it.
        holder: Option<JobId>,
    },
    /// Its operation waits for an engine.
    Engine {
        /// The GPU.
        gpu: GpuId,
        /// Its engine.
        engine: Engine,
        /// The job whose operation is there.
        by: Option<JobId>,
    },
    /// Its operation is on an engine.
    Operation(GpuId, Engine),
    /// What it waited for is there, and it is told: interrupt, bottom half, wake-up.
    WakeUp(Option<GpuId>),
    /// It suspended itself.
    Suspension,
    /// Its budget is exhausted, or, of a best-effort job, its CPU's budget of memory traffic.
    Throttled,
    /// The CPU that it has or waits for carries out no thread: the hypervisor, firmware or interrupts have it.
    Stolen(CpuId),
    /// Something that is no task of the trace has the CPU that it has or waits for: a thread of the machine, or an interrupt.
    Outside(CpuId, Outsider),
}

/// Why another job has the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It is more urgent.
    MoreUrgent,
    /// It is more urgent only by the priority that it inherited from a job of the task.
    Inherits(TaskId),
    /// It is less urgent, and in a non-preemptive section.
    NonPreemptive,
    /// It is less urgent, and not preempted yet, or by choice of a scheduler that goes by something else.
    LessUrgent,
    /// It is an interrupt thread.
    InterruptThread,
    /// The scheduler knows no priorities, or knows none among best-effort jobs.
    Equal,
}

/// The thing to blame: a [`Cause`] without the CPU, and with the task of the other job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Blame {
    /// See [`Cause::Execution`].
    Execution,
    /// See [`Cause::CacheRefill`].
    CacheRefill(OverheadKind),
    /// See [`Cause::OtherJob`].
    Task(TaskId, Standing),
    /// See [`Cause::Lock`].
    Lock(LockId, Option<TaskId>),
    /// See [`Cause::Operation`].
    Operation(GpuId, Engine),
    /// See [`Cause::Engine`].
    Engine(GpuId, Engine, Option<TaskId>),
    /// See [`Cause::WakeUp`].
    WakeUp(Option<GpuId>),
    /// See [`Cause::Suspension`].
    Suspension,
    /// See [`Cause::Throttled`].
    Throttled,
    /// See [`Cause::Unoccupied`].
    Unoccupied,
    /// See [`Cause::BottomHalf`].
    BottomHalf(DeviceId),
    /// See [`Cause::Overhead`].
    Overhead(OverheadKind),
    /// See [`Cause::SchedulerLock`].
    SchedulerLock,
    /// See [`Cause::Tokens`].
    Tokens(EdgeId),
    /// See [`Cause::Predecessor`].
    Predecessor,
    /// See [`Cause::Release`].
    Release,
    /// See [`Cause::Jitter`].
    Jitter,
    /// See [`Cause::Stolen`].
    Stolen,
    /// See [`Cause::Outside`].
    Outside(Outsider),
}

impl Cause {
    /// The thing to blame.
    pub fn blame(self) -> Blame {
        match self {
            Cause::Jitter => Blame::Jitter,
            Cause::Predecessor(_) => Blame::Predecessor,
            Cause::Tokens(edge) => Blame::Tokens(edge),
            Cause::Release => Blame::Release,
            Cause::Execution(_) => Blame::Execution,
            Cause::CacheRefill(_, kind) => Blame::CacheRefill(kind),
            Cause::Overhead { kind, .. } => Blame::Overhead(kind),
            Cause::SchedulerLock(_) => Blame::SchedulerLock,
            Cause::BottomHalf(_, source) => Blame::BottomHalf(source.device),
            Cause::OtherJob { job, standing, .. } => Blame::Task(job.task, standing),
            Cause::Unoccupied(_) => Blame::Unoccupied,
            Cause::Lock { lock, holder } => Blame::Lock(lock, holder.map(|job| job.task)),
            Cause::Engine { gpu, engine, by } => Blame::Engine(gpu, engine, by.map(|job| job.task)),
            Cause::Operation(gpu, engine) => Blame::Operation(gpu, engine),
            Cause::WakeUp(gpu) => Blame::WakeUp(gpu),
            Cause::Suspension => Blame::Suspension,
            Cause::Throttled => Blame::Throttled,
            Cause::Stolen(_) => Blame::Stolen,
            Cause::Outside(_, by) => Blame::Outside(by),
        }
    }

    /// The CPU that it is about.
    pub fn cpu(self) -> Option<CpuId> {
        match self {
            Cause::Execution(cpu)
            | Cause::CacheRefill(cpu, _)
            | Cause::Overhead { cpu, .. }
            | Cause::SchedulerLock(cpu)
            | Cause::BottomHalf(cpu, _)
            | Cause::OtherJob { cpu, .. }
            | Cause::Unoccupied(cpu)
            | Cause::Stolen(cpu)
            | Cause::Outside(cpu, _) => Some(cpu),
            _ => None,
        }
    }

    /// The other job that it is about: one that has the CPU, the lock or the engine, the owner of the interrupt, the
    /// predecessor.
    pub fn other_job(self) -> Option<JobId> {
        match self {
            Cause::Predecessor(job) | Cause::OtherJob { job, .. } => Some(job),
            Cause::Lock { holder, .. } => holder,
            Cause::Engine { by, .. } => by,
            Cause::Overhead { source, .. } => source.and_then(|source| source.owner),
            Cause::BottomHalf(_, source) => source.owner,
            _ => None,
        }
    }
}
