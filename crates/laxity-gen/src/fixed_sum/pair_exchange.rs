//! Pair exchange: a Markov chain whose stationary distribution is uniform.

use laxity_model::rng::SplitMix64;

use super::Problem;

/// Exchanges per task and doubling of the number of tasks.
const ROUNDS: u64 = 32;

/// Starts in the middle and lets random pairs of tasks exchange utilization.
///
/// An exchange keeps the sum of the pair and redraws its split uniformly over the integers the bounds allow: a Gibbs
/// step, which leaves the uniform distribution over all integer vectors of the right sum within the bounds unchanged.
/// Without bounds `O(n log n)` such steps suffice (Caputo, Labbe & Lacoin, 2020; TODO check); with bounds the tests of
/// this crate compare with rejection sampling.
pub(super) fn draw(problem: &Problem, rng: &mut SplitMix64) -> Vec<u64> {
    let Problem { min, max, .. } = problem;
    let mut units = middle(problem);
    problem.settle(&mut units);
    let tasks = units.len() as u64;
    if tasks < 2 {
        return units;
    }
    for _ in 0..ROUNDS * tasks * u64::from((2 * tasks).next_power_of_two().ilog2()) {
        let one = rng.below(tasks) as usize;
        let other = (one + 1 + rng.below(tasks - 1) as usize) % tasks as usize;
        let sum = units[one] + units[other];
        let low = min[one].max(sum.saturating_sub(max[other]));
        let high = max[one].min(sum - min[other]);
        units[one] = rng.between(low, high);
        units[other] = sum - units[one];
    }
    units
}

/// Every task the same way up between its bounds, rounded down.
fn middle(problem: &Problem) -> Vec<u64> {
    let low: u64 = problem.min.iter().sum();
    let high: u64 = problem.max.iter().sum();
    let (part, whole) = (u128::from(problem.total.saturating_sub(low)), u128::from((high - low).max(1)));
    // Cannot overflow: 53 bits times at most 63.
    let between = |(&min, &max): (&u64, &u64)| min + (u128::from(max - min) * part / whole) as u64;
    problem.min.iter().zip(&problem.max).map(between).collect()
}
