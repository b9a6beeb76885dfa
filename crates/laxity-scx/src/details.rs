//! What C and Python tell of errors.

use laxity_model::{ErrorCode, ErrorDetails};

use crate::client::ClientError;

impl ErrorDetails for ClientError {
    fn code(&self) -> ErrorCode {
        match self {
            ClientError::NotRunning => ErrorCode::NoSystem,
            ClientError::Connection(_) => ErrorCode::System,
            ClientError::Refused(_) => ErrorCode::Config,
            ClientError::Ended => ErrorCode::Gone,
        }
    }
}
