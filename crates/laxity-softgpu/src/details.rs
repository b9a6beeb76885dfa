//! The codes of this crate's errors.

use laxity_model::{ErrorCode, ErrorDetails};

use crate::error::{GpuError, OpenError};

impl ErrorDetails for OpenError {
    fn code(&self) -> ErrorCode {
        match self {
            OpenError::Name(_) => ErrorCode::Name,
            OpenError::Config(_) => ErrorCode::Config,
            OpenError::Different { .. } => ErrorCode::Different,
            OpenError::Memory(_) => ErrorCode::Memory,
            OpenError::System { .. } => ErrorCode::System,
            OpenError::Start { .. } | OpenError::Refused { .. } | OpenError::NoServer { .. } => ErrorCode::NoSoftGpu,
        }
    }
}

impl ErrorDetails for GpuError {
    fn code(&self) -> ErrorCode {
        match self {
            GpuError::Gone { .. } => ErrorCode::Gone,
            GpuError::Memory { .. } | GpuError::Shortage { .. } | GpuError::Map { .. } => ErrorCode::Memory,
            GpuError::Range { .. } => ErrorCode::Range,
            GpuError::Foreign => ErrorCode::Buffer,
            GpuError::Name(_) => ErrorCode::Client,
            GpuError::Race { .. } => ErrorCode::Race,
            // A copy fails for a reason of this crate's, a kernel for its own.
            GpuError::Failed { reason, .. } => {
                reason.downcast_ref::<GpuError>().map_or(ErrorCode::Kernel, ErrorDetails::code)
            }
            GpuError::Inside => ErrorCode::Inside,
            GpuError::Forked => ErrorCode::Forked,
        }
    }
}
