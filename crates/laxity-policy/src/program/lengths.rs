//! How long operations take, predicted from how long they took.

use std::collections::BTreeMap;

use laxity_model::Nanos;

/// The most kernels that are remembered; of others no length is known.
const KEYS_MAX: usize = 1024;

/// A prediction follows a longer operation at once and shorter ones slowly, by this part of the difference.
const DECAY: u64 = 4;

/// Predicted lengths by the key of an operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Lengths(BTreeMap<u64, Nanos>);

impl Lengths {
    /// How long the next operation of that key is expected to take at most.
    pub fn predict(&self, key: u64) -> Option<Nanos> {
        self.0.get(&key).copied()
    }

    /// An operation was complete so long after it could begin. That of the `first` one of a hold includes what it takes
    /// to begin at all, so it makes no prediction longer; where operations share holds, others follow it.
    pub fn observe(&mut self, key: u64, took: Nanos, first: bool) {
        if let Some(length) = self.0.get_mut(&key) {
            let shorter = Nanos(length.0 - length.0.saturating_sub(took.0) / DECAY);
            *length = if first { shorter } else { took.max(shorter) };
        } else if self.0.len() < KEYS_MAX {
            self.0.insert(key, took);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_operation_counts_at_once_and_is_forgotten_slowly() {
        let mut lengths = Lengths::default();
        assert_eq!(lengths.predict(1), None);
        for took in [100, 1_700, 100] {
            lengths.observe(1, Nanos(took), false);
        }
        assert_eq!(lengths.predict(1), Some(Nanos(1_300)), "1700 - (1700 - 100) / 4");
        (0..50).for_each(|_| lengths.observe(1, Nanos(100), false));
        assert!(lengths.predict(1).expect("known") < Nanos(110));
        (0..5_000).for_each(|key| lengths.observe(key, Nanos(1), false));
        assert_eq!(lengths.0.len(), KEYS_MAX, "a program with endless kernels takes bounded memory");
    }

    #[test]
    fn the_first_operation_of_a_hold_makes_no_prediction_longer() {
        let mut lengths = Lengths::default();
        lengths.observe(1, Nanos(500), true);
        lengths.observe(1, Nanos(9_000), true);
        assert_eq!(lengths.predict(1), Some(Nanos(500)));
        lengths.observe(1, Nanos(9_000), false);
        assert_eq!(lengths.predict(1), Some(Nanos(9_000)));
    }
}
