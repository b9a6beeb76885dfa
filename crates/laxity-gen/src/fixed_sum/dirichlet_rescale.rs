//! Dirichlet-Rescale. Source: Griffin, Bate & Davis, RTSS 2020, section III.

use laxity_model::rng::SplitMix64;

use super::{Discarded, Problem};
use crate::utilization::standard_exponential;

/// Points given up before the whole draw is.
const ATTEMPTS_MAX: u32 = 1_000;

/// Rescalings of one point before it is given up.
const RESCALES_MAX: u32 = 1_000;

/// Magnification of one point before it is given up: 53 random bits stretched by this leave 13. The source gives up
/// where the sum has drifted by 10^-4.
const MAGNIFICATION_MAX: f64 = (1u64 << 40) as f64;

/// A point of the flat Dirichlet distribution, rescaled until it respects the bounds.
///
/// Tasks whose bounds leave no choice are taken out; the others are measured from their smallest utilization, in units
/// of what is left to distribute, so that they are non-negative and sum to 1.
pub(super) fn draw(problem: &Problem, rng: &mut SplitMix64) -> Result<Vec<u64>, Discarded> {
    let mut units = problem.min.clone();
    let free: Vec<usize> = (0..units.len()).filter(|&task| problem.min[task] < problem.max[task]).collect();
    let room = |task: usize| problem.max[task] - problem.min[task];
    let left = problem.total.saturating_sub(units.iter().sum());
    if left == 0 {
        return Ok(units);
    }
    if left >= free.iter().map(|&task| room(task)).sum() {
        return Ok(problem.max.clone());
    }
    let limits: Vec<f64> = free.iter().map(|&task| (room(task) as f64 / left as f64).min(1.0)).collect();
    let point = (0..ATTEMPTS_MAX)
        .find_map(|_| smallest_simplex_rescale(&limits, rng))
        .ok_or(Discarded { attempts: ATTEMPTS_MAX })?;
    for (&task, share) in free.iter().zip(point) {
        units[task] += (share * left as f64) as u64;
    }
    Ok(units)
}

/// The limits `c` enclose the valid points in one simplex (`x >= 0`), and in another from the other side (`x <= c`, of
/// size `sum c - 1`). Starting from the smaller of the two, fewer points need rescaling: where that is the other one,
/// the distances `c - x` are drawn instead, whose limits are again `c`.
fn smallest_simplex_rescale(limits: &[f64], rng: &mut SplitMix64) -> Option<Vec<f64>> {
    let size = limits.iter().sum::<f64>() - 1.0;
    if size >= 1.0 {
        return rescale(limits, flat_dirichlet(limits.len(), rng)?);
    }
    let scaled: Vec<f64> = limits.iter().map(|limit| limit / size).collect();
    let distances = rescale(&scaled, flat_dirichlet(limits.len(), rng)?)?;
    Some(limits.iter().zip(distances).map(|(limit, distance)| (limit - distance * size).max(0.0)).collect())
}

/// A uniform point of the simplex `x >= 0, sum x = 1`.
fn flat_dirichlet(dimension: usize, rng: &mut SplitMix64) -> Option<Vec<f64>> {
    let exponentials: Vec<f64> = (0..dimension).map(|_| standard_exponential(rng)).collect();
    let sum: f64 = exponentials.iter().sum();
    (sum > 0.0).then(|| exponentials.into_iter().map(|x| x / sum).collect())
}

/// Blows the corner beyond the limits up to the whole simplex, for as long as the point lies in one.
///
/// The components that exceed their limits `c` form the set A. The simplex `x_A >= c_A` is mapped to the whole one by
/// `x -> f + (x - f) / r` with `r = 1 - sum c_A` and the fixed point `f = c_A / sum c_A` (0 outside A).
fn rescale(limits: &[f64], mut point: Vec<f64>) -> Option<Vec<f64>> {
    let mut magnification = 1.0;
    for _ in 0..RESCALES_MAX {
        let exceeded = |task: usize, value: f64| value > limits[task];
        let cut: f64 = limits.iter().zip(&point).filter(|(limit, value)| value > limit).map(|(limit, _)| limit).sum();
        if !point.iter().enumerate().any(|(task, &value)| exceeded(task, value)) {
            return Some(point);
        }
        let growth = largest_growth(limits, &point, cut)?;
        magnification *= growth;
        if magnification > MAGNIFICATION_MAX {
            return None;
        }
        for (task, value) in point.iter_mut().enumerate() {
            let fixed = if exceeded(task, *value) { limits[task] / cut } else { 0.0 };
            *value = (fixed + (*value - fixed) * growth).max(0.0);
        }
    }
    None
}

/// `r^-p` for the largest number of times `p` that the map keeps the point in the simplex; at least once, since the
/// point lies beyond its limits. `None` where rounding left no corner to blow up.
///
/// A component `x < f` stays non-negative while `r^-p <= f / (f - x)`; the others grow.
fn largest_growth(limits: &[f64], point: &[f64], cut: f64) -> Option<f64> {
    let ratio = 1.0 - cut;
    if ratio <= 0.0 || ratio >= 1.0 {
        return None;
    }
    let room = limits
        .iter()
        .zip(point)
        .filter(|(limit, value)| value > limit)
        .map(|(limit, value)| (limit / cut, value))
        .filter(|(fixed, value)| fixed > value)
        .map(|(fixed, value)| fixed / (fixed - value))
        .fold(f64::INFINITY, f64::min);
    let times = libm::floor(libm::log(room) / -libm::log(ratio)).max(1.0);
    let growth = libm::pow(ratio, -times);
    growth.is_finite().then_some(growth)
}
