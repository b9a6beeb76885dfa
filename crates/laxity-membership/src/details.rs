//! The codes and details of [`RegistryError`].

use laxity_model::{Details, ErrorCode, ErrorDetails};
use laxity_sys::segment::SegmentError;

use crate::error::{Cause, RegistryError};

impl<C: Cause> ErrorDetails for RegistryError<C> {
    fn code(&self) -> ErrorCode {
        match self {
            RegistryError::Name { .. } => ErrorCode::Name,
            RegistryError::Exists { .. } | RegistryError::Segment(SegmentError::Exists { .. }) => ErrorCode::Exists,
            RegistryError::NotFound { .. } | RegistryError::Segment(SegmentError::NotFound { .. }) => C::NOT_FOUND,
            RegistryError::Different { .. } => ErrorCode::Different,
            RegistryError::Damaged { .. }
            | RegistryError::Elsewhere { .. }
            | RegistryError::Segment(
                SegmentError::Foreign { .. } | SegmentError::Owner { .. } | SegmentError::Version { .. },
            ) => ErrorCode::Foreign,
            RegistryError::Full { .. } => ErrorCode::Full,
            RegistryError::Segment(SegmentError::Memory { .. }) => ErrorCode::Memory,
            RegistryError::Segment(
                SegmentError::Busy { .. } | SegmentError::Identity { .. } | SegmentError::System { .. },
            )
            | RegistryError::Identity(_)
            | RegistryError::List { .. }
            | RegistryError::System { .. } => ErrorCode::System,
            RegistryError::Other(cause) => cause.code(),
        }
    }

    fn details(&self) -> Details<'_> {
        match self {
            RegistryError::Other(cause) => cause.details(),
            _ => Details::default(),
        }
    }
}
