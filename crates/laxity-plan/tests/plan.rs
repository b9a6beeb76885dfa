//! What must hold of the plan of any workload that is supported.

use laxity_model::{
    Arrival, BandwidthLock, CopyDirection, CpuId, Device, Distribution, ExecutionTime, Factor, Gpu, GpuArbitration,
    GpuManagement, GpuOperation, GpuSync, GpuWork, Instant, InterruptHandling, MigrationPath, Nanos, Platform,
    Resource, ResourceProtocol, Scheduler, Scope, Step, Task, TokenHold, Waiting, Workload,
};
use laxity_plan::draws::TaskDraws;
use laxity_plan::{EngineTarget, Op, Plan, ReleasePattern, Releases};
use proptest::prelude::*;

fn time(wcet: u64) -> ExecutionTime {
    let actual = Distribution::Uniform { min: Nanos(1), max: Nanos(wcet) };
    ExecutionTime { wcet: Nanos(wcet), actual }
}

fn operation() -> impl Strategy<Value = Step> {
    let work = prop_oneof![
        (1..900u64).prop_map(|wcet| GpuWork::Kernel(time(wcet))),
        (1..9_000u64).prop_map(|bytes| GpuWork::Copy { direction: CopyDirection::In, bytes, time: None }),
        (1..9_000u64).prop_map(|bytes| GpuWork::Copy { direction: CopyDirection::Out, bytes, time: None }),
    ];
    let waiting = prop_oneof![3 => Just(Waiting::Synchronous), 1 => Just(Waiting::Asynchronous)];
    (work, waiting, 0..3u32).prop_map(|(work, waiting, interrupts)| {
        Step::Gpu(GpuOperation { gpu: None, work, waiting, interrupts, memory: Factor::ZERO })
    })
}

/// Steps that may nest resources `first..`, and so in no circle.
fn step(first: usize, resources: usize, gpus: bool) -> BoxedStrategy<Step> {
    let plain = prop_oneof![
        (1..900u64).prop_map(|wcet| Step::Cpu(time(wcet))),
        (1..900u64).prop_map(|wcet| Step::NonPreemptive(time(wcet))),
        (1..900u64).prop_map(|wcet| Step::Suspend(time(wcet))),
    ];
    let plain = if gpus { prop_oneof![plain, operation()].boxed() } else { plain.boxed() };
    if first >= resources {
        return plain;
    }
    let critical = (first..resources).prop_flat_map(move |resource| {
        prop::collection::vec(step(resource + 1, resources, gpus), 1..3)
            .prop_map(move |body| Step::Critical { resource, body })
    });
    prop_oneof![3 => plain, 1 => critical].boxed()
}

fn tasks(resources: usize, gpus: bool) -> impl Strategy<Value = Vec<Task>> {
    let task = (prop::collection::vec(step(0, resources, gpus), 1..6), 0..500u64, any::<bool>());
    prop::collection::vec(task, 1..6).prop_map(|tasks| {
        let task = |(index, (mut body, jitter, sporadic)): (usize, (Vec<Step>, u64, bool))| {
            body.push(Step::Cpu(time(10)));
            let gap = Distribution::Uniform { min: Nanos::ZERO, max: Nanos(5_000) };
            let period = Nanos(1_000_000 + index as u64);
            Task {
                arrival: if sporadic { Arrival::Sporadic { gap } } else { Arrival::Periodic },
                jitter: Nanos(jitter),
                body,
                ..Task::periodic(format!("t{index}"), Nanos(10), period)
            }
        };
        tasks.into_iter().enumerate().map(task).collect()
    })
}

fn arbitrations() -> impl Strategy<Value = GpuArbitration> {
    let sync = (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(section, migrates, host)| {
        GpuArbitration::GpuSync(GpuSync {
            hold: if section { TokenHold::Section } else { TokenHold::Job },
            migration: migrates.then_some(Nanos(50)),
            migration_path: if host { MigrationPath::Host } else { MigrationPath::Peer },
            chunk: section.then_some(1_000),
            ..GpuSync::default()
        })
    });
    prop_oneof![
        Just(GpuArbitration::Driver),
        Just(GpuArbitration::DriverSpinning),
        Just(GpuArbitration::Semaphore),
        Just(GpuArbitration::KFmlp { length_aware: true }),
        sync,
    ]
}

