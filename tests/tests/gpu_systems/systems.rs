//! Random systems of tasks with GPU operations and critical sections.

use laxity_model::{
    Arrival, CopyDirection, CpuId, Device, Distribution, EngineOrder, ExecutionTime, Factor, Gpu, GpuArbitration,
    GpuManagement, GpuOperation, GpuSync, GpuWork, InterruptHandling, Invocation, MigrationPath, Nanos, OverheadCosts,
    OverheadProfile, Platform, PriorityRule, Quanta, ReleaseInterrupts, Resource, ResourceProtocol, Scheduler, Scope,
    Server, ServerKind, Step, Task, TokenHold, Waiting, Workload,
};
use proptest::prelude::*;
use proptest::sample::select;

const US: u64 = 1_000;

fn time(us: u64) -> ExecutionTime {
    ExecutionTime::constant(Nanos(us * US))
}

fn operation() -> impl Strategy<Value = Step> {
    let work = prop_oneof![
        (1u64..400).prop_map(|us| GpuWork::Kernel(time(us))),
        (1u64..64, any::<bool>()).prop_map(|(kib, out)| GpuWork::Copy {
            direction: if out { CopyDirection::Out } else { CopyDirection::In },
            bytes: kib * 1_024,
            time: None,
        }),
    ];
    (work, any::<bool>(), 0u32..4).prop_map(|(work, wait, interrupts)| {
        let waiting = if wait { Waiting::Synchronous } else { Waiting::Asynchronous };
        Step::Gpu(GpuOperation { gpu: None, work, waiting, interrupts, memory: Factor::ZERO })
    })
}

fn cpu() -> impl Strategy<Value = Step> {
    (1u64..300, 0u8..8).prop_map(|(us, kind)| match kind {
        0 => Step::NonPreemptive(time(us)),
        1 => Step::Suspend(time(us)),
        _ => Step::Cpu(time(us)),
    })
}

/// CPU steps, GPU operations alone or in a section, and critical sections, the second resource only within the first.
pub fn body() -> impl Strategy<Value = Vec<Step>> {
    let flat = prop::collection::vec(prop_oneof![cpu(), operation()], 1..5);
    let section = flat.clone().prop_map(|body| vec![Step::GpuSection { body }]);
    let gpu = prop_oneof![flat, section];
    let critical = (0usize..2, cpu(), cpu()).prop_map(|(resource, first, second)| {
        let inner = if resource == 0 { Step::Critical { resource: 1, body: vec![second] } } else { second };
        Step::Critical { resource, body: vec![first, inner] }
    });
    (cpu(), gpu, prop::option::of(critical), cpu()).prop_map(|(before, gpu, critical, after)| {
        let mut body = vec![Step::Cpu(time(5)), before];
        body.extend(gpu);
        body.extend(critical);
        body.push(after);
        body
    })
}

pub fn arbitration() -> impl Strategy<Value = GpuArbitration> {
    let sync = (1u32..4, prop::option::of(1u32..4), any::<bool>(), any::<bool>(), prop::option::of(1u64..64), 0..3);
    let sync = sync.prop_map(|(tokens, fifo_length, priority, section, chunk, path)| {
        GpuArbitration::GpuSync(GpuSync {
            tokens,
            fifo_length,
            fifo_requests: None,
            engine_order: if priority { EngineOrder::Priority } else { EngineOrder::Fifo },
            chunk: chunk.map(|kib| kib * 512),
            hold: if section { TokenHold::Section } else { TokenHold::Job },
            migration: (path > 0).then_some(Nanos(20 * US)),
            migration_path: if path == 2 { MigrationPath::Host } else { MigrationPath::Peer },
        })
    });
    prop_oneof![
        Just(GpuArbitration::Driver),
        Just(GpuArbitration::DriverSpinning),
        Just(GpuArbitration::Semaphore),
        any::<bool>().prop_map(|length_aware| GpuArbitration::KFmlp { length_aware }),
        sync,
    ]
}

/// Any scheduler; quantum-driven ones only if `with_quanta`.
pub fn scheduler(with_quanta: bool) -> impl Strategy<Value = Scheduler> {
    let quantum = if with_quanta { Invocation::QuantumDriven } else { Invocation::EventDriven };
    (
        select(vec![PriorityRule::Edf, PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic]),
        select(vec![Scope::Global, Scope::Clustered, Scope::Partitioned]),
        select(vec![Invocation::EventDriven, Invocation::EventDriven, quantum]),
        select(vec![Quanta::Aligned, Quanta::Staggered]),
        select(vec![ReleaseInterrupts::Global, ReleaseInterrupts::Global, ReleaseInterrupts::Dedicated]),
        any::<bool>(),
    )
        .prop_map(|(rule, scope, invocation, quanta, interrupts, coarse_lock)| Scheduler {
            rule,
            scope,
            invocation,
            quanta,
            interrupts,
            coarse_lock,
            ..Scheduler::GLOBAL_EDF
        })
}

