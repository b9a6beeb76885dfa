//! When the jobs of a task are released.

use laxity_model::{Arrival, Distribution, Instant, Nanos, Task};

use crate::draws::TaskDraws;

/// When the jobs of a task arrive and are due. Small, as every release reads it.
#[derive(Clone, Debug)]
pub struct ReleasePattern {
    /// The least separation of two arrivals.
    pub period: Nanos,
    /// The relative deadline.
    pub deadline: Nanos,
    /// When the first job arrives.
    pub phase: Nanos,
    /// `None`: the releases are periodic.
    pub irregular: Option<Box<Irregular>>,
}

/// What keeps releases from being periodic.
#[derive(Clone, Debug)]
pub struct Irregular {
    /// The longest time from an arrival to the release.
    pub jitter: Nanos,
    /// Extra separation of the arrivals of a sporadic task.
    pub gap: Option<Distribution>,
}

impl ReleasePattern {
    /// That of `task`.
    pub fn new(task: &Task) -> ReleasePattern {
        let gap = match &task.arrival {
            Arrival::Periodic => None,
            Arrival::Sporadic { gap } => Some(gap.clone()),
        };
        let is_periodic = gap.is_none() && task.jitter.is_zero();
        let irregular = (!is_periodic).then(|| Box::new(Irregular { jitter: task.jitter, gap }));
        ReleasePattern { period: task.period, deadline: task.deadline, phase: task.phase, irregular }
    }

    /// That of a thread, which time never releases.
    pub(crate) const NEVER: ReleasePattern =
        ReleasePattern { period: Nanos::ZERO, deadline: Nanos::ZERO, phase: Nanos::ZERO, irregular: None };

    #[inline]
    fn jitter(&self, draws: TaskDraws, job: u32) -> Nanos {
        self.irregular.as_ref().map_or(Nanos::ZERO, |irregular| draws.jitter(irregular.jitter, job))
    }

    #[inline]
    fn gap(&self, draws: TaskDraws, job: u32) -> Nanos {
        let gap = self.irregular.as_ref().and_then(|irregular| irregular.gap.as_ref());
        gap.map_or(Nanos::ZERO, |gap| draws.gap(gap, job))
    }
}

/// The job of a task that is to be released next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextRelease {
    /// Its index.
    pub index: u32,
    /// When it arrives.
    pub arrival: Instant,
    /// When it is released: its arrival plus its jitter, and not before its predecessor.
    pub at: Instant,
}

impl NextRelease {
    /// The first job.
    pub fn first(pattern: &ReleasePattern, draws: TaskDraws) -> NextRelease {
        let arrival = Instant::ZERO + pattern.phase;
        NextRelease { index: 0, arrival, at: arrival.saturating_add(pattern.jitter(draws, 0)) }
    }

    /// On to the job after this one.
    #[inline]
    pub fn advance(&mut self, pattern: &ReleasePattern, draws: TaskDraws) {
        let gap = pattern.gap(draws, self.index);
        self.index += 1;
        self.arrival = self.arrival.saturating_add(pattern.period).saturating_add(gap);
        // Jobs of a task are released in order, however large the jitter.
        self.at = self.at.max(self.arrival.saturating_add(pattern.jitter(draws, self.index)));
    }

    /// When the job is due.
    #[inline]
    pub fn deadline(&self, pattern: &ReleasePattern) -> Instant {
        self.arrival.saturating_add(pattern.deadline)
    }
}

/// A job to be released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Its index.
    pub index: u32,
    /// When it is released.
    pub at: Instant,
    /// Its absolute deadline.
    pub deadline: Instant,
}

/// The releases of a task before an end, one after the other.
#[derive(Clone, Debug)]
pub struct Releases {
    pattern: ReleasePattern,
    draws: TaskDraws,
    next: NextRelease,
    end: Instant,
}

impl Releases {
    /// Those of a task that arrives by `pattern`, before `end`.
    pub fn new(pattern: ReleasePattern, draws: TaskDraws, end: Instant) -> Releases {
        let next = NextRelease::first(&pattern, draws);
        Releases { pattern, draws, next, end }
    }
}

impl Iterator for Releases {
    type Item = Release;

    fn next(&mut self) -> Option<Release> {
        let NextRelease { index, at, .. } = self.next;
        if at >= self.end {
            return None;
        }
        let deadline = self.next.deadline(&self.pattern);
        self.next.advance(&self.pattern, self.draws);
        Some(Release { index, at, deadline })
    }
}
