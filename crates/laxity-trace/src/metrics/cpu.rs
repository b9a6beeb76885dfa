//! The fold over the time of a CPU.

use laxity_model::{CpuId, Instant, Nanos, OverheadKind};

use super::summary::{MachineSummary, OverheadSummary, StolenSummary};
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
    /// How often the CPU was stolen from all threads, for how long in all, and at most at once.
    stolen: (u64, u64, u64),
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

    /// The CPU was stolen from all threads for so long.
    pub fn steal(&mut self, Nanos(time): Nanos) {
        let (count, total, longest) = self.stolen;
        self.stolen = (count + 1, total.saturating_add(time), longest.max(time));
    }

    /// How it was stolen, if it was; it is `cpu`.
    pub fn stolen(&self, cpu: CpuId) -> Option<StolenSummary> {
        let (count, total, longest) = self.stolen;
        (count > 0).then_some(StolenSummary { cpu, count, total: Nanos(total), longest: Nanos(longest) })
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
