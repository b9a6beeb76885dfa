//! What a file means: short forms, long forms, defaults.

use laxity_model::{
    Arrival, CopyDirection, CpuId, Distribution, ExecutionTime, Factor, GpuOperation, GpuWork, Nanos, OverheadKind,
    OverheadTable, PriorityRule, Quanta, ReadyQueueKind, ReleaseInterrupts, Scheduler, Scope, Step, Task, Waiting,
    Workload,
};

fn read(text: &str) -> Workload {
    Workload::from_toml(text, "test.toml").unwrap_or_else(|errors| panic!("{errors}"))
}

fn with_platform(platform: &str) -> Workload {
    read(&format!("laxity = 1\nname = \"w\"\n[platform]\n{platform}"))
}

fn with_task(task: &str) -> Task {
    let text = format!(
        "laxity = 1\nname = \"w\"\n[platform]\ncpus = 2\n[[platform.gpu]]\nname = \"g\"\nbandwidth = \"1 GB/s\"\n\
         [[resource]]\nname = \"r\"\n[[task]]\nname = \"t\"\nperiod = \"10 ms\"\n{task}"
    );
    read(&text).tasks.remove(0)
}

#[test]
fn the_shortest_file_has_the_documented_defaults() {
    let workload = read("laxity = 1\nname = \"w\"\nplatform = { cpus = 3 }\n");
    assert_eq!(workload, Workload::new("w", laxity_model::Platform::identical(3), Vec::new()));
    let task = with_task("wcet = \"2 ms\"");
    assert_eq!(task, Task::periodic("t", Nanos::from_millis(2), Nanos::from_millis(10)));
}

#[test]
fn the_quantum_is_the_tick_unless_it_is_given() {
    assert_eq!(with_platform("cpus = 1\ntick = \"2 ms\"").platform.quantum, Nanos::from_millis(2));
    assert_eq!(with_platform("cpus = 1\nquantum = \"4 ms\"").platform.quantum, Nanos::from_millis(4));
}

#[test]
fn clusters_are_counted_listed_or_written_as_linux_does() {
    let expected: Vec<Vec<CpuId>> = vec![vec![CpuId(0), CpuId(1)], vec![CpuId(2), CpuId(3)]];
    for clusters in ["2", "[[0, 1], [2, 3]]", "[\"0-1\", \"2,3\"]", "[\"0-1\", [2, 3]]"] {
        let workload = with_platform(&format!("cpus = 4\nclusters = {clusters}"));
        assert_eq!(workload.platform.clusters, expected, "{clusters}");
    }
}

#[test]
fn a_scheduler_is_a_name_a_policy_or_parts() {
    let read = |scheduler: &str| read(&format!("laxity = 1\nname = \"w\"\n{scheduler}\nplatform.cpus = 2\n")).scheduler;
    let expected = Scheduler {
        rule: PriorityRule::RateMonotonic,
        scope: Scope::Clustered,
        quanta: Quanta::Staggered,
        interrupts: ReleaseInterrupts::Dedicated,
        ready_queue: ReadyQueueKind::Hierarchical,
        ..Scheduler::GLOBAL_EDF
    };
    assert_eq!(read("scheduler = \"C-RM/S-HE1\""), expected);
    assert_eq!(read("scheduler = { policy = \"C-RM/S-HE1\" }"), expected);
    assert_eq!(read("scheduler = { policy = \"S-HE1\", rule = \"RM\", scope = \"clustered\" }"), expected);
    assert_eq!(read("scheduler = { policy = \"RM\", scope = \"partitioned\" }").scope, Scope::Partitioned);
    let parts = "scheduler = { rule = \"RM\", scope = \"clustered\", quanta = \"staggered\", interrupts = \
                 \"dedicated\", ready_queue = \"hierarchical\", invocation = \"event-driven\" }";
    assert_eq!(read(parts), expected);
    assert!(read("scheduler = { coarse_lock = true }").coarse_lock);
}

#[test]
fn overheads_are_published_or_given() {
    let of = |overheads: &str| with_platform(&format!("cpus = 1\n{overheads}")).platform.overheads;
    assert_eq!(of("overheads = \"brandenburg2009-worst\"").name, "brandenburg2009-CEm-worst-aligned");
    assert_eq!(of("overheads = \"none\""), of(""));
    let own = of("[platform.overheads]\nrelease = \"10 us\"\nscheduling = [[50, \"9.380001 us\"], [100, \"12 us\"]]");
    assert_eq!(own.name, "custom");
    assert_eq!(own.tables[OverheadKind::Release as usize], OverheadTable::Constant(Nanos::from_micros(10)));
    let points = OverheadTable::Points(vec![(50, 9_380_001), (100, 12_000_000)]);
    assert_eq!(own.tables[OverheadKind::Scheduling as usize], points);
    assert_eq!(own.tables[OverheadKind::Tick as usize], OverheadTable::Constant(Nanos::ZERO));
}

