//! What happens to a stream, and what is to be done.

use laxity_model::{Engine, Instant};

use super::jobs::JobEvent;
use super::work::Work;

/// The number of an operation in its stream: the later issued, the larger.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct OperationId(pub u64);

/// In which order the driver carries out a stream's operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after the other, as issued.
    InOrder,
    /// Each as soon as its dependencies are complete and no barrier is before it.
    OutOfOrder,
}

/// How an operation that is about to be issued gets to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// As it is: it uses no engine.
    Through,
    /// As it is: the stream holds the engine, and the operation shares the hold.
    Join,
    /// As it is, if the engine of the stream's GPU is free and was taken now; otherwise with a gate.
    TakeIfFree(Engine),
    /// With a gate.
    Gate,
}

/// How it got there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// As [`Admission::Through`] or [`Admission::Join`] allows.
    Admitted,
    /// Its engine (and the token, if the stream had none) was taken.
    Taken,
    /// With a gate.
    Gated,
}

/// What happens to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The program issues an operation.
    Issued {
        /// Its number, larger than those before.
        operation: OperationId,
        /// What it is.
        work: Work,
        /// Whether all that it waits for outside of this stream's order is complete.
        is_ready: bool,
        /// How it gets to the driver.
        passage: Passage,
        /// Since when its program wants it, which may have waited for its engine.
        since: Instant,
    },
    /// All that the operation waits for outside of this stream's order is complete now.
    Ready(OperationId),
    /// The driver refused the operation: it will never run.
    Cancelled(OperationId),
    /// The operation is complete, or failed.
    Completed(OperationId),
    /// Whatever has its gate gave up waiting: the operation goes to the driver without its engine. For gates in which a
    /// thread of the program waits, which perhaps is to do what the operation waits for.
    Forced(OperationId),
    /// What was acquired is held.
    Granted,
    /// It cannot be acquired: the arbitration is damaged or gone. The operation runs without.
    Refused,
    /// The program waits, for this stream or another one.
    Waits,
    /// The program waited for all that it issued to this stream, and was answered.
    Synchronized,
    /// The program announces a job, due at that time if it has a deadline.
    JobBegins(Option<Instant>),
    /// And its end.
    JobEnds,
    /// The program exits: no gate is opened any more.
    Exits,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Acquire the engine, after a token of the GPU if `token`, and say [`Event::Granted`] or [`Event::Refused`].
    Acquire {
        /// Which.
        engine: Engine,
        /// Whether the stream has no token yet.
        token: bool,
        /// For which job.
        job: u32,
        /// When that is due.
        deadline: Option<Instant>,
    },
    /// Open the gate of the operation: it may run.
    Open(OperationId),
    /// Unlock the engine that is held.
    Unlock(Engine),
    /// Release the token.
    ReleaseToken,
    /// The operation is over, as far as the program may notice: whatever waits for it may go on.
    Retire(OperationId),
    /// The operation kept its engine for longer than [`Policy::hold_limit`](super::Policy::hold_limit): to be reported.
    Late(OperationId),
    /// The operation runs without its engine, after [`Event::Forced`]: to be reported.
    Forced(OperationId),
    /// A job began or ended.
    Job(JobEvent),
}
