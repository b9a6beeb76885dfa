//! Exact comparison of sums of fractions: a floating-point filter with an error bound, exact rationals behind it.

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::Zero;

/// An exact fraction of unbounded size.
pub type Rational = num_rational::BigRational;

/// The fraction `numerator / denominator`. Panics if `denominator` is 0.
pub fn rational(numerator: impl Into<BigInt>, denominator: impl Into<BigInt>) -> Rational {
    Rational::new(numerator.into(), denominator.into())
}

/// `value` as a fraction.
pub(crate) fn whole(value: impl Into<BigInt>) -> Rational {
    Rational::from_integer(value.into())
}

/// The least integer not below `value`, as `u64`; saturates at 0 and at `u64::MAX`.
pub(crate) fn ceil_ticks(value: &Rational) -> u64 {
    clamp_ticks(value.ceil().to_integer())
}

/// The greatest integer not above `value`, as `u64`; saturates at 0 and at `u64::MAX`.
pub(crate) fn floor_ticks(value: &Rational) -> u64 {
    clamp_ticks(value.floor().to_integer())
}

fn clamp_ticks(value: BigInt) -> u64 {
    if value < BigInt::zero() { 0 } else { u64::try_from(value).unwrap_or(u64::MAX) }
}

/// The sign of `sum(numerator / denominator)`: `Less` for a negative sum. Denominators are positive.
///
/// Filter: each term is computed with a relative error below 4 units of 2^-53 (two conversions, one division), and
/// n - 1 additions add at most n - 1 such units of the sum of magnitudes. `(n + 8) * 2^-52 * magnitudes` bounds both
/// with a factor of two to spare, which also covers the rounding of the magnitudes themselves.
pub(crate) fn sign_of_sum(terms: impl Iterator<Item = (i128, u128)> + Clone) -> Ordering {
    let (mut sum, mut magnitude, mut count) = (0.0f64, 0.0f64, 0.0f64);
    for (numerator, denominator) in terms.clone() {
        let term = numerator as f64 / denominator as f64;
        sum += term;
        magnitude += term.abs();
        count += 1.0;
    }
    if sum.abs() > (count + 8.0) * f64::EPSILON * magnitude {
        return sum.total_cmp(&0.0);
    }
    exact_sum(terms).cmp(&Rational::zero())
}

/// The sum of `numerator / denominator`, exactly. Equal denominators are merged first: periods repeat.
pub(crate) fn exact_sum(terms: impl Iterator<Item = (i128, u128)>) -> Rational {
    let (numerator, denominator) = sum(terms);
    Rational::new(numerator, denominator)
}

/// Beyond so many bits the denominator of [`sum_for_people`] is `2^64`.
const LONG_BITS: u64 = 16_384;

/// The same, rounded up to the next multiple of `2^-64` if hundreds of different periods make it a fraction of many
/// thousand digits: to reduce that, or to compare two, takes longer than all tests.
pub(crate) fn sum_for_people(terms: impl Iterator<Item = (i128, u128)>) -> Rational {
    let (numerator, denominator) = sum(terms);
    if denominator.bits() <= LONG_BITS {
        return Rational::new(numerator, denominator);
    }
    let one = BigInt::from(1) << 64;
    Rational::new(Integer::div_ceil(&(numerator * &one), &denominator), one)
}

/// The least number of thousandths not below the sum, saturating like [`ceil_ticks`].
pub(crate) fn thousandths_of_sum(terms: impl Iterator<Item = (i128, u128)>) -> u64 {
    let (numerator, denominator) = sum(terms);
    clamp_ticks(Integer::div_ceil(&(numerator * 1_000), &denominator))
}

/// The sum's numerator and denominator, the latter positive; not in lowest terms.
fn sum(terms: impl Iterator<Item = (i128, u128)>) -> (BigInt, BigInt) {
    let mut sorted: Vec<(u128, BigInt)> = terms.map(|(n, d)| (d, BigInt::from(n))).collect();
    sorted.sort_unstable_by_key(|term| term.0);
    let mut merged: Vec<(u128, BigInt)> = Vec::new();
    for (denominator, numerator) in sorted {
        match merged.last_mut() {
            Some(last) if last.0 == denominator => last.1 += numerator,
            _ => merged.push((denominator, numerator)),
        }
    }
    sum_tree(merged)
}

/// Sums fractions pairwise without reducing them: a greatest common divisor costs far more than the multiplications it
/// would shorten.
fn sum_tree(terms: Vec<(u128, BigInt)>) -> (BigInt, BigInt) {
    let mut level: Vec<(BigInt, BigInt)> = terms.into_iter().map(|(d, n)| (n, BigInt::from(d))).collect();
    while level.len() > 1 {
        level = level
            .chunks(2)
            .map(|pair| match pair {
                [(n1, d1), (n2, d2)] => (n1 * d2 + n2 * d1, d1 * d2),
                rest => rest[0].clone(),
            })
            .collect();
    }
    level.pop().unwrap_or_else(|| (BigInt::zero(), BigInt::from(1)))
}

/// A fraction of 128-bit integers that compares without overflow; the speed factor of FF-DBF.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    pub(crate) numerator: i128,
    /// Always positive.
    pub(crate) denominator: i128,
}

impl Ratio {
    /// `numerator / denominator` in lowest terms, with a positive denominator. Panics if it is 0.
    pub(crate) fn new(numerator: i128, denominator: i128) -> Self {
        assert!(denominator != 0, "a fraction needs a denominator other than zero");
        let divisor = num_integer::gcd(numerator, denominator) * denominator.signum();
        Ratio { numerator: numerator / divisor, denominator: denominator / divisor }
    }

