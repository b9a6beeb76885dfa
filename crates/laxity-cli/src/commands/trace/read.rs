//! Trace files, streamed or whole.

use std::io::Read;
use std::path::{Path, PathBuf};

use laxity_model::Instant;
use laxity_trace::codec::{ReadError, TraceReader};
use laxity_trace::{Record, Sink, TraceHeader};

use crate::error::CliError;
use crate::input;

/// A trace being read.
pub struct Source {
    path: PathBuf,
    reader: TraceReader<Box<dyn Read>>,
    header: TraceHeader,
}

/// How reading a trace ended.
pub struct Ending {
    path: PathBuf,
    /// The time of the last record.
    pub reached: Instant,
    /// How many records there were.
    pub records: u64,
    /// Why there are no more, unless the trace is whole.
    pub damage: Option<ReadError>,
}

impl Source {
    /// Opens `path` and reads its header; `-` is standard input.
    pub fn open(path: &Path) -> Result<Source, CliError> {
        let bytes = input::open(path).map_err(|source| CliError::Read { file: input::name(path), source })?;
        let path = PathBuf::from(input::name(path));
        match TraceReader::new(bytes) {
            Ok(reader) => Ok(Source { path, header: reader.header().clone(), reader }),
            Err(ReadError::Io(source)) => Err(CliError::Read { file: path.display().to_string(), source }),
            Err(source) => Err(CliError::Trace { path, source }),
        }
    }

    /// The header.
    pub fn header(&self) -> &TraceHeader {
        &self.header
    }

    /// Hands every record to `sink`, in memory that does not depend on their number.
    pub fn stream(self, sink: &mut impl Sink) -> Ending {
        let mut ending = Ending { path: self.path, reached: Instant::ZERO, records: 0, damage: None };
        for record in self.reader {
            match record {
                Ok(Record { at, event }) => {
                    sink.record(at, event);
                    // Time that goes back is for the checkers to report; here it must not lead to negative spans.
                    ending.reached = ending.reached.max(at);
                    ending.records += 1;
                }
                Err(error) => ending.damage = Some(error),
            }
        }
        ending
    }

    /// All records in memory, and the header with what they tell of outsiders.
    pub fn collect(self) -> (TraceHeader, Vec<Record>, Ending) {
        let (mut header, mut records) = (self.header.clone(), Vec::new());
        let ending = self.stream(&mut records);
        records.iter().for_each(|record| header.learn(&record.event));
        (header, records, ending)
    }
}

impl Ending {
    /// Why nothing can be said: `reason`, and if the trace is damaged, that first, as what is missing may be behind it. Else
    /// `way_out` helps.
    pub fn fail(self, reason: &str, way_out: &str) -> CliError {
        let reason = match self.damage {
            Some(damage) => format!("{damage}; up to {}, where that is, {reason}", self.reached),
            None => format!("{reason}{way_out}"),
        };
        CliError::Convert { path: self.path, reason }
    }

    /// An error if the trace was not read to its end, so that only a part was worked on.
    pub fn whole(self) -> Result<(), CliError> {
        match self.damage {
            Some(source) => Err(CliError::Damaged { path: self.path, reached: self.reached, source }),
            None => Ok(()),
        }
    }
}
