//! Random systems with GPUs and locks, under every arbitration, handling and scheduler: whatever happens, every job ends
//! up where it belongs.

mod common;

use common::run;
use laxity_model::{
    CopyDirection, CpuId, EngineOrder, ExecutionTime, Gpu, GpuArbitration, GpuManagement, GpuOperation, GpuSync,
    GpuWork, Instant, InterruptHandling, JobId, Nanos, OverheadCosts, OverheadProfile, Platform, PriorityRule,
    Resource, ResourceProtocol, Scheduler, Scope, Step, Task, ThreadPriority, TokenHold, Waiting, Workload,
};
use laxity_trace::{Event, Record};
use proptest::prelude::*;

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
        Step::Gpu(GpuOperation { gpu: None, work, waiting, interrupts })
    })
}

fn cpu() -> impl Strategy<Value = Step> {
    (1u64..300, 0u8..8).prop_map(|(us, kind)| match kind {
        0 => Step::NonPreemptive(time(us)),
        1 => Step::Suspend(time(us)),
        _ => Step::Cpu(time(us)),
    })
}

/// A body: CPU steps, GPU operations alone or in a section, and critical sections, resource 1 only within 0.
fn body() -> impl Strategy<Value = Vec<Step>> {
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

fn arbitration() -> impl Strategy<Value = GpuArbitration> {
    let sync =
        (1u32..4, prop::option::of(1u32..4), any::<bool>(), any::<bool>(), prop::option::of(1u64..64), any::<bool>());
    let sync = sync.prop_map(|(tokens, fifo_length, priority, section, chunk, migrates)| {
        GpuArbitration::GpuSync(GpuSync {
            tokens,
            fifo_length,
            fifo_requests: None,
            engine_order: if priority { EngineOrder::Priority } else { EngineOrder::Fifo },
            chunk: chunk.map(|kib| kib * 512),
            hold: if section { TokenHold::Section } else { TokenHold::Job },
            migration: migrates.then_some(Nanos(20 * US)),
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

fn handling() -> impl Strategy<Value = InterruptHandling> {
    prop_oneof![
        Just(InterruptHandling::Linux),
        Just(InterruptHandling::ProcessAware),
        Just(InterruptHandling::PreemptRt(ThreadPriority::Low)),
        Just(InterruptHandling::PreemptRt(ThreadPriority::High)),
        prop::option::of(1u32..3).prop_map(|threads| InterruptHandling::Klmirqd { threads }),
    ]
}

fn scheduler() -> impl Strategy<Value = Scheduler> {
    let rules = prop_oneof![Just(PriorityRule::Edf), Just(PriorityRule::RateMonotonic)];
    let scopes = prop_oneof![Just(Scope::Global), Just(Scope::Clustered), Just(Scope::Partitioned)];
    (rules, scopes).prop_map(|(rule, scope)| Scheduler { rule, scope, ..Scheduler::GLOBAL_EDF })
}

prop_compose! {
    fn workload()(
        bodies in prop::collection::vec((body(), 2u64..12), 1..9),
        arbitration in arbitration(),
        handling in handling(),
        protocols in prop::array::uniform2(0u8..3),
        costly in any::<bool>(),
        two_copy_engines in any::<bool>(),
        gpus_per_cluster in 1usize..3,
    ) -> Workload {
        let mut platform = Platform::identical(4);
        platform.clusters = vec![vec![CpuId(0), CpuId(1)], vec![CpuId(2), CpuId(3)]];
        platform.gpus = (0..2 * gpus_per_cluster).map(|index| Gpu {
            name: format!("gpu{index}"),
            cluster: index % 2,
            copy_engines: 1 + u8::from(two_copy_engines),
            bandwidth: 1_000_000_000,
            latency: Nanos(2 * US),
            interrupt_cpus: platform.clusters[index % 2].clone(),
        }).collect();
        let costs = OverheadCosts {
            release: Nanos(2_000),
            scheduling: Nanos(1_500),
            context_switch: Nanos(1_000),
            ipi_latency: Nanos(1_200),
            top_half: Nanos(5_000),
            bottom_half: Nanos(9_000),
            thread_release: Nanos(800),
            pai_enqueue: Nanos(600),
            pai_check: Nanos(100),
            cache_preemption: Nanos(700),
            ..OverheadCosts::default()
        };
        let free = OverheadCosts { bottom_half: Nanos(9_000), ..OverheadCosts::default() };
        platform.overheads = OverheadProfile::constant("random", if costly { costs } else { free });
        let tasks = bodies.into_iter().enumerate().map(|(index, (body, ms))| Task {
            body,
            cluster: None,
            ..Task::periodic(format!("t{index}"), Nanos(1), Nanos::from_millis(ms))
        }).collect();
        let resource = |(index, protocol)| Resource {
            name: format!("r{index}"),
            protocol: match protocol {
                0 => ResourceProtocol::PriorityInheritance,
                1 => ResourceProtocol::Fifo,
                _ => ResourceProtocol::PriorityCeiling,
            },
            replicas: 1,
        };
        let resources = protocols.into_iter().enumerate().map(resource).collect();
        // Owners that spin keep threads below them from ever ending their wait: a livelock, and a real one.
        let arbitration = match (arbitration, handling) {
            (GpuArbitration::DriverSpinning, InterruptHandling::Linux) => arbitration,
            (GpuArbitration::DriverSpinning, InterruptHandling::PreemptRt(ThreadPriority::High)) => arbitration,
            (GpuArbitration::DriverSpinning, _) => GpuArbitration::Driver,
            _ => arbitration,
        };
        let gpu_management = GpuManagement { arbitration, handling, ..GpuManagement::default() };
        Workload { resources, gpu_management, ..Workload::new("random", platform, tasks) }
    }
}

/// The jobs that are pending at the end and have been for longer than `age`.
fn stuck(records: &[Record], end: Instant, age: Nanos) -> Vec<JobId> {
    let mut pending = std::collections::BTreeMap::new();
    for record in records {
        match record.event {
            Event::Ready { job, .. } => {
                pending.insert(job, record.at);
            }
            Event::Complete { job, .. } => {
                pending.remove(&job);
            }
            _ => {}
        }
    }
    pending.into_iter().filter(|&(_, ready)| end.saturating_since(ready) > age).map(|(job, _)| job).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_system_jobs_go_on_and_the_same_seed_gives_the_same_records(
        workload in workload(),
        scheduler in scheduler(),
    ) {
        let scheduler = Scheduler { scope: scheduler.scope, ..scheduler };
        let end = Instant::from_millis(60);
        let partitioned = scheduler.scope == Scope::Partitioned;
        let mut workload = workload;
        for (index, task) in workload.tasks.iter_mut().enumerate() {
            task.cluster = partitioned.then_some(index % 4);
        }
        let records = run(&workload, &scheduler, end, 7);
        prop_assert_eq!(&records, &run(&workload, &scheduler, end, 7));
        let completed = records.iter().filter(|record| matches!(record.event, Event::Complete { .. })).count();
        prop_assert!(completed > 0);
        // The most urgent task is never stuck for ever: somebody makes progress all the time.
        let recent = |record: &&Record| record.at > Instant::from_millis(40);
        prop_assert!(records.iter().filter(recent).any(|record| matches!(record.event, Event::Complete { .. })),
            "nothing completed in the last 20 ms; stuck: {:?}", stuck(&records, end, Nanos::from_millis(20)));
    }
}
