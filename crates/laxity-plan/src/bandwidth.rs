//! The bandwidth lock around GPU operations, and what memory traffic slows down.
//!
//! ```text
//!   without   Issue k, Wait, Dispatch
//!   with      Run call, HoldBandwidth, Issue k, Wait, Dispatch, Run call, EndBandwidth
//! ```
//!
//! That is what the library of paper 004 puts around CUDA's calls (Table I): every launch and copy takes the lock, a
//! synchronization unlocks it. A call costs the same whether the lock was held before or not.

use laxity_model::{
    BandwidthLock, Contention, ExecutionTime, Factor, LockId, MemoryRegulator, Nanos, Step, Task, Workload,
};
use laxity_trace::MemoryInfo;

use crate::best_effort::BestEffortPlan;
use crate::locks::Locks;
use crate::op::Op;

/// Memory, as jobs, engines and regulators use it.
#[derive(Clone, Debug)]
pub struct MemoryPlan {
    /// How traffic slows GPU work down.
    pub contention: Contention,
    /// The regulator of every CPU that best-effort tasks may be on.
    pub regulator: MemoryRegulator,
    /// The bandwidth lock, if there is one.
    pub lock: Option<MemoryLock>,
    /// The traffic of each task, of all kinds of tasks, while it executes on a CPU, in bytes a second.
    pub demands: Vec<u64>,
}

/// The bandwidth lock.
#[derive(Clone, Debug)]
pub struct MemoryLock {
    /// Its number among the locks.
    pub lock: LockId,
    /// The budget that a job of each task or node asks for, in bytes a second.
    pub budgets: Vec<u64>,
}

impl MemoryPlan {
    /// `None` where no traffic slows anything down and no lock is held.
    pub(crate) fn new(
        workload: &Workload,
        tasks: &[Task],
        locks: &Locks,
        best_effort: &BestEffortPlan,
    ) -> Option<MemoryPlan> {
        let contention = &workload.platform.memory.contention;
        let is_sensitive = tasks.iter().any(|task| task.body.iter().any(is_sensitive));
        if locks.bandwidth.is_none() && (contention.is_flat() || !is_sensitive) {
            return None;
        }
        let mut demands: Vec<u64> = tasks.iter().map(|task| task.memory_demand).collect();
        demands.resize(best_effort.first_task, 0);
        demands.extend(workload.best_effort.iter().map(|task| task.memory_demand));
        let budget =
            |lock: &BandwidthLock| tasks.iter().map(|task| task.memory_budget.unwrap_or(lock.budget)).collect();
        let lock = workload.gpu_management.bandwidth_lock.as_ref().zip(locks.bandwidth);
        Some(MemoryPlan {
            contention: contention.clone(),
            regulator: workload.platform.memory.regulator,
            lock: lock.map(|(lock, id)| MemoryLock { lock: id, budgets: budget(lock) }),
            demands,
        })
    }

    /// What a trace says of it.
    pub(crate) fn info(&self, best_effort: &BestEffortPlan) -> MemoryInfo {
        MemoryInfo {
            period: self.regulator.period,
            latency: self.regulator.latency,
            demands: self.demands.clone(),
            weights: best_effort.threads.iter().map(|thread| thread.weight).collect(),
            punishment: best_effort.punishment.0,
        }
    }
}

/// `ops` with the lock, if there is one, around GPU operations.
pub(crate) fn protect(ops: Vec<Op>, lock: Option<BandwidthLock>) -> Vec<Op> {
    let Some(lock) = lock else { return ops };
    let mut protected = Vec::with_capacity(ops.len() * 2);
    let mut rest = ops.into_iter();
    protect_each(&mut rest, lock.call, &mut protected);
    protected
}

/// What the calls among `ops` cost a job.
pub(crate) fn cost_of_calls(workload: &Workload, ops: &[Op]) -> Nanos {
    let call = workload.gpu_management.bandwidth_lock.map_or(0, |lock| lock.call.0);
    let calls = ops.iter().filter(|op| matches!(op, Op::HoldBandwidth | Op::EndBandwidth)).count() as u64;
    Nanos(call.saturating_mul(calls))
}

fn protect_each(ops: &mut dyn Iterator<Item = Op>, call: Nanos, protected: &mut Vec<Op>) {
    let calls = |protected: &mut Vec<Op>| {
        if !call.is_zero() {
            protected.push(Op::Run(ExecutionTime::constant(call)));
        }
    };
    while let Some(op) = ops.next() {
        match op {
            Op::Issue(_) => {
                calls(protected);
                protected.extend([Op::HoldBandwidth, op]);
            }
            Op::Wait => {
                protected.push(op);
                // The step that has the job dispatched again.
                protected.extend(ops.next());
                calls(protected);
                protected.push(Op::EndBandwidth);
            }
            Op::UnlessMoved(steps) => {
                let at = protected.len();
                protected.push(op);
                protect_each(&mut ops.take(steps as usize), call, protected);
                protected[at] = Op::UnlessMoved((protected.len() - at - 1) as u32);
            }
            other => protected.push(other),
        }
    }
}

fn is_sensitive(step: &Step) -> bool {
    match step {
        Step::Gpu(operation) => operation.memory > Factor::ZERO,
        Step::Critical { body, .. } | Step::GpuSection { body } => body.iter().any(is_sensitive),
        Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) => false,
    }
}
