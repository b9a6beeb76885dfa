//! GPUs that are granted by one lock.

use laxity_gpu::Config as Arbitration;
use laxity_model::{LockId, Workload};
use laxity_plan::Op;
use laxity_policy::lock;
use laxity_trace::{LockKind, TraceHeader};

use super::{Pool, TaskPlan};

/// The pools of GPUs of `header`, whose locks are configured by `locks`.
pub(super) fn new(
    header: &TraceHeader,
    locks: &[lock::Config],
    workload: &Workload,
    tasks: &[TaskPlan],
) -> Result<Vec<Pool>, String> {
    let arbitration = workload.gpu_management.arbitration;
    let mut pools = Vec::new();
    for (number, (info, config)) in header.locks.iter().zip(locks).enumerate() {
        let (LockKind::KFmlp { gpus } | LockKind::Tokens { gpus }) = &info.kind else { continue };
        let lock = LockId(number as u16);
        let users = tasks.iter().filter(|task| task.ops.iter().any(|op| is_lock(op, lock))).count();
        let first = &workload.platform.gpus[gpus[0].index()];
        let arbitration = Arbitration {
            cpus: match config {
                lock::Config::Tokens { cpus, .. } => *cpus,
                lock::Config::KFmlp { .. } | lock::Config::Queue { .. } => 1,
            },
            gpus: gpus.len() as u16,
            copy_engines: first.copy_engines,
            arbitration,
            clients: users.clamp(1, usize::from(u16::MAX)) as u16,
        };
        arbitration.validate().map_err(|error| format!("GPUs of \"{}\": {error}", info.name))?;
        pools.push(Pool { lock, gpus: gpus.clone(), arbitration });
    }
    Ok(pools)
}

fn is_lock(op: &Op, wanted: LockId) -> bool {
    matches!(op, Op::Lock { lock, .. } if *lock == wanted)
}
