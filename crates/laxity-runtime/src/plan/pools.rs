//! GPUs that are granted by one lock, and by which arbiter.

use laxity_gpu::Config as Arbitration;
use laxity_model::{GpuId, LockId, Workload};
use laxity_plan::Op;
use laxity_policy::lock;
use laxity_trace::{LockKind, TraceHeader};

use super::TaskPlan;

/// GPUs that are granted by one lock.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub lock: LockId,
    pub gpus: Vec<GpuId>,
    /// How `laxity-gpu` grants it; `None`: the locks of Laxity's scheduler, or those beside its scheduler in the kernel, do.
    pub arbitration: Option<Arbitration>,
}

/// The pools of GPUs of `header`, whose locks are configured by `locks`; `is_ours`: `laxity-gpu` does not grant them.
///
/// # Errors
/// What `laxity-gpu` refuses.
pub(super) fn new(
    header: &TraceHeader,
    locks: &[lock::Config],
    workload: &Workload,
    tasks: &[TaskPlan],
    is_ours: bool,
) -> Result<Vec<Pool>, String> {
    let mut pools = Vec::new();
    for (number, (info, config)) in header.locks.iter().zip(locks).enumerate() {
        let (LockKind::KFmlp { gpus } | LockKind::Tokens { gpus } | LockKind::Semaphore { gpus }) = &info.kind else {
            continue;
        };
        let lock = LockId(number as u16);
        let arbitration = if is_ours {
            None
        } else {
            let users = tasks.iter().filter(|task| task.ops.iter().any(|op| is_lock(op, lock))).count();
            let arbitration = arbitration(workload, gpus, config, users);
            arbitration.validate().map_err(|error| format!("GPUs of \"{}\": {error}", info.name))?;
            Some(arbitration)
        };
        pools.push(Pool { lock, gpus: gpus.clone(), arbitration });
    }
    Ok(pools)
}

/// Refuses tasks that use a GPU whose interrupts are handled in another cluster: there the scheduler in the kernel knows no owner.
///
/// # Errors
/// Which task, and which GPU.
pub(super) fn refuse_apart(
    pools: &[Pool],
    header: &TraceHeader,
    tasks: &[TaskPlan],
    workload: &Workload,
) -> Result<(), String> {
    for pool in pools {
        for gpu in &pool.gpus {
            let there = header.tasks[tasks.len() + gpu.index()].cluster;
            let uses = |task: &TaskPlan| task.ops.iter().any(|op| is_lock(op, pool.lock));
            let mut users = tasks.iter().zip(&header.tasks).filter(|(task, _)| uses(task));
            if let Some((task, info)) = users.find(|(_, info)| info.cluster != there) {
                return Err(format!(
                    "task \"{}\" of cluster {} uses GPU \"{}\", whose interrupts are handled in cluster {there}, and in the kernel the thread that \
                     does works for jobs of its own cluster; write another `handling`, give each cluster GPUs of its own, or take another \
                     --scheduler",
                    task.name,
                    info.cluster,
                    workload.platform.gpus[gpu.index()].name
                ));
            }
        }
    }
    Ok(())
}

/// How `laxity-gpu` grants `gpus`, whose lock is configured by `config`, to so many `users`.
fn arbitration(workload: &Workload, gpus: &[GpuId], config: &lock::Config, users: usize) -> Arbitration {
    Arbitration {
        cpus: match config {
            lock::Config::Tokens { cpus, .. } => *cpus,
            lock::Config::KFmlp { .. } | lock::Config::Queue { .. } => 1,
        },
        gpus: gpus.len() as u16,
        copy_engines: workload.platform.gpus[gpus[0].index()].copy_engines,
        arbitration: workload.gpu_management.arbitration,
        clients: users.clamp(1, usize::from(u16::MAX)) as u16,
    }
}

fn is_lock(op: &Op, wanted: LockId) -> bool {
    matches!(op, Op::Lock { lock, .. } if *lock == wanted)
}
