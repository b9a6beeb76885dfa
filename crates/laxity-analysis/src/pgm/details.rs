//! The code of [`ReplicasError`].

use laxity_model::{ErrorCode, ErrorDetails};

use super::ReplicasError;

impl ErrorDetails for ReplicasError {
    fn code(&self) -> ErrorCode {
        match self {
            ReplicasError::Lengths { .. } => ErrorCode::Value,
            _ => ErrorCode::Spec,
        }
    }
}
