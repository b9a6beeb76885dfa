//! Why a device cannot be had, or does not do what it was asked for.

use std::fmt;
use std::io;

use laxity_gpu::{FollowError, LockError, RegisterError};
use laxity_softgpu::{GpuError, OpenError};

/// Why a device cannot be had, or does not do what it was asked for.
#[derive(Debug)]
pub enum DeviceError {
    /// A device has at least one GPU.
    NoGpus,
    /// The device is not like the arbitration.
    Different {
        /// In what.
        what: &'static str,
        /// How many the device has.
        device: u64,
        /// And the arbitration.
        arbitration: u64,
    },
    /// A soft GPU cannot be opened.
    Open(OpenError),
    /// A thread cannot register with the arbitration, or a job cannot have its priority.
    Register(RegisterError),
    /// A token or an engine cannot be had.
    Lock(LockError),
    /// What the soft GPU says.
    Gpu(GpuError),
    /// There is no such GPU.
    NoSuchGpu {
        /// Which was asked for.
        gpu: u16,
        /// How many there are.
        gpus: u16,
    },
    /// The buffer is in the memory of another GPU than the one that the job uses.
    Elsewhere {
        /// That of the buffer.
        buffer: u16,
        /// That of the job.
        job: u16,
    },
    /// A thread of the soft GPU cannot follow those that hold tokens.
    Follow(FollowError),
    /// The budget of the job is exhausted. It lets go of its token; operations are possible when it has budget again.
    Exhausted,
    /// Linux does not schedule the soft GPU's threads as the options say.
    Schedule {
        /// The priority.
        priority: u8,
        /// Why not.
        error: io::Error,
    },
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceError::NoGpus => write!(f, "a device of 0 GPUs; give it 1 or more"),
            DeviceError::Different { what, device, arbitration } => write!(
                f,
                "the device has {device} {what} and its arbitration {arbitration}; open it with {arbitration}, or \
                 create an arbitration of {device}"
            ),
            DeviceError::Open(error) => write!(f, "{error}"),
            DeviceError::Register(error) => write!(f, "{error}"),
            DeviceError::Lock(error) => write!(f, "{error}"),
            DeviceError::Gpu(error) => write!(f, "{error}"),
            DeviceError::Follow(error) => write!(f, "{error}"),
            DeviceError::NoSuchGpu { gpu, gpus } => {
                write!(f, "GPU {gpu}: the device has {gpus}, counted from 0; ask for one of them")
            }
            DeviceError::Elsewhere { buffer, job } => write!(
                f,
                "the buffer is in the memory of GPU {buffer}, and the job uses GPU {job}; have the thread use GPU \
                 {buffer}, or allocate on GPU {job}"
            ),
            DeviceError::Exhausted => {
                write!(f, "the job's budget is exhausted and its token let go; go on when it is replenished")
            }
            DeviceError::Schedule { priority, error } => write!(
                f,
                "the soft GPU's threads cannot have priority {priority}: {error}; use 1 to 99 and allow SCHED_FIFO \
                 (CAP_SYS_NICE, or ulimit -r 99), or leave them as they are"
            ),
        }
    }
}

impl std::error::Error for DeviceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DeviceError::Open(error) => Some(error),
            DeviceError::Register(error) => Some(error),
            DeviceError::Lock(error) => Some(error),
            DeviceError::Gpu(error) => Some(error),
            DeviceError::Follow(error) => Some(error),
            DeviceError::Schedule { error, .. } => Some(error),
            DeviceError::NoGpus
            | DeviceError::Different { .. }
            | DeviceError::NoSuchGpu { .. }
            | DeviceError::Elsewhere { .. }
            | DeviceError::Exhausted => None,
        }
    }
}

impl From<GpuError> for DeviceError {
    fn from(error: GpuError) -> Self {
        DeviceError::Gpu(error)
    }
}

impl From<LockError> for DeviceError {
    fn from(error: LockError) -> Self {
        DeviceError::Lock(error)
    }
}
