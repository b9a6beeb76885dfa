//! What the engines did lately.

use std::collections::VecDeque;

use laxity_model::{Engine, Instant};

/// Entries that are remembered.
const DEPTH: usize = 1 << 16;
/// Words of an encoded entry.
pub(crate) const WORDS: usize = 4;

/// What happened to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It was issued.
    Issued,
    /// Its engine began it.
    Began,
    /// Its engine is done with it.
    Ended,
    /// Its process was interrupted to be told so.
    Interrupted,
}

/// Something that happened to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub at: Instant,
    /// What.
    pub what: What,
    /// What runs the operation.
    pub engine: Engine,
    /// The CPU on which the soft GPU's server noticed.
    pub cpu: u16,
    /// The number of the stream.
    pub stream: u32,
    /// Which operation of the stream it is, from 0.
    pub index: u32,
    /// For which job of the stream's owner it is, if that was said: [`Stream::set_job`](crate::Stream::set_job).
    pub job: Option<u32>,
}

impl Entry {
    pub(crate) fn to_words(self) -> [u64; WORDS] {
        let Entry { at, what, engine, cpu, stream, index, job } = self;
        let what = match what {
            What::Issued => 0,
            What::Began => 1,
            What::Ended => 2,
            What::Interrupted => 3,
        };
        let what = what | job.map_or(0, |job| u64::from(job) + 1) << 8;
        [at.0, what, (engine.index() as u64) << 16 | u64::from(cpu), u64::from(stream) << 32 | u64::from(index)]
    }

    pub(crate) fn from_words(&[at, what, place, operation]: &[u64; WORDS]) -> Option<Entry> {
        let job = (what >> 8).checked_sub(1).map(u32::try_from).transpose().ok()?;
        let what = match what & 0xff {
            0 => What::Issued,
            1 => What::Began,
            2 => What::Ended,
            3 => What::Interrupted,
            _ => return None,
        };
        let engine = *Engine::ALL.get((place >> 16) as usize)?;
        let (stream, index) = ((operation >> 32) as u32, operation as u32);
        Some(Entry { at: Instant(at), what, engine, cpu: place as u16, stream, index, job })
    }
}

/// The last entries, each with its number.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The number of the oldest that is remembered.
    first: u64,
    entries: VecDeque<Entry>,
}

impl History {
    pub fn push(&mut self, entry: Entry) {
        if self.entries.len() == DEPTH {
            self.entries.pop_front();
            self.first += 1;
        }
        self.entries.push_back(entry);
    }

    /// At most `count` entries from number `from` on, and the number of the first of these.
    pub fn from(&self, from: u64, count: usize) -> (u64, Vec<Entry>) {
        let first = from.max(self.first);
        let skipped = usize::try_from(first - self.first).unwrap_or(usize::MAX);
        (first, self.entries.iter().skip(skipped).take(count).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_and_numbers_say_how_many() {
        let entry = |index| Entry {
            at: Instant(u64::from(index)),
            what: What::Ended,
            engine: Engine::Copy(1),
            cpu: 3,
            stream: 9,
            index,
            job: index.checked_sub(7),
        };
        let mut history = History::default();
        (0..DEPTH as u32 + 5).for_each(|index| history.push(entry(index)));
        assert_eq!(history.from(0, 2), (5, vec![entry(5), entry(6)]));
        assert_eq!(history.from(u64::MAX, 2).1, []);
        for entry in [entry(6), entry(7), Entry { job: Some(u32::MAX), ..entry(8) }] {
            assert_eq!(Entry::from_words(&entry.to_words()), Some(entry));
        }
    }
}
