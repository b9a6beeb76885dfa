//! Faults in the bytes of a trace.

use std::io;

use thiserror::Error;

use super::{FORMAT_VERSION, MAGIC};

/// Why a trace cannot be read, or not further.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The source of the bytes failed.
    #[error("cannot read the trace: {0}")]
    Io(#[from] io::Error),
    /// The bytes do not begin as a trace does; no record can be read.
    #[error(
        "not a Laxity trace: it does not begin with `{}`; pass a file that `--trace` wrote",
        String::from_utf8_lossy(&MAGIC)
    )]
    NotATrace,
    /// Written in another format version; no record can be read.
    #[error(
        "the trace has format version {found}, this Laxity reads version {FORMAT_VERSION}; read it with the Laxity that \
         wrote it, or record it again"
    )]
    Version {
        /// The version found.
        found: u32,
    },
    /// The header is damaged or describes no possible system; no record can be read.
    #[error("the trace's header is unusable: {reason}; record it again")]
    Header {
        /// The fault.
        reason: String,
    },
    /// The records before this place were read and are sound; what follows cannot be read.
    #[error("chunk {chunk} at byte {offset}: {damage}; the records before it are sound{}", end_of(*ended, damage))]
    Damaged {
        /// Which chunk, counted from 0.
        chunk: u64,
        /// Where, in bytes from the start of the trace.
        offset: u64,
        /// Whether the trace's `End` was read before.
        ended: bool,
        /// The fault.
        damage: Damage,
    },
}

/// A fault at a place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Damage {
    /// The bytes end here.
    #[error("cut off after {have} of {need} bytes")]
    Truncated {
        /// How many bytes are here.
        have: u64,
        /// How many there should be.
        need: u64,
    },
    /// The bytes are not those that were written.
    #[error("checksum {computed:08x} where {stored:08x} was written")]
    Checksum {
        /// The checksum in the trace.
        stored: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// No chunk is that long.
    #[error("claims {claimed} bytes where 1 to {longest} are possible")]
    ChunkLength {
        /// The length claimed, in bytes.
        claimed: u32,
        /// The longest possible, in bytes.
        longest: u32,
    },
    /// A kind of record this version does not know.
    #[error("record kind {kind} is unknown here; read the trace with the Laxity that wrote it")]
    UnknownKind {
        /// Its number.
        kind: u8,
    },
    /// A record's fields are cut off or out of range though the checksum holds: its writer was faulty.
    #[error("a record is malformed though its checksum holds: a faulty writer")]
    Malformed,
    /// The bytes end between two chunks without the trace's `End`: the recording was cut off.
    #[error("the bytes end without the trace's end: the recording was cut off")]
    Unfinished,
}

/// Whether the sound records before the damage include the trace's end, in words.
fn end_of(ended: bool, damage: &Damage) -> &'static str {
    match (ended, damage) {
        (true, _) => " and include the trace's end",
        (false, Damage::Unfinished) => "",
        (false, _) => ", but the trace's end is missing",
    }
}
