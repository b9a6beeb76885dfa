//! Points in time, spans and signed spans, all in integer nanoseconds and never confused with one another.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// A point in time: nanoseconds since the start of the simulation or of the recording.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Instant(pub u64);

/// A span of time in nanoseconds; never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct Nanos(pub u64);

/// A signed span in nanoseconds: lateness, laxity, slack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize, Deserialize)]
pub struct SignedNanos(pub i64);

impl Instant {
    /// The start of time.
    pub const ZERO: Instant = Instant(0);
    /// Later than every instant that can occur; stands for "never".
    pub const NEVER: Instant = Instant(u64::MAX);

    /// The point `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// The point `millis` milliseconds after the start. Panics on overflow (584 years).
    pub const fn from_millis(millis: u64) -> Self {
        Instant(Nanos::from_millis(millis).0)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span from `earlier` to `self`, zero if `earlier` is in fact later.
    pub const fn saturating_since(self, earlier: Instant) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }

    /// `self + span`, or [`Instant::NEVER`] where that cannot be written.
    pub const fn saturating_add(self, span: Nanos) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }

    /// The signed span from `origin` to `self`.
    pub const fn signed_since(self, origin: Instant) -> SignedNanos {
        SignedNanos(self.0.wrapping_sub(origin.0) as i64)
    }
}

impl Nanos {
    /// No time at all.
    pub const ZERO: Nanos = Nanos(0);
    /// The longest span a workload may name: 10 years. Sums of a few of them stay far from overflow.
    pub const LONGEST: Nanos = Nanos(10 * 365 * 86_400 * 1_000_000_000);

    /// A span of `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Nanos(nanos)
    }

    /// A span of `micros` microseconds. Panics on overflow.
    pub const fn from_micros(micros: u64) -> Self {
        Nanos(micros.checked_mul(1_000).expect("a span above 584 years cannot be written in nanoseconds"))
    }

    /// A span of `millis` milliseconds. Panics on overflow.
    pub const fn from_millis(millis: u64) -> Self {
        Nanos(millis.checked_mul(1_000_000).expect("a span above 584 years cannot be written in nanoseconds"))
    }

    /// A span of `secs` seconds. Panics on overflow.
    pub const fn from_secs(secs: u64) -> Self {
        Nanos(secs.checked_mul(1_000_000_000).expect("a span above 584 years cannot be written in nanoseconds"))
    }

    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span in milliseconds, for plots and tables only.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The span in seconds, for plots and tables only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `self - other`, zero if that were negative.
    pub const fn saturating_sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(other.0))
    }

    /// `self + other`, `None` on overflow.
    pub const fn checked_add(self, other: Nanos) -> Option<Nanos> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Nanos(sum)),
            None => None,
        }
    }

    /// Whether the span is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl SignedNanos {
    /// The span in nanoseconds; may be negative.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }
}

impl Add<Nanos> for Instant {
    type Output = Instant;
    fn add(self, span: Nanos) -> Instant {
        Instant(self.0 + span.0)
    }
}

impl AddAssign<Nanos> for Instant {
    fn add_assign(&mut self, span: Nanos) {
        self.0 += span.0;
    }
}

/// The span between two instants. Panics if the right one is later: use [`Instant::signed_since`] where it may be.
impl Sub<Instant> for Instant {
    type Output = Nanos;
    fn sub(self, earlier: Instant) -> Nanos {
        Nanos(self.0.checked_sub(earlier.0).expect("the earlier instant comes second in a difference"))
    }
}

impl Add for Nanos {
    type Output = Nanos;
    fn add(self, other: Nanos) -> Nanos {
        Nanos(self.0 + other.0)
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Nanos) {
        self.0 += other.0;
    }
}

impl Sub for Nanos {
    type Output = Nanos;
    fn sub(self, other: Nanos) -> Nanos {
        Nanos(self.0.checked_sub(other.0).expect("a span is never negative"))
    }
}

impl SubAssign for Nanos {
    fn sub_assign(&mut self, other: Nanos) {
        *self = *self - other;
    }
}

impl std::iter::Sum for Nanos {
    fn sum<I: Iterator<Item = Nanos>>(spans: I) -> Nanos {
        spans.fold(Nanos::ZERO, |total, span| total + span)
    }
}

/// Writes `nanos` in the largest unit that keeps it exact to the digit: `5 ms`, `1.5 us`, `33.333333 ms`.
fn write_span(f: &mut fmt::Formatter<'_>, nanos: u64) -> fmt::Result {
    let (unit, scale, digits) = match nanos {
        0 => return f.pad("0 ms"),
        1..1_000 => ("ns", 1, 0),
        1_000..1_000_000 => ("us", 1_000, 3),
        1_000_000..1_000_000_000 => ("ms", 1_000_000, 6),
        _ => ("s", 1_000_000_000, 9),
    };
    let mut text = (nanos / scale).to_string();
    let fraction = nanos % scale;
    if fraction != 0 {
        let padded = format!("{fraction:0digits$}");
        text.push('.');
        text.push_str(padded.trim_end_matches('0'));
    }
    f.pad(&format!("{text} {unit}"))
}

impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_span(f, self.0)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_span(f, self.0)
    }
}

impl fmt::Display for SignedNanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        write_span(f, self.0.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_prints_in_its_natural_unit_without_losing_a_digit() {
        assert_eq!(Nanos(5_000_000).to_string(), "5 ms");
        assert_eq!(Nanos(33_333_333).to_string(), "33.333333 ms");
        assert_eq!(Nanos(1_500).to_string(), "1.5 us");
        assert_eq!(Nanos(60_000_000_000).to_string(), "60 s");
        assert_eq!(SignedNanos(-7).to_string(), "-7 ns");
    }

    #[test]
    fn lateness_is_negative_before_the_deadline() {
        assert_eq!(Instant(5).signed_since(Instant(9)), SignedNanos(-4));
        assert_eq!(Instant(9).signed_since(Instant(5)), SignedNanos(4));
    }
}
