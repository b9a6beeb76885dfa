//! How long operations take, predicted from how long they took.

use std::collections::BTreeMap;

use laxity_model::Nanos;

/// The most kernels that are remembered; of others no length is known.
const KEYS_MAX: usize = 1024;

/// A prediction follows a longer operation at once and shorter ones slowly, by this part of the difference.
const DECAY: u64 = 16;

/// Predicted lengths by the key of an operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Lengths(BTreeMap<u64, Nanos>);

impl Lengths {
    /// How long the next operation of that key is expected to take at most.
    pub fn predict(&self, key: u64) -> Option<Nanos> {
        self.0.get(&key).copied()
    }

    pub fn observe(&mut self, key: u64, took: Nanos) {
        if let Some(length) = self.0.get_mut(&key) {
            *length = took.max(Nanos(length.0 - length.0.saturating_sub(took.0) / DECAY));
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
            lengths.observe(1, Nanos(took));
        }
        assert_eq!(lengths.predict(1), Some(Nanos(1_600)), "1700 - (1700 - 100) / 16");
        (0..200).for_each(|_| lengths.observe(1, Nanos(100)));
        assert!(lengths.predict(1).expect("known") < Nanos(120));
        (0..5_000).for_each(|key| lengths.observe(key, Nanos(1)));
        assert_eq!(lengths.0.len(), KEYS_MAX, "a program with endless kernels takes bounded memory");
    }
}
