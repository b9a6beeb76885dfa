//! Errors of `laxity-gpu` as the exceptions of `laxity.gpu`.

use std::fmt::Display;

use laxity_model::{ErrorCode, ErrorDetails};
use pyo3::prelude::*;

use crate::errors::exception_of;

/// The exception of `laxity.gpu` that is called `class`.
pub fn exception(py: Python<'_>, class: &str, error: &impl Display) -> PyErr {
    exception_of(py, "laxity.gpu._errors", class, (error.to_string(),))
}

/// The exception of `laxity.gpu` that fits the kind of error.
pub fn gpu_error(py: Python<'_>, error: &impl ErrorDetails) -> PyErr {
    let class = match error.code() {
        ErrorCode::Name | ErrorCode::Config | ErrorCode::Client | ErrorCode::Range => "ConfigError",
        ErrorCode::Exists => "ArbitrationExistsError",
        ErrorCode::NoArbitration => "ArbitrationNotFoundError",
        ErrorCode::Different => "DifferentError",
        ErrorCode::Full => "FullError",
        ErrorCode::TimedOut => "TimedOutError",
        ErrorCode::Order => "OrderError",
        ErrorCode::NoGpu => "UnknownGpuError",
        ErrorCode::Forked | ErrorCode::Race | ErrorCode::Inside => "UseError",
        ErrorCode::NoSoftGpu | ErrorCode::Gone => "SoftGpuError",
        ErrorCode::Buffer => "ForeignBufferError",
        _ => "GpuError",
    };
    exception(py, class, error)
}

/// `laxity.gpu.ConfigError`: an argument that cannot be.
pub fn bad_argument(py: Python<'_>, text: impl Display) -> PyErr {
    exception(py, "ConfigError", &text)
}

/// `laxity.gpu.UseError`: what was called cannot be used, or not now, or not here.
pub fn misuse(py: Python<'_>, text: impl Display) -> PyErr {
    exception(py, "UseError", &text)
}

/// `laxity.gpu.OrderError`: what is for between jobs.
pub fn out_of_order(py: Python<'_>, client: &str) -> PyErr {
    exception(py, "OrderError", &format!("client {client}: it holds a token; change its priority between jobs"))
}
