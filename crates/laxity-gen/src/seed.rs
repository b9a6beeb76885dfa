//! Seeds: one independent random stream for each task set of an experiment (spec H.5).

use laxity_model::rng::SplitMix64;

/// The first 64 fraction bits of pi: a start value without a hidden choice.
const START: u64 = 0x243f_6a88_85a3_08d3;

/// Folds words into one seed. Every bit of every word, and their order, affects every bit of the result.
///
/// From `h = SplitMix64(START).next()`, `h = SplitMix64(h xor word).next()` for each word in turn. Recovered from the
/// reference vectors, as the specification gives only values.
pub fn mix(words: &[u64]) -> u64 {
    let scramble = |word| SplitMix64::new(word).next_u64();
    words.iter().fold(scramble(START), |hash, word| scramble(hash ^ word))
}

/// The seed of one task set: a function of where it stands in the experiment and of nothing else, so that neither the
/// number of threads nor the other sets matter.
pub fn task_set_seed(experiment: u64, point: u64, replicate: u64) -> u64 {
    mix(&[experiment, point, replicate])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_and_the_number_of_words_matter() {
        assert_ne!(mix(&[1, 2]), mix(&[2, 1]));
        assert_ne!(mix(&[0]), mix(&[0, 0]));
        assert_eq!(task_set_seed(1, 2, 3), mix(&[1, 2, 3]));
    }
}
