//! What the engines did last.

use std::collections::VecDeque;

use laxity_model::{Engine, Instant};
use serde::{Deserialize, Serialize};

/// The most entries that are remembered.
const DEPTH: usize = 1 << 16;

/// What happened to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// It was issued.
    Issued,
    /// Its engine began it.
    Began,
    /// Its engine is done with it.
    Ended,
    /// The interrupt was raised in its process.
    Interrupted,
}

/// Something that happened to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The time.
    pub at: Instant,
    /// The event.
    pub what: What,
    /// The engine of the operation.
    pub engine: Engine,
    /// The CPU on which the server noticed it.
    pub cpu: u16,
    /// The number of the stream.
    pub stream: u32,
    /// The number of the operation in its stream, from 0.
    pub index: u32,
    /// The job of the stream's owner, if the owner said which: [`Stream::set_job`](crate::Stream::set_job).
    pub job: Option<u32>,
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
    fn the_oldest_entries_are_forgotten_and_numbers_say_how_many() {
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
    }
}
