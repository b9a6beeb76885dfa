//! A factor without a unit, exact to a millionth.

use std::fmt;

/// A factor in millionths: 3.3 is `Factor(3_300_000)`. Files write it as a decimal number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Factor(pub u64);

impl Factor {
    /// Nothing.
    pub const ZERO: Factor = Factor(0);
    /// The whole.
    pub const ONE: Factor = Factor(1_000_000);

    /// `times` times the whole.
    pub const fn whole(times: u32) -> Factor {
        Factor(times as u64 * Factor::ONE.0)
    }

    /// `value` times this, rounded down; the largest number that can be held where it is more.
    pub fn of(self, value: u64) -> u64 {
        // Two factors below 2^64.
        u64::try_from(u128::from(value) * u128::from(self.0) / u128::from(Factor::ONE.0)).unwrap_or(u64::MAX)
    }

    /// The number as it is written: digits, and up to six decimals. `None` if it is not one, or too large.
    pub(crate) fn parse(text: &str) -> Option<Factor> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let fraction = fraction.trim_end_matches('0');
        if !is_digits(whole) || fraction.len() > 6 || !(fraction.is_empty() || is_digits(fraction)) {
            return None;
        }
        let millionths: u64 = format!("{fraction:0<6}").parse().ok()?;
        whole.parse::<u64>().ok()?.checked_mul(Factor::ONE.0)?.checked_add(millionths).map(Factor)
    }

    /// For tables and plots; decisions compare integers.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / Factor::ONE.0 as f64
    }
}

/// As TOML and JSON write it: `3.3`, `1.0`.
impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, millionths) = (self.0 / Factor::ONE.0, self.0 % Factor::ONE.0);
        let decimals = format!("{millionths:06}");
        let decimals = decimals.trim_end_matches('0');
        write!(f, "{whole}.{}", if decimals.is_empty() { "0" } else { decimals })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_read_exactly_and_reads_back() {
        for (text, millionths) in [("3.3", 3_300_000), ("1.0", 1_000_000), ("0.000001", 1), ("12", 12_000_000)] {
            assert_eq!(Factor::parse(text), Some(Factor(millionths)), "{text}");
        }
        for factor in [0, 1, 999_999, 1_000_000, 3_300_000, u64::MAX].map(Factor) {
            assert_eq!(Factor::parse(&factor.to_string()), Some(factor));
        }
        for text in ["", ".", "1e3", "-1", "0.0000001", "1.-", "inf", "99999999999999999999"] {
            assert_eq!(Factor::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_part_is_rounded_down() {
        assert_eq!((Factor(1_500_000).of(3), Factor::whole(3).of(7), Factor(1).of(999_999)), (4, 21, 0));
    }
}