fn workloads() -> impl Strategy<Value = Workload> {
    let handlings = prop_oneof![
        Just(InterruptHandling::Linux),
        Just(InterruptHandling::ProcessAware),
        Just(InterruptHandling::Klmirqd { threads: None }),
    ];
    (0..3usize, 0..3usize, any::<bool>())
        .prop_flat_map(move |(resources, gpus, device)| {
            (Just((resources, gpus, device)), tasks(resources, gpus > 0), arbitrations(), handlings.clone())
        })
        .prop_map(|((resources, gpus, device), tasks, arbitration, handling)| {
            let cpus: Vec<CpuId> = (0..4).map(CpuId).collect();
            let gpu = |index: usize| Gpu {
                name: format!("gpu{index}"),
                cluster: 0,
                copy_engines: 2,
                bandwidth: 1_000_000_000,
                latency: Nanos(5),
                interrupt_cpus: cpus.clone(),
            };
            let network = Device {
                name: "network".to_owned(),
                cluster: 0,
                arrival: Arrival::Periodic,
                period: Nanos(50_000),
                top_half: time(10),
                bottom_half: time(20),
                interrupt_cpus: cpus.clone(),
                server: None,
            };
            let platform = Platform {
                gpus: (0..gpus).map(gpu).collect(),
                devices: if device { vec![network] } else { Vec::new() },
                ..Platform::identical(4)
            };
            let resource = |index| Resource {
                name: format!("r{index}"),
                protocol: ResourceProtocol::PriorityInheritance,
                replicas: 1,
            };
            let callback = device.then(|| time(7));
            // As good as any other draw.
            let bandwidth_lock = (resources != 1).then_some(BandwidthLock { call: Nanos(resources as u64), budget: 1 });
            Workload {
                resources: (0..resources).map(resource).collect(),
                gpu_management: GpuManagement {
                    arbitration,
                    handling,
                    callback,
                    bandwidth_lock,
                    ..GpuManagement::default()
                },
                ..Workload::new("drawn", platform, tasks)
            }
        })
}

fn schedulers() -> impl Strategy<Value = Scheduler> {
    prop_oneof![Just(Scope::Global), Just(Scope::Clustered), Just(Scope::Partitioned)]
        .prop_map(|scope| Scheduler { scope, ..Scheduler::GLOBAL_EDF })
}

/// Walks the steps of a body; `moved`: the job was granted another GPU than last time. Panics at a step that names what
/// does not exist, and at the end of a body that holds a lock or leaves an operation behind.
fn walk(plan: &Plan, ops: &[Op], moved: bool) {
    let (mut held, mut engines, mut outstanding) = (Vec::new(), Vec::<EngineTarget>::new(), 0);
    let (mut is_protected, is_protecting) = (false, plan.locks.bandwidth.is_some());
    let mut at = 0;
    while at < ops.len() {
        match &ops[at] {
            Op::Run(_) | Op::NonPreemptive(_) | Op::Dispatch => {}
            Op::Suspend(_) => assert!(is_dispatched_after(ops, at), "a job runs again after it was suspended"),
            Op::Lock { lock, only, .. } => {
                assert!(lock.index() < plan.locks.configs.len(), "the lock exists");
                assert!(only.is_none_or(|gpu| gpu < plan.locks.infos[lock.index()].replicas), "the replica exists");
                assert!(!held.contains(lock), "no lock is locked twice");
                assert!(is_dispatched_after(ops, at), "a job runs again after it waited");
                held.push(*lock);
            }
            Op::Unlock(lock) => assert_eq!(held.pop(), Some(*lock), "locks are unlocked in the opposite order"),
            Op::LockEngine(target) => {
                assert!(!held.is_empty(), "engines are locked by holders of a token");
                assert!(is_dispatched_after(ops, at), "a job runs again after it waited");
                engines.push(*target);
            }
            Op::UnlockEngine(target) => assert_eq!(engines.pop(), Some(*target)),
            Op::UnlessMoved(steps) => at += if moved { 0 } else { *steps as usize },
            Op::HoldBandwidth => is_protected = true,
            Op::EndBandwidth => {
                assert_eq!(outstanding, 0, "what is still to be waited for is protected");
                is_protected = false;
            }
            Op::Issue(_) => {
                assert_eq!(is_protected, is_protecting, "every operation is protected, if there is a lock");
                outstanding += 1;
            }
            Op::Wait => {
                assert!(is_dispatched_after(ops, at), "a job runs again after it waited");
                outstanding = 0;
            }
        }
        at += 1;
    }
    assert_eq!(at, ops.len(), "no step is skipped beyond the end");
    assert!(held.is_empty() && engines.is_empty(), "all is unlocked at the end");
    assert_eq!(outstanding, 0, "a job does not end before its operations");
    assert!(!is_protected, "the bandwidth lock is unlocked at the end");
}

