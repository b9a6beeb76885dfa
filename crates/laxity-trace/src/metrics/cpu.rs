//! The fold over the time of a CPU.

use laxity_model::{Instant, Nanos, OverheadKind};

use super::summary::{MachineSummary, OverheadSummary};
use crate::replay::Cpu;

/// A CPU, folded.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuFold {
    /// Execution of the stints that ended.
    pub busy: u64,
    overheads: OverheadSummary,
    lock_wait: u64,
    /// The last overhead or lock wait: the end of the run may cut it short.
    last_cover: Option<Cover>,
}

#[derive(Clone, Copy, Debug)]
enum Cover {
    Overhead(OverheadKind),
    LockWait,
}

impl CpuFold {
    /// An overhead covers the CPU for `added`.
    #[inline]
    pub fn overhead(&mut self, kind: OverheadKind, added: Nanos) {
        self.count(kind, added);
        self.last_cover = Some(Cover::Overhead(kind));
    }

    /// The CPU waits for the scheduler's lock for `added`.
    pub fn lock_wait(&mut self, added: Nanos) {
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

    /// A bottom half begins; the replay tells how long it takes.
    pub fn begin_bottom_half(&mut self) {
        self.overheads.by_kind[OverheadKind::BottomHalf as usize].count += 1;
    }

    /// The results up to `end`, without `idle` and `utilization`.
    pub fn up_to(&self, end: Instant, cpu: &Cpu) -> MachineSummary {
        let mut overheads = self.overheads;
        let mut lock_wait = Nanos(self.lock_wait);
        let beyond = cpu.covered_until().saturating_since(end);
        match self.last_cover {
            Some(Cover::Overhead(kind)) => {
                let time = &mut overheads.by_kind[kind as usize].time;
                *time = time.saturating_sub(beyond);
            }
            Some(Cover::LockWait) => lock_wait = lock_wait.saturating_sub(beyond),
            None => {}
        }
        overheads.by_kind[OverheadKind::BottomHalf as usize].time = cpu.bottom_halves_by(end);
        let current = cpu.job().map_or(Nanos::ZERO, |_| cpu.executed_by(end));
        MachineSummary {
            busy: Nanos(self.busy.saturating_add(current.0)),
            overheads,
            lock_wait,
            spin: cpu.spun_by(end),
            ..MachineSummary::default()
        }
    }
}
