//! RandFixedSum: Stafford's algorithm.

use laxity_model::rng::SplitMix64;

use super::{Problem, fraction};

/// Exactly uniform over `{ x in [0, 1]^n : sum x = s }`, scaled to the bounds.
///
/// The set is cut into simplices, one for each monotone lattice path, as the cube is by the order of its coordinates.
/// A table of their relative volumes (with one dimension less at each row) gives the odds of each turn of the path;
/// a uniform point of the chosen simplex follows by conditioning, as in UUniFast; a random permutation of the
/// coordinates makes up for having fixed their order.
/// Source: Stafford 2006; Emberson, Stafford & Davis, WATERS 2010, section II.
pub(super) fn draw(problem: &Problem, rng: &mut SplitMix64) -> Vec<u64> {
    let (min, max, tasks) = (problem.min[0], problem.max[0], problem.min.len());
    let width = (max - min) as f64;
    if width == 0.0 {
        return problem.min.clone();
    }
    let sum = (problem.total.saturating_sub(min * tasks as u64) as f64 / width).min(tasks as f64);
    let mut point = unit_cube_section(tasks, sum, rng);
    for last in (1..tasks).rev() {
        point.swap(last, rng.below(last as u64 + 1) as usize);
    }
    point.into_iter().map(|x| min + (x * width) as u64).collect()
}

/// A point of the section of the unit cube, its coordinates not yet permuted.
fn unit_cube_section(tasks: usize, sum: f64, rng: &mut SplitMix64) -> Vec<f64> {
    let whole = (sum as usize).min(tasks - 1);
    let turns = Turns::new(tasks, whole, sum);
    let mut point = Vec::with_capacity(tasks);
    let (mut column, mut sum) = (whole, sum);
    let (mut base, mut scale) = (0.0, 1.0);
    for dimension in (1..tasks).rev() {
        let down = fraction(rng) <= turns.odds(dimension, column);
        let step = if down { 1.0 } else { 0.0 };
        let shrink = libm::pow(fraction(rng), 1.0 / dimension as f64);
        base += (1.0 - shrink) * scale * sum / (dimension as f64 + 1.0);
        scale *= shrink;
        point.push(base + scale * step);
        sum -= step;
        column = column.saturating_sub(usize::from(down));
    }
    point.push(base + scale * sum);
    point
}

/// For each dimension and column of the table, the odds that the path turns to the column before.
struct Turns {
    /// Row `d - 1` holds dimension `d`.
    odds: Vec<f64>,
    tasks: usize,
}

impl Turns {
    /// `whole` is the integer part of `sum`, at most `tasks - 1`. Takes `O(n^2)` time and space.
    fn new(tasks: usize, whole: usize, sum: f64) -> Self {
        // Distances of the sum from the integers `whole - j` below it and `whole + 1 + j` above it.
        let above = |j: usize| sum - whole as f64 + j as f64;
        let below = |j: usize| (whole + 1 + j) as f64 - sum;
        let mut odds = vec![0.0; (tasks - 1) * tasks];
        // Relative volumes by column; a column beyond the dimension has none. They shrink like 1/d!, so start high.
        let mut volume = vec![0.0; tasks + 1];
        volume[1] = f64::MAX;
        for dimension in 1..tasks {
            let size = dimension as f64 + 1.0;
            let mut next = vec![0.0; tasks + 1];
            for column in 0..=dimension {
                let stay = volume[column + 1] * above(column) / size;
                let turn = volume[column] * below(dimension - column) / size;
                next[column + 1] = stay + turn;
                // Of two nearly equal ways to write the quotient, the one that keeps more digits; the smallest number
                // guards against 0/0 where both volumes underflowed.
                let whole_volume = stay + turn + f64::MIN_POSITIVE;
                odds[(dimension - 1) * tasks + column] = if below(dimension - column) > above(column) {
                    turn / whole_volume
                } else {
                    1.0 - stay / whole_volume
                };
            }
            volume = next;
        }
        Turns { odds, tasks }
    }

    fn odds(&self, dimension: usize, column: usize) -> f64 {
        self.odds[(dimension - 1) * self.tasks + column]
    }
}
