//! Errors of devices as the exceptions of `laxity.gpu`.

use laxity_device::DeviceError;
use laxity_softgpu::{GpuError, OpenError};
use pyo3::prelude::*;

use crate::gpu::errors::{exception, lock_error, register_error};

/// The exception of `laxity.gpu` that fits; what a GPU kernel has raised is itself.
pub fn device_error(py: Python<'_>, error: &DeviceError) -> PyErr {
    let class = match error {
        DeviceError::Register(error) => return register_error(py, error),
        DeviceError::Lock(error) => return lock_error(py, error),
        DeviceError::Gpu(error) => return gpu_error(py, error),
        DeviceError::NoGpus | DeviceError::Open(OpenError::Name(_) | OpenError::Config(_)) => "ConfigError",
        DeviceError::Different { .. } | DeviceError::Open(OpenError::Different { .. }) => "DifferentError",
        DeviceError::Open(_) => "SoftGpuError",
        DeviceError::NoSuchGpu { .. } => "UnknownGpuError",
        DeviceError::Elsewhere { .. } => "ForeignBufferError",
        DeviceError::Follow(_) | DeviceError::Exhausted | DeviceError::Schedule { .. } => "GpuError",
    };
    exception(py, class, error)
}

fn gpu_error(py: Python<'_>, error: &GpuError) -> PyErr {
    let class = match error {
        GpuError::Failed { reason, .. } => {
            if let Some(raised) = reason.downcast_ref::<PyErr>() {
                return raised.clone_ref(py);
            }
            if let Some(error) = reason.downcast_ref::<GpuError>() {
                return gpu_error(py, error);
            }
            "GpuError"
        }
        GpuError::Gone { .. } => "SoftGpuError",
        GpuError::Memory { .. } | GpuError::Shortage { .. } | GpuError::Map { .. } => "DeviceMemoryError",
        GpuError::Foreign => "ForeignBufferError",
        GpuError::Range { .. } | GpuError::Name(_) => "ConfigError",
        GpuError::Race { .. } | GpuError::Inside => "UseError",
    };
    exception(py, class, error)
}
