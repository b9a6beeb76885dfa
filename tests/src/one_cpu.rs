//! Random systems of one CPU under EDF, without GPUs and self-suspensions.

use laxity_model::rng::SplitMix64;
use laxity_model::{
    Nanos, OverheadCosts, OverheadProfile, PriorityRule, Resource, ResourceProtocol, Scheduler, Step, Workload,
};

use crate::systems::{self, pick};

/// A system from `seed`, and its scheduler.
pub(crate) fn system(seed: u64) -> (Workload, Scheduler) {
    let rng = &mut SplitMix64::new(!seed);
    let size = systems::Size { cpus: 1, gpus: 1, tasks: 2 + rng.below(5), stretch: 1 };
    let (mut workload, mut scheduler) = systems::sized(seed, &size);
    scheduler.rule = PriorityRule::Edf;
    workload.platform.gpus.clear();
    workload.graphs.clear();
    let has_floors = seed.is_multiple_of(4);
    if has_floors || rng.below(2) == 0 {
        workload.platform.overheads = OverheadProfile::constant("none", OverheadCosts::default());
    }
    for index in workload.resources.len()..rng.below(3) as usize {
        let protocol = ResourceProtocol::PriorityInheritance;
        workload.resources.push(Resource { name: format!("more{index}"), protocol, replicas: 1 });
    }
    for resource in &mut workload.resources {
        resource.protocol = match has_floors {
            true => ResourceProtocol::PriorityCeiling,
            false => pick(rng, &[ResourceProtocol::PriorityInheritance, ResourceProtocol::Fifo]),
        };
    }
    let resources = workload.resources.len();
    for task in &mut workload.tasks {
        free(&mut task.body);
        // Of jobs of one section each, many find another in their way.
        if resources > 0 && rng.below(3) == 0 {
            let body = std::mem::take(&mut task.body);
            let body = body.into_iter().filter(|step| !matches!(step, Step::Critical { .. })).collect();
            task.body = vec![Step::Critical { resource: rng.below(resources as u64) as usize, body }];
        }
        let longest = if rng.below(3) == 0 { 2 * task.period.0 } else { task.period.0 };
        task.deadline = Nanos(rng.between(task.period.0 / 2, longest));
        task.jitter = if has_floors { Nanos::ZERO } else { Nanos(rng.below(3) / 2 * rng.below(task.period.0 / 2)) };
    }
    (workload, scheduler)
}

/// Without what a job leaves the CPU for.
fn free(body: &mut Vec<Step>) {
    body.retain(|step| !matches!(step, Step::Suspend(_) | Step::GpuSection { .. } | Step::Gpu(_)));
    for step in body {
        if let Step::Critical { body, .. } = step {
            free(body);
        }
    }
}
