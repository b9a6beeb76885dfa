//! The description of a generator: what can be stored by name.

use crate::{Decimal, FixedSum, GpuUse, PeriodDistribution, SpecError, UtilizationDistribution};

/// The most tasks of one set.
pub const TASKS_MAX: usize = 10_000;

/// The largest cap on total utilization: below it no sum of utilizations can overflow.
pub(crate) const CAP_MAX: u64 = 1_000;

/// A generator of task sets with all its parameters. [`Display`](std::fmt::Display) and
/// [`FromStr`](std::str::FromStr) write and read it as one line; see the [crate] documentation for examples.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GeneratorSpec {
    /// How many tasks, and of which utilizations.
    pub utilizations: UtilizationRule,
    /// How periods are drawn, independently of utilizations.
    pub periods: PeriodDistribution,
    /// Which tasks use a GPU, and how; `None`: none does.
    pub gpu: Option<GpuUse>,
}

/// How many tasks a set has, and of which utilizations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UtilizationRule {
    /// Draw tasks one by one; the first that lifts the total above the cap is discarded and ends the set, so that
    /// `cap - max < total <= cap`. Source: paper 002, section 4.2; spec H.2.
    UntilCap {
        /// Of one task.
        distribution: UtilizationDistribution,
        /// On the total, at least the largest utilization of one task.
        cap: Decimal,
    },
    /// A given number of tasks with a given total.
    FixedSum(FixedSum),
}

impl GeneratorSpec {
    /// Tasks without GPU, drawn one by one up to a cap on their total utilization.
    pub fn until_cap(distribution: UtilizationDistribution, periods: PeriodDistribution, cap: Decimal) -> Self {
        GeneratorSpec { utilizations: UtilizationRule::UntilCap { distribution, cap }, periods, gpu: None }
    }

    /// Tasks without GPU, of given number and total utilization.
    pub fn fixed_sum(utilizations: FixedSum, periods: PeriodDistribution) -> Self {
        GeneratorSpec { utilizations: UtilizationRule::FixedSum(utilizations), periods, gpu: None }
    }

    /// The 18 scenarios of paper 002 (section 4.2) at one cap: six distributions of utilizations, each with short,
    /// moderate and long periods.
    pub fn edf_scenarios(cap: Decimal) -> impl Iterator<Item = GeneratorSpec> {
        let periods = [PeriodDistribution::SHORT, PeriodDistribution::MODERATE, PeriodDistribution::LONG];
        UtilizationDistribution::NAMED[..6]
            .iter()
            .flat_map(move |&(_, distribution)| periods.map(|periods| Self::until_cap(distribution, periods, cap)))
    }

    /// The task sets that paper 000 (section V) ran on its machine. The paper's caps are 7.5, 7.6, ... 11.5.
    pub fn klmirqd_runtime(cap: Decimal) -> Self {
        let exponential = UtilizationDistribution::Exponential { mean: Decimal::from_thousandths(500) };
        GeneratorSpec {
            gpu: Some(GpuUse::RUNTIME),
            ..Self::until_cap(exponential, PeriodDistribution::MULTIMEDIA, cap)
        }
    }

    /// The six distributions of utilizations of the schedulability study of paper 000 (appendix D).
    pub const KLMIRQD_DISTRIBUTIONS: [UtilizationDistribution; 6] = [
        UtilizationDistribution::uniform_thousandths(10, 100),
        UtilizationDistribution::uniform_thousandths(100, 400),
        UtilizationDistribution::uniform_thousandths(500, 900),
        UtilizationDistribution::Exponential { mean: Decimal::from_thousandths(100) },
        UtilizationDistribution::Exponential { mean: Decimal::from_thousandths(250) },
        UtilizationDistribution::Exponential { mean: Decimal::from_thousandths(500) },
    ];

    /// The ten bands of the share of GPU-using tasks of that study: 1 to 10 %, then 10 to 20 % ... 90 to 100 %.
    pub const KLMIRQD_BANDS: [(Decimal, Decimal); 10] = {
        let mut bands = [(Decimal::from_thousandths(10), Decimal::from_thousandths(100)); 10];
        let mut band = 1;
        while band < 10 {
            let start = band as u64 * 100;
            bands[band] = (Decimal::from_thousandths(start), Decimal::from_thousandths(start + 100));
            band += 1;
        }
        bands
    };

    /// Task sets of the schedulability study of paper 000 (appendix D): `band` of
    /// [`KLMIRQD_BANDS`](Self::KLMIRQD_BANDS), 1, 3 or 6 interrupts a GPU job, three quarters of it on the GPU.
    pub fn klmirqd_schedulability(
        distribution: UtilizationDistribution,
        band: (Decimal, Decimal),
        interrupts: u32,
        cap: Decimal,
    ) -> Self {
        let gpu = GpuUse {
            share_min: band.0,
            share_max: band.1,
            part: Decimal::from_thousandths(750),
            interrupts,
            ..GpuUse::RUNTIME
        };
        GeneratorSpec { gpu: Some(gpu), ..Self::until_cap(distribution, PeriodDistribution::MULTIMEDIA, cap) }
    }

    /// Whether task sets can be drawn from it. Done by [`generate`](crate::generate) and on reading text.
    pub fn validate(&self) -> Result<(), SpecError> {
        match &self.utilizations {
            UtilizationRule::UntilCap { distribution, cap } => {
                distribution.validate()?;
                let (cap, largest) = (*cap, distribution.max());
                if cap < largest || cap > Decimal::from_thousandths(CAP_MAX * 1_000) {
                    return Err(SpecError::Cap { cap, largest });
                }
            }
            UtilizationRule::FixedSum(fixed) => fixed.validate()?,
        }
        self.periods.validate()?;
        self.gpu.iter().try_for_each(GpuUse::validate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bands_cover_one_to_a_hundred_percent() {
        let bands = GeneratorSpec::KLMIRQD_BANDS;
        assert_eq!(bands[0].0, Decimal::from_thousandths(10));
        assert!(bands.windows(2).all(|pair| pair[0].1 == pair[1].0));
        assert_eq!(bands[9].1, Decimal::ONE);
    }

    #[test]
    fn a_cap_that_may_leave_a_set_empty_is_refused_with_the_way_out() {
        let heavy = UtilizationDistribution::uniform_thousandths(500, 900);
        let spec = |cap| GeneratorSpec::until_cap(heavy, PeriodDistribution::SHORT, Decimal::from_thousandths(cap));
        let error = spec(899).validate().expect_err("a task of 0.9 does not fit").to_string();
        assert!(error.contains("cap 0.899") && error.contains("0.9,"), "{error}");
        assert_eq!(spec(900).validate(), Ok(()));
        assert_eq!(spec(1_000_000).validate(), Ok(()));
        assert!(spec(1_000_001).validate().is_err());
    }
}
