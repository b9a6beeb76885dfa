//! What can be wrong with a schedule.

use std::fmt;

use laxity_model::{
    CpuId, EdgeId, Engine, GpuId, Instant, JobId, LockId, Nanos, OverheadKind, ReplicaId, SignedNanos, TaskId,
};

use super::{Act, BudgetProblem, Phase};
use crate::DeviceId;
use crate::metrics::ChainDeadline;

/// What is wrong. `Violation` knows when, where and with which job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The header knows no such task.
    UnknownTask,
    /// The header knows no such CPU.
    UnknownCpu,
    /// The header knows no such device.
    UnknownDevice {
        /// The device.
        device: DeviceId,
    },
    /// The header has no such name of an operation.
    UnknownOperation {
        /// Its number.
        name: u32,
    },
    /// A record is earlier than the one before it.
    TimeWentBack {
        /// The latest time before it.
        latest: Instant,
    },
    /// A record follows the trace's end.
    AfterEnd,
    /// Jobs of a task are released in index order.
    ReleasedOutOfOrder {
        /// The index that should have been released.
        expected: u32,
    },
    /// A job is eligible only from its arrival on.
    ReleasedBeforeArrival {
        /// Its arrival: deadline minus relative deadline.
        arrival: Instant,
    },
    /// Two arrivals are closer than the task's period.
    ArrivalsTooClose {
        /// How far apart they are; negative: in the wrong order.
        separation: SignedNanos,
        /// How far they must be.
        period: Nanos,
    },
    /// A job did something it cannot do in its phase.
    OutOfTurn {
        /// What it did.
        act: Act,
        /// The phase it was in.
        phase: Phase,
    },
    /// A job did something before its predecessor completed: jobs of a task are sequential.
    BeforePredecessor {
        /// What it did.
        act: Act,
        /// The predecessor.
        predecessor: JobId,
    },
    /// Another job still has the CPU.
    CpuOccupied {
        /// That job.
        by: JobId,
    },
    /// A job did something on a CPU while it has another.
    Elsewhere {
        /// What it did.
        act: Act,
        /// The CPU it has.
        on: CpuId,
    },
    /// The CPU is not of the task's cluster.
    OutsideCluster {
        /// What the job did there.
        act: Act,
        /// The task's cluster.
        cluster: usize,
    },
    /// A job left its CPU in its non-preemptive section.
    LeftNonPreemptive {
        /// How it left.
        act: Act,
    },
    /// A job executed for longer than the budget of its server, and not because of a section.
    ExceededBudget {
        /// For how long.
        executed: Nanos,
        /// What it had.
        budget: Nanos,
    },
    /// A server was given a budget that its rules do not give.
    WrongBudget {
        /// The server.
        task: TaskId,
        /// What is wrong.
        what: BudgetProblem,
    },
    /// A CPU executes one thing at a time, overheads too.
    OverheadsOverlap {
        /// When the earlier one ends.
        until: Instant,
    },
    /// An overhead of a simulation takes longer than the header says.
    ExceededCost {
        /// Which.
        kind: OverheadKind,
        /// How long it takes.
        duration: Nanos,
        /// How long it may.
        cost: Nanos,
    },
    /// A job's execution differs from its cost.
    WrongExecution {
        /// How long it executed.
        executed: Nanos,
        /// How long it should have: cost plus cache-related delays.
        demand: Nanos,
    },
    /// A job of unknown cost executed for longer than its task's worst case.
    ExceededWcet {
        /// How long it executed.
        executed: Nanos,
        /// How long it may: worst case plus cache-related delays.
        limit: Nanos,
    },
    /// The header knows no such lock.
    UnknownLock {
        /// The lock.
        lock: LockId,
    },
    /// The lock has no such replica.
    UnknownReplica {
        /// The lock.
        lock: LockId,
        /// The replica.
        replica: ReplicaId,
    },
    /// A job asked for a lock while it waits for one, or holds that one.
    RequestedTwice {
        /// What it waits for or holds.
        lock: LockId,
    },
    /// A job executes although it waits for a lock.
    ExecutesWaiting {
        /// The lock.
        lock: LockId,
    },
    /// A job was granted, or withdrew its request for, what it does not wait for.
    NotRequested {
        /// The lock.
        lock: LockId,
    },
    /// A job was granted what another holds.
    LockHeld {
        /// The lock.
        lock: LockId,
        /// The replica.
        replica: ReplicaId,
        /// The job that holds it.
        by: JobId,
    },
    /// A job was granted a lock although another comes first in the lock's order.
    GrantOrder {
        /// The lock.
        lock: LockId,
        /// The job that comes first.
        earlier: JobId,
    },
    /// A job waited for a replica that was free.
    ReplicaIdle {
        /// The lock.
        lock: LockId,
        /// The replica.
        replica: ReplicaId,
    },
    /// A job unlocked what it does not hold.
    NotHeld {
        /// The lock.
        lock: LockId,
        /// The replica.
        replica: ReplicaId,
    },
    /// A job completed and holds a lock.
    CompletedHolding {
        /// The lock.
        lock: LockId,
    },
    /// A job completed and waits for a lock.
    CompletedWaiting {
        /// The lock.
        lock: LockId,
    },
    /// Best-effort jobs caused more memory traffic in a regulation period than they may.
    BudgetExceeded {
        /// In bytes.
        traffic: u64,
        /// The budget, and what the regulator's latency lets through, in bytes.
        allowed: u64,
    },
    /// A best-effort job got a CPU that is throttled.
    RunsThrottled,
    /// A best-effort task had more than its fair share of a CPU.
    Ahead {
        /// The task.
        task: TaskId,
        /// The one that had less.
        of: TaskId,
        /// By how much virtual time.
        ahead: Nanos,
        /// How much is allowed.
        allowed: Nanos,
    },
    /// A GPU operation began while its job did not hold the bandwidth lock at the ceiling priority.
    Unprotected,
    /// The header knows no such engine.
    UnknownEngine {
        /// The GPU.
        gpu: GpuId,
        /// The engine.
        engine: Engine,
    },
    /// An operation began on an engine that is occupied.
    EngineBusy {
        /// The GPU.
        gpu: GpuId,
        /// The engine.
        engine: Engine,
        /// Whose operation occupies it.
        by: JobId,
    },
    /// An operation ended that had not begun.
    NoOperation {
        /// The GPU.
        gpu: GpuId,
        /// The engine.
        engine: Engine,
    },
    /// An operation began while an earlier one of its job goes on.
    StreamOrder {
        /// The GPU of the earlier one.
        gpu: GpuId,
        /// Its engine.
        engine: Engine,
    },
    /// A bottom half began on a stack that another is on.
    BottomHalvesNest,
    /// A bottom half ended that had not begun there.
    NoBottomHalf,
    /// A job did something on a CPU whose stack a bottom half has.
    StackBorrowed {
        /// What it did.
        act: Act,
    },
    /// A job of a task that is no interrupt thread serves as a bottom half.
    NoThread,
    /// A thread executes beside the owner of the bottom half that it runs.
    BesideOwner {
        /// The owner.
        owner: JobId,
    },
    /// The header knows no such edge.
    UnknownEdge {
        /// The edge.
        edge: EdgeId,
    },
    /// A job produced on an edge that its task does not write, or consumed from one that it does not read.
    WrongEnd {
        /// The edge.
        edge: EdgeId,
    },
    /// A job produced on or consumed from an edge twice, or not in its turn.
    TokensOutOfTurn {
        /// The edge.
        edge: EdgeId,
    },
    /// A job moved another number of tokens than the edge says.
    WrongTokens {
        /// The edge.
        edge: EdgeId,
        /// How many it moved.
        tokens: u32,
        /// How many it should have.
        expected: u32,
    },
    /// A job consumed from an edge that lacks tokens.
    BelowThreshold {
        /// The edge.
        edge: EdgeId,
        /// How many there are.
        tokens: u64,
        /// How many there must be.
        threshold: u32,
    },
    /// A job was dispatched before it consumed from an inbound edge.
    StartedWithoutTokens {
        /// The edge.
        edge: EdgeId,
    },
    /// A job was dispatched that overwrites a replica which is still being read.
    StaleRead {
        /// The reader, which is not complete.
        reader: JobId,
    },
    /// A job read another value than the newest complete one.
    NotNewest {
        /// The edge.
        edge: EdgeId,
        /// Index of the job whose value it read.
        read: Option<u32>,
        /// Index of the producer's last complete job.
        newest: Option<u32>,
    },
    /// A job completed that did not read an inbound latest-value edge.
    NotRead {
        /// The edge.
        edge: EdgeId,
    },
    /// A job became linked off the boundaries of quanta.
    LinkedWithinQuantum {
        /// The quantum.
        quantum: Nanos,
    },
    /// A CPU that runs jobs handled the interrupt of a release, where another is dedicated to them.
    NotDedicated,
    /// The CPU is linked to a job while a more urgent one is ready and unlinked.
    Inversion {
        /// How urgent the linked job is.
        urgency: Urgency,
        /// The more urgent job.
        waiting: JobId,
        /// How urgent it is.
        waiting_urgency: Urgency,
    },
    /// The CPU is linked to no job while one is ready and unlinked.
    NotWorkConserving {
        /// That job.
        waiting: JobId,
        /// How urgent it is.
        waiting_urgency: Urgency,
    },
    /// A job has a priority that is not its own, nor that of a job which waits for it, nor that of a lock that it holds.
    ForeignPriority {
        /// That priority.
        urgency: Urgency,
        /// The task that it is said to be of.
        of: TaskId,
        /// Its own.
        own: Urgency,
    },
    /// A job holds a lock and is less urgent than a job that waits for it.
    NotInherited {
        /// The lock.
        lock: LockId,
        /// How urgent the holder is.
        urgency: Urgency,
        /// The more urgent job.
        waiting: JobId,
        /// How urgent it is.
        waiting_urgency: Urgency,
    },
    /// A job holds a lock whose holders are above all others, and is not.
    BelowCeiling {
        /// The lock.
        lock: LockId,
        /// How urgent it is.
        urgency: Urgency,
    },
    /// An interrupt thread has another priority than it has by those that it works for.
    ThreadPriority {
        /// Its priority.
        urgency: Urgency,
        /// The task that it is said to be of.
        of: TaskId,
        /// The one that it should have.
        expected: Urgency,
    },
    /// Once no overhead goes on, the CPU runs another job than the one it is linked to.
    RunsUnlinked {
        /// What it is linked to.
        linked: Option<JobId>,
    },
    /// Once no overhead goes on, the CPU runs nothing though it is linked to a job.
    LinkedButIdle,
    /// A job completed after its deadline.
    Late {
        /// The deadline.
        deadline: Instant,
    },
    /// A job completed an output of a chain that uses older data than it may, or shows an event later.
    LateOutput {
        /// The chain, as a position in [`TraceHeader::chains`](crate::TraceHeader::chains).
        chain: usize,
        /// Which of its deadlines.
        deadline: ChainDeadline,
        /// The data age or reaction time.
        span: Nanos,
        /// What it may be.
        limit: Nanos,
    },
    /// A job is incomplete at the end of the trace, its deadline past.
    Incomplete {
        /// The deadline.
        deadline: Instant,
    },
}

/// What a job is ranked by; the smaller is the more urgent, ties go to the task listed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// It is above all others.
    Boosted,
    /// It is below all others.
    Below,
    /// Its absolute deadline.
    Deadline(Instant),
    /// Its task's rank.
    Rank(u32),
}

impl fmt::Display for Urgency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Urgency::Boosted => f.write_str("above all"),
            Urgency::Below => f.write_str("below all"),
            Urgency::Deadline(deadline) => write!(f, "deadline {deadline}"),
            Urgency::Rank(rank) => write!(f, "rank {rank}"),
        }
    }
}
