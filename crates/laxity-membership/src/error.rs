//! Why there is no memory of a name.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use laxity_model::{ErrorCode, ErrorDetails};
use laxity_sys::process::IdentityError;
use laxity_sys::segment::SegmentError;

use crate::members::MEMBERS_MAX;
use crate::name_table::NAME_MAX;

/// What can be wrong with one kind of memory only, and what that kind is called.
pub trait Cause: ErrorDetails + 'static {
    /// What a memory of this kind is called.
    const NOUN: &'static str;
    /// What tells one memory of this kind from another.
    const DESCRIPTION: &'static str;
    /// The code of the error that there is none of a name.
    const NOT_FOUND: ErrorCode;
}

/// Why one cannot create or attach to memory that has members, or cannot remove what is left over.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError<C: Cause> {
    /// The name cannot be one.
    #[error("{} name {name:?} has {} bytes; use 1 to {NAME_MAX} without slash and NUL", C::NOUN, name.len())]
    Name {
        /// The name.
        name: String,
    },
    /// Creating: one that is in use has the name.
    #[error("{} {name}: exists and is in use; attach to it", C::NOUN)]
    Exists {
        /// The name.
        name: String,
    },
    /// Attaching: nothing has the name.
    #[error("{} {name}: does not exist; create it first", C::NOUN)]
    NotFound {
        /// The name.
        name: String,
    },
    /// Attaching: the one that has the name is another one.
    #[error("{} {name}: exists but is another {}; use one {} in all processes", C::NOUN, C::NOUN, C::DESCRIPTION)]
    Different {
        /// The name.
        name: String,
    },
    /// Attaching: what has the name is not what its first bytes say.
    #[error("{} {name}: its memory describes none{}", C::NOUN, because(reason.as_deref()))]
    Damaged {
        /// The name.
        name: String,
        /// Why not, if it could be read.
        #[source]
        reason: Option<Box<dyn Error + Send + Sync>>,
    },
    /// Attaching: its processes are in another PID namespace, or have another C library. Neither a thread's number nor
    /// a mutex means the same there.
    #[error("{} {name}: its processes have another {part}; run all of them with the same one", C::NOUN)]
    Elsewhere {
        /// The name.
        name: String,
        /// The part of their surroundings that differs.
        part: &'static str,
    },
    /// As many processes as can be are attached.
    #[error("{} {name}: {MEMBERS_MAX} processes are attached, which is all it takes", C::NOUN)]
    Full {
        /// The name.
        name: String,
    },
    /// Its memory.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// This process does not know itself.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The folder of names cannot be read.
    #[error("cannot list the names in {}: {error}", .folder.display())]
    List {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// Linux refuses something else.
    #[error("cannot {action}: {error}")]
    System {
        /// What was tried.
        action: &'static str,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// What only memory of this kind can have.
    #[error(transparent)]
    Other(C),
}

fn because(reason: Option<&(dyn Error + Send + Sync)>) -> String {
    reason.map_or("; remove it".to_owned(), |reason| format!(" that can be: {reason}"))
}
