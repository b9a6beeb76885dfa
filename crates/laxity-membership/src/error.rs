//! Why there is no memory of a name.

use std::error::Error;
use std::fmt;
use std::io;

use laxity_model::{ErrorCode, ErrorDetails};
use laxity_sys::segment::SegmentError;

use crate::members::MEMBERS_MAX;
use crate::name_table::NAME_MAX;

/// What can be wrong with one kind of memory only, and what that kind is called.
pub trait Cause: ErrorDetails + 'static {
    /// What a memory of this kind is called.
    const NOUN: &'static str;
    /// What says which one it is.
    const DESCRIPTION: &'static str;
    /// The code of the error that there is none of a name.
    const NOT_FOUND: ErrorCode;
}

/// Why one cannot create or attach to memory that has members, or cannot remove what is left over.
#[derive(Debug)]
pub enum RegistryError<C> {
    /// The name cannot be one.
    Name {
        /// The name.
        name: String,
    },
    /// Creating: one that is in use has the name.
    Exists {
        /// The name.
        name: String,
    },
    /// Attaching: nothing has the name.
    NotFound {
        /// The name.
        name: String,
    },
    /// Attaching: the one that has the name is another one.
    Different {
        /// The name.
        name: String,
    },
    /// Attaching: what has the name is not what its first bytes say.
    Damaged {
        /// The name.
        name: String,
        /// Why not, if it could be read.
        reason: Option<Box<dyn Error + Send + Sync>>,
    },
    /// As many processes as can be are attached.
    Full {
        /// The name.
        name: String,
    },
    /// Its memory.
    Segment(SegmentError),
    /// Linux refuses something else.
    System {
        /// What was tried.
        action: &'static str,
        /// Why not.
        error: io::Error,
    },
    /// What only memory of this kind can have.
    Other(C),
}

impl<C: Cause> fmt::Display for RegistryError<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (noun, description) = (C::NOUN, C::DESCRIPTION);
        match self {
            RegistryError::Name { name } => {
                write!(f, "{noun} name {name:?} has {} bytes; use 1 to {NAME_MAX} without slash and NUL", name.len())
            }
            RegistryError::Exists { name } => write!(f, "{noun} {name}: exists and is in use; attach to it"),
            RegistryError::NotFound { name } => write!(f, "{noun} {name}: does not exist; create it first"),
            RegistryError::Different { name } => {
                write!(f, "{noun} {name}: exists but is another {noun}; use one {description} in all processes")
            }
            RegistryError::Damaged { name, reason: None } => {
                write!(f, "{noun} {name}: its memory describes none; remove it")
            }
            RegistryError::Damaged { name, reason: Some(reason) } => {
                write!(f, "{noun} {name}: its memory describes none that can be: {reason}")
            }
            RegistryError::Full { name } => {
                write!(f, "{noun} {name}: {MEMBERS_MAX} processes are attached, which is all it takes")
            }
            RegistryError::Segment(error) => write!(f, "{error}"),
            RegistryError::System { action, error } => write!(f, "cannot {action}: {error}"),
            RegistryError::Other(cause) => write!(f, "{cause}"),
        }
    }
}

impl<C> From<SegmentError> for RegistryError<C> {
    fn from(error: SegmentError) -> Self {
        RegistryError::Segment(error)
    }
}

impl<C: Cause> Error for RegistryError<C> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            RegistryError::Segment(error) => Some(error),
            RegistryError::System { error, .. } => Some(error),
            RegistryError::Damaged { reason, .. } => reason.as_deref().map(|reason| reason as _),
            RegistryError::Other(cause) => Some(cause),
            _ => None,
        }
    }
}
