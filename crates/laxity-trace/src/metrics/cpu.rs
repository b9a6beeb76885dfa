//! The fold over the time of a CPU.

use laxity_model::{CpuId, Instant, Nanos, OverheadKind};

use super::summary::{MachineSummary, OutsideSummary, OutsideUse, OverheadSummary, StolenSummary};
use crate::replay::{Cpu, Running};
use crate::{Outsider, OutsiderKind};

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
    /// What was no task and had the CPU: threads, and interrupts.
    threads: Use,
    interrupts: Use,
    /// Records of that which were lost.
    lost: u64,
}

/// How often something had a CPU, for how long in all, and at most at once.
#[derive(Clone, Copy, Debug, Default)]
struct Use(u64, u64, u64);

impl Use {
    fn add(&mut self, Nanos(time): Nanos) {
        let Use(count, total, longest) = *self;
        *self = Use(count + 1, total.saturating_add(time), longest.max(time));
    }

    fn summary(self) -> OutsideUse {
        let Use(count, total, longest) = self;
        OutsideUse { count, total: Nanos(total), longest: Nanos(longest) }
    }
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

    /// Something that is no task had the CPU for so long.
    pub fn outside(&mut self, by: Outsider, time: Nanos) {
        match by.kind {
            OutsiderKind::Thread => self.threads.add(time),
            OutsiderKind::Interrupt | OutsiderKind::SoftInterrupt => self.interrupts.add(time),
        }
    }

    /// So many records of that were lost until now.
    pub fn lose(&mut self, records: u64) {
        self.lost = records;
    }

    /// What was no task and had the CPU, which is `cpu` in the state `now`, up to `end`; nothing if nothing did.
    pub fn summary_outside(&self, id: CpuId, now: &Cpu, end: Instant) -> Option<OutsideSummary> {
        let mut fold = self.clone();
        if let (Running::Outside(by), from) = now.running() {
            fold.outside(by, end.saturating_since(from));
        }
        let CpuFold { threads, interrupts, lost, .. } = fold;
        let has_any = [threads.0, interrupts.0, lost] != [0; 3];
        has_any.then(|| OutsideSummary {
            cpu: id,
            threads: threads.summary(),
            interrupts: interrupts.summary(),
            lost_records: lost,
        })
    }

    /// A bottom half begins; the replay tells how long it takes.
    pub fn begin_bottom_half(&mut self) {
        self.overheads.by_kind[OverheadKind::BottomHalf as usize].count += 1;
    }

    /// The results up to `end`, without `best_effort`, `idle` and `utilization`.
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
