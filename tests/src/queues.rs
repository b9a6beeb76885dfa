//! Random systems whose jobs wait under quantum-driven scheduling, or across ready queues.

use laxity_model::rng::SplitMix64;
use laxity_model::{
    CpuId, GpuArbitration, InterruptHandling, Invocation, Nanos, Quanta, Resource, ResourceProtocol, Scheduler, Scope,
    Step, Workload,
};

use crate::features::{Feature, HANDLINGS, HIGH, replicate};
use crate::systems::{self, UNIT, pick};

/// A system with `feature` from `seed`, and its scheduler.
pub(crate) fn system(feature: Feature, seed: u64) -> (Workload, Scheduler) {
    let rng = &mut SplitMix64::new(!seed);
    let across = matches!(feature, Feature::Across | Feature::AcrossGpus);
    let cpus = if across { 2 + seed % 3 } else { 1 + seed % 4 };
    let size = systems::Size { cpus, gpus: 1 + seed / 4 % 2, tasks: 2 + rng.below(5), stretch: 2 + rng.below(3) };
    let (mut workload, mut scheduler) = systems::sized(seed, &size);
    if workload.resources.is_empty() {
        let protocol = pick(rng, &[ResourceProtocol::PriorityInheritance, ResourceProtocol::Fifo]);
        workload.resources.push(Resource { name: "bus".to_owned(), protocol, replicas: 1 });
    }
    if rng.below(8) == 0 {
        replicate(&mut workload, rng);
    }
    for task in &mut workload.tasks {
        // Else GPUs of two clusters would be used where one resource is asked for.
        let is_elsewhere = feature == Feature::QuantaGpus && task.cluster.is_some_and(|cluster| cluster > 0);
        if rng.below(3) == 0 && !is_elsewhere {
            let section = vec![Step::Cpu(laxity_model::ExecutionTime::constant(Nanos(rng.between(1, 2 * UNIT))))];
            task.body
                .push(Step::Critical { resource: rng.below(workload.resources.len() as u64) as usize, body: section });
        }
    }
    if matches!(feature, Feature::Quanta | Feature::Across) {
        without_gpus(&mut workload);
    }
    // GPUs, and the jobs that use them, of one cluster: then bottom halves may be handled in any way.
    let is_confined = feature == Feature::AcrossGpus && rng.below(3) == 0;
    if across {
        spread(feature, &mut workload, &mut scheduler, is_confined, rng);
    }
    if matches!(feature, Feature::QuantaGpus | Feature::AcrossGpus) {
        if !is_confined && rng.below(6) == 0 {
            workload.gpu_management.arbitration = GpuArbitration::DriverSpinning;
        } else {
            feature.arbitrate(&mut workload, rng);
        }
        workload.gpu_management.handling = match feature {
            Feature::AcrossGpus if is_confined => pick(rng, &HANDLINGS),
            Feature::AcrossGpus => pick(rng, &[InterruptHandling::Linux, InterruptHandling::Linux, HIGH]),
            _ => InterruptHandling::Linux,
        };
    }
    if !across || rng.below(5) == 0 && workload.gpu_management.handling == InterruptHandling::Linux {
        quantize(&mut workload, &mut scheduler, rng);
    }
    (workload, scheduler)
}

/// Quanta are a good part of what tasks execute.
fn quantize(workload: &mut Workload, scheduler: &mut Scheduler, rng: &mut SplitMix64) {
    scheduler.invocation = Invocation::QuantumDriven;
    scheduler.quanta = pick(rng, &[Quanta::Aligned, Quanta::Staggered]);
    let tick = UNIT / pick(rng, &[8, 4, 2, 1]);
    workload.platform.tick = Nanos(tick);
    workload.platform.quantum = Nanos(tick * rng.between(1, 2));
}

/// Bodies without GPU operations.
fn without_gpus(workload: &mut Workload) {
    let nodes = workload.graphs.iter_mut().flat_map(|graph| &mut graph.nodes).map(|node| &mut node.body);
    for body in workload.tasks.iter_mut().map(|task| &mut task.body).chain(nodes) {
        body.retain(|step| !matches!(step, Step::GpuSection { .. } | Step::Gpu(_)));
    }
    workload.platform.gpus.clear();
    workload.gpu_management = laxity_model::GpuManagement::default();
}

/// Every task is on some CPU, or in some half of them; GPUs are those of all CPUs, or of the first half.
fn spread(
    feature: Feature,
    workload: &mut Workload,
    scheduler: &mut Scheduler,
    is_confined: bool,
    rng: &mut SplitMix64,
) {
    let cpus = workload.platform.cpus as u64;
    let all: Vec<CpuId> = (0..cpus as u16).map(CpuId).collect();
    let is_clustered = cpus > 2 && rng.below(3) == 0;
    let clusters = if is_clustered { 2 } else { cpus };
    scheduler.scope = if is_clustered { Scope::Clustered } else { Scope::Partitioned };
    let halves = vec![all[..all.len() / 2].to_vec(), all[all.len() / 2..].to_vec()];
    workload.platform.clusters = if is_clustered { halves } else { vec![all.clone()] };
    for gpu in &mut workload.platform.gpus {
        gpu.cluster = 0;
        gpu.interrupt_cpus = match rng.below(2) {
            _ if is_confined => vec![CpuId(0)],
            0 => vec![pick(rng, &all)],
            _ => all.clone(),
        };
    }
    let nodes = workload.graphs.iter_mut().flat_map(|graph| &mut graph.nodes);
    let nodes = nodes.map(|node| (&mut node.cluster, &node.body));
    for (cluster, body) in workload.tasks.iter_mut().map(|task| (&mut task.cluster, &task.body)).chain(nodes) {
        let uses_gpu = body.iter().any(|step| matches!(step, Step::GpuSection { .. } | Step::Gpu(_)));
        *cluster = Some(if uses_gpu && (is_clustered || is_confined) { 0 } else { rng.below(clusters) as usize });
    }
    if feature == Feature::Across {
        for resource in &mut workload.resources {
            resource.protocol =
                pick(rng, &[resource.protocol, ResourceProtocol::Fifo, ResourceProtocol::PriorityInheritance]);
        }
    }
}
