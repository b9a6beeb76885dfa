//! Memory that CPUs and GPUs share: what files say of it, and each rule of it, broken once.

use laxity_model::ErrorKind::{BadValue, Contradiction};
use laxity_model::{
    BandwidthLock, BestEffortRule, BestEffortScheduler, Contention, ContentionPoint, Factor, LockHeed, MemoryRegulator,
    Nanos, RegulatorPhase, Step, Warning, Workload,
};

use crate::validation::breaks;

const HEAD: &str = "laxity = 1\nname = \"w\"\n";

fn read(text: &str) -> Workload {
    Workload::from_toml(text, "w.toml").unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

#[test]
fn everything_about_memory_is_read() {
    let text = format!(
        "{HEAD}best_effort_scheduler = {{ rule = \"TFS\", punishment = 3, latency = \"1 ms\" }}\n\
         [platform]\ncpus = 4\n[platform.memory]\ncontention = [[\"0 B/s\", 1.0], [\"900 MB/s\", 3.3]]\n\
         regulator = {{ period = \"2 ms\", latency = \"5 us\", interrupt = \"1 us\", phase = \"staggered\", heed = \"at_once\" }}\n\
         [[platform.gpu]]\nname = \"g\"\nbandwidth = \"1 GB/s\"\n\
         [gpu_management]\nbandwidth_lock = {{ call = \"1.84 us\", budget = \"64 MB/s\" }}\n\
         [[task]]\nname = \"t\"\nperiod = \"1 s\"\nmemory_demand = \"1 MB/s\"\nmemory_budget = \"2 MB/s\"\n\
         body = [{{ cpu = \"1 ms\" }}, {{ kernel = \"1 ms\", memory = 0.25 }}]\n\
         [[best_effort]]\nname = \"b\"\nwork = \"4 ms\"\n"
    );
    let workload = read(&text);
    let point = |traffic, factor| ContentionPoint { traffic, factor: Factor(factor) };
    let contention = Contention { points: vec![point(0, 1_000_000), point(900_000_000, 3_300_000)] };
    assert_eq!(workload.platform.memory.contention, contention);
    let regulator = MemoryRegulator {
        period: Nanos::from_millis(2),
        latency: Nanos::from_micros(5),
        interrupt: Nanos::from_micros(1),
        phase: RegulatorPhase::Staggered,
        heed: LockHeed::AtOnce,
    };
    assert_eq!(workload.platform.memory.regulator, regulator);
    let lock = BandwidthLock { call: Nanos(1_840), budget: 64_000_000 };
    assert_eq!(workload.gpu_management.bandwidth_lock, Some(lock));
    let rule = BestEffortRule::Tfs { punishment: Factor::whole(3) };
    let scheduler = BestEffortScheduler { rule, latency: Some(Nanos::from_millis(1)), ..Default::default() };
    assert_eq!(workload.best_effort_scheduler, scheduler);
    let task = &workload.tasks[0];
    assert_eq!((task.memory_demand, task.memory_budget), (1_000_000, Some(2_000_000)));
    let Step::Gpu(operation) = &task.body[1] else { panic!("the second step is a GPU kernel") };
    assert_eq!(operation.memory, Factor(250_000));
    assert_eq!(workload.best_effort[0].work, Some(Nanos::from_millis(4)));
    assert_eq!(read(&workload.to_toml()), workload);
}

#[test]
fn a_rule_alone_has_default_parameters() {
    let rule = |text: &str| {
        read(&format!("{HEAD}best_effort_scheduler = \"{text}\"\nplatform.cpus = 1\n")).best_effort_scheduler.rule
    };
    assert_eq!(rule("CFS"), BestEffortRule::Cfs);
    assert_eq!(rule("TFS"), BestEffortRule::Tfs { punishment: Factor::ONE });
    let text = format!("{HEAD}best_effort_scheduler = {{ rule = \"CFS\", punishment = 1 }}\nplatform.cpus = 1\n");
    let errors = Workload::from_toml(&text, "w.toml").expect_err("CFS does not punish").to_string();
    assert!(errors.contains("unknown field `punishment`"), "{errors}");
}

#[test]
fn a_number_that_is_no_factor_is_refused_with_the_way_out() {
    for number in ["-1", "1e3", "0.1234567", "inf"] {
        let text = format!("{HEAD}platform = {{ cpus = 1, memory = {{ contention = [[\"0 B/s\", {number}]] }} }}\n");
        let errors = Workload::from_toml(&text, "w.toml").expect_err(number).to_string();
        assert!(errors.contains("write a number from 0 with at most six decimals"), "{errors}");
    }
}

#[test]
fn a_contention_curve_begins_at_one_and_never_falls() {
    let point = |traffic, factor| ContentionPoint { traffic, factor: Factor(factor) };
    let curve = |w: &mut Workload, points: Vec<ContentionPoint>| w.platform.memory.contention = Contention { points };
    let at = "platform.memory.contention";
    breaks(BadValue, at, "one point, which is no curve", |w| curve(w, vec![point(0, 1_000_000)]));
    breaks(Contradiction, &format!("{at}[0]"), "begin with", |w| {
        curve(w, vec![point(1, 1_000_000), point(2, 2_000_000)]);
    });
    breaks(Contradiction, &format!("{at}[1]"), "0 B/s come after 0 B/s", |w| {
        curve(w, vec![point(0, 1_000_000), point(0, 2_000_000)]);
    });
    breaks(Contradiction, &format!("{at}[2]"), "factor 1.5 comes after 2.0", |w| {
        curve(w, vec![point(0, 1_000_000), point(1, 2_000_000), point(2, 1_500_000)]);
    });
    breaks(BadValue, &format!("{at}[1]"), "exceeds 1000.0", |w| {
        curve(w, vec![point(0, 1_000_000), point(1, 1_000_000_001)]);
    });
}

#[test]
fn regulator_and_lock_make_sense() {
    let regulator = "platform.memory.regulator";
    breaks(BadValue, &format!("{regulator}.period"), "0 ms", |w| w.platform.memory.regulator.period = Nanos::ZERO);
    breaks(BadValue, &format!("{regulator}.period"), "exceeds 1 h", |w| {
        w.platform.memory.regulator.period = Nanos::from_secs(3_601);
    });
    breaks(Contradiction, &format!("{regulator}.interrupt"), "no shorter than the period 1 ms", |w| {
        w.platform.memory.regulator.interrupt = Nanos::from_millis(1);
    });
    let lock = "gpu_management.bandwidth_lock";
    breaks(BadValue, &format!("{lock}.budget"), "at least 1 B/s", |w| {
        w.gpu_management.bandwidth_lock = Some(BandwidthLock { call: Nanos::ZERO, budget: 0 });
    });
    breaks(BadValue, &format!("{lock}.call"), "exceeds 1 h", |w| {
        w.gpu_management.bandwidth_lock = Some(BandwidthLock { call: Nanos::from_secs(3_601), budget: 1 });
    });
    breaks(BadValue, "task[0].memory_budget", "at least 1 B/s", |w| w.tasks[0].memory_budget = Some(0));
}

#[test]
fn best_effort_tasks_and_their_scheduler_make_sense() {
    let at = "best_effort_scheduler";
    breaks(BadValue, &format!("{at}.punishment"), "exceeds 1000.0", |w| {
        w.best_effort_scheduler.rule = BestEffortRule::Tfs { punishment: Factor::whole(1_001) };
    });
    breaks(BadValue, &format!("{at}.latency"), "0 ms", |w| w.best_effort_scheduler.latency = Some(Nanos::ZERO));
    breaks(Contradiction, &format!("{at}.min_granularity"), "2 ms exceeds `latency` 1 ms", |w| {
        w.best_effort_scheduler.latency = Some(Nanos::from_millis(1));
        w.best_effort_scheduler.min_granularity = Some(Nanos::from_millis(2));
    });
    breaks(BadValue, "best_effort[0].work", "0 ms", |w| w.best_effort[0].work = Some(Nanos::ZERO));
}

#[test]
fn a_budget_without_a_lock_is_warned_of() {
    let mut workload = read(&format!(
        "{HEAD}platform.cpus = 1\n[[task]]\nname = \"t\"\nperiod = \"2 ms\"\nwcet = \"1 ms\"\nmemory_budget = \"1 MB/s\"\n"
    ));
    assert_eq!(workload.warnings(), [Warning::NoBandwidthLock { task: "t".to_owned() }]);
    workload.gpu_management.bandwidth_lock = Some(BandwidthLock { call: Nanos::ZERO, budget: 1 });
    assert_eq!(workload.warnings(), [Warning::NoGpu]);
}
