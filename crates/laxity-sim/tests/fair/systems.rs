//! Random systems of everything that the fair class goes with: their schedules are legal and leave no CPU idle; and what
//! it does not go with is refused by name.

use laxity_model::{
    CopyDirection, CpuId, EngineOrder, ExecutionTime, Factor, Gpu, GpuArbitration, GpuManagement, GpuOperation,
    GpuSync, GpuWork, Instant, InterruptHandling, Nanos, OverheadCosts, OverheadProfile, Platform, Resource,
    ResourceProtocol, Scheduler, Scope, Step, Task, TaskServer, ThreadPriority, Waiting, Workload,
};
use laxity_plan::Plan;
use laxity_sim::Simulator;
use laxity_trace::check;
use proptest::prelude::*;

fn time(micros: u64) -> ExecutionTime {
    ExecutionTime::constant(Nanos::from_micros(micros))
}

fn operation(work: GpuWork, is_asynchronous: bool) -> Step {
    let waiting = if is_asynchronous { Waiting::Asynchronous } else { Waiting::Synchronous };
    Step::Gpu(GpuOperation { gpu: None, work, waiting, interrupts: 1, memory: Factor::ZERO })
}

fn step() -> impl Strategy<Value = Step> {
    let copy = |bytes| GpuWork::Copy { direction: CopyDirection::In, bytes, time: None };
    prop_oneof![
        4 => (1u64..9_000).prop_map(|us| Step::Cpu(time(us))),
        1 => (1u64..2_000).prop_map(|us| Step::NonPreemptive(time(us))),
        1 => (1u64..5_000).prop_map(|us| Step::Suspend(time(us))),
        1 => (1u64..2_000).prop_map(|us| Step::Critical { resource: 0, body: vec![Step::Cpu(time(us))] }),
        2 => (1u64..6_000, any::<bool>()).prop_map(|(us, later)| operation(GpuWork::Kernel(time(us)), later)),
        1 => (1u64..3_000, any::<bool>()).prop_map(move |(bytes, later)| operation(copy(bytes), later)),
    ]
}

fn task() -> impl Strategy<Value = Task> {
    (prop::collection::vec(step(), 1..6), 5u64..60, 0u64..30).prop_map(|(body, period, phase)| Task {
        body,
        phase: Nanos::from_millis(phase),
        ..Task::periodic("t", Nanos(1), Nanos::from_millis(period))
    })
}

fn arbitration() -> impl Strategy<Value = GpuArbitration> {
    let prioritized = GpuSync { engine_order: EngineOrder::Priority, ..GpuSync::DEFAULT };
    prop::sample::select(vec![
        GpuArbitration::Driver,
        GpuArbitration::DriverSpinning,
        GpuArbitration::Semaphore,
        GpuArbitration::KFmlp { length_aware: false },
        GpuArbitration::GpuSync(GpuSync::DEFAULT),
        GpuArbitration::GpuSync(prioritized),
    ])
}

fn costs() -> impl Strategy<Value = OverheadCosts> {
    let published = OverheadProfile::published("elliott2012-klmirqd").expect("a published profile").at(8);
    let slow = OverheadCosts {
        scheduling: Nanos::from_micros(150),
        context_switch: Nanos::from_micros(90),
        ipi_latency: Nanos::from_micros(400),
        ..published
    };
    prop::sample::select(vec![OverheadCosts::default(), published, slow])
}

/// Two CPUs, each a scope of its own where that is asked for, a GPU, a resource.
fn workload(
    tasks: Vec<Task>,
    arbitration: GpuArbitration,
    handling: InterruptHandling,
    costs: OverheadCosts,
) -> Workload {
    let gpu = Gpu {
        name: "gpu".to_owned(),
        cluster: 0,
        copy_engines: 1,
        bandwidth: 1_000_000,
        latency: Nanos::from_micros(5),
        interrupt_cpus: vec![CpuId(0), CpuId(1)],
    };
    let overheads = OverheadProfile::constant("drawn", costs);
    let platform = Platform { gpus: vec![gpu], overheads, ..Platform::identical(2) };
    let resources =
        vec![Resource { name: "r".to_owned(), protocol: ResourceProtocol::PriorityInheritance, replicas: 1 }];
    let callback = Some(time(20));
    let gpu_management = GpuManagement { arbitration, handling, callback, ..GpuManagement::default() };
    Workload { resources, gpu_management, ..Workload::new("drawn", platform, tasks) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]

    #[test]
    fn any_system_has_a_legal_schedule_in_which_no_cpu_idles_while_jobs_wait(
        tasks in prop::collection::vec(task(), 1..8),
        arbitration in arbitration(),
        with_threads in any::<bool>(),
        partitioned in any::<bool>(),
        costs in costs(),
    ) {
        let threads = InterruptHandling::PreemptRt(ThreadPriority::High);
        let handling = if with_threads { threads } else { InterruptHandling::Linux };
        let scope = if partitioned { Scope::Partitioned } else { Scope::Global };
        let scheduler = Scheduler { scope, .."G-CFS".parse::<Scheduler>().expect("a scheduler") };
        let plan = Plan::new(&workload(tasks, arbitration, handling, costs), &scheduler, 0).expect("nothing is refused");
        let mut simulator = Simulator::new(&plan, Vec::new());
        simulator.run_until(Instant::from_millis(250));
        let records = simulator.finish();
        let legal = check::legality(&plan.header, &records, |_| None);
        prop_assert!(legal.is_clean(), "{:?}", legal.violations);
        let follows = check::policy(&plan.header, &records);
        prop_assert!(follows.is_clean(), "{:?}", follows.violations);
    }
}

#[test]
fn what_takes_priorities_is_refused_by_name() {
    let refused = |workload: &Workload, scheduler: &str| {
        let refusal = Plan::new(workload, &scheduler.parse().expect("a scheduler"), 0).map(|_| ());
        refusal.expect_err("the fair class has no priorities").to_string()
    };
    let plain = |handling| workload(vec![], GpuArbitration::Driver, handling, OverheadCosts::default());
    for handling in [
        InterruptHandling::ProcessAware,
        InterruptHandling::Klmirqd { threads: None },
        InterruptHandling::PreemptRt(ThreadPriority::Low),
    ] {
        let text = refused(&plain(handling), "C-CFS");
        assert!(text.starts_with(&format!("{} under C-CFS: ", handling.name())) && text.contains("`linux`"), "{text}");
    }
    for realization in ["CQm", "FEm", "HE1"] {
        let text = refused(&plain(InterruptHandling::Linux), &format!("G-CFS/{realization}"));
        assert!(text.contains(realization) && text.contains("`invocation`"), "{text}");
    }
    let mut demanding = plain(InterruptHandling::Linux);
    demanding.resources[0].protocol = ResourceProtocol::PriorityCeiling;
    let server = Some(TaskServer::hard(Nanos::from_millis(1)));
    demanding.tasks.push(Task { server, ..Task::periodic("t", Nanos::from_millis(1), Nanos::from_millis(9)) });
    let text = refused(&demanding, "G-CFS");
    assert!(text.contains("resource \"r\"") && text.contains("task \"t\""), "{text}");
}
