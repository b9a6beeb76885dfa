//! The state that a task keeps in the memory of a GPU, and that moves with it to another.

use laxity_model::{Gpu, GpuArbitration, MigrationPath, Workload};

/// A soft GPU copies with a CPU of this machine: more would take longer than the file says.
const BYTES_MAX: u64 = 1 << 20;
/// It has a mark at its beginning and one at its end.
const BYTES_MIN: u64 = 16;

/// How the state of each task moves from GPU to GPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatePlan {
    /// Its size: as much as the slowest GPU copies in the time of a migration, up to a mebibyte.
    pub bytes: usize,
    pub path: MigrationPath,
}

impl StatePlan {
    /// That of `workload`, if state moves.
    pub fn new(workload: &Workload) -> Option<StatePlan> {
        let GpuArbitration::GpuSync(sync) = workload.gpu_management.arbitration else { return None };
        let time = sync.migration?;
        let copied = |gpu: &Gpu| u128::from(gpu.bandwidth) * u128::from(time.0) / 1_000_000_000;
        let bytes = workload.platform.gpus.iter().map(copied).min()?.min(u128::from(BYTES_MAX)) as u64;
        Some(StatePlan { bytes: bytes.max(BYTES_MIN) as usize, path: sync.migration_path })
    }
}
