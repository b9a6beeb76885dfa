//! The two numbers of this crate: decimals as people write parameters, utilizations as they are drawn.

use std::fmt;
use std::str::FromStr;

use laxity_model::Nanos;

use crate::ParseSpecError;

/// A non-negative decimal number with at most nine digits after the point, exact: the parameters of a generator.
///
/// Kept as an integer number of 10^-9, so that a spec that was written and read again is the same spec.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Decimal(u64);

/// A utilization: an integer number of 2^-53, so that the sum over a task set is exact.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Utilization(u64);

impl Decimal {
    /// Zero.
    pub const ZERO: Decimal = Decimal(0);
    /// One.
    pub const ONE: Decimal = Decimal(1_000_000_000);

    /// `billionths` times 10^-9.
    pub const fn from_billionths(billionths: u64) -> Self {
        Decimal(billionths)
    }

    /// `thousandths` times 10^-3: `from_thousandths(500)` is 0.5. Panics above 18 million.
    pub const fn from_thousandths(thousandths: u64) -> Self {
        Decimal(thousandths.checked_mul(1_000_000).expect("parameters stay below 18 million"))
    }

    /// The number in units of 10^-9.
    pub const fn billionths(self) -> u64 {
        self.0
    }

    /// The largest utilization that is not above this number; saturates at 2048.
    pub const fn utilization(self) -> Utilization {
        let units = ((self.0 as u128) << Utilization::BITS) / Decimal::ONE.0 as u128;
        Utilization(if units > u64::MAX as u128 { u64::MAX } else { units as u64 })
    }
}

impl Utilization {
    /// Fraction bits of a utilization.
    pub const BITS: u32 = 53;
    /// No utilization at all.
    pub const ZERO: Utilization = Utilization(0);
    /// One CPU, fully used.
    pub const ONE: Utilization = Utilization(1 << Self::BITS);

    /// `units` times 2^-53.
    pub const fn from_units(units: u64) -> Self {
        Utilization(units)
    }

    /// The utilization in units of 2^-53.
    pub const fn units(self) -> u64 {
        self.0
    }

    /// Execution time of a task of this utilization: `max(1 ns, floor(u * period))` (spec H.5).
    ///
    /// Cannot overflow for utilizations up to 1: the product of 54 and 64 bits fits 128, the result is at most the
    /// period.
    pub const fn cost(self, period: Nanos) -> Nanos {
        let cost = (self.0 as u128 * period.0 as u128) >> Self::BITS;
        if cost == 0 { Nanos(1) } else { Nanos(cost as u64) }
    }

    /// The utilization as a number, for tables and plots; decisions compare integers.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / Self::ONE.0 as f64
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.0 / Decimal::ONE.0, self.0 % Decimal::ONE.0);
        if fraction == 0 {
            return f.pad(&whole.to_string());
        }
        let digits = format!("{fraction:09}");
        f.pad(&format!("{whole}.{}", digits.trim_end_matches('0')))
    }
}

impl FromStr for Decimal {
    type Err = ParseSpecError;

    /// Reads `2`, `0.25` or `.5`. `Err` for signs, exponents, more than nine decimals and numbers above 18 billion.
    fn from_str(text: &str) -> Result<Self, ParseSpecError> {
        parse_decimal(text).ok_or_else(|| ParseSpecError::Number { text: text.to_owned() })
    }
}

fn parse_decimal(text: &str) -> Option<Decimal> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits_only = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !digits_only(whole) || !digits_only(fraction) || fraction.len() > 9 {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let billionths: u64 = format!("{fraction:0<9}").parse().ok()?;
    whole.checked_mul(Decimal::ONE.0)?.checked_add(billionths).map(Decimal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_both_ways() {
        for text in ["0", "2", "0.001", "31.5", "0.000000001", "18446744073.709551615"] {
            assert_eq!(text.parse::<Decimal>().map(|number| number.to_string()), Ok(text.to_owned()));
        }
        assert_eq!(".5".parse(), Ok(Decimal::from_thousandths(500)));
        for text in ["", ".", "-1", "+1", "1e3", "0.0000000001", "18446744073.709551616", "1.2.3", "½"] {
            assert_eq!(text.parse::<Decimal>(), Err(ParseSpecError::Number { text: text.to_owned() }));
        }
    }

    #[test]
    fn a_decimal_becomes_the_largest_utilization_not_above_it() {
        assert_eq!(Decimal::ONE.utilization(), Utilization::ONE);
        assert_eq!(Decimal::from_thousandths(1).utilization().units(), (1 << 53) / 1000);
        assert_eq!(Decimal::from_billionths(u64::MAX).utilization().units(), u64::MAX);
    }

    #[test]
    fn a_cost_is_at_least_a_nanosecond_and_at_most_the_period() {
        assert_eq!(Utilization::ZERO.cost(Nanos(1_000)), Nanos(1));
        assert_eq!(Utilization::from_units(1 << 52).cost(Nanos(7)), Nanos(3));
        assert_eq!(Utilization::ONE.cost(Nanos(u64::MAX)), Nanos(u64::MAX));
    }
}
