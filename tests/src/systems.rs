//! Random systems whose tasks share resources and GPUs.

use laxity_model::rng::SplitMix64;
use laxity_model::{
    Arrival, CopyDirection, CpuId, Distribution, Edge, ExecutionTime, Factor, Gpu, GpuArbitration, GpuManagement,
    GpuOperation, GpuWork, Graph, InterruptHandling, Nanos, Node, OverheadCosts, OverheadProfile, Platform,
    PriorityRule, Resource, ResourceProtocol, Scheduler, Scope, Step, Task, ThreadPriority, Waiting, Workload,
};

/// The times of bodies are multiples of this; periods are some tens.
pub const UNIT: u64 = 100_000;

/// What overheads cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overheads {
    /// Nothing, interrupts of GPUs included.
    None,
    /// The profile `elliott2012-klmirqd`, each cost so many times.
    Published(u64),
    /// Bottom and top halves only, as long as a good part of a period.
    Halves,
    /// Each cost on its own.
    Random,
}

/// How large a random system is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// CPUs of the platform.
    pub cpus: u64,
    /// GPUs of each cluster.
    pub gpus: u64,
    /// Tasks, nodes of graphs not counted.
    pub tasks: u64,
    /// Periods are so many times as long.
    pub stretch: u64,
}

/// A system from `seed`, and the scheduler.
pub fn system(seed: u64) -> (Workload, Scheduler) {
    build(seed, None)
}

/// A system of that size from `seed`, and the scheduler.
pub fn sized(seed: u64, size: &Size) -> (Workload, Scheduler) {
    build(seed, Some(size))
}

fn build(seed: u64, size: Option<&Size>) -> (Workload, Scheduler) {
    let rng = &mut SplitMix64::new(seed);
    let rule = pick(
        rng,
        &[PriorityRule::Edf, PriorityRule::Edf, PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic],
    );
    let mut scheduler = Scheduler { rule, coarse_lock: rng.below(8) == 0, ..Scheduler::GLOBAL_EDF };
    let cpus = rng.between(1, 4);
    let mut platform = Platform::identical(size.map_or(cpus, |size| size.cpus) as usize);
    if platform.cpus > 2 && rng.below(3) == 0 {
        let second = platform.clusters[0].split_off(platform.cpus / 2);
        platform.clusters.push(second);
        scheduler.scope = Scope::Clustered;
    }
    let gpus = rng.between(1, 2);
    for index in 0..platform.clusters.len() * size.map_or(gpus, |size| size.gpus) as usize {
        let cluster = index % platform.clusters.len();
        platform.gpus.push(gpu(rng, format!("gpu{index}"), cluster, &platform.clusters[cluster]));
    }
    platform.tick = Nanos(20 * UNIT);
    let profile = costs(rng);
    platform.overheads = OverheadProfile::constant("test", profile);
    let mut workload = Workload::new("random", platform, Vec::new());
    let protocol = |rng: &mut SplitMix64| {
        let ceiling =
            if rule == PriorityRule::Edf { ResourceProtocol::Fifo } else { ResourceProtocol::PriorityCeiling };
        pick(rng, &[ResourceProtocol::PriorityInheritance, ResourceProtocol::Fifo, ceiling])
    };
    for index in 0..rng.below(3) {
        workload.resources.push(Resource { name: format!("r{index}"), protocol: protocol(rng), replicas: 1 });
    }
    workload.gpu_management = management(rng);
    let graph = rng.below(3) == 0;
    let tasks = rng.between(1, 6);
    for index in 0..size.map_or(tasks, |size| size.tasks) {
        workload.tasks.push(task(rng, format!("t{index}"), &workload));
    }
    if graph {
        workload.graphs.push(chain(rng, &workload));
    }
    pin(&mut workload, rng);
    size.into_iter().for_each(|size| stretch(&mut workload, size.stretch));
    (workload, scheduler)
}

/// One of `from`.
pub fn pick<T: Copy>(rng: &mut SplitMix64, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}

/// Interrupts go to some of the cluster's CPUs.
fn gpu(rng: &mut SplitMix64, name: String, cluster: usize, cpus: &[CpuId]) -> Gpu {
    let interrupt_cpus = if rng.below(2) == 0 { vec![pick(rng, cpus)] } else { cpus.to_vec() };
    let copy_engines = rng.between(1, 2) as u8;
    Gpu { name, cluster, copy_engines, bandwidth: 1_000_000_000, latency: Nanos(UNIT / 10), interrupt_cpus }
}

