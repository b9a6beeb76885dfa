//! Traces as bytes: compact, versioned, and readable up to the point where a file broke.
//!
//! ```text
//! trace   = "LAXTRACE" version:u32 header chunk*
//! header  = length:u32 crc:u32 JSON
//! chunk   = length:u32 crc:u32 record+
//! record  = tag:u8 [time] fields            tag = kind (5 bits) + flags (3 bits)
//! ```
//!
//! Fixed-size integers are little-endian, all others LEB128 varints; checksums are CRC-32 of the `length` bytes that
//! follow. A chunk is decodable alone: times are differences within it (the first counts from zero), and whatever the
//! previous records of the chunk let a reader guess (the time, the job's index, the deadline) is a flag instead of
//! bytes. A typical record takes four to five bytes. The kinds and flags are those of `record.rs`.

mod context;
mod error;
mod header_json;
mod kinds;
mod outside;
mod reader;
mod record;
mod room;
mod varint;
mod writer;

pub use error::{Damage, ReadError};
pub use reader::{Trace, TraceReader, read_all};
pub use writer::TraceWriter;

/// The first bytes of every trace.
pub const MAGIC: [u8; 8] = *b"LAXTRACE";

/// The format this version of Laxity writes, and the only one it reads.
pub const FORMAT_VERSION: u32 = 1;

/// A chunk is written once it has grown to this many bytes.
const CHUNK_TARGET: usize = 64 * 1024;

/// Longer chunks are refused: whatever length a damaged file claims, a reader never holds more than this.
const CHUNK_MAX: u32 = 1024 * 1024;

/// Longer headers are refused; a header takes about 100 bytes a task.
const HEADER_MAX: u32 = 256 * 1024 * 1024;

/// Length and checksum before a header or a chunk.
const FRAME: usize = 8;