/// Two clusters of two CPUs, each with one or two GPUs of one or two copy engines; what costs anything costs something
/// if `costly`, else only bottom halves do.
pub fn platform(gpus_per_cluster: usize, copy_engines: u8, costly: bool) -> Platform {
    let mut platform = Platform::identical(4);
    platform.quantum = Nanos(500 * US);
    platform.tick = Nanos(500 * US);
    platform.clusters = vec![vec![CpuId(0), CpuId(1)], vec![CpuId(2), CpuId(3)]];
    let gpu = |index: usize| Gpu {
        name: format!("gpu{index}"),
        cluster: index % 2,
        copy_engines,
        bandwidth: 1_000_000_000,
        latency: Nanos(2 * US),
        interrupt_cpus: platform.clusters[index % 2].clone(),
    };
    platform.gpus = (0..2 * gpus_per_cluster).map(gpu).collect();
    let costs = OverheadCosts {
        release: Nanos(2_000),
        scheduling: Nanos(1_500),
        context_switch: Nanos(1_000),
        ipi_latency: Nanos(1_200),
        tick: Nanos(400),
        timer_rearming: Nanos(300),
        top_half: Nanos(5_000),
        bottom_half: Nanos(9_000),
        thread_release: Nanos(800),
        pai_enqueue: Nanos(600),
        pai_check: Nanos(100),
        cache_preemption: Nanos(700),
        cache_migration: Nanos(1_100),
    };
    // A bottom half that takes time is no overhead, and without any overhead the checkers are at their strictest.
    platform.overheads = OverheadProfile::constant("random", if costly { costs } else { OverheadCosts::default() });
    platform
}

/// Up to two devices that serve no job, whose klmirqd threads have servers or not.
pub fn devices() -> impl Strategy<Value = Vec<Device>> {
    let kinds = select(vec![ServerKind::CbsHard, ServerKind::CbsSoft, ServerKind::Sporadic]);
    let server = (kinds, 1u64..30, 1u64..4).prop_map(|(kind, budget, period)| Server {
        kind,
        budget: Nanos(10 * budget * US),
        period: Nanos::from_millis(period),
        priority: None,
    });
    let drawn = (prop::option::of(server), 200u64..2_000, any::<bool>(), 1u64..60);
    prop::collection::vec(drawn, 0..3).prop_map(|drawn| {
        let device = |(index, (server, period, sporadic, bottom_half))| {
            let gap = Distribution::Uniform { min: Nanos::ZERO, max: Nanos(100 * US) };
            let cpus = [vec![CpuId(0), CpuId(1)], vec![CpuId(2), CpuId(3)]];
            Device {
                name: format!("device{index}"),
                cluster: index,
                arrival: if sporadic { Arrival::Sporadic { gap } } else { Arrival::Periodic },
                period: Nanos(period * US),
                top_half: time(2),
                bottom_half: time(bottom_half),
                interrupt_cpus: cpus[index].clone(),
                server,
            }
        };
        drawn.into_iter().enumerate().map(device).collect()
    })
}

/// Two resources for the critical sections.
pub fn resources() -> impl Strategy<Value = Vec<Resource>> {
    let protocols =
        select(vec![ResourceProtocol::PriorityInheritance, ResourceProtocol::Fifo, ResourceProtocol::PriorityCeiling]);
    let resource = |(index, (protocol, replicas))| Resource { name: format!("r{index}"), protocol, replicas };
    prop::collection::vec((protocols, prop_oneof![3 => Just(1u32), 1 => Just(2u32)]), 2)
        .prop_map(move |drawn| drawn.into_iter().enumerate().map(resource).collect())
}

pub fn management(handling: impl Strategy<Value = InterruptHandling>) -> impl Strategy<Value = GpuManagement> {
    let callback = prop::option::of(Just(time(7)));
    (arbitration(), handling, callback).prop_map(|(arbitration, handling, callback)| GpuManagement {
        arbitration,
        handling,
        top_half: None,
        bottom_half: Some(time(9)),
        callback,
        bandwidth_lock: None,
    })
}

/// Up to eight tasks that use GPUs and resources.
pub fn workload(handling: impl Strategy<Value = InterruptHandling>) -> impl Strategy<Value = Workload> {
    let task =
        (body(), 2u64..12, 5u64..14, 0u64..3, 0u64..2).prop_map(|(body, period, deadline, phase, jitter)| Task {
            body,
            deadline: Nanos::from_millis(deadline),
            phase: Nanos::from_millis(phase),
            jitter: Nanos(jitter * 300 * US),
            ..Task::periodic("", Nanos(1), Nanos::from_millis(period))
        });
    let tasks = prop::collection::vec(task, 1..9);
    (tasks, management(handling), resources(), devices(), 1usize..3, 1u8..3, any::<bool>()).prop_map(
        |(mut tasks, gpu_management, resources, devices, gpus_per_cluster, copy_engines, costly)| {
            for (index, task) in tasks.iter_mut().enumerate() {
                task.name = format!("t{index}");
            }
            let platform = Platform { devices, ..platform(gpus_per_cluster, copy_engines, costly) };
            Workload { resources, gpu_management, ..Workload::new("random", platform, tasks) }
        },
    )
}