    pub(crate) fn to_rational(self) -> Rational {
        rational(self.numerator, self.denominator)
    }
}

impl Ord for Ratio {
    /// Cross-multiplies where that fits; else compares whole parts and then the reciprocals of the remainders, as
    /// Euclid's algorithm does, so that no intermediate exceeds the operands.
    fn cmp(&self, other: &Self) -> Ordering {
        let cross = self.numerator.checked_mul(other.denominator).zip(other.numerator.checked_mul(self.denominator));
        if let Some((left, right)) = cross {
            return left.cmp(&right);
        }
        let (mut a, mut b) = ((self.numerator, self.denominator), (other.numerator, other.denominator));
        loop {
            let order = a.0.div_euclid(a.1).cmp(&b.0.div_euclid(b.1));
            if order != Ordering::Equal {
                return order;
            }
            let rest = (a.0.rem_euclid(a.1), b.0.rem_euclid(b.1));
            match rest {
                (0, 0) => return Ordering::Equal,
                (0, _) => return Ordering::Less,
                (_, 0) => return Ordering::Greater,
                // a < b iff 1/a > 1/b: swap the sides and the roles of numerator and denominator.
                (left, right) => (a, b) = ((b.1, right), (a.1, left)),
            }
        }
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Ratio {}

/// Repeated division by the same number: a multiplication by its reciprocal, corrected to be exact.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisor {
    value: u64,
    reciprocal: f64,
}

impl Divisor {
    /// Prepares division by `value`. Panics if it is 0.
    pub(crate) fn new(value: u64) -> Self {
        assert!(value != 0, "division by zero");
        Divisor { value, reciprocal: 1.0 / value as f64 }
    }

    /// Quotient and remainder of `dividend / self`.
    ///
    /// Below 2^51 the quotient is below 2^51 and the product's relative error (two roundings) below 2^-51, so the
    /// truncated quotient is off by at most one, and one correction either way makes it exact.
    pub(crate) fn divide(self, dividend: u64) -> (u64, u64) {
        if dividend >= 1 << 51 {
            return (dividend / self.value, dividend % self.value);
        }
        let quotient = (dividend as i64 as f64 * self.reciprocal) as i64 as u64;
        let rest = dividend.wrapping_sub(quotient.wrapping_mul(self.value));
        if (rest as i64) < 0 {
            (quotient - 1, rest.wrapping_add(self.value))
        } else if rest >= self.value {
            (quotient + 1, rest - self.value)
        } else {
            (quotient, rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_cancels_exactly_has_no_sign() {
        let third = |n: i128| (n, 3u128);
        assert_eq!(sign_of_sum([third(1), third(1), third(1), (-1, 1)].into_iter()), Ordering::Equal);
        let huge = 1u128 << 90;
        assert_eq!(sign_of_sum([third(1), third(2), (-1, 1), (1, huge)].into_iter()), Ordering::Greater);
        assert_eq!(sign_of_sum([third(1), third(2), (-1, 1), (-1, huge)].into_iter()), Ordering::Less);
    }

    #[test]
    fn a_sum_for_people_is_the_exact_one_or_up_to_a_64_bit_fraction_more() {
        let terms = |count: u128| (0..count).map(|index| (3 + index as i128 % 5, 1_000_003 + 2 * index));
        assert_eq!(sum_for_people(terms(100)), exact_sum(terms(100)));
        let (exact, rounded) = (exact_sum(terms(2_000)), sum_for_people(terms(2_000)));
        assert!(exact.denom().bits() > LONG_BITS && rounded.denom().bits() <= 65);
        let more = rounded - &exact;
        assert!(more > Rational::zero() && more < rational(1, BigInt::from(1) << 64), "{more}");
        for count in [0, 1, 100, 2_000] {
            let thousandths = ceil_ticks(&(exact_sum(terms(count)) * whole(1_000)));
            assert_eq!(thousandths_of_sum(terms(count)), thousandths);
        }
    }

    #[test]
    fn ratios_compare_where_cross_products_overflow() {
        let big = 1i128 << 100;
        let (a, b) = (Ratio::new(big + 1, big), Ratio::new(big + 2, big + 1));
        assert_eq!(a.cmp(&b), Ordering::Greater, "1 + 1/x exceeds 1 + 1/(x + 1)");
        assert_eq!(b.cmp(&a), Ordering::Less);
        assert_eq!(Ratio::new(-big - 1, big).cmp(&Ratio::new(-big - 2, big + 1)), Ordering::Less);
        assert_eq!(Ratio::new(2 * big, 2 * big + 2).cmp(&Ratio::new(big, big + 1)), Ordering::Equal);
    }

    #[test]
    fn division_by_reciprocal_is_exact_at_multiples_and_around_them() {
        let edge = 1u64 << 51;
        for value in [1, 2, 3, 7, 10, 33_000_000, 99_999_999, (1 << 40) - 1, (1 << 51) - 1] {
            let divisor = Divisor::new(value);
            for multiple in [0, 1, 2, 3, 1_000, edge / value, edge / value - edge / value / 3] {
                for dividend in [multiple * value, multiple * value + value - 1, (multiple * value).saturating_sub(1)] {
                    assert_eq!(divisor.divide(dividend), (dividend / value, dividend % value), "{dividend} / {value}");
                }
            }
        }
    }
}
