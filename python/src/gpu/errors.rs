//! Errors of `laxity-gpu` as the exceptions of `laxity.gpu`.

use std::fmt::Display;

use laxity_gpu::{ArbitrationError, LockError, RegisterError, RegistryError, StateError};
use pyo3::prelude::*;

use crate::errors::exception_of;

/// The exception of `laxity.gpu` that is called `class`.
pub fn exception(py: Python<'_>, class: &str, error: &impl Display) -> PyErr {
    exception_of(py, "laxity.gpu._errors", class, (error.to_string(),))
}

pub fn registry_error(py: Python<'_>, error: &RegistryError) -> PyErr {
    let class = match error {
        RegistryError::Name { .. } | RegistryError::Other(ArbitrationError::Config(_)) => "ConfigError",
        RegistryError::Exists { .. } => "ArbitrationExistsError",
        RegistryError::NotFound { .. } => "ArbitrationNotFoundError",
        RegistryError::Different { .. } => "DifferentError",
        RegistryError::Full { .. } => "FullError",
        _ => "GpuError",
    };
    exception(py, class, error)
}

pub fn register_error(py: Python<'_>, error: &RegisterError) -> PyErr {
    let class = match error {
        RegisterError::Name { .. } | RegisterError::Priority { .. } => "ConfigError",
        RegisterError::Full { .. } => "FullError",
        RegisterError::NotAttached => "UseError",
        RegisterError::State(_) => "GpuError",
    };
    exception(py, class, error)
}

pub fn lock_error(py: Python<'_>, error: &LockError) -> PyErr {
    let class = match error {
        LockError::TimedOut { .. } => "TimedOutError",
        LockError::NoSuchGpu { .. } | LockError::SameGpu { .. } => "UnknownGpuError",
        LockError::Order { .. } => "OrderError",
        LockError::Forked => "UseError",
        LockError::State(_) => "GpuError",
    };
    exception(py, class, error)
}

pub fn state_error(py: Python<'_>, error: &StateError) -> PyErr {
    exception(py, "GpuError", error)
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
