//! Random systems of several CPUs under EDF whose deadlines are beyond their periods: several jobs of a task are pending, and
//! bounds on response times are less than deadlines.

use laxity_model::rng::SplitMix64;
use laxity_model::{Nanos, OverheadCosts, OverheadProfile, PriorityRule, Scheduler, Step, Workload};

use crate::systems::{self, pick};

/// A system from `seed`, and its scheduler.
pub(crate) fn system(seed: u64) -> (Workload, Scheduler) {
    let rng = &mut SplitMix64::new(!seed);
    let size = systems::Size { cpus: 2 + seed % 3, gpus: 1, tasks: 3 + rng.below(6), stretch: 1 };
    let (mut workload, mut scheduler) = systems::sized(seed, &size);
    scheduler.rule = PriorityRule::Edf;
    workload.platform.gpus.clear();
    workload.graphs.clear();
    if rng.below(2) == 0 {
        workload.platform.overheads = OverheadProfile::constant("none", OverheadCosts::default());
    }
    // Most without locks: these count all waits as execution.
    let has_locks = rng.below(3) == 0;
    if !has_locks {
        workload.resources.clear();
    }
    for task in &mut workload.tasks {
        let is_kept = |step: &Step| match step {
            Step::GpuSection { .. } | Step::Gpu(_) => false,
            Step::Critical { .. } => has_locks,
            _ => true,
        };
        task.body.retain(is_kept);
        if !task.body.iter().any(|step| matches!(step, Step::Cpu(_))) {
            task.body.push(Step::Cpu(laxity_model::ExecutionTime::constant(Nanos(systems::UNIT / 2))));
        }
        for step in &mut task.body {
            if let Step::Critical { body, .. } = step {
                body.retain(|inner| matches!(inner, Step::Cpu(_)));
            }
        }
        let tenths = pick(rng, &[10, 12, 15, 20, 30, 50, 100]);
        task.deadline = Nanos(task.period.0 * tenths / 10);
        task.jitter = Nanos::ZERO;
    }
    (workload, scheduler)
}
