//! The codes of this crate's errors.

use laxity_model::{ErrorCode, ErrorDetails};

use crate::arbitration::RegisterError;
use crate::followers::FollowError;
use crate::registry::ArbitrationError;
use crate::request::LockError;
use crate::state_lock::StateError;

impl ErrorDetails for StateError {
    fn code(&self) -> ErrorCode {
        match self {
            StateError::System(_) => ErrorCode::System,
            StateError::Damaged(_) => ErrorCode::Foreign,
        }
    }
}

impl ErrorDetails for ArbitrationError {
    fn code(&self) -> ErrorCode {
        match self {
            ArbitrationError::Config(_) => ErrorCode::Config,
            ArbitrationError::State(error) => error.code(),
        }
    }
}

impl ErrorDetails for RegisterError {
    fn code(&self) -> ErrorCode {
        match self {
            RegisterError::Name { .. } | RegisterError::Priority { .. } => ErrorCode::Client,
            RegisterError::Full { .. } => ErrorCode::Full,
            RegisterError::NotAttached => ErrorCode::Forked,
            RegisterError::State(error) => error.code(),
        }
    }
}

impl ErrorDetails for LockError {
    fn code(&self) -> ErrorCode {
        match self {
            LockError::TimedOut { .. } => ErrorCode::TimedOut,
            LockError::NoSuchGpu { .. } | LockError::SameGpu { .. } => ErrorCode::NoGpu,
            LockError::Order { .. } | LockError::NoSection => ErrorCode::Order,
            LockError::Forked => ErrorCode::Forked,
            LockError::State(error) => error.code(),
        }
    }
}

impl ErrorDetails for FollowError {
    fn code(&self) -> ErrorCode {
        match self {
            FollowError::NotAttached => ErrorCode::Forked,
            FollowError::Full { .. } => ErrorCode::Full,
            FollowError::State(error) => error.code(),
            // A device follows with its own threads, on its own GPUs.
            FollowError::NoSuchGpu { .. } | FollowError::NoSuchThread { .. } => ErrorCode::Internal,
        }
    }
}
