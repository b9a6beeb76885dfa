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
pub struct Arrival {
    /// Rounded down: no later than the exact arrival, so that bounds on it hold for this one.
    pub at: Instant,
    /// What was rounded off, in units of 1 / `jobs` ns of the node's [`Period`].
    pub fraction: u64,
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

    /// `index` periods, rounded down to nanoseconds.
    pub fn times(self, index: u64) -> Nanos {
        // Each product is below 2^128, and the sum is no more than index * (whole + 1).
        let whole = u128::from(index) * u128::from(self.whole.0);
        let exact = match self.remainder {
            // Nearly always, and the division is the most expensive part of a live job's release.
            0 => whole,
            remainder => whole + u128::from(index) * u128::from(remainder) / u128::from(self.jobs),
        };
        Nanos(u64::try_from(exact).unwrap_or(u64::MAX))
    }

    /// The arrival of a job whose last token, or whose time as that of a source, came at `at`: `max(r_prev + p, at)`,
    /// `previous` being the arrival of its predecessor (paper 003, section 5.2.3). Simulated and live graphs share it.
    pub fn next_arrival(self, previous: Option<Arrival>, at: Instant) -> Arrival {
        match previous.map(|previous| self.after(previous)) {
            Some(separated) if separated.at >= at => separated,
            _ => Arrival::exactly(at),
        }
    }

    /// A period after `previous`.
    fn after(self, previous: Arrival) -> Arrival {
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
