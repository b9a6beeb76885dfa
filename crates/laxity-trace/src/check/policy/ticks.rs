//! The ticks of a live schedule, each of which the trace has as a record, followed by the links that it decided.

use laxity_model::{CpuId, Instant, Nanos, Quanta};

use crate::TraceHeader;

/// A job that waits through so many quanta without a tick was forgotten; a machine that is late by less was held up.
pub(super) const MISSING: u64 = 100;

/// When each CPU last had a tick, and whose links may change now.
#[derive(Clone, Debug)]
pub(super) struct Ticks {
    quanta: Quanta,
    missing: Nanos,
    cpus: Vec<CpuTicks>,
    clusters: Vec<Vec<CpuId>>,
    /// The CPU of the tick whose links come now, and when that is.
    deciding: Option<(CpuId, Instant)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CpuTicks {
    cluster: Option<usize>,
    last: Instant,
}

impl Ticks {
    /// None yet.
    pub fn new(header: &TraceHeader) -> Ticks {
        let mut cpus = vec![CpuTicks::default(); header.cpus];
        for (cpu, cluster) in header.clusters_of_cpus() {
            cpus[cpu.index()].cluster = Some(cluster);
        }
        Ticks {
            quanta: header.scheduler.quanta,
            missing: Nanos(header.quantum.0.saturating_mul(MISSING)),
            cpus,
            clusters: header.clusters.clone(),
            deciding: None,
        }
    }

    /// A tick of `cpu` begins to decide. Returns when the one before has decided, and for which CPUs.
    pub fn begin(&mut self, cpu: CpuId, at: Instant) -> (Instant, Vec<CpuId>) {
        let decided = self.end();
        self.deciding = Some((cpu, at)).filter(|&(cpu, _)| self.cluster_of(cpu).is_some());
        for cpu in self.decided_by(cpu) {
            self.cpus[cpu.index()].last = at;
        }
        decided
    }

    /// Something else happens. Returns when a tick has decided, and for which CPUs; none: that was judged before.
    pub fn end(&mut self) -> (Instant, Vec<CpuId>) {
        self.deciding.take().map_or((Instant::ZERO, Vec::new()), |(cpu, at)| (at, self.decided_by(cpu)))
    }

    /// Whether the links of a cluster may change.
    pub fn is_deciding(&self, cluster: usize) -> bool {
        self.deciding.is_some_and(|(cpu, _)| self.cluster_of(cpu) == Some(cluster))
    }

    /// When a tick should have been long ago, of `cpu`, for a job that waits since `since` and does until `until`.
    pub fn missing_since(&self, cpu: CpuId, since: Instant, until: Instant) -> Option<Instant> {
        let due = since.max(self.cpus[cpu.index()].last).saturating_add(self.missing);
        (due < until).then_some(due)
    }

    fn cluster_of(&self, cpu: CpuId) -> Option<usize> {
        self.cpus.get(cpu.index())?.cluster
    }

    /// Aligned quanta are decided by one tick for all CPUs of a cluster, staggered ones each by its own.
    fn decided_by(&self, cpu: CpuId) -> Vec<CpuId> {
        match (self.quanta, self.cluster_of(cpu)) {
            (_, None) => Vec::new(),
            (Quanta::Aligned, Some(cluster)) => self.clusters[cluster].clone(),
            (Quanta::Staggered, Some(_)) => vec![cpu],
        }
    }
}
