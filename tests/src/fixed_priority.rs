//! Random systems of one CPU under fixed priorities: jitter of a good part of a period, non-preemptive sections, resources of
//! every protocol, sections that follow one another at once, deadlines beyond periods.

use laxity_model::rng::SplitMix64;
use laxity_model::{
    Nanos, OverheadProfile, Platform, PriorityRule, Resource, ResourceProtocol, Scheduler, Step, Task, Workload,
};

use crate::systems::{UNIT, costs, critical, pick, time};

/// Of what there is a lot in a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emphasis {
    /// Release jitter.
    Jitter,
    /// Jobs that are non-preemptive as a whole, or at their end.
    NonPreemptive,
    /// Resources of this protocol.
    Resources(ResourceProtocol),
    /// All of it.
    Mixed,
}

/// All of them.
pub const EMPHASES: [Emphasis; 5] = [
    Emphasis::Jitter,
    Emphasis::NonPreemptive,
    Emphasis::Resources(ResourceProtocol::PriorityInheritance),
    Emphasis::Resources(ResourceProtocol::Fifo),
    Emphasis::Mixed,
];

/// A system from `seed`, and the scheduler; every third has overheads.
pub fn system(emphasis: Emphasis, seed: u64) -> (Workload, Scheduler) {
    let rng = &mut SplitMix64::new(seed ^ 0x0006_0001_cb0a);
    let rules = [PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic, PriorityRule::Given];
    let scheduler = Scheduler { rule: pick(rng, &rules), coarse_lock: rng.below(8) == 0, ..Scheduler::GLOBAL_EDF };
    let mut platform = Platform::identical(1);
    platform.tick = Nanos(20 * UNIT);
    if seed.is_multiple_of(3) {
        platform.overheads = OverheadProfile::constant("test", costs(rng));
    }
    let mut workload = Workload::new("one CPU", platform, Vec::new());
    let all = [ResourceProtocol::PriorityInheritance, ResourceProtocol::Fifo];
    let resources = match emphasis {
        Emphasis::Jitter | Emphasis::NonPreemptive => 0,
        Emphasis::Resources(_) | Emphasis::Mixed => rng.between(1, 3),
    };
    for index in 0..resources {
        let protocol = if let Emphasis::Resources(protocol) = emphasis { protocol } else { pick(rng, &all) };
        workload.resources.push(Resource { name: format!("r{index}"), protocol, replicas: 1 });
    }
    let count = rng.between(2, 6);
    for index in 0..count {
        let task = task(rng, emphasis, index, &workload);
        workload.tasks.push(task);
    }
    (workload, scheduler)
}

fn task(rng: &mut SplitMix64, emphasis: Emphasis, index: u64, workload: &Workload) -> Task {
    let period = rng.between(20, 120) * UNIT;
    let latest = if rng.below(4) == 0 { 250 } else { 100 };
    let deadline = Nanos(period * rng.between(60, latest) / 100);
    let is_late = matches!(emphasis, Emphasis::Jitter | Emphasis::Mixed) || rng.below(4) == 0;
    let part = pick(rng, &[1, 2, 8]);
    let jitter = Nanos(if is_late { rng.below(period / part) } else { 0 });
    let priority = Some(rng.below(20) as u32 * 8 + index as u32);
    Task {
        deadline,
        jitter,
        priority,
        body: body(rng, emphasis, workload),
        ..Task::periodic(format!("t{index}"), Nanos(1), Nanos(period))
    }
}

fn body(rng: &mut SplitMix64, emphasis: Emphasis, workload: &Workload) -> Vec<Step> {
    if emphasis == Emphasis::NonPreemptive && rng.below(2) == 0 {
        return vec![Step::NonPreemptive(time(rng, 5))];
    }
    let mut body = if rng.below(3) == 0 { Vec::new() } else { vec![Step::Cpu(time(rng, 4))] };
    let least = u64::from(body.is_empty());
    for _ in 0..rng.between(least, 4) {
        body.push(match rng.below(8) {
            0 | 1 => Step::Cpu(time(rng, 4)),
            2 => Step::NonPreemptive(time(rng, 3)),
            _ if !workload.resources.is_empty() => without_suspensions(critical(rng, workload, 0)),
            3 | 4 => Step::NonPreemptive(time(rng, 3)),
            _ => Step::Cpu(time(rng, 2)),
        });
    }
    body
}

/// A job that suspends itself for a time is another matter.
fn without_suspensions(step: Step) -> Step {
    match step {
        Step::Suspend(time) => Step::NonPreemptive(time),
        Step::Critical { resource, body } => {
            Step::Critical { resource, body: body.into_iter().map(without_suspensions).collect() }
        }
        other => other,
    }
}