#[test]
fn a_constant_overhead_is_as_fine_as_a_measured_one() {
    let own =
        with_platform("cpus = 1\n[platform.overheads]\nrelease = \"1.0005 us\"\ntick = \"1 ps\"").platform.overheads;
    for tasks in [0, 1, 400] {
        assert_eq!((own.at(tasks).release, own.at(tasks).tick), (Nanos(1_001), Nanos(1)), "rounded up");
    }
}

#[test]
fn sporadic_tasks_may_wait_longer_than_their_period() {
    let task = with_task("wcet = \"1 ms\"\narrival = \"sporadic\"\ngap = { uniform = [\"0 ms\", \"3 ms\"] }");
    let gap = Distribution::Uniform { min: Nanos::ZERO, max: Nanos::from_millis(3) };
    assert_eq!(task.arrival, Arrival::Sporadic { gap });
    let task = with_task("wcet = \"1 ms\"\narrival = \"sporadic\"");
    assert_eq!(task.arrival, Arrival::Sporadic { gap: Distribution::WorstCase });
}

#[test]
fn every_distribution_has_its_form() {
    let ms = Nanos::from_millis;
    let bin = |min, max, weight| laxity_model::Bin { min: ms(min), max: ms(max), weight };
    let cases = [
        ("\"1 ms\"", Distribution::Constant(ms(1))),
        ("{ constant = \"1 ms\" }", Distribution::Constant(ms(1))),
        ("{ uniform = [\"1 ms\", \"2 ms\"] }", Distribution::Uniform { min: ms(1), max: ms(2) }),
        ("{ recorded = [\"2 ms\", \"1 ms\"] }", Distribution::Recorded(vec![ms(2), ms(1)])),
        (
            "{ histogram = [{ min = \"1 ms\", max = \"1 ms\", weight = 3 }, { min = \"2 ms\", max = \"3 ms\", weight = 0 }] }",
            Distribution::Histogram(vec![bin(1, 1, 3), bin(2, 3, 0)]),
        ),
    ];
    for (text, actual) in cases {
        let task = with_task(&format!("wcet = \"4 ms\"\nactual = {text}"));
        assert_eq!(task.body, [Step::Cpu(ExecutionTime { wcet: ms(4), actual })], "{text}");
    }
}

#[test]
fn a_body_is_read_step_by_step() {
    let task = with_task(
        "body = [{ cpu = \"1 ms\" }, { critical = \"r\", body = [{ nonpreemptive = \"2 us\" }] }, { suspend = \"1 us\" }, \
         { copy_in = \"2 MB\", asynchronous = true }, { kernel = \"3 ms\", gpu = \"g\", interrupts = 0 }, \
         { copy_out = \"5 B\", time = \"7 ns\", actual = \"6 ns\" }]",
    );
    let constant = |nanos| ExecutionTime::constant(Nanos(nanos));
    let gpu = |gpu, work, waiting, interrupts| {
        Step::Gpu(GpuOperation { gpu, work, waiting, interrupts, memory: Factor::ZERO })
    };
    let copy = |direction, bytes, time| GpuWork::Copy { direction, bytes, time };
    let measured = ExecutionTime { wcet: Nanos(7), actual: Distribution::Constant(Nanos(6)) };
    let expected = [
        Step::Cpu(constant(1_000_000)),
        Step::Critical { resource: 0, body: vec![Step::NonPreemptive(constant(2_000))] },
        Step::Suspend(constant(1_000)),
        gpu(None, copy(CopyDirection::In, 2_000_000, None), Waiting::Asynchronous, 1),
        gpu(Some(0), GpuWork::Kernel(constant(3_000_000)), Waiting::Synchronous, 0),
        gpu(None, copy(CopyDirection::Out, 5, Some(measured)), Waiting::Synchronous, 1),
    ];
    assert_eq!(task.body, expected);
}

#[test]
fn a_copy_takes_its_latency_and_its_bytes() {
    let workload = with_platform("cpus = 1\n[[platform.gpu]]\nname = \"g\"\nbandwidth = \"3 B/s\"\nlatency = \"5 ns\"");
    let gpu = &workload.platform.gpus[0];
    assert_eq!(gpu.copy_time(1), Nanos(333_333_334 + 5), "rounded up");
    assert_eq!(gpu.copy_time(u64::MAX), Nanos(u64::MAX), "as long as can be written");
    assert_eq!(gpu.interrupt_cpus, [CpuId(0)]);
}

#[test]
fn json_has_the_same_structure() {
    let json = r#"{ "laxity": 1, "name": "w", "platform": { "cpus": 2 },
                    "task": [{ "name": "t", "period": "10 ms", "wcet": "2 ms" }] }"#;
    let toml =
        "laxity = 1\nname = \"w\"\nplatform.cpus = 2\n[[task]]\nname = \"t\"\nperiod = \"10 ms\"\nwcet = \"2 ms\"";
    assert_eq!(Workload::from_text(json, "w.json"), Workload::from_text(toml, "w.TOML"));
    assert!(Workload::from_text(json, "w.json").is_ok());
    let error = Workload::from_text(json, "w.yaml").expect_err("neither");
    assert_eq!(
        error.to_string(),
        "w.yaml:1:1: cannot tell TOML from JSON; give the file the extension `.toml` or `.json`"
    );
}
