//! The event vocabulary.
//!
//! A job's life: `Release` (eligible: arrival plus jitter), `Ready` (the release was handled and the job entered the
//! ready queue), `Link` (the processor mapping gives it a CPU), `Dispatch` (its process runs there), `Preempt` and
//! `Dispatch` again, `Suspend` and `Resume`, `Complete`.
//!
//! Between `Dispatch` and the `Preempt`, `Suspend` or `Complete` that ends it, a job executes on its CPU except during
//! the `Overhead` and `LockWait` intervals recorded for that CPU, between `BottomHalfBegin` and `BottomHalfEnd` there,
//! and between its own `SpinBegin` and `SpinEnd`. The sum of its execution is its cost plus its `CacheDelay`s.
//!
//! GPUs: an operation, perhaps with a name (`EngineOperation`), runs on an engine from `EngineBegin` to `EngineEnd`; the
//! device raises an `Interrupt`, whose top half is an `Overhead` of the CPU and whose bottom half runs either on that CPU's current stack (`BottomHalfBegin`,
//! `BottomHalfEnd`) or as a job of an interrupt thread, a task of the header, for which `Serve` names the owner.
//!
//! Locks: `Request`, `Grant`, `Unlock`. A job whose request is not granted at once suspends (or spins) until it is.
//! `Priority` says what effective priority a job has from then on. Graphs: `Produce` and `Consume` move tokens, `Read`
//! takes the newest value of a latest-value edge.
//!
//! Memory: `Regulate`, `Throttle` and `Unthrottle` say what the best-effort tasks of a CPU may do, `EngineRate` how fast an
//! operation progresses beside the traffic of CPUs.
//!
//! The machine: `Stolen` says that a CPU carried out no thread for a while, whatever the records around it say. `Outside`
//! says that a thread which is no task, or an interrupt, has a CPU; `OutsiderName` and `OutsiderThread` what that is called.

use laxity_model::{CpuId, EdgeId, Engine, GpuId, Instant, JobId, LockId, Nanos, OverheadKind, ReplicaId, TaskId};

use crate::{DeviceId, Outsider, ShortName};

/// One event and when it happened. Records of a trace are ordered by `at`; among equal times the order of the records
/// is the order of cause and effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The time.
    pub at: Instant,
    /// The event.
    pub event: Event,
}

