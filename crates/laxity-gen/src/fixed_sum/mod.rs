//! A given number of tasks with a given total utilization: one file per method.

mod dirichlet_rescale;
mod pair_exchange;
mod randfixedsum;
mod uunifast;

use std::fmt;

use laxity_model::rng::SplitMix64;

use crate::{Decimal, GenerateError, SpecError, TASKS_MAX, Utilization};

/// Utilizations of a given number of tasks with a given total, uniform over all vectors within the bounds as far as
/// the method achieves it. The total is met exactly, in units of 2^-53.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FixedSum {
    /// How they are drawn.
    pub method: FixedSumMethod,
    /// Number of tasks, at least 1.
    pub tasks: usize,
    /// Total utilization.
    pub total: Decimal,
    /// Smallest utilization of each task.
    pub min: PerTask,
    /// Largest utilization of each task, at most 1.
    pub max: PerTask,
}

/// One number for every task, or one for each.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PerTask {
    /// The same for every task.
    All(Decimal),
    /// One entry a task.
    Each(Vec<Decimal>),
}

/// How a [`FixedSum`] is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FixedSumMethod {
    /// Uniform over vectors of sum `total`, discarded while a task exceeds 1. Bounds 0 and 1 only; hopeless for a
    /// total near the number of tasks. Source: Bini & Buttazzo 2005; Davis & Burns 2011.
    UUniFastDiscard,
    /// Exactly uniform; the same bounds for every task; a table of n^2 numbers.
    /// Source: Stafford 2006; Emberson, Stafford & Davis, WATERS 2010.
    RandFixedSum,
    /// Bounds of each task. Source: Griffin, Bate & Davis, RTSS 2020.
    ///
    /// The source calls it uniform. It is where the regions cut off by different bounds do not overlap; where they do
    /// (many tasks, very different bounds) a test of this crate sees the bias. Use it to compare with published work,
    /// and [`PairExchange`](Self::PairExchange) otherwise. Each rescaling spends random bits; points that run out are
    /// drawn again, and from about 200 tasks of half their largest total it may give up.
    DirichletRescale,
    /// Bounds of each task. A Markov chain on integers: two random tasks exchange utilization, uniformly over what
    /// their bounds allow, `32 n ceil(log2 2n)` times over. The uniform distribution is its only stationary one, so it is
    /// uniform in the limit; it never fails, and uses no floating point.
    PairExchange,
}

/// The bounds of the tasks, in units of 2^-53, and the total: `sum min <= total <= sum max`, `min <= max <= 1`.
struct Problem {
    total: u64,
    min: Vec<u64>,
    max: Vec<u64>,
}

impl FixedSum {
    /// `tasks` tasks of total utilization `total`, each at most 1.
    pub fn new(method: FixedSumMethod, tasks: usize, total: Decimal) -> Self {
        FixedSum { method, tasks, total, min: PerTask::All(Decimal::ZERO), max: PerTask::All(Decimal::ONE) }
    }

    /// The same with bounds on the utilization of each task.
    pub fn within(self, min: PerTask, max: PerTask) -> Self {
        FixedSum { min, max, ..self }
    }

    /// Whether utilizations can be drawn from it, except that the two methods that discard may find nothing.
    pub fn validate(&self) -> Result<(), SpecError> {
        let limit = self.method.tasks_max();
        let tasks = self.tasks;
        if !(1..=limit).contains(&tasks) {
            return Err(SpecError::TaskCount { tasks, limit });
        }
        for bound in [&self.min, &self.max] {
            if let PerTask::Each(each) = bound
                && each.len() != tasks
            {
                return Err(SpecError::BoundCount { given: each.len(), tasks });
            }
        }
        self.method.supports(self)?;
        let bounds = || (0..tasks).map(|task| (self.min.of(task), self.max.of(task)));
        for (task, (min, max)) in bounds().enumerate() {
            if min > max || max > Decimal::ONE {
                return Err(SpecError::Bounds { task, min, max });
            }
        }
        // Cannot overflow: at most TASKS_MAX times 10^9.
        let min = Decimal::from_billionths(bounds().map(|(min, _)| min.billionths()).sum());
        let max = Decimal::from_billionths(bounds().map(|(_, max)| max.billionths()).sum());
        let total = self.total;
        if total < min || total > max || total.billionths() == 0 || total.utilization() > UTILIZATION_MAX {
            return Err(SpecError::Total {
                total,
                tasks,
                min,
                max: max.min(Decimal::from_thousandths(TOTAL_MAX * 1000)),
            });
        }
        Ok(())
    }

