//! The period of a node, which need not be a whole number of nanoseconds.

use laxity_model::{Instant, Nanos, Rate};

/// The least separation of a node's releases: `window / jobs` of its rate, exactly.
///
/// Rounded up, a node would fall behind its producers and tokens would pile up; rounded down, it would not be the
/// sporadic task that the analysis takes it for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Period {
    whole: Nanos,
    /// In units of 1 / `jobs` ns, below `jobs`.
    remainder: u64,
    jobs: u64,
}

/// When a job arrives, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Rounded down: no later than the exact arrival, so that bounds on it hold for this one.
    pub at: Instant,
    /// What was rounded off, in units of 1 / `jobs` ns of the node's [`Period`].
    fraction: u64,
}

impl Period {
    /// The period of a node with this rate; there is at least one job in the window.
    pub(super) fn of(rate: Rate) -> Self {
        Period { whole: Nanos(rate.window.0 / rate.jobs), remainder: rate.window.0 % rate.jobs, jobs: rate.jobs }
    }

    /// Rounded down to nanoseconds.
    pub fn floor(self) -> Nanos {
        self.whole
    }

    /// A period after `previous`.
    pub(super) fn after(self, previous: Arrival) -> Arrival {
        let at = previous.at.saturating_add(self.whole);
        // fraction + remainder >= jobs, written so that it cannot overflow.
        if previous.fraction >= self.jobs - self.remainder {
            Arrival { at: at.saturating_add(Nanos(1)), fraction: previous.fraction - (self.jobs - self.remainder) }
        } else {
            Arrival { at, fraction: previous.fraction + self.remainder }
        }
    }
}

impl Arrival {
    /// At `at`, to the nanosecond.
    pub fn exactly(at: Instant) -> Self {
        Arrival { at, fraction: 0 }
    }
}
