//! The code of [`DeviceError`].

use laxity_model::{Details, ErrorCode, ErrorDetails};

use crate::error::DeviceError;

impl ErrorDetails for DeviceError {
    fn code(&self) -> ErrorCode {
        match self {
            DeviceError::NoGpus
            | DeviceError::TooManyGpus { .. }
            | DeviceError::NoLock
            | DeviceError::Different { .. }
            | DeviceError::TwoManagers { .. }
            | DeviceError::NoSuchLock { .. } => ErrorCode::Config,
            DeviceError::Unscheduled { .. } => ErrorCode::Order,
            DeviceError::Interrupts { .. } => ErrorCode::Schedule,
            DeviceError::Task(error) => error.code(),
            DeviceError::Open(error) => error.code(),
            DeviceError::Register(error) => error.code(),
            DeviceError::Lock(error) => error.code(),
            DeviceError::Gpu(error) => error.code(),
            DeviceError::Follow(error) => error.code(),
            DeviceError::NoSuchGpu { .. } => ErrorCode::NoGpu,
            DeviceError::Elsewhere { .. } => ErrorCode::Buffer,
            DeviceError::Exhausted => ErrorCode::Exhausted,
            DeviceError::Schedule { .. } => ErrorCode::Schedule,
        }
    }

    fn details(&self) -> Details<'_> {
        match self {
            DeviceError::Schedule { error, .. } => Details::default().because(error.raw_os_error()),
            _ => Details::default(),
        }
    }
}