fn is_dispatched_after(ops: &[Op], at: usize) -> bool {
    matches!(ops.get(at + 1), Some(Op::Run(_) | Op::NonPreemptive(_) | Op::Dispatch))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn bodies_name_what_exists_unlock_what_they_lock_and_wait_for_what_they_issue(
        workload in workloads(),
        scheduler in schedulers(),
    ) {
        let plan = Plan::new(&workload, &scheduler, 0).expect("all of it is supported");
        prop_assert_eq!(plan.bodies().len(), workload.tasks.len());
        for ops in plan.bodies() {
            prop_assert!(matches!(ops[0], Op::Run(_) | Op::NonPreemptive(_) | Op::Dispatch), "a job begins on a CPU");
            walk(&plan, ops, false);
            walk(&plan, ops, true);
        }
    }

    #[test]
    fn every_task_has_one_place_in_one_cluster(workload in workloads(), scheduler in schedulers()) {
        let plan = Plan::new(&workload, &scheduler, 0).expect("all of it is supported");
        prop_assert_eq!(plan.header.tasks.len(), plan.tasks.len());
        for (number, task) in plan.tasks.iter().enumerate() {
            let cluster = &plan.clusters[usize::from(task.cluster)];
            prop_assert_eq!(cluster.tasks[task.local.index()].index(), number);
            prop_assert_eq!(plan.header.tasks[number].cluster, usize::from(task.cluster));
        }
        prop_assert_eq!(plan.clusters.iter().map(|cluster| cluster.tasks.len()).sum::<usize>(), plan.tasks.len());
        let mut cpus: Vec<CpuId> = plan.clusters.iter().flat_map(|cluster| cluster.cpus.clone()).collect();
        cpus.sort();
        prop_assert_eq!(cpus, (0..4).map(CpuId).collect::<Vec<_>>());
    }

    #[test]
    fn the_same_workload_has_the_same_plan(workload in workloads(), scheduler in schedulers(), seed in any::<u64>()) {
        let plans = [0, 1].map(|_| Plan::new(&workload, &scheduler, seed).expect("all of it is supported"));
        let [one, other] = plans.map(|plan| format!("{plan:?}"));
        prop_assert_eq!(one, other);
    }

    #[test]
    fn jobs_are_released_in_order_a_period_apart_and_no_later_than_their_jitter(
        task in tasks(0, false).prop_map(|mut tasks| tasks.remove(0)),
        seed in any::<u64>(),
    ) {
        let draws = TaskDraws { seed, task: laxity_model::TaskId(0) };
        let end = Instant(20_000_000);
        let releases: Vec<_> = Releases::new(ReleasePattern::new(&task), draws, end).collect();
        prop_assert!(!releases.is_empty());
        for (index, release) in releases.iter().enumerate() {
            prop_assert_eq!(release.index as usize, index);
            prop_assert!(release.at < end);
            let arrival = Instant(release.deadline.0 - task.deadline.0);
            prop_assert!(arrival <= release.at && release.at <= arrival + task.jitter);
        }
        for pair in releases.windows(2) {
            prop_assert!(pair[1].deadline >= pair[0].deadline + task.period);
        }
    }
}