pub(crate) fn costs(rng: &mut SplitMix64) -> OverheadCosts {
    let published = OverheadProfile::published("elliott2012-klmirqd").expect("a published profile").at(1);
    let kind = match rng.below(4) {
        0 => Overheads::None,
        1 => Overheads::Published(rng.between(1, 10)),
        2 => Overheads::Halves,
        _ => Overheads::Random,
    };
    let each = |cost: Nanos, rng: &mut SplitMix64| match kind {
        Overheads::None | Overheads::Halves => Nanos::ZERO,
        Overheads::Published(times) => Nanos(cost.0 * times),
        Overheads::Random => Nanos(rng.below(3) / 2 * rng.below(UNIT / 4)),
    };
    let half = |cost: Nanos, rng: &mut SplitMix64| match kind {
        Overheads::Halves => Nanos(rng.below(2 * UNIT)),
        _ => each(cost, rng),
    };
    OverheadCosts {
        release: each(published.release, rng),
        scheduling: each(published.scheduling, rng),
        context_switch: each(published.context_switch, rng),
        ipi_latency: each(published.ipi_latency, rng),
        tick: each(published.tick, rng),
        timer_rearming: each(published.timer_rearming, rng),
        cache_preemption: each(Nanos(1_000), rng),
        cache_migration: each(Nanos(2_000), rng),
        top_half: half(published.top_half, rng),
        bottom_half: half(published.bottom_half, rng),
        thread_release: each(published.thread_release, rng),
        pai_enqueue: each(published.pai_enqueue, rng),
        pai_check: each(published.pai_check, rng),
    }
}

/// What the safe accounting covers.
fn management(rng: &mut SplitMix64) -> GpuManagement {
    let handling = pick(
        rng,
        &[
            InterruptHandling::Linux,
            InterruptHandling::ProcessAware,
            InterruptHandling::Klmirqd { threads: None },
            InterruptHandling::PreemptRt(ThreadPriority::High),
        ],
    );
    let held = matches!(handling, InterruptHandling::Klmirqd { .. }) || rng.below(3) > 0;
    let arbitration = match held {
        true => GpuArbitration::KFmlp { length_aware: rng.below(2) == 0 },
        false => pick(rng, &[GpuArbitration::Driver, GpuArbitration::DriverSpinning]),
    };
    GpuManagement { arbitration, handling, ..GpuManagement::default() }
}

fn task(rng: &mut SplitMix64, name: String, workload: &Workload) -> Task {
    let period = rng.between(20, 120) * UNIT;
    let deadline = Nanos(period * rng.between(60, 100) / 100);
    let jitter = Nanos(rng.below(4) / 3 * rng.below(UNIT));
    Task { deadline, jitter, body: body(rng, workload), ..Task::periodic(name, Nanos(1), Nanos(period)) }
}

/// Three nodes, the second of another rate now and then.
fn chain(rng: &mut SplitMix64, workload: &Workload) -> Graph {
    let period = rng.between(40, 120) * UNIT;
    let node = |rng: &mut SplitMix64, name: &str, period: Option<u64>| Node {
        body: body(rng, workload),
        ..Node::new(name, period.map(Nanos))
    };
    let nodes = vec![node(rng, "in", Some(period)), node(rng, "work", None), node(rng, "out", None)];
    let edge = |producer: usize, produce: u32, consume: u32| Edge::rated(producer, producer + 1, produce, consume);
    let (produce, consume) = pick(rng, &[(1, 1), (1, 1), (1, 2), (2, 1)]);
    Graph::new("g", nodes, vec![edge(0, produce, consume), edge(1, 1, 1)])
}

/// From one source, at one rate, and with branches that may execute side by side; at times with tokens of earlier instances.
pub(crate) fn branches(rng: &mut SplitMix64, workload: &Workload) -> Graph {
    let period = rng.between(30, 120) * UNIT;
    let count = rng.between(3, 8) as usize;
    let nodes = (0..count).map(|index| {
        let source = (index == 0).then_some(Nanos(period));
        let body = if rng.below(2) == 0 { vec![Step::Cpu(time(rng, 8))] } else { body(rng, workload) };
        Node { body, ..Node::new(format!("n{index}"), source) }
    });
    let nodes: Vec<Node> = nodes.collect();
    let mut edges: Vec<Edge> = Vec::new();
    for consumer in 1..count {
        // Most behind one of the first few, so that there are many branches.
        for _ in 0..rng.between(1, 2) {
            let producer = pick(rng, &[0, consumer as u64 / 2, consumer as u64 - 1]) as usize;
            if edges.iter().all(|edge| (edge.producer, edge.consumer) != (producer, consumer)) {
                edges.push(Edge::new(producer, consumer));
            }
        }
    }
    for _ in 0..rng.below(3) {
        let [producer, consumer] = [(); 2].map(|()| rng.between(1, count as u64 - 1) as usize);
        if edges.iter().all(|edge| (edge.producer, edge.consumer) != (producer, consumer)) {
            let initial = rng.between(1, 2) as u32;
            edges.push(Edge { initial, back_edge: producer >= consumer, ..Edge::new(producer, consumer) });
        }
    }
    Graph::new("g", nodes, edges)
}

