//! The fold over what a CPU does.

use laxity_model::{Instant, Nanos, OverheadKind};

use super::occupancy::Occupancy;
use super::summary::{MachineSummary, OverheadSummary, occupies_cpu};

/// What is known of a CPU so far.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuFold {
    pub occupancy: Occupancy,
    /// Execution of the stints that ended.
    pub busy: u64,
    overheads: OverheadSummary,
    lock_wait: u64,
    /// What covers the CPU until `occupancy.covered_until()`: the end of the run may cut it short.
    last_cover: Option<Cover>,
}

#[derive(Clone, Copy, Debug)]
enum Cover {
    Overhead(OverheadKind),
    LockWait,
}

impl CpuFold {
    #[inline]
    pub fn overhead(&mut self, at: Instant, kind: OverheadKind, duration: Nanos) {
        if occupies_cpu(kind) {
            let added = self.occupancy.cover(at, duration);
            self.count(kind, added);
            self.last_cover = Some(Cover::Overhead(kind));
        } else {
            self.count(kind, duration);
        }
    }

    #[inline]
    pub fn lock_wait(&mut self, at: Instant, duration: Nanos) {
        let added = self.occupancy.cover(at, duration);
        self.lock_wait = self.lock_wait.saturating_add(added.0);
        self.last_cover = Some(Cover::LockWait);
    }

    /// Counts an overhead that leaves the CPU to its job.
    #[inline]
    pub fn count(&mut self, kind: OverheadKind, time: Nanos) {
        let usage = &mut self.overheads.by_kind[kind as usize];
        usage.count += 1;
        usage.time = Nanos(usage.time.0.saturating_add(time.0));
    }

    /// A bottom half begins; how long it takes, the occupancy tells.
    pub fn begin_bottom_half(&mut self, at: Instant) {
        self.occupancy.begin_bottom_half(at);
        self.overheads.by_kind[OverheadKind::BottomHalf as usize].count += 1;
    }

    /// The results up to `end`, without `idle` and `utilization`.
    pub fn up_to(&self, end: Instant) -> MachineSummary {
        let mut overheads = self.overheads;
        let mut lock_wait = Nanos(self.lock_wait);
        let beyond = self.occupancy.covered_until().saturating_since(end);
        match self.last_cover {
            Some(Cover::Overhead(kind)) => {
                let time = &mut overheads.by_kind[kind as usize].time;
                *time = time.saturating_sub(beyond);
            }
            Some(Cover::LockWait) => lock_wait = lock_wait.saturating_sub(beyond),
            None => {}
        }
        overheads.by_kind[OverheadKind::BottomHalf as usize].time = self.occupancy.bottom_halves_by(end);
        let current = self.occupancy.running().map_or(Nanos::ZERO, |_| self.occupancy.executed_by(end));
        MachineSummary {
            busy: Nanos(self.busy.saturating_add(current.0)),
            overheads,
            lock_wait,
            spin: self.occupancy.spun_by(end),
            ..MachineSummary::default()
        }
    }
}
