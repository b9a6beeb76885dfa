//! Why the jobs of a task cannot go on.

use std::io;

use laxity_gpu::{LockError, RegisterError};
use laxity_graph::WaitError;
use laxity_model::LockId;
use laxity_softgpu::GpuError;
use thiserror::Error;

/// Why the jobs of a task cannot go on.
#[derive(Debug, Error)]
pub(crate) enum JobError {
    #[error(transparent)]
    Wait(#[from] WaitError),
    /// A token or an engine is not granted.
    #[error(transparent)]
    NotGranted(#[from] LockError),
    /// The arbitration of the GPUs takes no more jobs.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// Laxity's scheduler refuses.
    #[error(transparent)]
    Scheduled(#[from] laxity_sched::TaskError),
    /// So does its scheduler in the kernel.
    #[error(transparent)]
    InKernel(#[from] laxity_scx::ClientError),
    /// The GPU is gone.
    #[error(transparent)]
    Gpu(#[from] GpuError),
    #[error("resource {} cannot be locked or unlocked: {error}{}", .lock.0, way_out(.error))]
    Resource { lock: LockId, error: io::Error },
    /// The user's code failed.
    #[error("job {index}: its code failed: {message}")]
    Code { index: u32, message: String },
    /// It failed after all jobs.
    #[error("after its last job: its code failed: {message}")]
    CodeEnd { message: String },
    #[error("cannot go from SCHED_FIFO priority {from} to {to}: {error}")]
    Priority { from: u8, to: u8, error: io::Error },
}

fn way_out(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::Deadlock => ": tasks wait for one another; lock resources in the same order everywhere",
        _ => "",
    }
}
