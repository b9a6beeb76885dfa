//! The codes of this crate's errors.

use laxity_model::{ErrorCode, ErrorDetails};

use crate::program::ProgramError;
use crate::registry::SystemError;
use crate::state_lock::StateError;
use crate::system::BeginError;
use crate::task::TaskError;

impl ErrorDetails for StateError {
    fn code(&self) -> ErrorCode {
        match self {
            StateError::System(_) => ErrorCode::System,
            StateError::Damaged(_) => ErrorCode::Foreign,
        }
    }
}

impl ErrorDetails for SystemError {
    fn code(&self) -> ErrorCode {
        match self {
            SystemError::Config(_) => ErrorCode::Config,
            SystemError::Overlap { .. } => ErrorCode::Exists,
            SystemError::State(error) => error.code(),
        }
    }
}

impl ErrorDetails for BeginError {
    fn code(&self) -> ErrorCode {
        match self {
            BeginError::Name { .. }
            | BeginError::Control { .. }
            | BeginError::Cluster { .. }
            | BeginError::Zero { .. }
            | BeginError::Short { .. }
            | BeginError::Deadline { .. }
            | BeginError::NoBudget { .. }
            | BeginError::Server { .. } => ErrorCode::Config,
            BeginError::Full { .. } | BeginError::Taken { .. } => ErrorCode::Full,
            BeginError::Already { .. } => ErrorCode::Order,
            BeginError::Refused { .. } => ErrorCode::System,
            BeginError::NotAttached => ErrorCode::Forked,
            BeginError::State(error) => error.code(),
        }
    }
}

impl ErrorDetails for ProgramError {
    fn code(&self) -> ErrorCode {
        match self {
            ProgramError::Task(error) => error.code(),
            ProgramError::Refused { .. } => ErrorCode::System,
        }
    }
}

impl ErrorDetails for TaskError {
    fn code(&self) -> ErrorCode {
        match self {
            TaskError::Order { .. } => ErrorCode::Order,
            TaskError::NotAttached { .. } => ErrorCode::Forked,
            TaskError::State(error) => error.code(),
        }
    }
}
