//! Where inversions go.

use laxity_model::Nanos;

use super::Inversion;

/// A receiver of inversions, each at its end.
pub trait Collect {
    /// Takes one.
    fn collect(&mut self, inversion: Inversion);
}

/// The lengths alone, for exact distributions.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Lengths {
    lengths: Vec<Nanos>,
}

impl Lengths {
    /// All lengths, the shortest first.
    pub fn sorted(mut self) -> Vec<Nanos> {
        self.lengths.sort_unstable();
        self.lengths
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.lengths.len()
    }

    /// The cumulative length; saturates.
    pub fn total(&self) -> Nanos {
        self.lengths.iter().fold(Nanos::ZERO, |total, length| Nanos(total.0.saturating_add(length.0)))
    }
}

impl Collect for Lengths {
    fn collect(&mut self, inversion: Inversion) {
        self.lengths.push(inversion.length);
    }
}

impl Collect for Vec<Inversion> {
    fn collect(&mut self, inversion: Inversion) {
        self.push(inversion);
    }
}
