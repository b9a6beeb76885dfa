//! Random systems whose GPU operations are under the bandwidth lock: on one CPU, several in a row, beside graphs and whatever
//! else keeps others out.

use laxity_model::rng::SplitMix64;
use laxity_model::{
    BandwidthLock, Distribution, ExecutionTime, Factor, GpuArbitration, GpuOperation, GpuWork, InterruptHandling,
    Nanos, OverheadCosts, OverheadProfile, PriorityRule, Resource, ResourceProtocol, Scheduler, Scope, Step,
    ThreadPriority, Waiting, Workload,
};

use crate::features::{HANDLINGS, HIGH};
use crate::graphs::{self, Kind};
use crate::systems::{self, UNIT, pick, time};

const LOW: InterruptHandling = InterruptHandling::PreemptRt(ThreadPriority::Low);

/// A system from `seed`, and its scheduler.
pub(crate) fn system(seed: u64) -> (Workload, Scheduler) {
    let rng = &mut SplitMix64::new(!seed);
    let size = systems::Size { cpus: 1 + seed % 3, gpus: 1, tasks: 1 + rng.below(5), stretch: 1 + rng.below(2) };
    let (mut workload, mut scheduler) = systems::sized(seed, &size);
    (scheduler.scope, workload.platform.clusters) = (Scope::Partitioned, vec![workload.platform.clusters.concat()]);
    if scheduler.rule != PriorityRule::Edf && rng.below(3) == 0 {
        scheduler.rule = PriorityRule::Given;
    }
    workload.platform.gpus.truncate(1);
    let cpus = workload.platform.clusters[0].clone();
    workload.platform.gpus.iter_mut().for_each(|gpu| gpu.interrupt_cpus.clone_from(&cpus));
    if rng.below(2) == 0 {
        workload.platform.overheads = OverheadProfile::constant("none", OverheadCosts::default());
    }
    let handling = pick(rng, &[InterruptHandling::Linux, InterruptHandling::Linux, LOW, HIGH]);
    let management = &mut workload.gpu_management;
    management.handling = if rng.below(4) > 0 { handling } else { pick(rng, &HANDLINGS) };
    management.arbitration = GpuArbitration::DriverSpinning;
    management.bandwidth_lock =
        Some(BandwidthLock { call: Nanos(pick(rng, &[0, 0, UNIT / 50, 3 * UNIT])), budget: 1_000_000 });
    let interrupts = u32::from(rng.below(3) == 0);
    share(&mut workload, rng);
    // One user may be anywhere; several are on one CPU, as are those that share resources.
    let home = rng.below(cpus.len() as u64) as usize;
    let users = if rng.below(3) == 0 { 1 } else { 1 + rng.below(workload.tasks.len() as u64) as usize };
    for index in 0..workload.tasks.len() {
        let body = body(rng, &workload, (index < users).then_some(interrupts));
        let is_placed = users > 1 && index < users || body.iter().any(|step| matches!(step, Step::Critical { .. }));
        let task = &mut workload.tasks[index];
        task.body = body;
        task.priority = (scheduler.rule == PriorityRule::Given).then_some(index as u32);
        task.cluster = is_placed.then_some(home);
        if scheduler.rule == PriorityRule::Given {
            task.deadline = task.deadline.max(Nanos(task.period.0 / 2));
        }
    }
    workload.graphs.clear();
    if rng.below(2) == 0 && scheduler.rule != PriorityRule::Given {
        let kind = pick(rng, &[Kind::Rates, Kind::Copies]);
        workload.graphs.push(graphs::graph(rng, kind, "g".to_owned(), false));
    }
    (workload, scheduler)
}

/// Resources, at times.
fn share(workload: &mut Workload, rng: &mut SplitMix64) {
    workload.resources.clear();
    if rng.below(3) == 0 {
        let protocol = pick(rng, &[ResourceProtocol::PriorityInheritance, ResourceProtocol::Fifo]);
        workload.resources.push(Resource { name: "r".to_owned(), protocol, replicas: 1 });
    }
}

/// Of a task whose operations raise so many interrupts, or that uses no GPU.
fn body(rng: &mut SplitMix64, workload: &Workload, interrupts: Option<u32>) -> Vec<Step> {
    let mut body = vec![Step::Cpu(time(rng, 4))];
    let is_shared = !workload.resources.is_empty();
    for _ in 0..rng.between(1, 5) {
        let step = match (rng.below(10), interrupts) {
            (0..6, Some(interrupts)) => operation(rng, interrupts),
            (6, _) => Step::NonPreemptive(time(rng, 2)),
            (7, _) if is_shared => systems::critical(rng, workload, 0),
            (8, _) => {
                // Nothing, in the jobs that there are.
                let actual = Distribution::Constant(Nanos::ZERO);
                Step::Cpu(ExecutionTime { wcet: Nanos(UNIT), actual })
            }
            _ => Step::Cpu(time(rng, 3)),
        };
        let follows_a_section = matches!(body.last(), Some(Step::Critical { .. }));
        if follows_a_section && rng.below(4) > 0 {
            body.push(Step::Cpu(ExecutionTime::constant(Nanos(UNIT / 10))));
        }
        body.push(step);
    }
    body
}

fn operation(rng: &mut SplitMix64, interrupts: u32) -> Step {
    let work = GpuWork::Kernel(time(rng, 4));
    let waiting = pick(rng, &[Waiting::Synchronous, Waiting::Synchronous, Waiting::Synchronous, Waiting::Asynchronous]);
    Step::Gpu(GpuOperation { gpu: None, work, waiting, interrupts, memory: Factor::ZERO })
}
