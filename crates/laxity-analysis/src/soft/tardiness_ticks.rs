//! Bounds of the compliant vector in whole ticks, without its exact fractions where they make no difference.

use super::compliant::{root, shifted_points};
use super::{PriorityPoints, check_bounded};
use crate::exact::ceil_ticks;
use crate::{AnalysisTask, DeadlineClass, Outcome, TaskSet};

/// [`compliant_vector`](super::compliant_vector) under global EDF, rounded up to the tick: the same numbers as its
/// [`tardiness_ticks`](super::CompliantVector::tardiness_ticks), a thousand times faster for hundreds of periods.
///
/// # Errors
/// [`Outcome::Infeasible`] if tardiness is unbounded.
pub fn tardiness_ticks(set: &TaskSet) -> Result<Vec<u64>, Outcome> {
    let late = |(task, response): (&AnalysisTask, u64)| response.saturating_sub(task.deadline);
    Ok(set.tasks().iter().zip(response_time_ticks(set)?).map(late).collect())
}

/// The same of response times: the numbers of [`response_time_ticks`](super::CompliantVector::response_time_ticks), which are less
/// than the deadline where that is far beyond the period.
///
/// With `w = m * s` the bounds are `ceil((w + (m - 1) * C_i + m * (D_i - min(D))) / m)`, whose only fraction is w: rounding it up
/// first changes nothing. For implicit deadlines `w` is the root of
///
/// ```text
/// F(w) = sum of the K largest u_i * (m * T_i - C_i - m * min(T) + w) + U * m * min(T) - m * w
/// ```
///
/// F is convex with slope at most -1, so a floating-point value `w0` is no further from the root than `|F(w0)|`, and a
/// bound on the rounding errors of F turns that into an interval. If rounding up leaves a choice, and for other deadlines, `w` is
/// found exactly.
///
/// # Errors
/// [`Outcome::Infeasible`] if tardiness is unbounded.
pub fn response_time_ticks(set: &TaskSet) -> Result<Vec<u64>, Outcome> {
    check_bounded(set).map_err(Outcome::Infeasible)?;
    let shifted = shifted_points(set, PriorityPoints::Edf);
    let quick = if set.class() == DeadlineClass::Implicit { Balance::new(set).root_ceiling() } else { None };
    let root = i128::from(quick.unwrap_or_else(|| ceil_ticks(&root(set, &shifted))));
    let cpus = i128::from(set.cpus());
    let bound = |(task, shifted): (&AnalysisTask, &i128)| {
        let response = divide_up(root + (cpus - 1) * i128::from(task.wcet) + shifted, cpus);
        u64::try_from(response.max(0)).unwrap_or(u64::MAX)
    };
    Ok(set.tasks().iter().zip(&shifted).map(bound).collect())
}

/// The least integer not below the quotient by a positive divisor.
fn divide_up(dividend: i128, divisor: i128) -> i128 {
    -(-dividend).div_euclid(divisor)
}

/// F in floating point.
struct Balance {
    cpus: f64,
    /// K.
    largest: usize,
    /// `(u, m * T - C - m * min(T))` of each task.
    lines: Vec<(f64, f64)>,
    /// `U * m * min(T)`.
    constant: f64,
    /// `sum(u * (m * T + C))`: the size of what the offsets are computed from.
    spread: f64,
}

/// The value of F, its slope to the right, and a bound on the error of the value.
struct Value {
    value: f64,
    slope: f64,
    error: f64,
}

impl Balance {
    fn new(set: &TaskSet) -> Self {
        let cpus = f64::from(set.cpus());
        let shortest = set.tasks().iter().map(|task| task.period).min().unwrap_or(0) as f64;
        let line = |task: &crate::AnalysisTask| {
            let (wcet, period) = (task.wcet as f64, task.period as f64);
            (wcet / period, cpus * (period - shortest) - wcet)
        };
        let lines: Vec<(f64, f64)> = set.tasks().iter().map(line).collect();
        let utilization: f64 = lines.iter().map(|line| line.0).sum();
        let largest = (set.utilization_ceiling().saturating_sub(1) as usize).min(lines.len());
        let sizes = set.tasks().iter().map(|task| cpus * task.period as f64 + task.wcet as f64);
        let spread = lines.iter().zip(sizes).map(|(line, size)| line.0 * size).sum();
        Balance { cpus, largest, lines, constant: utilization * cpus * shortest, spread }
    }

