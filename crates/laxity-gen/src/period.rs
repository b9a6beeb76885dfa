//! Distributions of periods.

use laxity_model::Nanos;
use laxity_model::rng::SplitMix64;

use crate::SpecError;

/// A distribution over the multiples of `granularity` from `min` to `max`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeriodDistribution {
    /// Whether periods or their logarithms are equally likely.
    pub shape: PeriodShape,
    /// Shortest period, a multiple of `granularity`.
    pub min: Nanos,
    /// Longest period, a multiple of `granularity`.
    pub max: Nanos,
    /// Every period is a multiple of this.
    pub granularity: Nanos,
}

/// The shape of a [`PeriodDistribution`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PeriodShape {
    /// Every period is equally likely.
    Uniform,
    /// Every order of magnitude is equally likely: `exp` of a uniform draw from `[ln min, ln(max + granularity))`,
    /// rounded down to the granularity. Source: Emberson, Stafford & Davis, WATERS 2010, section III.
    LogUniform,
}

impl PeriodDistribution {
    /// 3 to 33 whole ms. Source: paper 002, section 4.2.
    pub const SHORT: Self = Self::uniform_millis(3, 33);
    /// 10 to 100 whole ms. Source: paper 002, section 4.2.
    pub const MODERATE: Self = Self::uniform_millis(10, 100);
    /// 50 to 250 whole ms. Source: paper 002, section 4.2.
    pub const LONG: Self = Self::uniform_millis(50, 250);
    /// 15 to 60 ms. Source: paper 000, section V, which says nothing of whole ms: steps of 1 us stand for none.
    pub const MULTIMEDIA: Self =
        PeriodDistribution { granularity: Nanos::from_micros(1), ..Self::uniform_millis(15, 60) };

    /// The distributions with a name of their own.
    pub const NAMED: [(&'static str, Self); 4] =
        [("short", Self::SHORT), ("moderate", Self::MODERATE), ("long", Self::LONG), ("multimedia", Self::MULTIMEDIA)];

    /// Whole milliseconds from `min` to `max`, all equally likely.
    pub const fn uniform_millis(min: u64, max: u64) -> Self {
        PeriodDistribution {
            shape: PeriodShape::Uniform,
            min: Nanos::from_millis(min),
            max: Nanos::from_millis(max),
            granularity: Nanos::from_millis(1),
        }
    }

    /// Multiples of `granularity` from `min` to `max`, all orders of magnitude equally likely.
    pub const fn log_uniform(min: Nanos, max: Nanos, granularity: Nanos) -> Self {
        PeriodDistribution { shape: PeriodShape::LogUniform, min, max, granularity }
    }

    /// Whether periods can be drawn from it.
    pub fn validate(&self) -> Result<(), SpecError> {
        let PeriodDistribution { min, max, granularity, .. } = *self;
        if min.is_zero() || min > max || max > Nanos::LONGEST {
            return Err(SpecError::PeriodRange { min, max });
        }
        if granularity.is_zero() || !min.0.is_multiple_of(granularity.0) || !max.0.is_multiple_of(granularity.0) {
            return Err(SpecError::PeriodGranularity { min, max, granularity });
        }
        Ok(())
    }

    /// A period. One draw from `rng`. Panics where [`validate`](Self::validate) fails.
    pub fn draw(&self, rng: &mut SplitMix64) -> Nanos {
        let steps = match self.shape {
            // The remainder favours small periods by less than one in 2^64 / count; the reference vectors want it.
            PeriodShape::Uniform => rng.next_u64() % ((self.max.0 - self.min.0) / self.granularity.0 + 1),
            PeriodShape::LogUniform => self.draw_log_uniform(rng),
        };
        Nanos(self.min.0 + steps * self.granularity.0)
    }

    /// Steps of the granularity above `min`.
    fn draw_log_uniform(&self, rng: &mut SplitMix64) -> u64 {
        let min = self.min.0 as f64;
        let ratio = (self.max.0 + self.granularity.0) as f64 / min;
        let fraction = rng.unit53() as f64 / (1u64 << 53) as f64;
        // min * ratio^fraction = exp(uniform[ln min, ln(max + g))). A cast saturates, so rounding cannot leave the range.
        let span = min * libm::pow(ratio, fraction) - min;
        let steps = (span / self.granularity.0 as f64) as u64;
        steps.min((self.max.0 - self.min.0) / self.granularity.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_periods_are_whole_milliseconds_and_reach_both_ends() {
        let mut rng = SplitMix64::new(1);
        let mut seen = [0u32; 31];
        for _ in 0..31_000 {
            let period = PeriodDistribution::SHORT.draw(&mut rng);
            assert_eq!(period.0 % 1_000_000, 0);
            seen[(period.0 / 1_000_000 - 3) as usize] += 1;
        }
        assert!(seen.iter().all(|&count| (850..1_150).contains(&count)), "{seen:?}");
    }

    #[test]
    fn log_uniform_periods_fill_every_decade_alike() {
        let millis = Nanos::from_millis;
        let periods = PeriodDistribution::log_uniform(millis(1), millis(999), millis(1));
        periods.validate().expect("a valid range");
        let mut rng = SplitMix64::new(2);
        let mut decades = [0u32; 3];
        for _ in 0..30_000 {
            let period = periods.draw(&mut rng);
            assert!(period >= periods.min && period <= periods.max && period.0.is_multiple_of(1_000_000), "{period}");
            decades[(period.0 / 1_000_000).ilog10() as usize] += 1;
        }
        assert!(decades.iter().all(|&count| (9_700..10_300).contains(&count)), "{decades:?}");
    }

    #[test]
    fn a_range_no_period_can_come_from_is_refused_with_its_numbers() {
        let millis = Nanos::from_millis;
        let refused = |min, max, granularity| {
            PeriodDistribution::log_uniform(min, max, granularity).validate().expect_err("must be refused").to_string()
        };
        assert!(refused(millis(9), millis(3), millis(1)).contains("9 ms"));
        assert!(refused(Nanos(0), millis(3), millis(1)).contains("0 ms"));
        assert!(refused(millis(3), Nanos(u64::MAX), millis(1)).contains("longest"));
        assert!(refused(millis(3), millis(10), millis(2)).contains("2 ms"));
        assert!(refused(millis(3), millis(10), Nanos(0)).contains("0 ms"));
    }
}
