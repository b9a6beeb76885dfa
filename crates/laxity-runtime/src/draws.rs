//! When jobs are released and what they need: the draws of the simulator, which depend on seed, task, job and step
//! alone (decision 4).

use laxity_model::rng::SplitMix64;
use laxity_model::{Arrival, Distribution, Instant, Nanos, Task};

/// What a draw is for, as in the simulator. Steps of the body follow from `STEP` on.
mod stream {
    pub const JITTER: u64 = 0;
    pub const GAP: u64 = 1;
    pub const STEP: u64 = 2;
}

/// The draws of one task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    pub seed: u64,
    pub task: u32,
}

impl Draws {
    /// What job number `job` needs for step `op`.
    pub fn step(self, from: &Distribution, worst_case: Nanos, job: u32, op: usize) -> Nanos {
        self.draw(from, worst_case, job, stream::STEP + op as u64)
    }

    fn draw(self, from: &Distribution, worst_case: Nanos, job: u32, stream: u64) -> Nanos {
        let key = [self.seed, u64::from(self.task), u64::from(job), stream];
        from.draw(worst_case, job, &mut SplitMix64::keyed(key))
    }

    fn jitter(self, max: Nanos, job: u32) -> Nanos {
        match max {
            Nanos::ZERO => Nanos::ZERO,
            max => self.draw(&Distribution::Uniform { min: Nanos::ZERO, max }, Nanos::ZERO, job, stream::JITTER),
        }
    }
}

/// A job to be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    pub index: u32,
    /// When it may run, from the start: its arrival plus its jitter, not before its predecessor's.
    pub at: Instant,
    /// Its absolute deadline, from the start.
    pub deadline: Instant,
}

/// The releases of a task, one after the other, before an end.
#[derive(Clone, Debug)]
pub(crate) struct Releases {
    draws: Draws,
    period: Nanos,
    relative_deadline: Nanos,
    jitter: Nanos,
    gap: Option<Distribution>,
    end: Instant,
    index: u32,
    arrival: Instant,
    at: Instant,
}

impl Releases {
    pub fn new(task: &Task, draws: Draws, end: Instant) -> Releases {
        let gap = match &task.arrival {
            Arrival::Periodic => None,
            Arrival::Sporadic { gap } => Some(gap.clone()),
        };
        let arrival = Instant::ZERO + task.phase;
        Releases {
            draws,
            period: task.period,
            relative_deadline: task.deadline,
            jitter: task.jitter,
            gap,
            end,
            index: 0,
            arrival,
            at: arrival.saturating_add(draws.jitter(task.jitter, 0)),
        }
    }
}

impl Iterator for Releases {
    type Item = Release;

    fn next(&mut self) -> Option<Release> {
        if self.at >= self.end {
            return None;
        }
        let deadline = self.arrival.saturating_add(self.relative_deadline);
        let release = Release { index: self.index, at: self.at, deadline };
        let gap =
            self.gap.as_ref().map_or(Nanos::ZERO, |gap| self.draws.draw(gap, Nanos::ZERO, self.index, stream::GAP));
        self.index += 1;
        self.arrival = self.arrival.saturating_add(self.period).saturating_add(gap);
        // Jobs of a task are released in order, however large the jitter.
        self.at = self.at.max(self.arrival.saturating_add(self.draws.jitter(self.jitter, self.index)));
        Some(release)
    }
}
