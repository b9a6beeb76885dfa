//! How long a piece of work takes: its bound, and what it actually needs.

use crate::Nanos;
use crate::rng::SplitMix64;

/// An execution time: the worst case, which analysis uses, and the distribution a simulated job draws from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionTime {
    /// Bound over all jobs.
    pub wcet: Nanos,
    /// What a job needs; never above `wcet`.
    pub actual: Distribution,
}

/// A distribution of spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Always the worst case.
    WorstCase,
    /// Always this much.
    Constant(Nanos),
    /// Every integer number of nanoseconds from `min` to `max`, both included, is equally likely.
    Uniform {
        /// Shortest.
        min: Nanos,
        /// Longest.
        max: Nanos,
    },
    /// A bin is chosen by weight, then a span uniformly within it.
    Histogram(Vec<Bin>),
    /// Measured values, replayed in order and from the start again after the last.
    Recorded(Vec<Nanos>),
}

/// One bin of a [`Distribution::Histogram`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bin {
    /// Shortest span of the bin.
    pub min: Nanos,
    /// Longest span of the bin, included.
    pub max: Nanos,
    /// How often this bin is chosen, relative to the others.
    pub weight: u64,
}

impl ExecutionTime {
    /// An execution time that is always its worst case.
    pub const fn constant(wcet: Nanos) -> Self {
        ExecutionTime { wcet, actual: Distribution::WorstCase }
    }

    /// What job number `index` needs. Draws from `rng` only where the distribution is random.
    pub fn draw(&self, index: u32, rng: &mut SplitMix64) -> Nanos {
        self.actual.draw(self.wcet, index, rng)
    }
}

impl Distribution {
    /// A span for job number `index`; `worst_case` is what [`Distribution::WorstCase`] stands for.
    ///
    /// Panics on an empty histogram or recording; validation refuses both.
    pub fn draw(&self, worst_case: Nanos, index: u32, rng: &mut SplitMix64) -> Nanos {
        match self {
            Distribution::WorstCase => worst_case,
            Distribution::Constant(span) => *span,
            Distribution::Uniform { min, max } => Nanos(rng.between(min.0, max.0)),
            Distribution::Histogram(bins) => draw_bin(bins, rng),
            Distribution::Recorded(values) => values[index as usize % values.len()],
        }
    }

    /// The shortest span it can yield.
    pub fn min(&self, worst_case: Nanos) -> Nanos {
        match self {
            Distribution::WorstCase => worst_case,
            Distribution::Constant(span) => *span,
            Distribution::Uniform { min, .. } => *min,
            Distribution::Histogram(bins) => bins.iter().map(|bin| bin.min).min().unwrap_or_default(),
            Distribution::Recorded(values) => values.iter().copied().min().unwrap_or_default(),
        }
    }

    /// The longest span it can yield.
    pub fn max(&self, worst_case: Nanos) -> Nanos {
        match self {
            Distribution::WorstCase => worst_case,
            Distribution::Constant(span) => *span,
            Distribution::Uniform { max, .. } => *max,
            Distribution::Histogram(bins) => bins.iter().map(|bin| bin.max).max().unwrap_or_default(),
            Distribution::Recorded(values) => values.iter().copied().max().unwrap_or_default(),
        }
    }
}

fn draw_bin(bins: &[Bin], rng: &mut SplitMix64) -> Nanos {
    let total = bins.iter().map(|bin| bin.weight).sum();
    let mut ticket = rng.below(total);
    for bin in bins {
        if ticket < bin.weight {
            return Nanos(rng.between(bin.min.0, bin.max.0));
        }
        ticket -= bin.weight;
    }
    unreachable!("a ticket below the total weight falls into a bin")
}
