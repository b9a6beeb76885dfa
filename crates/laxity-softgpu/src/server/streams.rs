//! The streams of connected processes, and the names of those that were released last, which traces still need.
//!
//! Each call takes time logarithmic in the number of streams that exist, however many have come and gone.

use std::collections::{BTreeMap, VecDeque};

/// Released streams whose names are remembered.
const REMEMBERED: usize = 4096;

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    /// The process that made it; `None` once it is released.
    owner: Option<u64>,
    name: String,
    /// How many operations were issued to it, modulo 2^32, as jobs of a trace count.
    pub issued: u32,
    /// How many of them are not complete.
    pub pending: usize,
}

/// See above.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    by_number: BTreeMap<u32, Stream>,
    /// The released ones, in that order.
    released: VecDeque<u32>,
    next: u32,
}

impl Streams {
    /// A new stream of `owner`.
    pub fn create(&mut self, owner: u64, name: String) -> u32 {
        // Numbers come again only after 2^32 streams: no history is as long.
        while self.by_number.contains_key(&self.next) {
            self.next = self.next.wrapping_add(1);
        }
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.by_number.insert(number, Stream { owner: Some(owner), name, issued: 0, pending: 0 });
        number
    }

    /// Stream `number`, if it is `owner`'s.
    pub fn of(&mut self, owner: u64, number: u32) -> Option<&mut Stream> {
        self.by_number.get_mut(&number).filter(|stream| stream.owner == Some(owner))
    }

    /// `owner` will not use stream `number` again. Answers whether it was its own.
    pub fn release(&mut self, owner: u64, number: u32) -> bool {
        let Some(stream) = self.of(owner, number) else { return false };
        stream.owner = None;
        self.released.push_back(number);
        if self.released.len() > REMEMBERED {
            self.released.pop_front().and_then(|oldest| self.by_number.remove(&oldest));
        }
        true
    }

    /// The name of a stream, unless it is forgotten.
    pub fn name(&self, number: u32) -> Option<&str> {
        self.by_number.get(&number).map(|stream| stream.name.as_str())
    }

    /// Those that processes have.
    pub fn count(&self) -> usize {
        self.by_number.len() - self.released.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_work_stay_bounded_however_many_streams_come_and_go() {
        let mut streams = Streams::default();
        let kept = streams.create(1, "kept".to_owned());
        for round in 0..20 * REMEMBERED as u32 {
            let number = streams.create(2, round.to_string());
            assert!(streams.release(2, number));
            assert!(!streams.release(2, number), "it is released once");
            assert!(streams.by_number.len() <= REMEMBERED + 1, "no call has more entries to look through");
            assert!(streams.released.len() <= REMEMBERED);
        }
        assert_eq!((streams.count(), streams.name(kept)), (1, Some("kept")));
    }

    #[test]
    fn the_names_of_the_streams_released_last_are_remembered() {
        let mut streams = Streams::default();
        let numbers: Vec<u32> = (0..=REMEMBERED).map(|number| streams.create(1, number.to_string())).collect();
        numbers.iter().for_each(|number| assert!(streams.release(1, *number)));
        assert_eq!((streams.name(numbers[0]), streams.name(numbers[1])), (None, Some("1")));
    }

    #[test]
    fn numbers_that_come_round_again_skip_those_in_use() {
        let mut streams = Streams { next: u32::MAX, ..Streams::default() };
        let first = [(); 2].map(|()| streams.create(1, String::new()));
        assert_eq!(first, [u32::MAX, 0]);
        streams.next = u32::MAX;
        assert_eq!(streams.create(1, String::new()), 1);
    }
}
