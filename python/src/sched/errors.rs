//! Errors of `laxity-sched` as the exceptions of `laxity.sched`.

use std::fmt::Display;

use laxity_model::{ErrorCode, ErrorDetails};
use laxity_sched::BeginError;
use laxity_scx::ClientError;
use pyo3::prelude::*;

use crate::errors::exception_of;

fn exception(py: Python<'_>, class: &str, error: &impl Display) -> PyErr {
    exception_of(py, "laxity.sched._errors", class, (error.to_string(),))
}

/// The exception of `laxity.sched` that fits the kind of error.
pub fn sched_error(py: Python<'_>, error: &impl ErrorDetails) -> PyErr {
    let class = match error.code() {
        ErrorCode::Name | ErrorCode::Config => "ConfigError",
        ErrorCode::Exists => "SystemExistsError",
        ErrorCode::NoSystem => "SystemNotFoundError",
        ErrorCode::Different => "DifferentError",
        ErrorCode::Full => "FullError",
        ErrorCode::Order => "OrderError",
        ErrorCode::Forked => "UseError",
        _ => "SchedError",
    };
    exception(py, class, error)
}

/// The same for a thread that cannot become a task.
pub fn begin_error(py: Python<'_>, error: &BeginError) -> PyErr {
    match error {
        BeginError::Refused { .. } => exception(py, "RefusedError", error),
        _ => sched_error(py, error),
    }
}

/// The exception of `laxity.sched` for what the scheduler in the kernel refuses, or cannot be asked.
pub fn kernel_error(py: Python<'_>, error: &ClientError) -> PyErr {
    match error {
        ClientError::NotRunning => exception(py, "NotRunningError", error),
        ClientError::Ended => exception(py, "EndedError", error),
        ClientError::Refused(_) | ClientError::Connection(_) => sched_error(py, error),
    }
}

/// `laxity.sched.OrderError`: asked for in the wrong order.
pub fn wrong_order(py: Python<'_>, text: impl Display) -> PyErr {
    exception(py, "OrderError", &text)
}

/// `laxity.sched.ConfigError`: an argument that cannot be.
pub fn bad_argument(py: Python<'_>, text: impl Display) -> PyErr {
    exception(py, "ConfigError", &text)
}

/// `laxity.sched.UseError`: what was called cannot be used, or not here.
pub fn misuse(py: Python<'_>, text: impl Display) -> PyErr {
    exception(py, "UseError", &text)
}
