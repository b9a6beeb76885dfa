//! The bandwidth lock of a live run: which jobs take it, and which CPUs are regulated meanwhile.

use std::collections::BTreeSet;

use laxity_gpu::Config as Arbitration;
use laxity_model::{LockId, ReplicaId, Workload};
use laxity_plan::{MemoryLock, Op};

use super::{BestEffort, Settled};
use crate::linux::LinuxScheduler;

/// The bandwidth lock, and what is regulated while a job holds it.
#[derive(Clone, Debug)]
pub(crate) struct Protection {
    /// The best-effort CPUs, numbered as Linux does; none if there are no best-effort tasks.
    pub cpus: Vec<usize>,
    /// How they are regulated.
    pub regulator: laxity_bandwidth::Options,
    /// The memory in which the lock is.
    pub arbitration: Arbitration,
}

/// How the jobs of a task hold the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub lock: LockId,
    /// The lock has one for each task.
    pub replica: ReplicaId,
    /// In bytes a second.
    pub budget: u64,
}

/// The priority of regulators where tasks are `SCHED_FIFO` threads: below all of them, so that only best-effort work is
/// throttled.
pub(crate) const BELOW_TASKS: u8 = 1;

impl Protection {
    /// That of `workload`, whose lock is `lock`; `bodies` are those of all tasks and nodes.
    ///
    /// # Errors
    /// That regulators would throttle other than best-effort tasks.
    pub(super) fn new(
        workload: &Workload,
        best_effort: &BestEffort,
        bodies: &[&[Op]],
        settled: &Settled,
    ) -> Result<Protection, String> {
        let cpus: BTreeSet<usize> = best_effort.tasks.iter().flat_map(|task| task.cpus.iter().copied()).collect();
        if settled.linux == LinuxScheduler::Other {
            not_throttled(&cpus, settled)?;
        }
        let rules = workload.platform.memory.regulator;
        let punishment = workload.best_effort_scheduler.rule.punishment().0;
        let defaults = laxity_bandwidth::Options::new(cpus.iter().copied().collect::<Vec<_>>());
        let priority = if settled.linux == LinuxScheduler::Fifo { BELOW_TASKS } else { defaults.priority };
        let regulator = laxity_bandwidth::Options {
            period: rules.period,
            heed: rules.heed,
            // The threads of best-effort tasks count what they move; traffic of real-time tasks has no budget.
            counter: laxity_bandwidth::Counter::Software,
            throttle: laxity_bandwidth::Throttle::Occupier,
            punishment: (punishment > 0).then_some(punishment as f64 / 1e6),
            priority,
            ..defaults
        };
        let clients = bodies.iter().filter(|ops| holds(ops)).count().clamp(1, usize::from(u16::MAX));
        let arbitration = Arbitration { clients: clients as u16, ..Arbitration::new(1, 1) };
        arbitration.validate().map_err(|error| format!("`bandwidth_lock`: {error}"))?;
        Ok(Protection { cpus: cpus.into_iter().collect(), regulator, arbitration })
    }
}

/// How the jobs of each task hold `lock`, if they do.
pub(crate) fn holders(lock: &MemoryLock, bodies: &[&[Op]]) -> Vec<Option<Hold>> {
    let mut replica = 0;
    let hold = |(ops, &budget): (&&[Op], &u64)| {
        holds(ops).then(|| {
            replica += 1;
            Hold { lock: lock.lock, replica: ReplicaId(replica - 1), budget }
        })
    };
    bodies.iter().zip(&lock.budgets).map(hold).collect()
}

fn holds(ops: &[Op]) -> bool {
    ops.iter().any(|op| matches!(op, Op::HoldBandwidth))
}

/// A regulator preempts all threads of `SCHED_OTHER` on its CPU.
fn not_throttled(regulated: &BTreeSet<usize>, settled: &Settled) -> Result<(), String> {
    let all: Vec<usize> = settled.placement.linux.clone();
    for cpus in &settled.cpus {
        if let Some(cpu) = cpus.as_ref().unwrap_or(&all).iter().find(|cpu| regulated.contains(cpu)) {
            return Err(format!(
                "`bandwidth_lock` under SCHED_OTHER: a real-time task may be on CPU {cpu}, where throttling would stop it as \
                 it stops best-effort tasks; take --scheduler laxity, fifo or deadline (`ulimit -r 98`), or bind best-effort \
                 tasks to other CPUs"
            ));
        }
    }
    Ok(())
}
