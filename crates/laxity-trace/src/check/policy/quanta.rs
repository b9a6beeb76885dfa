//! Where quanta begin.

use laxity_model::{CpuId, Instant, JobId, Nanos, OverheadKind, Quanta};

use crate::TraceHeader;

/// The quantum boundaries of every CPU, and the tick handlers that ran there. Memory grows with the number of CPUs.
#[derive(Clone, Debug)]
pub(super) struct Boundaries {
    quantum: Nanos,
    quanta: Quanta,
    /// Whether a tick handler takes time, so that the trace shows it.
    ticks_cost: bool,
    cpus: Vec<CpuQuanta>,
    /// When the tick handlers of each cluster end that end last.
    ticks_until: Vec<Option<Instant>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CpuQuanta {
    /// Start of the CPU's first quantum.
    phase: Nanos,
    cluster: Option<usize>,
    /// The last tick handler: from, to.
    tick: Option<(Instant, Instant)>,
    /// For how long scheduler and interrupt code had the CPU without a break, when it last did: from, to.
    busy: (Instant, Instant),
    /// The job whose process was switched in, until it is dispatched or another is switched in.
    switched_in: Option<JobId>,
    /// When the scheduler last ended.
    scheduled: Option<Instant>,
}

impl Boundaries {
    pub fn new(header: &TraceHeader) -> Self {
        // A quantum of zero would have boundaries everywhere; a nanosecond is the same.
        let quantum = Nanos(header.quantum.0.max(1));
        let quanta = header.scheduler.quanta;
        let phase = |index: usize| match quanta {
            Quanta::Aligned => Nanos::ZERO,
            // CPU c of m is c/m of a quantum late, rounded down; below a quantum, so it fits.
            Quanta::Staggered => Nanos((u128::from(quantum.0) * index as u128 / header.cpus.max(1) as u128) as u64),
        };
        let mut cpus: Vec<CpuQuanta> =
            (0..header.cpus).map(|index| CpuQuanta { phase: phase(index), ..CpuQuanta::default() }).collect();
        for (cpu, cluster) in header.clusters_of_cpus() {
            cpus[cpu.index()].cluster = Some(cluster);
        }
        Boundaries {
            quantum,
            quanta,
            ticks_cost: !header.costs.tick.is_zero(),
            cpus,
            ticks_until: vec![None; header.clusters.len()],
        }
    }

    /// The first boundary of `cpu` at or after `at`; `None` if that cannot be written.
    pub fn first_from(&self, cpu: CpuId, at: Instant) -> Option<Instant> {
        let phase = self.cpus[cpu.index()].phase.0;
        let quanta = at.0.saturating_sub(phase).div_ceil(self.quantum.0);
        quanta.checked_mul(self.quantum.0)?.checked_add(phase).map(Instant)
    }

    /// The boundary after the boundary `at`.
    pub fn after(&self, at: Instant) -> Option<Instant> {
        at.0.checked_add(self.quantum.0).map(Instant)
    }

    /// The boundary before the boundary `at`.
    pub fn before(&self, at: Instant) -> Option<Instant> {
        at.0.checked_sub(self.quantum.0).map(Instant)
    }

    /// The last boundary of `cpu` at or before `at`, if there was one.
    fn last_until(&self, cpu: CpuId, at: Instant) -> Option<Instant> {
        let since = at.0.checked_sub(self.cpus[cpu.index()].phase.0)?;
        Some(Instant(at.0 - since % self.quantum.0))
    }

    /// Whether a quantum of `cpu` began within its scheduler or interrupt code that goes on at `at`. The tick of the boundary
    /// may wait for the end of that.
    fn is_busy_since_boundary(&self, cpu: CpuId, at: Instant) -> bool {
        let (from, to) = self.cpus[cpu.index()].busy;
        at <= to && self.last_until(cpu, at).is_some_and(|boundary| from <= boundary)
    }

