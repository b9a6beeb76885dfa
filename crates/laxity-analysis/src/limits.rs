//! How much work an analysis may do before it gives up, counted in steps so that the answer never depends on the
//! machine's speed.

/// Limits on the work of one test. Reaching one yields [`Outcome::ResourceLimit`](crate::Outcome::ResourceLimit).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Points in time at which a demand is evaluated, per test and task set.
    pub points: u64,
    /// Sweeps over all tasks, and rounds of an outer fixed-point iteration.
    pub rounds: u32,
    /// Elementary steps of one fixed-point iteration.
    pub steps: u64,
}

impl Default for Limits {
    /// Generous: a minute or so of work in the worst case, a few microseconds in practice.
    fn default() -> Self {
        Limits { points: 20_000_000, rounds: 100_000, steps: 50_000_000 }
    }
}
