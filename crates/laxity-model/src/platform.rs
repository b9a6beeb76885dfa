//! The machine: CPUs, clusters, GPUs, other devices, interrupt routing, ticks and overheads.

use crate::{CpuId, Device, Memory, Nanos, OverheadProfile};

/// The machine a workload runs on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    /// Number of CPUs, at least 1.
    pub cpus: usize,
    /// CPUs of each cluster, disjoint, covering every CPU. One cluster of all CPUs by default.
    pub clusters: Vec<Vec<CpuId>>,
    /// The GPUs.
    pub gpus: Vec<Gpu>,
    /// The other sources of interrupts.
    pub devices: Vec<Device>,
    /// Period of each CPU's tick interrupt.
    pub tick: Nanos,
    /// Scheduling quantum Q of quantum-driven scheduling; a multiple of the tick.
    pub quantum: Nanos,
    /// What scheduling costs on this machine.
    pub overheads: OverheadProfile,
    /// Its memory.
    pub memory: Memory,
}

/// A GPU: one execution engine and one or two copy engines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// Unique name.
    pub name: String,
    /// The cluster it belongs to: an index into [`Platform::clusters`].
    pub cluster: usize,
    /// 1: both directions share an engine; 2: one for each direction.
    pub copy_engines: u8,
    /// Copy bandwidth in bytes a second, at least 1.
    pub bandwidth: u64,
    /// Fixed cost of a copy.
    pub latency: Nanos,
    /// CPUs that may receive its interrupts; never empty.
    pub interrupt_cpus: Vec<CpuId>,
}

impl Platform {
    /// `cpus` CPUs in one cluster, 1 ms tick and quantum, no device, no overhead.
    pub fn identical(cpus: usize) -> Self {
        Platform {
            cpus,
            clusters: vec![(0..cpus).map(|cpu| CpuId(cpu as u16)).collect()],
            gpus: Vec::new(),
            devices: Vec::new(),
            tick: Nanos::from_millis(1),
            quantum: Nanos::from_millis(1),
            overheads: OverheadProfile::zero(),
            memory: Memory::default(),
        }
    }
}

impl Gpu {
    /// How long a copy of `bytes` takes: the latency plus the bytes at full bandwidth, rounded up to the nanosecond.
    ///
    /// A time that no span can hold becomes the longest span; validation refuses such copies, and a
    /// bandwidth of zero.
    pub fn copy_time(&self, bytes: u64) -> Nanos {
        let transfer = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(self.bandwidth.max(1)));
        Nanos(u64::try_from(transfer).unwrap_or(u64::MAX).saturating_add(self.latency.0))
    }
}
