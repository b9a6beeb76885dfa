//! A small, in-tree random number generator whose stream never changes between versions or machines.
//!
//! `rand`'s distributions may change from release to release; a seed printed today must replay in five years.

/// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): one 64-bit word of state, passes BigCrush.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// The stream that begins after `seed`. `SplitMix64::new(0)` yields e220a8397b1dcdaf, 6e789e6aa1b965f4, ...
    pub const fn new(seed: u64) -> Self {
        SplitMix64 { state: seed }
    }

    /// The stream that belongs to four words, say a seed, a task, a job and a step: independent of every other
    /// stream, so that a draw does not depend on the order of draws.
    pub const fn keyed(words: [u64; 4]) -> Self {
        let mut state = words[0];
        let mut at = 1;
        while at < words.len() {
            state = finalize(state.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ words[at];
            at += 1;
        }
        SplitMix64 { state: finalize(state) }
    }

    /// The next 64 uniformly distributed bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        finalize(self.state)
    }

    /// A uniform integer in `0..bound`, by multiplication (Lemire 2019) with rejection, hence unbiased.
    ///
    /// Panics if `bound` is 0.
    pub const fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no random element");
        let mut product = self.next_u64() as u128 * bound as u128;
        if (product as u64) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u64) < threshold {
                product = self.next_u64() as u128 * bound as u128;
            }
        }
        (product >> 64) as u64
    }

    /// A uniform integer in `low..=high`. Panics if `low > high`.
    pub const fn between(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "an inclusive range needs low <= high");
        match (high - low).checked_add(1) {
            Some(width) => low + self.below(width),
            None => self.next_u64(),
        }
    }

    /// A uniform integer in units of 2^-53: the fraction `value / 2^53` lies in [0, 1).
    pub const fn unit53(&mut self) -> u64 {
        self.next_u64() >> 11
    }
}

/// The output function of SplitMix64: a bijection on 64-bit words with full avalanche.
const fn finalize(word: u64) -> u64 {
    let mut z = word;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_yields_the_published_stream() {
        let mut rng = SplitMix64::new(0);
        assert_eq!(rng.next_u64(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(rng.next_u64(), 0x6e78_9e6a_a1b9_65f4);
        assert_eq!(rng.next_u64(), 487_617_019_471_545_679);
        assert_eq!(rng.next_u64(), 17_909_611_376_780_542_444);
    }

    #[test]
    fn below_covers_its_range_and_nothing_else() {
        let mut rng = SplitMix64::new(7);
        let mut seen = [0u32; 5];
        for _ in 0..5_000 {
            seen[rng.below(5) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (850..1_150).contains(&count)), "{seen:?}");
    }
}
