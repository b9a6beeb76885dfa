//! What `laxity.vx` is made of: vision graphs whose kernels are callables of Python.
//!
//! ```text
//! Python   vx.Graph - verify -> vx.Verified - spawn -> vx.Run        arrays: shapes and types are Python's
//! here     graph                graph                  run           job, memory: what a job has while its kernel runs
//!                                                                    gpu: that of the job, in the thread of its node
//! crates   laxity-vx
//! ```

mod gpu;
mod graph;
mod job;
pub mod memory;
mod run;

pub use gpu::VxGpu;
pub use graph::{VxGraph, VxVerified};
pub use job::VxJob;
pub use run::VxRun;

use laxity_vx::{SpawnError, VerifyError};
use pyo3::prelude::*;

use crate::errors::exception_of;

/// `laxity.vx.VerifyError`.
fn verify_error(py: Python<'_>, error: &VerifyError) -> PyErr {
    exception_of(py, "laxity.vx", "VerifyError", (error.to_string(), error.status().name()))
}

/// `laxity.vx.SpawnError`.
fn spawn_error(py: Python<'_>, error: &SpawnError) -> PyErr {
    exception_of(py, "laxity.vx", "SpawnError", (error.to_string(), error.status().name()))
}