    /// The utilizations; their sum is exactly `total`. Must be valid.
    pub(crate) fn draw(&self, rng: &mut SplitMix64) -> Result<Vec<Utilization>, GenerateError> {
        let problem = Problem::of(self);
        let drawn = match self.method {
            FixedSumMethod::UUniFastDiscard => uunifast::draw(&problem, rng),
            FixedSumMethod::RandFixedSum => Ok(randfixedsum::draw(&problem, rng)),
            FixedSumMethod::DirichletRescale => dirichlet_rescale::draw(&problem, rng),
            FixedSumMethod::PairExchange => Ok(pair_exchange::draw(&problem, rng)),
        };
        let mut units = drawn.map_err(|Discarded { attempts }| GenerateError::Hopeless {
            method: self.method,
            attempts,
            tasks: self.tasks,
            total: self.total,
        })?;
        problem.settle(&mut units);
        Ok(units.into_iter().map(Utilization::from_units).collect())
    }
}

/// The largest total utilization drawn.
const TOTAL_MAX: u64 = crate::spec::CAP_MAX;
const UTILIZATION_MAX: Utilization = Decimal::from_thousandths(TOTAL_MAX * 1000).utilization();

/// A method that discards gave up.
struct Discarded {
    attempts: u32,
}

impl PerTask {
    /// The number of one task. Panics if there is none for it.
    pub fn of(&self, task: usize) -> Decimal {
        match self {
            PerTask::All(number) => *number,
            PerTask::Each(numbers) => numbers[task],
        }
    }

    fn is_same_for_all(&self) -> bool {
        match self {
            PerTask::All(_) => true,
            PerTask::Each(numbers) => numbers.windows(2).all(|pair| pair[0] == pair[1]),
        }
    }
}

impl FixedSumMethod {
    /// Every method.
    pub const ALL: [FixedSumMethod; 4] =
        [Self::UUniFastDiscard, Self::RandFixedSum, Self::DirichletRescale, Self::PairExchange];

    /// The name in specs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::UUniFastDiscard => "uunifast-discard",
            Self::RandFixedSum => "randfixedsum",
            Self::DirichletRescale => "dirichlet-rescale",
            Self::PairExchange => "pair-exchange",
        }
    }

    /// The most tasks it draws. RandFixedSum keeps a table of n^2 numbers of 8 bytes.
    pub const fn tasks_max(self) -> usize {
        match self {
            Self::RandFixedSum => 1_000,
            Self::UUniFastDiscard | Self::DirichletRescale | Self::PairExchange => TASKS_MAX,
        }
    }

    /// Whether the method can keep the bounds of `fixed`.
    fn supports(self, fixed: &FixedSum) -> Result<(), SpecError> {
        let supported = match self {
            Self::UUniFastDiscard => {
                let all = |bound: &PerTask, wanted| (0..fixed.tasks).all(|task| bound.of(task) == wanted);
                all(&fixed.min, Decimal::ZERO) && all(&fixed.max, Decimal::ONE)
            }
            Self::RandFixedSum => fixed.min.is_same_for_all() && fixed.max.is_same_for_all(),
            Self::DirichletRescale | Self::PairExchange => true,
        };
        if supported { Ok(()) } else { Err(SpecError::BoundsUnsupported { method: self }) }
    }
}

