//! A loop through more memory than caches hold.

use std::fmt;
use std::hint::black_box;
use std::str::FromStr;

/// What is done to the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pattern {
    /// Written in order: what interferes most, as each line is read and written back. The original's hog.
    #[default]
    Write,
    /// Read in order.
    Read,
    /// Copied, from one half to the other.
    Copy,
}

/// Bytes between two counts: a hog is stopped that late, and counting costs a few per cent of it.
pub const CHUNK: usize = 16 << 10;

/// A loop through memory, chunk by chunk.
#[derive(Debug)]
pub struct Stream {
    pattern: Pattern,
    memory: Vec<u8>,
    position: usize,
    round: u8,
}

impl Stream {
    /// Through `bytes` of memory, two chunks at least. Its memory is touched here.
    pub fn new(pattern: Pattern, bytes: usize) -> Stream {
        let chunks = (bytes / CHUNK).max(2) & !1;
        Stream { pattern, memory: vec![1; chunks * CHUNK], position: 0, round: 1 }
    }

    /// Through twice as much memory as the largest cache of `cpu` holds, 16 MiB at least and 256 MiB at most.
    pub fn beyond_caches(pattern: Pattern, cpu: usize) -> Stream {
        let cache = crate::host::largest_cache(cpu).unwrap_or(0) as usize;
        Stream::new(pattern, (2 * cache).clamp(16 << 20, 256 << 20))
    }

    /// Goes through the next chunk. Answers with the bytes that the loop read or wrote; what caches read to write, and
    /// write back, is not counted.
    #[inline]
    pub fn step(&mut self) -> u64 {
        let half = self.memory.len() / 2;
        let end = if self.pattern == Pattern::Copy { half } else { self.memory.len() };
        if self.position >= end {
            self.position = 0;
            self.round = self.round.wrapping_add(1);
        }
        let chunk = self.position..self.position + CHUNK;
        self.position = chunk.end;
        match self.pattern {
            Pattern::Write => {
                self.memory[chunk].fill(self.round);
                black_box(&mut self.memory);
                CHUNK as u64
            }
            Pattern::Read => {
                // One load a word; the sum keeps them.
                let words = self.memory[chunk].chunks_exact(8);
                let sum = words.fold(0u64, |sum, word| sum ^ u64::from_ne_bytes(word.try_into().expect("eight bytes")));
                black_box(sum);
                CHUNK as u64
            }
            Pattern::Copy => {
                let (from, to) = self.memory.split_at_mut(half);
                to[chunk.clone()].copy_from_slice(&from[chunk]);
                black_box(&mut self.memory);
                2 * CHUNK as u64
            }
        }
    }
}

impl Pattern {
    /// All, the default first.
    pub const ALL: [Pattern; 3] = [Pattern::Write, Pattern::Read, Pattern::Copy];

    /// Its name on command lines and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Pattern::Write => "write",
            Pattern::Read => "read",
            Pattern::Copy => "copy",
        }
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Pattern::ALL.into_iter().find(|pattern| pattern.name() == text);
        found.ok_or_else(|| format!("{text:?} is none; write write, read or copy"))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_the_memory_is_gone_through_in_each_round() {
        let mut write = Stream::new(Pattern::Write, 4 * CHUNK);
        let bytes: u64 = (0..5).map(|_| write.step()).sum();
        assert_eq!(bytes, 5 * CHUNK as u64);
        assert!(write.memory[..CHUNK].iter().all(|&byte| byte == 2), "the second round began");
        assert!(write.memory[CHUNK..].iter().all(|&byte| byte == 1), "the first one is complete");
        let mut copy = Stream::new(Pattern::Copy, 4 * CHUNK);
        copy.memory[..2 * CHUNK].fill(7);
        assert_eq!((copy.step(), copy.step()), (2 * CHUNK as u64, 2 * CHUNK as u64));
        assert!(copy.memory.iter().all(|&byte| byte == 7));
        assert_eq!(Stream::new(Pattern::Read, 0).step(), CHUNK as u64, "there is memory for two chunks at least");
    }

    #[test]
    fn patterns_have_names() {
        for pattern in Pattern::ALL {
            assert_eq!(pattern.name().parse(), Ok(pattern));
        }
        assert!("scribble".parse::<Pattern>().is_err());
    }
}
