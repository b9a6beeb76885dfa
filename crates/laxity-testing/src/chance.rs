//! Random numbers that can be repeated.

use std::thread;
use std::time::Duration;

use laxity_sys::clock::now;

/// xorshift64; `LAXITY_SEED` repeats a run.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// With a new seed, which is printed, unless the environment has one.
    #[expect(clippy::new_without_default, reason = "prints")]
    pub fn new() -> Self {
        let seed = std::env::var("LAXITY_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| now().0 | 1);
        println!("repeat with LAXITY_SEED={seed}");
        Random::of(seed)
    }

    /// With this seed.
    pub fn of(seed: u64) -> Self {
        Random(seed | 1)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// Sleeps for less than `micros` microseconds.
    pub fn pause(&mut self, micros: u64) {
        thread::sleep(Duration::from_micros(self.below(micros)));
    }
}
