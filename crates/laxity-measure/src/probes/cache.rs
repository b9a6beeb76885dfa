//! Cache-related delays: what a job that was preempted pays for finding its working set gone from the caches.

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use laxity_model::Nanos;
use laxity_sys::clock::now;
use laxity_sys::futex;

use super::{Place, beyond};
use crate::crew::{Level, Part, Slice, Work};
use crate::host;
use crate::options::MeasureError;
use crate::probe::{Bytes, Probe};
use crate::samples::Samples;

/// Where Linux does not say how large caches are.
const CACHE_DEFAULT: u64 = 32 << 20;
/// Larger ones are displaced in part only: a slice would be over before.
const DISPLACED_MAX: u64 = 64 << 20;
/// Of 64 bytes.
const WORDS_OF_LINE: usize = 8;
/// A prime, so that steps of it go through any number of lines but its multiples, far enough apart for prefetchers to
/// be of no help.
const STEP: usize = 2_654_435_761;

/// Memory that displaces whatever else is in the caches.
pub(crate) struct Caches {
    displacing: Memory,
}

/// Lines of memory, which any thread may go through.
struct Memory {
    words: Vec<AtomicU64>,
}

impl Memory {
    fn new(bytes: u64) -> Self {
        let lines = (bytes as usize).div_ceil(8 * WORDS_OF_LINE).max(1);
        Memory { words: (0..lines * WORDS_OF_LINE).map(|_| AtomicU64::new(0)).collect() }
    }

    /// Reads and writes a word of each line; how long that takes.
    fn go_through(&self) -> Nanos {
        let begin = now();
        let lines = self.words.len() / WORDS_OF_LINE;
        let step = STEP % lines;
        let mut line = 0;
        for _ in 0..lines {
            let word = &self.words[line * WORDS_OF_LINE];
            word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
            line += step;
            if line >= lines {
                line -= lines;
            }
        }
        black_box(&self.words);
        now() - begin
    }
}

impl Caches {
    /// Those of `cpu`.
    pub fn of(cpu: usize) -> Self {
        let largest = host::largest_cache(cpu).unwrap_or(CACHE_DEFAULT);
        Caches { displacing: Memory::new(largest.saturating_mul(2).min(DISPLACED_MAX)) }
    }

    /// The working set is gone through when it is in the caches, and again after they were used for something else.
    pub fn preemption(
        &self,
        place: &Place<'_>,
        probe: Probe,
        Bytes(bytes): Bytes,
        samples: &mut Samples,
    ) -> Result<(), MeasureError> {
        place.alone(probe, samples, &|slice| {
            let set = Memory::new(bytes);
            // Once at least, however large the caches are.
            loop {
                set.go_through();
                let warm = set.go_through();
                self.displacing.go_through();
                slice.take(beyond(set.go_through(), warm));
                if slice.is_over() {
                    return Ok(());
                }
            }
        })
    }

    /// Two threads, each on its CPU, take turns in going through the working set, each twice: first when it is in the
    /// other's caches, then when it is in its own.
    pub fn migration(
        &self,
        place: &Place<'_>,
        probe: Probe,
        Bytes(bytes): Bytes,
        samples: &mut Samples,
    ) -> Result<(), MeasureError> {
        let (set, turn) = (&Memory::new(bytes), &AtomicU32::new(0));
        let of = |side: u32| {
            move |slice: &Slice| -> Work {
                while slice.wait_while(turn, 1 - side) {
                    let cold = set.go_through();
                    let warm = set.go_through();
                    slice.take(beyond(cold, warm));
                    turn.store(1 - side, Ordering::Release);
                    futex::wake_one(turn);
                }
                Ok(())
            }
        };
        let (here, there) = (of(0), of(1));
        let part = |cpu, work| Part { cpu, level: Level::High, work };
        place.together(probe, &[part(place.cpu, &here), part(place.other, &there)], samples)
    }
}
