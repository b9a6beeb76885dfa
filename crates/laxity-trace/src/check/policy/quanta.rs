//! Where quanta begin.

use laxity_model::{CpuId, Instant, Nanos, Quanta};

use crate::TraceHeader;

/// The quantum boundaries of every CPU, and the tick handlers that ran there.
#[derive(Clone, Debug)]
pub(super) struct Boundaries {
    quantum: Nanos,
    quanta: Quanta,
    /// Whether a tick handler takes time, so that the trace shows it.
    ticks_cost: bool,
    cpus: Vec<CpuQuanta>,
}

#[derive(Clone, Debug)]
struct CpuQuanta {
    /// Start of the CPU's first quantum.
    phase: Nanos,
    /// The CPUs whose tick handlers may link jobs to it.
    peers: Vec<usize>,
    /// The last tick handler: from, to.
    tick: Option<(Instant, Instant)>,
}

impl Boundaries {
    pub fn new(header: &TraceHeader) -> Self {
        // A quantum of zero would have boundaries everywhere; a nanosecond is the same.
        let quantum = Nanos(header.quantum.0.max(1));
        let quanta = header.scheduler.quanta;
        let cpu = |index: usize| {
            let phase = match quanta {
                Quanta::Aligned => Nanos::ZERO,
                // CPU c of m is c/m of a quantum late, rounded down; below a quantum, so it fits.
                Quanta::Staggered => Nanos((u128::from(quantum.0) * index as u128 / header.cpus.max(1) as u128) as u64),
            };
            CpuQuanta { phase, peers: peers(header, index), tick: None }
        };
        Boundaries {
            quantum,
            quanta,
            ticks_cost: !header.costs.tick.is_zero(),
            cpus: (0..header.cpus).map(cpu).collect(),
        }
    }

    /// The first boundary of `cpu` at or after `at`; `None` if that cannot be written.
    pub fn first_from(&self, cpu: usize, at: Instant) -> Option<Instant> {
        let phase = self.cpus[cpu].phase.0;
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

    /// A tick handler ran on `cpu`.
    pub fn ticked(&mut self, cpu: usize, from: Instant, to: Instant) {
        if let Some(quanta) = self.cpus.get_mut(cpu) {
            quanta.tick = Some((from, to));
        }
    }

    /// Whether a job may become linked to `cpu` at `at`: at a boundary where decisions take no time, while a tick
    /// handler runs where those take time, else at any time. Aligned quanta are decided by the first tick handler of
    /// the cluster, staggered ones each by its own.
    pub fn may_link(&self, cpu: CpuId, at: Instant, ideal: bool) -> bool {
        let cpu = cpu.index();
        if cpu >= self.cpus.len() {
            return true;
        }
        if ideal {
            return self.first_from(cpu, at) == Some(at);
        }
        let during_tick = |cpu: usize| self.cpus[cpu].tick.is_some_and(|(from, to)| from <= at && at <= to);
        match self.quanta {
            _ if !self.ticks_cost => true,
            Quanta::Aligned => self.cpus[cpu].peers.iter().copied().any(during_tick),
            Quanta::Staggered => during_tick(cpu),
        }
    }
}

/// The CPUs of `cpu`'s cluster.
fn peers(header: &TraceHeader, cpu: usize) -> Vec<usize> {
    let cluster = header.clusters.iter().find(|cpus| cpus.iter().any(|member| member.index() == cpu));
    cluster.into_iter().flatten().map(|member| member.index()).filter(|&member| member < header.cpus).collect()
}