impl fmt::Display for FixedSumMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Problem {
    /// Rounding decimals down could put the total above the sum of the largest utilizations by less than a unit a
    /// task; it is moved back, as the bounds matter more.
    fn of(fixed: &FixedSum) -> Self {
        let units = |bound: &PerTask| (0..fixed.tasks).map(|task| bound.of(task).utilization().units()).collect();
        let (min, max): (Vec<u64>, Vec<u64>) = (units(&fixed.min), units(&fixed.max));
        let total = fixed.total.utilization().units().min(max.iter().sum());
        Problem { total, min, max }
    }

    /// Moves a vector that is right but for rounding onto the exact total, within the bounds: the last component takes
    /// what is missing or too much, and what its bounds refuse goes to the one before it.
    fn settle(&self, units: &mut [u64]) {
        for (value, (&min, &max)) in units.iter_mut().zip(self.min.iter().zip(&self.max)) {
            *value = (*value).clamp(min, max);
        }
        let sum: u64 = units.iter().sum();
        let (mut missing, mut excess) = (self.total.saturating_sub(sum), sum.saturating_sub(self.total));
        for (index, value) in units.iter_mut().enumerate().rev() {
            let up = missing.min(self.max[index] - *value);
            let down = excess.min(*value - self.min[index]);
            *value = *value + up - down;
            missing -= up;
            excess -= down;
        }
        assert_eq!((missing, excess), (0, 0), "sum min <= total <= sum max, so the bounds leave room for the total");
    }
}

/// 2^53, to scale between utilizations and their units. Products with it are exact.
const SCALE: f64 = (1u64 << Utilization::BITS) as f64;

/// A uniform fraction in [0, 1), exact in an `f64`.
fn fraction(rng: &mut SplitMix64) -> f64 {
    rng.unit53() as f64 / SCALE
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: u64 = Utilization::ONE.units();

    #[test]
    fn the_last_component_settles_the_sum_and_its_bounds_pass_the_rest_on() {
        let problem = Problem { total: 100, min: vec![0, 10, 0], max: vec![ONE, 40, 20] };
        let settled = |mut units: Vec<u64>| {
            problem.settle(&mut units);
            units
        };
        assert_eq!(settled(vec![60, 30, 11]), [60, 30, 10]);
        assert_eq!(settled(vec![30, 30, 10]), [40, 40, 20]);
        assert_eq!(settled(vec![99, 12, 1]), [90, 10, 0]);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused_with_numbers() {
        let thousandths = Decimal::from_thousandths;
        let fixed = |method, tasks, total| FixedSum::new(method, tasks, thousandths(total));
        let refused = |fixed: FixedSum| fixed.validate().expect_err("must be refused").to_string();
        for method in FixedSumMethod::ALL {
            let error = refused(fixed(method, 4, 4_500));
            assert!(error.contains("4.5") && error.contains("4 tasks"), "{error}");
            assert!(refused(fixed(method, 0, 1_000)).contains("0 tasks"));
            assert!(refused(fixed(method, method.tasks_max() + 1, 1_000)).contains("tasks"));
            assert!(refused(fixed(method, 4, 0)).contains("total utilization 0"));
            assert_eq!(fixed(method, 4, 4_000).validate(), Ok(()));
        }
        let each = PerTask::Each(vec![thousandths(200), thousandths(300)]);
        let zero = || PerTask::All(Decimal::ZERO);
        for (method, bounded) in [(FixedSumMethod::UUniFastDiscard, "0 to 1"), (FixedSumMethod::RandFixedSum, "same")] {
            assert!(refused(fixed(method, 2, 400).within(zero(), each.clone())).contains(bounded));
        }
        let rescale = |tasks, total| fixed(FixedSumMethod::DirichletRescale, tasks, total);
        assert!(refused(rescale(3, 400).within(zero(), each.clone())).contains("2 utilization bounds for 3 tasks"));
        assert!(refused(rescale(2, 600).within(zero(), each.clone())).contains("0 to 0.5"));
        assert!(refused(rescale(2, 400).within(PerTask::All(thousandths(250)), each)).contains("task 0"));
    }
}
