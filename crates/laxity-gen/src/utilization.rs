//! Distributions of the utilization of one task, drawn independently of the others.

use laxity_model::rng::SplitMix64;

use crate::{Decimal, SpecError, Utilization};
use UtilizationDistribution::{Bimodal, Exponential, Uniform};

/// A distribution of task utilizations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UtilizationDistribution {
    /// Every utilization in `[min, max)` is equally likely.
    Uniform {
        /// Smallest.
        min: Decimal,
        /// Bound from above.
        max: Decimal,
    },
    /// Uniform over `[0.001, 0.5)` for `light_ninths` tasks out of nine, else over `[0.5, 0.9)`.
    /// Source: paper 002, section 4.2.
    Bimodal {
        /// Ninths of the tasks that are light: 8, 6 or 4 in the paper.
        light_ninths: u8,
    },
    /// Exponential; draws of 0 or above 1 are repeated, so the mean of what remains is smaller than `mean`.
    /// Source: paper 000, section V.
    Exponential {
        /// Mean before draws above 1 are rejected.
        mean: Decimal,
    },
}

impl UtilizationDistribution {
    /// The distributions with a name of their own: six of paper 002 (section 4.2), three of paper 000 (appendix D).
    pub const NAMED: [(&'static str, Self); 9] = [
        ("uni-light", Self::uniform_thousandths(1, 100)),
        ("uni-medium", Self::uniform_thousandths(100, 400)),
        ("uni-heavy", Self::uniform_thousandths(500, 900)),
        ("bimo-light", Bimodal { light_ninths: 8 }),
        ("bimo-medium", Bimodal { light_ninths: 6 }),
        ("bimo-heavy", Bimodal { light_ninths: 4 }),
        ("exp-light", Exponential { mean: Decimal::from_thousandths(100) }),
        ("exp-medium", Exponential { mean: Decimal::from_thousandths(250) }),
        ("exp-heavy", Exponential { mean: Decimal::from_thousandths(500) }),
    ];

    /// Uniform from `min` to `max` thousandths.
    pub const fn uniform_thousandths(min: u64, max: u64) -> Self {
        Uniform { min: Decimal::from_thousandths(min), max: Decimal::from_thousandths(max) }
    }

    /// No draw is above this.
    pub const fn max(&self) -> Decimal {
        match self {
            Uniform { max, .. } => *max,
            Bimodal { .. } => Decimal::from_thousandths(900),
            Exponential { .. } => Decimal::ONE,
        }
    }

    /// Whether utilizations can be drawn from it.
    pub fn validate(&self) -> Result<(), SpecError> {
        match *self {
            Uniform { min, max } if min == Decimal::ZERO || min >= max || max > Decimal::ONE => {
                Err(SpecError::UtilizationRange { min, max })
            }
            Bimodal { light_ninths } if light_ninths > 9 => Err(SpecError::BimodalShare { light_ninths }),
            // Above 1 most draws would be rejected, and the distribution would be nearly uniform anyway.
            Exponential { mean } if mean.utilization() == Utilization::ZERO || mean > Decimal::ONE => {
                Err(SpecError::ExponentialMean { mean })
            }
            _ => Ok(()),
        }
    }

    /// A utilization, at most 1. Takes one draw from `rng` (two if bimodal; more where draws are repeated).
    pub fn draw(&self, rng: &mut SplitMix64) -> Utilization {
        match *self {
            Uniform { min, max } => uniform(min, max, rng),
            Bimodal { light_ninths } => {
                if rng.next_u64() % 9 < u64::from(light_ninths) {
                    uniform(Decimal::from_thousandths(1), Decimal::from_thousandths(500), rng)
                } else {
                    uniform(Decimal::from_thousandths(500), Decimal::from_thousandths(900), rng)
                }
            }
            Exponential { mean } => exponential(mean, rng),
        }
    }
}

/// Uniform over `[min, max)`. One draw.
pub(crate) fn uniform(min: Decimal, max: Decimal, rng: &mut SplitMix64) -> Utilization {
    let (min, max) = (min.utilization().units(), max.utilization().units());
    let scaled = (u128::from(rng.unit53()) * u128::from(max - min)) >> Utilization::BITS;
    Utilization::from_units(min + scaled as u64)
}

/// `-mean * ln(1 - U01)`, repeated while 0 or above 1 (spec H.3).
fn exponential(mean: Decimal, rng: &mut SplitMix64) -> Utilization {
    let mean = mean.utilization().units() as f64;
    loop {
        let units = (mean * standard_exponential(rng)) as u64;
        if (1..=Utilization::ONE.units()).contains(&units) {
            return Utilization::from_units(units);
        }
    }
}

/// An exponential draw of mean 1. `1 - U01` is exact in 53 bits and never 0, so the result is finite.
pub(crate) fn standard_exponential(rng: &mut SplitMix64) -> f64 {
    let one = Utilization::ONE.units();
    -libm::log((one - rng.unit53()) as f64 / one as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean over many draws, each checked to lie in `(0, max]`.
    fn mean_of(distribution: UtilizationDistribution, draws: u32) -> f64 {
        let mut rng = SplitMix64::new(4);
        let max = distribution.max().utilization();
        let total: f64 = (0..draws)
            .map(|_| {
                let drawn = distribution.draw(&mut rng);
                assert!(drawn > Utilization::ZERO && drawn <= max);
                drawn.as_f64()
            })
            .sum();
        total / f64::from(draws)
    }

    /// Expected means: `(a + b) / 2`; the weighted sum of 0.2505 and 0.7; `m - 1 / (e^(1/m) - 1)` for an exponential
    /// cut off at 1. Standard errors are below 0.0009.
    #[test]
    fn every_named_distribution_has_its_mean() {
        let expected = [0.0505, 0.25, 0.7, 0.300_44, 0.400_33, 0.500_22, 0.099_955, 0.231_343, 0.343_482];
        for ((name, distribution), expected) in UtilizationDistribution::NAMED.into_iter().zip(expected) {
            let mean = mean_of(distribution, 100_000);
            assert!((mean - expected).abs() < 0.004, "{name}: {mean} instead of {expected}");
        }
    }

    #[test]
    fn a_distribution_nothing_can_come_from_is_refused() {
        let uniform = UtilizationDistribution::uniform_thousandths;
        for distribution in [
            uniform(0, 100),
            uniform(300, 300),
            uniform(400, 300),
            uniform(500, 1_001),
            Bimodal { light_ninths: 10 },
            Exponential { mean: Decimal::ZERO },
            Exponential { mean: Decimal::from_thousandths(1_001) },
        ] {
            assert!(distribution.validate().is_err(), "{distribution:?}");
        }
        assert_eq!(uniform(500, 1_000).validate(), Ok(()));
    }
}