    /// A tick handler ran on `cpu`, after it was covered. A tick within a quantum decides nothing: ticks
    /// are shorter than quanta, or it is the interrupt of a memory regulator.
    fn ticked(&mut self, cpu: CpuId, from: Instant, to: Instant) {
        if self.cpus.get(cpu.index()).is_none() || !self.is_busy_since_boundary(cpu, from) {
            return;
        }
        let quanta = &mut self.cpus[cpu.index()];
        quanta.tick = Some((from, to));
        if let Some(until) = quanta.cluster.and_then(|cluster| self.ticks_until.get_mut(cluster)) {
            *until = Some(to).max(*until);
        }
    }

    /// Scheduler or interrupt code has `cpu`.
    pub fn covered(&mut self, cpu: CpuId, from: Instant, to: Instant) {
        let Some(CpuQuanta { busy, .. }) = self.cpus.get_mut(cpu.index()) else { return };
        *busy = if from <= busy.1 { (busy.0, busy.1.max(to)) } else { (from, to) };
    }

    /// An overhead covers `cpu`, to which `linked` is linked. Where the scheduler has just ended, the process of that job is
    /// switched in, be it at a cost or at none.
    pub fn overhead(&mut self, cpu: CpuId, kind: OverheadKind, (from, to): (Instant, Instant), linked: Option<JobId>) {
        self.covered(cpu, from, to);
        if kind == OverheadKind::Tick {
            self.ticked(cpu, from, to);
        }
        let Some(quanta) = self.cpus.get_mut(cpu.index()) else { return };
        if kind == OverheadKind::ContextSwitch || quanta.scheduled == Some(from) {
            quanta.switched_in = linked;
        }
        quanta.scheduled = (kind == OverheadKind::Scheduling).then_some(to);
    }

    /// A job is dispatched on `cpu`.
    pub fn dispatched(&mut self, cpu: CpuId) {
        if let Some(quanta) = self.cpus.get_mut(cpu.index()) {
            quanta.switched_in = None;
        }
    }

    /// Whether the process of `job` was switched in on `cpu`, and interrupts have kept the job from being dispatched.
    pub fn is_switched_in(&self, cpu: CpuId, job: JobId) -> bool {
        self.cpus.get(cpu.index()).is_some_and(|quanta| quanta.switched_in == Some(job))
    }

    /// Whether the tick of the quantum of `cpu` from `begin` to `end` may have had to wait for all of it: behind interrupts
    /// that were there before. Aligned quanta are decided by the first tick handler of the cluster.
    pub fn may_be_undecided(&self, cpu: CpuId, begin: Instant, end: Instant) -> bool {
        let is_busy = |quanta: &CpuQuanta| quanta.busy.0 <= begin && quanta.busy.1 >= end;
        let own = &self.cpus[cpu.index()];
        match self.quanta {
            Quanta::Aligned => self.cpus.iter().filter(|quanta| quanta.cluster == own.cluster).all(is_busy),
            Quanta::Staggered => is_busy(own),
        }
    }

    /// Whether a job may become linked to `cpu`, of a cluster, at `at`: at a boundary where decisions take no time, while
    /// the tick handler of a boundary runs where those take time; else at a boundary, or as soon as what the CPU did there is
    /// over. Aligned quanta are decided by the first tick handler of the cluster, staggered ones each by its own.
    pub fn may_link(&self, cpu: CpuId, at: Instant, ideal: bool) -> bool {
        let is_boundary = self.first_from(cpu, at) == Some(at);
        if ideal {
            return is_boundary;
        }
        let CpuQuanta { cluster, tick, .. } = self.cpus[cpu.index()];
        match (self.ticks_cost, self.quanta) {
            // A handler is recorded when it begins, so one that did not end runs now.
            (true, Quanta::Aligned) => cluster.is_some_and(|cluster| Some(at) <= self.ticks_until[cluster]),
            (true, Quanta::Staggered) => tick.is_some_and(|(from, to)| from <= at && at <= to),
            (false, Quanta::Aligned) => {
                let is_same = |other: &CpuId| self.cpus[other.index()].cluster == cluster;
                let mut cpus = (0..self.cpus.len() as u16).map(CpuId).filter(is_same);
                is_boundary || cpus.any(|cpu| self.is_busy_since_boundary(cpu, at))
            }
            (false, Quanta::Staggered) => is_boundary || self.is_busy_since_boundary(cpu, at),
        }
    }
}