/// An event.
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
    /// From now on and for `duration` the CPU executes scheduler or interrupt code and no job. Live, a tick has no duration, and
    /// the links that it decides follow it directly.
    Overhead {
        /// The CPU.
        cpu: CpuId,
        /// Its source.
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
    /// An operation of `job` occupies the engine from now on. Engines are not preemptive.
    EngineBegin {
        /// The GPU.
        gpu: GpuId,
        /// Its engine.
        engine: Engine,
        /// The job that issued the operation; it may have gone on, or even completed.
        job: JobId,
    },
    /// The operation on the engine is complete.
    EngineEnd {
        /// The GPU.
        gpu: GpuId,
        /// Its engine.
        engine: Engine,
        /// The job that issued the operation.
        job: JobId,
    },
    /// A device raised an interrupt; its top half will run on `cpu`, as soon as that is interruptible.
    Interrupt {
        /// The CPU it is routed to.
        cpu: CpuId,
        /// The device.
        device: DeviceId,
        /// The owner: the job whose operation completed. `None`: anonymous.
        job: Option<JobId>,
    },
    /// A bottom half runs on `cpu`, on the stack of the job that is there or of none; that job cannot go on before the
    /// bottom half ends. Interrupts of that CPU may interrupt it.
    BottomHalfBegin {
        /// Where.
        cpu: CpuId,
        /// The device.
        device: DeviceId,
        /// The owner.
        job: Option<JobId>,
    },
    /// The bottom half on the stack of `cpu` is done.
    BottomHalfEnd {
        /// Where.
        cpu: CpuId,
        /// The device.
        device: DeviceId,
        /// The owner.
        job: Option<JobId>,
    },
    /// `thread`, the job of an interrupt thread that was just released, is a bottom half on behalf of `job`.
    Serve {
        /// A job of an interrupt thread: one bottom half.
        thread: JobId,
        /// The device.
        device: DeviceId,
        /// The owner.
        job: Option<JobId>,
    },
    /// The job asks for the lock.
    Request {
        /// The job.
        job: JobId,
        /// The lock.
        lock: LockId,
    },
    /// The job holds a replica of the lock from now on.
    Grant {
        /// The job.
        job: JobId,
        /// The lock.
        lock: LockId,
        /// Which replica.
        replica: ReplicaId,
    },
    /// The job holds it no longer.
    Unlock {
        /// The job.
        job: JobId,
        /// The lock.
        lock: LockId,
        /// Which replica.
        replica: ReplicaId,
    },
    /// The job's request is withdrawn: it exhausted its budget while it waited.
    Withdraw {
        /// The job.
        job: JobId,
        /// The lock.
        lock: LockId,
    },
    /// The job has another effective priority from now on: it inherits, or no longer does.
    Priority {
        /// The job.
        job: JobId,
        /// An absolute deadline in nanoseconds under EDF, a rank plus 1 under fixed priorities; 0 is above all.
        level: u64,
        /// The task whose priority that is: the job's own task, or that of the job that it inherits from or serves.
        of: TaskId,
    },
    /// The job put tokens on an edge of its graph.
    Produce {
        /// The job.
        job: JobId,
        /// The edge.
        edge: EdgeId,
        /// How many.
        tokens: u32,
    },
    /// The job took tokens from an edge of its graph.
    Consume {
        /// The job.
        job: JobId,
        /// The edge.
        edge: EdgeId,
        /// How many.
        tokens: u32,
    },
    /// The job, which begins, reads a latest-value edge.
    Read {
        /// The job.
        job: JobId,
        /// The edge: counted on from those that carry tokens.
        edge: EdgeId,
        /// Index of the producer's job that wrote the value; `None`: none has completed yet.
        value: Option<u32>,
    },
    /// The job, which has the CPU, waits by spinning.
    SpinBegin {
        /// Where.
        cpu: CpuId,
        /// The job.
        job: JobId,
    },
    /// The job, which has the CPU, need not spin any longer.
    SpinEnd {
        /// Where.
        cpu: CpuId,
        /// The job.
        job: JobId,
    },
    /// The bandwidth server that is `task` (a task with a budget, or an interrupt thread) got a new budget and
    /// deadline.
    Replenish {
        /// The server.
        task: TaskId,
        /// What it may run.
        budget: Nanos,
        /// Its priority from now on.
        deadline: Instant,
    },
    /// From now on best-effort tasks of the CPU may cause so much memory traffic in a regulation period, which begins now
    /// or goes on.
    Regulate {
        /// The CPU.
        cpu: CpuId,
        /// In bytes a second, on average over the period; `None`: as much as they like.
        budget: Option<u64>,
    },
    /// The budget of the CPU is used up: no best-effort task executes there from now on.
    Throttle {
        /// The CPU.
        cpu: CpuId,
        /// The task that had the CPU.
        task: Option<TaskId>,
    },
    /// Best-effort tasks may execute on the CPU again.
    Unthrottle {
        /// The CPU.
        cpu: CpuId,
        /// The task of the `Throttle` before, which is charged for the time lost.
        task: Option<TaskId>,
        /// How long they stood still.
        lost: Nanos,
    },
    /// The operation on an engine progresses at this rate from now on. One that began without saying so progresses at
    /// full rate.
    EngineRate {
        /// The GPU.
        gpu: GpuId,
        /// Its engine.
        engine: Engine,
        /// Work done in a nanosecond, in units of 2^-32 ns; 2^32 is full rate.
        rate: u64,
    },
    /// The operation on an engine has this name. It comes right after the `EngineBegin`, of operations that have a name.
    EngineOperation {
        /// The GPU.
        gpu: GpuId,
        /// Its engine.
        engine: Engine,
        /// An index into [`TraceHeader::operations`](crate::TraceHeader::operations).
        name: u32,
    },
    /// Until now and for `duration` not even the most urgent thread got the CPU: the hypervisor, firmware or interrupts had it.
    /// Seen live by a thread that looks from time to time; so it began a little earlier.
    Stolen {
        /// The CPU.
        cpu: CpuId,
        /// How long, at least.
        duration: Nanos,
    },
    /// From now on the CPU carries out something that is no task of the trace; the job that has the CPU cannot go on before
    /// that ends.
    Outside {
        /// The CPU.
        cpu: CpuId,
        /// What it carries out; `None`: tasks of the trace, or nothing.
        by: Option<Outsider>,
    },
    /// An outsider has this name, or this piece of a name behind the pieces before. It comes before its first `Outside`.
    OutsiderName {
        /// The outsider.
        outsider: Outsider,
        /// Which piece; the first is 0, and forgets an earlier name.
        piece: u8,
        /// The name or its piece.
        name: ShortName,
    },
    /// An outsider, whose name was told, is the thread of this number in Linux.
    OutsiderThread {
        /// The outsider.
        outsider: Outsider,
        /// The number.
        thread: u32,
    },
    /// What outsiders had the CPU meanwhile is not known: records of the operating system were lost, so many until now.
    OutsidersLost {
        /// The CPU.
        cpu: CpuId,
        /// How many records of this CPU, in the whole trace so far.
        records: u64,
    },
    /// The trace ends here, deliberately. A trace without it was cut off.
    End,
}

