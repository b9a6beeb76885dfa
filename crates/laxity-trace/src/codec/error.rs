//! What can be wrong with the bytes of a trace.

use std::{error, fmt, io};

use super::{FORMAT_VERSION, MAGIC};

/// Why a trace cannot be read, or not further.
#[derive(Debug)]
pub enum ReadError {
    /// The source of the bytes failed.
    Io(io::Error),
    /// The bytes do not begin as a trace does; no record can be read.
    NotATrace,
    /// Written in another format version; no record can be read.
    Version {
        /// The version found.
        found: u32,
    },
    /// The header is damaged or describes no possible system; no record can be read.
    Header {
        /// What is wrong with it.
        reason: String,
    },
    /// The records before this place were read and are sound; what follows cannot be read.
    Damaged {
        /// Which chunk, counted from 0.
        chunk: u64,
        /// Where, in bytes from the start of the trace.
        offset: u64,
        /// Whether the trace's `End` was read before.
        ended: bool,
        /// What is wrong there.
        damage: Damage,
    },
}

/// What is wrong at a place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The bytes end here.
    Truncated {
        /// How many bytes are here.
        have: u64,
        /// How many there should be.
        need: u64,
    },
    /// The bytes are not those that were written.
    Checksum {
        /// The checksum in the trace.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// No chunk is that long.
    ChunkLength {
        /// The length claimed, in bytes.
        claimed: u32,
        /// The longest possible, in bytes.
        longest: u32,
    },
    /// A kind of record this version does not know.
    UnknownKind {
        /// Its number.
        kind: u8,
    },
    /// A record's fields are cut off or out of range though the checksum holds: its writer was faulty.
    Malformed,
    /// The bytes end between two chunks without the trace's `End`: the recording was cut off.
    Unfinished,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Io(error) => write!(f, "cannot read the trace: {error}"),
            ReadError::NotATrace => {
                let magic = String::from_utf8_lossy(&MAGIC);
                write!(f, "not a Laxity trace: it does not begin with `{magic}`; pass a file that `--trace` wrote")
            }
            ReadError::Version { found } => write!(
                f,
                "the trace has format version {found}, this Laxity reads version {FORMAT_VERSION}; read it with the \
                 Laxity that wrote it, or record it again"
            ),
            ReadError::Header { reason } => write!(f, "the trace's header is unusable: {reason}; record it again"),
            ReadError::Damaged { chunk, offset, ended, damage } => {
                write!(f, "chunk {chunk} at byte {offset}: {damage}; the records before it are sound")?;
                match (ended, damage) {
                    (true, _) => f.write_str(" and include the trace's end"),
                    (false, Damage::Unfinished) => Ok(()),
                    (false, _) => f.write_str(", but the trace's end is missing"),
                }
            }
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Truncated { have, need } => write!(f, "cut off after {have} of {need} bytes"),
            Damage::Checksum { stored, computed } => {
                write!(f, "checksum {computed:08x} where {stored:08x} was written")
            }
            Damage::ChunkLength { claimed, longest } => {
                write!(f, "claims {claimed} bytes where 1 to {longest} are possible")
            }
            Damage::UnknownKind { kind } => {
                write!(f, "record kind {kind} is unknown here; read the trace with the Laxity that wrote it")
            }
            Damage::Malformed => f.write_str("a record is malformed though its checksum holds: a faulty writer"),
            Damage::Unfinished => f.write_str("the bytes end without the trace's end: the recording was cut off"),
        }
    }
}

impl error::Error for ReadError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            ReadError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        ReadError::Io(error)
    }
}
