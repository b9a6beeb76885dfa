//! How long priority inversions were, by cause.

use laxity_model::Nanos;
use laxity_trace::metrics::{Collect, Inversion, InversionKind};

/// The priority inversions of a run that bottom halves caused.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct InversionLengths {
    /// Every length with its cause; when the inversion began decides on the order.
    pub inversions: Vec<(Nanos, InversionKind)>,
}

/// A point of both curves that the paper draws: so many inversions are at most that long, and together they are this
/// long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurvePoint {
    /// How many are no longer, this one included; of several of one length all but the last may be left out.
    pub rank: u64,
    /// A length, in nanoseconds.
    pub length: u64,
    /// The sum of the `rank` shortest, in nanoseconds.
    pub cumulative: u64,
}

/// Points of a curve: every 400th part of the inversions, so that percentiles are exact.
const PARTS: usize = 400;
/// And each of the longest so many, which the long tail is made of.
const LONGEST: usize = 100;

/// A run of section V.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The inversions.
    pub lengths: InversionLengths,
    /// GPU interrupts that were raised.
    pub interrupts: u64,
}

impl InversionLengths {
    /// All lengths in nanoseconds, the shortest first.
    pub fn sorted(&self) -> Vec<u64> {
        let mut lengths: Vec<u64> = self.inversions.iter().map(|(length, _)| length.0).collect();
        lengths.sort_unstable();
        lengths
    }

    /// The curves of cumulative frequency and of cumulative length, in a number of points that does not depend on that of
    /// inversions. The last is that of all inversions.
    pub fn curve(&self) -> Vec<CurvePoint> {
        let sorted = self.sorted();
        let mut curve = Vec::with_capacity(PARTS + LONGEST);
        let (mut part, mut cumulative) = (1, 0u64);
        for (index, &length) in sorted.iter().enumerate() {
            cumulative = cumulative.saturating_add(length);
            let rank = index + 1;
            let ends_part = rank * PARTS >= part * sorted.len();
            if ends_part || index + LONGEST >= sorted.len() {
                curve.push(CurvePoint { rank: rank as u64, length, cumulative });
            }
            if ends_part {
                part = rank * PARTS / sorted.len() + 1;
            }
        }
        curve
    }

    /// How many inversions had that cause, how long the longest was, and all together, in nanoseconds.
    pub fn of_kind(&self, kind: InversionKind) -> CurvePoint {
        let of_kind = self.inversions.iter().filter(|one| one.1 == kind).map(|one| one.0.0);
        of_kind.fold(CurvePoint { rank: 0, length: 0, cumulative: 0 }, |sum, length| CurvePoint {
            rank: sum.rank + 1,
            length: sum.length.max(length),
            cumulative: sum.cumulative.saturating_add(length),
        })
    }

    /// The cumulative length in nanoseconds.
    pub fn total(&self) -> u64 {
        self.inversions.iter().map(|(length, _)| length.0).fold(0, u64::saturating_add)
    }
}

impl Collect for InversionLengths {
    fn collect(&mut self, inversion: Inversion) {
        self.inversions.push((inversion.length, inversion.kind));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(lengths: impl IntoIterator<Item = u64>) -> InversionLengths {
        let kind = InversionKind::Overtaken;
        InversionLengths { inversions: lengths.into_iter().map(|length| (Nanos(length), kind)).collect() }
    }

    #[test]
    fn a_curve_of_few_inversions_has_every_one() {
        let point = |rank, length, cumulative| CurvePoint { rank, length, cumulative };
        assert_eq!(lengths([30, 10, 20]).curve(), [point(1, 10, 10), point(2, 20, 30), point(3, 30, 60)]);
        assert_eq!(lengths([]).curve(), []);
    }

    #[test]
    fn a_curve_of_many_has_the_percentiles_and_the_whole_tail() {
        let curve = lengths((1..=100_000).rev()).curve();
        assert!(curve.len() <= PARTS + LONGEST);
        for percent in [1, 50, 90, 99, 100] {
            let rank = 1_000 * percent;
            let point = CurvePoint { rank, length: rank, cumulative: rank * (rank + 1) / 2 };
            assert!(curve.contains(&point), "{percent} %");
        }
        assert!((99_901..=100_000).all(|rank| curve.iter().any(|point| point.rank == rank)));
        assert!(curve.is_sorted_by_key(|point| point.rank));
    }

    #[test]
    fn causes_are_told_apart() {
        let mut mixed = lengths([5, 7]);
        mixed.inversions.push((Nanos(100), InversionKind::CoScheduled));
        assert_eq!(mixed.of_kind(InversionKind::Overtaken), CurvePoint { rank: 2, length: 7, cumulative: 12 });
        assert_eq!(mixed.of_kind(InversionKind::CoScheduled), CurvePoint { rank: 1, length: 100, cumulative: 100 });
        assert_eq!(mixed.of_kind(InversionKind::BlockedStack), CurvePoint { rank: 0, length: 0, cumulative: 0 });
        assert_eq!(mixed.total(), 112);
    }
}
