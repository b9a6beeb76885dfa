//! Why a device cannot be had, or does not do what it was asked for.

use std::io;

use laxity_gpu::{FollowError, GPUS_MAX, LockError, RegisterError};
use laxity_model::LockId;
use laxity_sched::TaskError;
use laxity_softgpu::{GpuError, OpenError};

/// Why a device cannot be had, or does not do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// A device has at least one GPU.
    #[error("a device of 0 GPUs; give it 1 or more")]
    NoGpus,
    /// A device has at most [`GPUS_MAX`] GPUs, as many as an arbitration.
    #[error("a device of {gpus} GPUs; give it {GPUS_MAX} at most")]
    TooManyGpus {
        /// How many were asked for.
        gpus: u16,
    },
    /// The device is not like the arbitration.
    #[error(
        "the device has {device} {what} and its arbitration {arbitration}; open it with {arbitration}, or create an \
         arbitration of {device}"
    )]
    Different {
        /// In what.
        what: &'static str,
        /// How many the device has.
        device: u64,
        /// And the arbitration.
        arbitration: u64,
    },
    /// The bandwidth lock is an arbitration's.
    #[error("the bandwidth lock around operations needs an arbitration; open the device with one, or without the lock")]
    NoLock,
    /// A soft GPU cannot be opened.
    #[error("{0}")]
    Open(#[source] OpenError),
    /// A thread cannot register with the arbitration, or a job cannot have its priority.
    #[error("{0}")]
    Register(#[source] RegisterError),
    /// A token or an engine cannot be had.
    #[error("{0}")]
    Lock(#[from] LockError),
    /// An error of the soft GPU.
    #[error("{0}")]
    Gpu(#[from] GpuError),
    /// There is no such GPU.
    #[error("GPU {gpu}: the device has {gpus}, counted from 0; ask for one of them")]
    NoSuchGpu {
        /// The GPU that was requested.
        gpu: u16,
        /// How many there are.
        gpus: u16,
    },
    /// The buffer is in the memory of another GPU than the one that the job uses.
    #[error(
        "the buffer is in the memory of GPU {buffer}, and the job uses GPU {job}; have the thread use GPU {buffer}, or \
         allocate on GPU {job}"
    )]
    Elsewhere {
        /// That of the buffer.
        buffer: u16,
        /// That of the job.
        job: u16,
    },
    /// A thread of the soft GPU cannot follow the holders of tokens.
    #[error("{0}")]
    Follow(#[source] FollowError),
    /// The budget of the job is exhausted. It releases its token; operations are possible when it has budget again.
    #[error("the job's budget is exhausted and its token let go; go on when it is replenished")]
    Exhausted,
    /// Linux does not schedule the soft GPU's threads as the options say.
    #[error(
        "the soft GPU's threads cannot have priority {priority}: {error}; use 1 to 99 and allow SCHED_FIFO \
         (CAP_SYS_NICE, or ulimit -r 99), or leave them as they are"
    )]
    Schedule {
        /// The priority.
        priority: u8,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// Both an arbitration and Laxity's scheduler are to grant GPUs.
    #[error(
        "the device has an arbitration and is scheduled by system {system}, and one of them grants GPUs; open it without \
         the arbitration, and let the system manage the GPU"
    )]
    TwoManagers {
        /// The system.
        system: String,
    },
    /// The system does not have the locks that the device's GPUs need.
    #[error(
        "system {system}: lock {} is not {wanted}; create the system with one lock of tokens, and behind it one for each \
         engine of each GPU",
        lock.0
    )]
    NoSuchLock {
        /// The system.
        system: String,
        /// The lock.
        lock: LockId,
        /// What it should be.
        wanted: &'static str,
    },
    /// A thread that Laxity's scheduler does not schedule uses a device of scheduled threads, or the other way round.
    #[error("thread {thread}: {reason}")]
    Unscheduled {
        /// The thread's name.
        thread: String,
        /// What is wrong, and the way out.
        reason: &'static str,
    },
    /// Laxity's scheduler does not have the thread that handles interrupts as a task.
    #[error("the soft GPU's thread that handles interrupts: {reason}")]
    Interrupts {
        /// Why not.
        reason: String,
    },
    /// What Laxity's scheduler says.
    #[error("{0}")]
    Task(#[from] TaskError),
}
