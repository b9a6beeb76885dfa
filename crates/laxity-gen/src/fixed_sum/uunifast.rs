//! UUniFast-discard.

use laxity_model::rng::SplitMix64;

use super::{Discarded, Problem, SCALE, fraction};

/// Vectors discarded before giving up. At a total of 0.8 n about 1 in 2,000 is kept for n = 8.
const ATTEMPTS_MAX: u32 = 10_000;

/// UUniFast (Bini & Buttazzo 2005), drawn again while a component exceeds 1 (Davis & Burns 2011).
///
/// The sum of the remaining `k` utilizations, given that it is at most `s`, has distribution function `(x/s)^k`; its
/// inverse turns a uniform `r` into the next sum `s r^(1/k)`.
pub(super) fn draw(problem: &Problem, rng: &mut SplitMix64) -> Result<Vec<u64>, Discarded> {
    let total = problem.total as f64 / SCALE;
    (0..ATTEMPTS_MAX).find_map(|_| attempt(problem.max.len(), total, rng)).ok_or(Discarded { attempts: ATTEMPTS_MAX })
}

/// One vector, or none once a component exceeds 1: the rest of it need not be drawn.
fn attempt(tasks: usize, total: f64, rng: &mut SplitMix64) -> Option<Vec<u64>> {
    let mut units = Vec::with_capacity(tasks);
    let mut sum = total;
    for remaining in (1..tasks).rev() {
        let next = sum * libm::pow(fraction(rng), 1.0 / remaining as f64);
        if sum - next > 1.0 {
            return None;
        }
        units.push(((sum - next) * SCALE) as u64);
        sum = next;
    }
    units.push((sum * SCALE) as u64);
    (sum <= 1.0).then_some(units)
}