/// One task under the bandwidth lock, on one of two CPUs.
const SPINS: &str = r#"
laxity = 1
name = "spins"
scheduler = "P-EDF"
platform = { cpus = 2, gpu = [{ name = "g", bandwidth = "1 GB/s", interrupt_cpus = "0" }] }
gpu_management = { arbitration = "driver_spinning", handling = "preempt_rt_high", bandwidth_lock = { budget = "1 MB/s" } }
[[task]]
name = "t"
period = "20 ms"
cluster = 0
body = [{ cpu = "1 ms" }, { kernel = "1 ms" }]
"#;

/// The thread that is to end its operation never has the CPU.
#[test]
fn a_job_that_would_spin_for_ever_is_refused() {
    let reasons = |file: &str, scheduler: &str| {
        let workload = Workload::from_toml(file, "spins.toml").unwrap_or_else(|errors| panic!("{errors}\n{file}"));
        let scheduler = scheduler.parse().expect("a scheduler");
        assert!(
            Plan::of_live_interrupts(&workload, &scheduler, 0).is_ok(),
            "interrupts of the machine come by themselves"
        );
        Plan::new(&workload, &scheduler, 0).map_or_else(|refusal| refusal.reasons().to_vec(), |_| Vec::new())
    };
    let high = reasons(SPINS, "P-EDF");
    assert_eq!(high.len(), 1, "{high:?}");
    for words in ["task \"t\"", "handling = \"preempt_rt_high\"", "`interrupts = 0`"] {
        assert!(high[0].contains(words), "{words}: {high:?}");
    }
    assert_eq!(reasons(&SPINS.replace("rt_high", "rt_low"), "P-EDF").len(), 1);
    let supported = |from: &str, to: &str| reasons(&SPINS.replace(from, to), "P-EDF").is_empty();
    assert!(supported("\"1 ms\" }]", "\"1 ms\", interrupts = 0 }]"), "it needs no thread");
    assert!(supported("preempt_rt_high", "linux"));
    assert!(supported("preempt_rt_high", "klmirqd"));
    assert!(supported("driver_spinning", "driver"), "a job that suspends leaves the CPU");
    assert!(supported(", bandwidth_lock = { budget = \"1 MB/s\" }", ""), "the thread is above the job");
    assert!(supported("interrupt_cpus = \"0\"", "interrupt_cpus = \"1\""), "the thread is elsewhere");
    assert_eq!(reasons(SPINS, "G-EDF"), [] as [String; 0], "the thread may have the other CPU");
}

/// Worst fit puts task b on the second cluster, where the GPU that it names is not.
#[test]
fn a_task_without_a_cluster_that_is_put_away_from_its_gpu_is_refused() {
    let file = r#"
laxity = 1
name = "apart"
scheduler = "P-EDF"
[platform]
cpus = 2
clusters = 2
gpu = [{ name = "g0", bandwidth = "1 GB/s" }, { name = "g1", bandwidth = "1 GB/s", cluster = 1 }]
[[task]]
name = "a"
period = "5 ms"
wcet = "1 ms"
[[task]]
name = "b"
period = "5 ms"
body = [{ cpu = "100 us" }, { kernel = "1 ms", gpu = "g0" }]
"#;
    let reasons = |file: &str, scheduler: &str| {
        let workload = Workload::from_toml(file, "apart.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let scheduler = scheduler.parse().expect("a scheduler");
        Plan::new(&workload, &scheduler, 0).map_or_else(|refusal| refusal.reasons().to_vec(), |_| Vec::new())
    };
    for scheduler in ["P-EDF", "C-RM"] {
        let found = reasons(file, scheduler);
        assert!(
            found.len() == 1 && found[0].contains("its GPU \"g0\" does not belong there"),
            "{scheduler}: {found:?}"
        );
    }
    let nowhere = file.replace(", { name = \"g1\", bandwidth = \"1 GB/s\", cluster = 1 }", "");
    assert!(
        reasons(&nowhere.replace(", gpu = \"g0\"", ""), "P-EDF")[0].contains("no GPU of the platform belongs there")
    );
    let none: [String; 0] = [];
    assert_eq!(reasons(&file.replace("\"g0\" }]", "\"g1\" }]"), "P-EDF"), none);
    assert_eq!(reasons(&file.replace("body =", "cluster = 0\nbody ="), "P-EDF"), none);
    assert_eq!(reasons(file, "G-EDF"), none);
}
