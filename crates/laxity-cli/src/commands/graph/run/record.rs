//! When jobs completed, from whoever carries them out to whoever measures.
//!
//! A job is written down before it completes, so that none completes unseen even if its process is killed in between.
//! Whoever goes on with the node then writes the same job down again; the last word counts, and only once the graph
//! says that the job is complete.

use std::io;

use laxity_model::Instant;
use laxity_sys::journal::{Journal, Reader};

/// A job is about to complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its number.
    pub index: u64,
    /// When.
    pub completion: Instant,
}

/// Bytes of a record: a power of two, as journals want it.
const LENGTH: usize = 16;

impl Record {
    /// Writes it down.
    pub fn append_to(self, journal: &Journal) -> io::Result<()> {
        let mut bytes = [0; LENGTH];
        bytes[..8].copy_from_slice(&self.index.to_ne_bytes());
        bytes[8..].copy_from_slice(&self.completion.0.to_ne_bytes());
        journal.append(&bytes)
    }
}

/// Reads what was written down of one node.
#[derive(Debug)]
pub struct Records {
    reader: Reader,
    bytes: Vec<u8>,
}

impl Records {
    /// Of `journal`.
    pub fn of(journal: &Journal) -> Records {
        Records { reader: journal.reader(), bytes: Vec::new() }
    }

    /// What came since the last time.
    pub fn read(&mut self) -> io::Result<impl Iterator<Item = Record>> {
        self.bytes.clear();
        self.reader.read(&mut self.bytes)?;
        let number = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
        let record =
            move |bytes: &[u8]| Record { index: number(&bytes[..8]), completion: Instant(number(&bytes[8..])) };
        Ok(self.bytes.chunks_exact(LENGTH).map(record))
    }
}