fn stretch(workload: &mut Workload, times: u64) {
    for task in &mut workload.tasks {
        (task.period, task.deadline) = (Nanos(task.period.0 * times), Nanos(task.deadline.0 * times));
    }
    for node in workload.graphs.iter_mut().flat_map(|graph| &mut graph.nodes) {
        node.period = node.period.map(|period| Nanos(period.0 * times));
    }
}

/// In a clustered system every task goes to a cluster, and users of a resource to one.
pub(crate) fn pin(workload: &mut Workload, rng: &mut SplitMix64) {
    let clusters = workload.platform.clusters.len() as u64;
    if clusters == 1 {
        return;
    }
    let of = |body: &[Step], rng: &mut SplitMix64| {
        Some(if body.iter().any(locks) { 0 } else { rng.below(clusters) as usize })
    };
    for task in &mut workload.tasks {
        task.cluster = of(&task.body, rng);
    }
    for node in workload.graphs.iter_mut().flat_map(|graph| &mut graph.nodes) {
        node.cluster = Some(0);
    }
}

fn locks(step: &Step) -> bool {
    match step {
        Step::Critical { .. } => true,
        Step::GpuSection { body } => body.iter().any(locks),
        Step::Cpu(_) | Step::NonPreemptive(_) | Step::Suspend(_) | Step::Gpu(_) => false,
    }
}

pub(crate) fn time(rng: &mut SplitMix64, longest: u64) -> ExecutionTime {
    let wcet = Nanos(rng.between(1, longest * 10) * UNIT / 10);
    match rng.below(3) {
        0 => ExecutionTime { wcet, actual: Distribution::Uniform { min: Nanos::ZERO, max: wcet } },
        _ => ExecutionTime::constant(wcet),
    }
}

fn body(rng: &mut SplitMix64, workload: &Workload) -> Vec<Step> {
    let mut body = vec![Step::Cpu(time(rng, 4))];
    for _ in 0..rng.below(4) {
        let step = match rng.below(8) {
            0 | 1 => Step::Cpu(time(rng, 4)),
            2 => Step::NonPreemptive(time(rng, 2)),
            3 => Step::Suspend(time(rng, 3)),
            4 | 5 => critical(rng, workload, 0),
            _ => section(rng, workload),
        };
        body.push(step);
    }
    body
}

/// Resources are nested in the order of their numbers, GPUs within or outside all of them.
pub(crate) fn critical(rng: &mut SplitMix64, workload: &Workload, from: usize) -> Step {
    let count = workload.resources.len();
    if from >= count {
        return Step::Cpu(time(rng, 2));
    }
    let resource = rng.between(from as u64, count as u64 - 1) as usize;
    let mut body = vec![Step::Cpu(time(rng, 3))];
    match rng.below(6) {
        0 => body.push(critical(rng, workload, resource + 1)),
        1 => body.push(Step::Suspend(time(rng, 2))),
        _ => {}
    }
    Step::Critical { resource, body }
}

/// A section of GPU operations.
pub fn section(rng: &mut SplitMix64, workload: &Workload) -> Step {
    let mut body = Vec::new();
    for _ in 0..rng.between(1, 3) {
        body.push(Step::Gpu(operation(rng, workload)));
        if rng.below(2) == 0 {
            body.push(Step::Cpu(time(rng, 1)));
        }
        if rng.below(8) == 0 {
            body.push(critical(rng, workload, 0));
        }
    }
    Step::GpuSection { body }
}

fn operation(rng: &mut SplitMix64, workload: &Workload) -> GpuOperation {
    let direction = pick(rng, &[CopyDirection::In, CopyDirection::Out]);
    let work = match rng.below(4) {
        0 => GpuWork::Copy { direction, bytes: rng.between(1, 100_000), time: None },
        1 => GpuWork::Copy { direction, bytes: 1, time: Some(time(rng, 2)) },
        _ => GpuWork::Kernel(time(rng, 4)),
    };
    let one_cpu = workload.platform.gpus.iter().all(|gpu| gpu.interrupt_cpus.len() == 1);
    GpuOperation {
        gpu: None,
        work,
        waiting: pick(rng, &[Waiting::Synchronous, Waiting::Synchronous, Waiting::Asynchronous]),
        interrupts: if one_cpu { pick(rng, &[0, 1, 1, 1, 2]) } else { 1 },
        memory: Factor::ZERO,
    }
}

/// Synchronous arrivals, offsets, and sporadic arrivals with gaps.
pub fn patterns(workload: &Workload, seed: u64) -> Vec<Workload> {
    let rng = &mut SplitMix64::new(seed);
    let mut offset = workload.clone();
    for task in &mut offset.tasks {
        task.phase = Nanos(rng.below(task.period.0));
    }
    let mut sporadic = workload.clone();
    for task in &mut sporadic.tasks {
        task.phase = Nanos(rng.below(10 * UNIT));
        let gap = Distribution::Uniform { min: Nanos::ZERO, max: Nanos(3 * UNIT) };
        task.arrival = Arrival::Sporadic { gap };
    }
    vec![workload.clone(), offset, sporadic]
}
