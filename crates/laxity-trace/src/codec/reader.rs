//! Bytes to records.

use std::io::{self, Read};

use super::context::Context;
use super::record::{self, Malformed};
use super::{CHUNK_MAX, Damage, FORMAT_VERSION, FRAME, HEADER_MAX, MAGIC, ReadError, header_json};
use crate::{Event, Record, TraceHeader};

/// Reads a trace: the header at once, then the records as an iterator that ends after the trace's end or its first
/// error.
///
/// Memory is bounded by a chunk, whatever the bytes claim. No buffering around `R` is needed.
#[derive(Debug)]
pub struct TraceReader<R: Read> {
    input: R,
    header: TraceHeader,
    context: Context,
    /// The chunk being read, and how much of it was.
    chunk: Vec<u8>,
    position: usize,
    /// Which chunk that is, and where its frame is in the trace; before the first chunk, where that will be.
    number: u64,
    offset: u64,
    ended: bool,
    failed: bool,
}

/// A whole trace in memory.
#[derive(Debug)]
pub struct Trace {
    /// Its header.
    pub header: TraceHeader,
    /// Its records, all of them or those before the damage.
    pub records: Vec<Record>,
    /// Why there are no more, unless the trace is whole.
    pub damage: Option<ReadError>,
}

/// Reads a trace into memory.
///
/// Fails if the header cannot be read. Damage after it is reported in [`Trace::damage`] beside the records that were
/// read; [`Trace::whole`] turns it into an error.
pub fn read_all(input: impl Read) -> Result<Trace, ReadError> {
    let mut reader = TraceReader::new(input)?;
    let mut records = Vec::new();
    let mut damage = None;
    for record in &mut reader {
        match record {
            Ok(record) => records.push(record),
            Err(error) => damage = Some(error),
        }
    }
    Ok(Trace { header: reader.header, records, damage })
}

impl Trace {
    /// The header and all records, or why they are not all there.
    pub fn whole(self) -> Result<(TraceHeader, Vec<Record>), ReadError> {
        match self.damage {
            Some(error) => Err(error),
            None => Ok((self.header, self.records)),
        }
    }
}

impl<R: Read> TraceReader<R> {
    /// Reads the header.
    ///
    /// Fails if the bytes are no trace, of another version, or the header is damaged.
    pub fn new(mut input: R) -> Result<Self, ReadError> {
        let mut start = Vec::new();
        fill(&mut input, MAGIC.len() + 4, &mut start)?;
        let Some((magic, version)) = start.split_at_checked(MAGIC.len()) else { return Err(ReadError::NotATrace) };
        if magic != MAGIC {
            return Err(ReadError::NotATrace);
        }
        let truncated = |what| ReadError::Header { reason: format!("the trace is cut off within {what}") };
        let version: [u8; 4] = version.try_into().map_err(|_| truncated("its version"))?;
        match u32::from_le_bytes(version) {
            FORMAT_VERSION => {}
            found => return Err(ReadError::Version { found }),
        }
        let mut json = Vec::new();
        let frame = match read_framed(&mut input, HEADER_MAX, &mut json)? {
            Ok(true) => FRAME + json.len(),
            Ok(false) => return Err(truncated("its header")),
            Err(damage) => return Err(ReadError::Header { reason: damage.to_string() }),
        };
        let header = header_json::read(&json).map_err(|reason| ReadError::Header { reason })?;
        Ok(TraceReader {
            input,
            context: Context::new(&header),
            header,
            chunk: Vec::new(),
            position: 0,
            number: 0,
            offset: (start.len() + frame) as u64,
            ended: false,
            failed: false,
        })
    }

    /// The header, with what the records so far told of outsiders.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Whether the trace's `End` was read: until then, more is to come or was lost.
    pub fn ended(&self) -> bool {
        self.ended
    }

    /// Reads the next chunk; `false` if there is none.
    fn next_chunk(&mut self) -> Result<bool, ReadError> {
        if !self.chunk.is_empty() {
            self.number += 1;
            self.offset += (FRAME + self.chunk.len()) as u64;
        }
        self.position = 0;
        self.context.start_chunk();
        match read_framed(&mut self.input, CHUNK_MAX, &mut self.chunk)? {
            Ok(true) => Ok(true),
            Ok(false) if self.ended => Ok(false),
            Ok(false) => Err(self.damaged(self.offset, Damage::Unfinished)),
            Err(damage) => Err(self.damaged(self.offset, damage)),
        }
    }

    fn next_record(&mut self) -> Result<Record, ReadError> {
        let mut rest = &self.chunk[self.position..];
        let length = rest.len();
        match record::decode(&mut self.context, &mut rest) {
            Ok(record) => {
                self.position += length - rest.len();
                self.ended |= record.event == Event::End;
                self.header.learn(&record.event);
                Ok(record)
            }
            Err(malformed) => {
                let offset = self.offset + (FRAME + self.position) as u64;
                let damage = match malformed {
                    Malformed::Kind(kind) => Damage::UnknownKind { kind },
                    Malformed::Value => Damage::Malformed,
                };
                Err(self.damaged(offset, damage))
            }
        }
    }

    fn damaged(&self, offset: u64, damage: Damage) -> ReadError {
        ReadError::Damaged { chunk: self.number, offset, ended: self.ended, damage }
    }
}

impl<R: Read> Iterator for TraceReader<R> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        if self.position == self.chunk.len() {
            match self.next_chunk() {
                Ok(true) => {}
                Ok(false) => {
                    self.failed = true;
                    return None;
                }
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        let record = self.next_record();
        self.failed = record.is_err();
        Some(record)
    }
}

/// Reads the bytes that a frame announces into `payload`. `Ok(Ok(false))`: the input ended before the frame.
fn read_framed(input: &mut impl Read, longest: u32, payload: &mut Vec<u8>) -> io::Result<Result<bool, Damage>> {
    payload.clear();
    let mut frame = Vec::with_capacity(FRAME);
    fill(input, FRAME, &mut frame)?;
    let frame: [u8; FRAME] = match frame.as_slice().try_into() {
        Ok(frame) => frame,
        Err(_) if frame.is_empty() => return Ok(Ok(false)),
        Err(_) => return Ok(Err(Damage::Truncated { have: frame.len() as u64, need: FRAME as u64 })),
    };
    let [l0, l1, l2, l3, c0, c1, c2, c3] = frame;
    let claimed = u32::from_le_bytes([l0, l1, l2, l3]);
    let stored = u32::from_le_bytes([c0, c1, c2, c3]);
    if claimed == 0 || claimed > longest {
        return Ok(Err(Damage::ChunkLength { claimed, longest }));
    }
    fill(input, claimed as usize, payload)?;
    if payload.len() < claimed as usize {
        let have = (FRAME + payload.len()) as u64;
        payload.clear();
        return Ok(Err(Damage::Truncated { have, need: FRAME as u64 + u64::from(claimed) }));
    }
    let computed = crc32fast::hash(payload);
    if computed != stored {
        payload.clear();
        return Ok(Err(Damage::Checksum { stored, computed }));
    }
    Ok(Ok(true))
}

/// Appends up to `count` bytes, fewer only if the input ends. Allocates as the bytes come, not as `count` claims.
fn fill(input: &mut impl Read, count: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
    input.take(count as u64).read_to_end(bytes).map(|_| ())
}