impl Event {
    /// The CPUs that the event names.
    pub(crate) fn cpus(&self) -> [Option<CpuId>; 2] {
        match *self {
            Event::Link { cpu, .. }
            | Event::Ready { cpu, .. }
            | Event::Dispatch { cpu, .. }
            | Event::Preempt { cpu, .. }
            | Event::Suspend { cpu, .. }
            | Event::Resume { cpu, .. }
            | Event::Complete { cpu, .. }
            | Event::NonPreemptiveBegin { cpu, .. }
            | Event::NonPreemptiveEnd { cpu, .. }
            | Event::CacheDelay { cpu, .. }
            | Event::Overhead { cpu, .. }
            | Event::LockWait { cpu, .. }
            | Event::Interrupt { cpu, .. }
            | Event::BottomHalfBegin { cpu, .. }
            | Event::BottomHalfEnd { cpu, .. }
            | Event::SpinBegin { cpu, .. }
            | Event::SpinEnd { cpu, .. }
            | Event::Regulate { cpu, .. }
            | Event::Throttle { cpu, .. }
            | Event::Unthrottle { cpu, .. }
            | Event::Stolen { cpu, .. }
            | Event::Outside { cpu, .. }
            | Event::OutsidersLost { cpu, .. } => [Some(cpu), None],
            Event::Ipi { from, to, .. } => [Some(from), Some(to)],
            Event::Release { .. }
            | Event::EngineBegin { .. }
            | Event::EngineEnd { .. }
            | Event::Serve { .. }
            | Event::Request { .. }
            | Event::Grant { .. }
            | Event::Unlock { .. }
            | Event::Withdraw { .. }
            | Event::Priority { .. }
            | Event::Produce { .. }
            | Event::Consume { .. }
            | Event::Read { .. }
            | Event::Replenish { .. }
            | Event::EngineRate { .. }
            | Event::EngineOperation { .. }
            | Event::OutsiderName { .. }
            | Event::OutsiderThread { .. }
            | Event::End => [None, None],
        }
    }

    /// The jobs that the event names.
    pub(crate) fn jobs(&self) -> [Option<JobId>; 2] {
        match *self {
            Event::Release { job, .. }
            | Event::Ready { job, .. }
            | Event::Dispatch { job, .. }
            | Event::Preempt { job, .. }
            | Event::Suspend { job, .. }
            | Event::Resume { job, .. }
            | Event::Complete { job, .. }
            | Event::NonPreemptiveBegin { job, .. }
            | Event::NonPreemptiveEnd { job, .. }
            | Event::CacheDelay { job, .. }
            | Event::EngineBegin { job, .. }
            | Event::EngineEnd { job, .. }
            | Event::Request { job, .. }
            | Event::Grant { job, .. }
            | Event::Unlock { job, .. }
            | Event::Withdraw { job, .. }
            | Event::Priority { job, .. }
            | Event::Produce { job, .. }
            | Event::Consume { job, .. }
            | Event::Read { job, .. }
            | Event::SpinBegin { job, .. }
            | Event::SpinEnd { job, .. } => [Some(job), None],
            Event::Link { job, .. }
            | Event::Interrupt { job, .. }
            | Event::BottomHalfBegin { job, .. }
            | Event::BottomHalfEnd { job, .. } => [job, None],
            Event::Serve { thread, job, .. } => [Some(thread), job],
            Event::Overhead { .. }
            | Event::LockWait { .. }
            | Event::Ipi { .. }
            | Event::Replenish { .. }
            | Event::Regulate { .. }
            | Event::Throttle { .. }
            | Event::Unthrottle { .. }
            | Event::EngineRate { .. }
            | Event::EngineOperation { .. }
            | Event::Stolen { .. }
            | Event::Outside { .. }
            | Event::OutsiderName { .. }
            | Event::OutsiderThread { .. }
            | Event::OutsidersLost { .. }
            | Event::End => [None, None],
        }
    }
}
