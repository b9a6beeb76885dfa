//! The codes and details of this crate's errors.

use laxity_model::{Details, ErrorCode, ErrorDetails};

use crate::error::{Failure, SpawnError};
use crate::job::JobError;
use crate::verify::VerifyError;

impl ErrorDetails for VerifyError {
    fn code(&self) -> ErrorCode {
        ErrorCode::Verify
    }
}

impl ErrorDetails for SpawnError {
    fn code(&self) -> ErrorCode {
        match self {
            SpawnError::Scheduled { .. } => ErrorCode::Exists,
            SpawnError::Option { .. }
            | SpawnError::Priority(_)
            | SpawnError::Budget { .. }
            | SpawnError::System { .. } => ErrorCode::Value,
            SpawnError::Replicas(_) => ErrorCode::Verify,
            SpawnError::Memory(error) => error.code(),
            SpawnError::Claim(_) => ErrorCode::Claimed,
            SpawnError::Thread { .. } | SpawnError::Lock { .. } | SpawnError::Trace { .. } => ErrorCode::System,
            SpawnError::Cpus { .. }
            | SpawnError::Fifo { .. }
            | SpawnError::NoBudget { .. }
            | SpawnError::Overload { .. }
            | SpawnError::Task { .. }
            | SpawnError::Deadline { .. } => ErrorCode::Schedule,
        }
    }
}

impl ErrorDetails for Failure {
    fn code(&self) -> ErrorCode {
        ErrorCode::Failed
    }

    fn details(&self) -> Details<'_> {
        Details { graph: Some(&self.graph), ..Details::node(&self.node) }
    }
}

impl ErrorDetails for JobError {
    fn code(&self) -> ErrorCode {
        match self {
            JobError::Scope | JobError::NotThere { .. } => ErrorCode::Access,
            JobError::Object(error) => error.code(),
            JobError::NoGpu => ErrorCode::NoGpu,
            JobError::Gpu(error) => error.code(),
        }
    }

    fn details(&self) -> Details<'_> {
        match self {
            JobError::Object(error) => error.details(),
            JobError::Gpu(error) => error.details(),
            JobError::Scope | JobError::NotThere { .. } | JobError::NoGpu => Details::default(),
        }
    }
}
