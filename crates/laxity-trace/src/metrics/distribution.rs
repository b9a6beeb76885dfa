//! Sets of spans.

use laxity_model::Nanos;
use serde::Serialize;

use super::histogram::Histogram;

/// A set of spans, folded: memory does not grow with their number.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    count: u64,
    max: u64,
    sum: u128,
    squares: u128,
    histogram: Histogram,
}

/// A set of spans. Percentiles are at most 1/64 above the exact value and never below it; the others are exact, mean
/// and standard deviation rounded down to the nanosecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DistributionSummary {
    /// How many there are.
    pub count: u64,
    /// Their sum; saturates.
    #[serde(rename = "total_ns")]
    pub total: Nanos,
    /// The mean.
    #[serde(rename = "mean_ns")]
    pub mean: Nanos,
    /// The standard deviation of the set itself (not an estimate from a sample).
    #[serde(rename = "stddev_ns")]
    pub stddev: Nanos,
    /// The median.
    #[serde(rename = "p50_ns")]
    pub p50: Nanos,
    /// 90 % are no longer.
    #[serde(rename = "p90_ns")]
    pub p90: Nanos,
    /// 99 % are no longer.
    #[serde(rename = "p99_ns")]
    pub p99: Nanos,
    /// 99.9 % are no longer.
    #[serde(rename = "p999_ns")]
    pub p999: Nanos,
    /// The longest.
    #[serde(rename = "max_ns")]
    pub max: Nanos,
}

impl Distribution {
    /// Counts one span.
    pub fn record(&mut self, span: Nanos) {
        let length = u128::from(span.0);
        self.count += 1;
        self.max = self.max.max(span.0);
        self.sum += length;
        self.squares = self.squares.saturating_add(length * length);
        self.histogram.record(span);
    }

    /// The results; `None` of an empty set.
    pub fn summary(&self) -> Option<DistributionSummary> {
        let permille = |permille| Nanos(self.histogram.permille(permille).0.min(self.max));
        (self.count > 0).then(|| DistributionSummary {
            count: self.count,
            total: Nanos(u64::try_from(self.sum).unwrap_or(u64::MAX)),
            mean: Nanos((self.sum / u128::from(self.count)) as u64),
            stddev: self.stddev(),
            p50: permille(500),
            p90: permille(900),
            p99: permille(990),
            p999: permille(999),
            max: Nanos(self.max),
        })
    }

    /// The square root of the mean square less the square of the mean, rounded down.
    ///
    /// (n * sum of squares - square of sum) / n^2, divided in two steps so that nothing overflows unless the sum of
    /// squares itself is beyond 2^128 / n, which a billion spans of a minute are not; then it saturates.
    fn stddev(&self) -> Nanos {
        let count = u128::from(self.count);
        let spread = self.squares.saturating_mul(count).saturating_sub(self.sum.saturating_mul(self.sum));
        Nanos((spread / count / count).isqrt() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_are_those_of_the_set() {
        let mut spans = Distribution::default();
        assert_eq!(spans.summary(), None);
        // The textbook example: mean 5, standard deviation 2.
        [2, 4, 4, 4, 5, 5, 7, 9].into_iter().for_each(|span| spans.record(Nanos(span)));
        let summary = spans.summary().expect("eight spans");
        assert_eq!((summary.mean, summary.stddev, summary.total), (Nanos(5), Nanos(2), Nanos(40)));
        assert_eq!((summary.p50, summary.p90, summary.p999, summary.max), (Nanos(4), Nanos(9), Nanos(9), Nanos(9)));
        assert_eq!(summary.count, 8);
    }

    #[test]
    fn the_longest_spans_do_not_overflow() {
        let mut spans = Distribution::default();
        (0..4).for_each(|_| spans.record(Nanos(u64::MAX)));
        let summary = spans.summary().expect("four spans");
        assert_eq!((summary.mean, summary.max, summary.total), (Nanos(u64::MAX), Nanos(u64::MAX), Nanos(u64::MAX)));
    }
}