    /// The least integer not below the root, if the interval around it contains no other candidate.
    fn root_ceiling(&self) -> Option<u64> {
        let mut w = 0.0;
        let mut at = self.at(w);
        // Newton's method climbs to the root; the few rounds it takes are those in which the K largest change.
        for _ in 0..64 {
            let next = w - at.value / at.slope;
            if next.is_nan() || next <= w {
                break;
            }
            w = next;
            at = self.at(w);
        }
        let distance = at.value.abs() + at.error;
        let (low, high) = ((w - distance).ceil(), (w + distance).ceil());
        (low == high && low >= 0.0 && high < (1u64 << 52) as f64).then_some(low as u64)
    }

    fn at(&self, w: f64) -> Value {
        let mut values: Vec<(f64, f64)> =
            self.lines.iter().map(|&(share, offset)| (share * (offset + w), share)).collect();
        let magnitude: f64 = self.lines.iter().map(|&(share, offset)| share * (offset.abs() + w)).sum();
        if 0 < self.largest && self.largest < values.len() {
            values.select_nth_unstable_by(self.largest - 1, |a, b| b.0.total_cmp(&a.0));
        }
        let top = &values[..self.largest];
        let (sum, shares): (f64, f64) = top.iter().fold((0.0, 0.0), |sum, line| (sum.0 + line.0, sum.1 + line.1));
        let value = sum + self.constant - self.cpus * w;
        // Every term is within a few units of 2^-53 of its magnitude, or of what its offset was computed from, and n
        // additions add n such units. A choice of the K largest by approximate values is off by no more than the values
        // are. Twice that is left in the bound.
        let size = magnitude + self.spread + self.constant + self.cpus * w;
        Value { value, slope: shares - self.cpus, error: (values.len() as f64 + 32.0) * f64::EPSILON * size }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CompliantVector, compliant_vector};
    use super::*;
    use laxity_model::rng::SplitMix64;

    #[test]
    fn whole_ticks_are_the_compliant_vector_rounded_up() {
        let mut rng = SplitMix64::new(5);
        let mut bounded = 0;
        for round in 0..400 {
            let (cpus, scale) = (1 + rng.below(8) as u32, [1, 1_000, 1_000_000][round % 3]);
            let mut task = || {
                let period = (3 + rng.below(60)) * scale;
                let task = AnalysisTask::implicit(1 + rng.below(period) / (1 + rng.below(6)), period);
                let deadline = if round % 2 == 0 { period } else { (period + rng.below(period)) / (1 + rng.below(2)) };
                AnalysisTask { deadline: deadline.max(1), ..task }
            };
            let tasks = (0..1 + round % 40).map(|_| task()).collect();
            let set = TaskSet::new(cpus, tasks).expect("in range");
            let exact = compliant_vector(&set, PriorityPoints::Edf);
            bounded += usize::from(exact.is_ok());
            let responses = exact.as_ref().map(CompliantVector::response_time_ticks).map_err(Clone::clone);
            assert_eq!(response_time_ticks(&set), responses, "round {round}");
            assert_eq!(tardiness_ticks(&set), exact.map(|vector| vector.tardiness_ticks()), "round {round}");
        }
        assert!(bounded > 80, "{bounded} sets have bounded tardiness");
    }

    /// Where w is whole, the interval contains two candidates and the fractions must decide.
    #[test]
    fn a_root_on_a_tick_is_found() {
        for (cpus, tasks) in [(2, vec![(4, 8), (4, 8), (4, 8)]), (3, vec![(1, 1), (1, 1), (1, 1)]), (2, vec![])] {
            let tasks = tasks.into_iter().map(|(wcet, period)| AnalysisTask::implicit(wcet, period)).collect();
            let set = TaskSet::new(cpus, tasks).expect("in range");
            let exact = compliant_vector(&set, PriorityPoints::Edf).map(|vector| vector.tardiness_ticks());
            assert_eq!(tardiness_ticks(&set), exact);
        }
    }
}
