//! Records to bytes.

use std::io::{self, Write};

use laxity_model::Instant;

use super::context::Context;
use super::record;
use super::room::{RECORD_MAX, Room};
use super::{CHUNK_TARGET, FORMAT_VERSION, FRAME, MAGIC, header_json};
use crate::{Event, Sink, TraceHeader};

/// Writes a trace to `W`, a chunk of records at a time: no buffering around `W` is needed.
///
/// A [`Sink`] cannot fail, so the first I/O error is kept, later records are dropped, and [`TraceWriter::finish`]
/// returns the error. Without `finish` the last chunk is lost.
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    out: W,
    context: Context,
    /// The chunk being filled, after room for its frame and before room for one record more than its target.
    chunk: Vec<u8>,
    /// How much of `chunk` is filled.
    length: usize,
    error: Option<io::Error>,
}

impl<W: Write> TraceWriter<W> {
    /// Writes the header.
    ///
    /// Fails if `out` does, or if the header describes more than a trace can hold.
    pub fn new(mut out: W, header: &TraceHeader) -> io::Result<Self> {
        let json = header_json::write(header).map_err(|reason| io::Error::new(io::ErrorKind::InvalidInput, reason))?;
        out.write_all(&MAGIC)?;
        out.write_all(&FORMAT_VERSION.to_le_bytes())?;
        let mut framed = vec![0; FRAME];
        framed.extend_from_slice(&json);
        write_framed(&mut out, &mut framed)?;
        let chunk = vec![0; FRAME + CHUNK_TARGET + RECORD_MAX];
        Ok(TraceWriter { out, context: Context::new(header), chunk, length: FRAME, error: None })
    }

    /// Writes the last chunk and returns `W`, or the first error of the whole recording.
    pub fn finish(mut self) -> io::Result<W> {
        if self.length > FRAME {
            self.write_chunk();
        }
        match self.error {
            Some(error) => Err(error),
            None => {
                self.out.flush()?;
                Ok(self.out)
            }
        }
    }

    /// Writes the records so far, so that they survive the process. Meant for about once a second: a chunk that is not
    /// full takes a few bytes more.
    ///
    /// Errors, as they occur here or did before, are kept for [`TraceWriter::finish`].
    pub fn flush(&mut self) {
        if self.length > FRAME {
            self.write_chunk();
        }
        if self.error.is_none() {
            self.error = self.out.flush().err();
        }
    }

    #[cold]
    fn write_chunk(&mut self) {
        if self.error.is_none() {
            self.error = write_framed(&mut self.out, &mut self.chunk[..self.length]).err();
        }
        self.length = FRAME;
        self.context.start_chunk();
    }
}

impl<W: Write> Sink for TraceWriter<W> {
    #[inline]
    fn record(&mut self, at: Instant, event: Event) {
        let room = self.chunk[self.length..].first_chunk_mut().expect("a chunk has room for one record more");
        let mut room = Room::new(room);
        record::encode(&mut self.context, at, event, &mut room);
        self.length += room.length();
        if self.length >= FRAME + CHUNK_TARGET {
            self.write_chunk();
        }
    }
}

/// Fills in the frame at the start of `framed` and writes all of it.
fn write_framed(out: &mut impl Write, framed: &mut [u8]) -> io::Result<()> {
    let (frame, payload) = framed.split_at_mut(FRAME);
    let length = u32::try_from(payload.len()).expect("chunks and headers are limited to less than 4 GiB");
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame[4..].copy_from_slice(&crc32fast::hash(payload).to_le_bytes());
    out.write_all(framed)
}
