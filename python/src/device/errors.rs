//! Errors of devices as the exceptions of `laxity.gpu`.

use laxity_device::DeviceError;
use laxity_softgpu::{GpuError, OpenError};
use pyo3::prelude::*;

use crate::gpu::errors::{exception, gpu_error};

/// The exception of `laxity.gpu` that fits. An exception that a GPU kernel has raised is raised itself.
pub fn device_error(py: Python<'_>, error: &DeviceError) -> PyErr {
    match error {
        DeviceError::Gpu(error) => operation_error(py, error),
        DeviceError::Different { .. } => exception(py, "DifferentError", error),
        DeviceError::Open(OpenError::Memory(_) | OpenError::System { .. }) => exception(py, "SoftGpuError", error),
        _ => gpu_error(py, error),
    }
}

fn operation_error(py: Python<'_>, error: &GpuError) -> PyErr {
    match error {
        GpuError::Failed { reason, .. } => match (reason.downcast_ref::<PyErr>(), reason.downcast_ref::<GpuError>()) {
            (Some(raised), _) => raised.clone_ref(py),
            (None, Some(error)) => operation_error(py, error),
            (None, None) => exception(py, "GpuError", error),
        },
        GpuError::Memory { .. } | GpuError::Shortage { .. } | GpuError::Map { .. } => {
            exception(py, "DeviceMemoryError", error)
        }
        _ => gpu_error(py, error),
    }
}
