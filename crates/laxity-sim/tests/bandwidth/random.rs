//! Random systems: no rule of any checker breaks, virtual times are what equations 1 and 2 say, and time adds up.

use laxity_model::rng::SplitMix64;
use laxity_model::{
    BandwidthLock, BestEffortRule, BestEffortTask, Contention, ContentionPoint, CopyDirection, CpuId, ExecutionTime,
    Factor, Gpu, GpuArbitration, GpuManagement, GpuOperation, GpuWork, Instant, InterruptHandling, LockHeed, Memory,
    MemoryRegulator, Nanos, OverheadKind, OverheadTable, Platform, RegulatorPhase, Scheduler, Step, Task, TaskId,
    Waiting, Workload,
};
use laxity_trace::check::FairnessCheck;
use laxity_trace::{Event, Sink};

use crate::{Run, simulate};

fn pick<T: Clone>(rng: &mut SplitMix64, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize].clone()
}

fn micros(rng: &mut SplitMix64, from: u64, to: u64) -> Nanos {
    Nanos(rng.between(from, to) * 1_000 + rng.below(1_000))
}

fn operation(rng: &mut SplitMix64) -> Step {
    let time = ExecutionTime::constant(micros(rng, 50, 2_000));
    let work = match rng.below(2) {
        0 => GpuWork::Kernel(time),
        _ => {
            GpuWork::Copy { direction: pick(rng, &[CopyDirection::In, CopyDirection::Out]), bytes: 1, time: Some(time) }
        }
    };
    Step::Gpu(GpuOperation {
        gpu: None,
        work,
        waiting: pick(rng, &[Waiting::Synchronous, Waiting::Asynchronous]),
        interrupts: rng.below(3) as u32,
        memory: Factor(rng.below(1_000_001)),
    })
}

fn task(rng: &mut SplitMix64, index: u32) -> Task {
    let mut body = vec![Step::Cpu(ExecutionTime::constant(micros(rng, 10, 800)))];
    for _ in 0..rng.below(4) {
        body.push(if rng.below(3) > 0 {
            operation(rng)
        } else {
            Step::Suspend(ExecutionTime::constant(micros(rng, 10, 500)))
        });
        body.push(Step::Cpu(ExecutionTime::constant(micros(rng, 1, 300))));
    }
    Task {
        phase: micros(rng, 0, 3_000),
        priority: Some(index),
        memory_demand: rng.below(2) * rng.below(200_000_000),
        memory_budget: (rng.below(3) == 0).then(|| 1 + rng.below(50_000_000)),
        body,
        ..Task::periodic(format!("t{index}"), Nanos(1), micros(rng, 12_000, 30_000))
    }
}

fn platform(rng: &mut SplitMix64, cpus: usize) -> Platform {
    let gpu = |index: u16| Gpu {
        name: format!("g{index}"),
        cluster: 0,
        copy_engines: 1 + index as u8,
        bandwidth: 1_000_000_000,
        latency: Nanos::ZERO,
        interrupt_cpus: (0..cpus as u16).map(CpuId).collect(),
    };
    let point = |traffic, factor| ContentionPoint { traffic, factor: Factor(factor) };
    let points = vec![point(0, 1_000_000), point(50_000_000 + rng.below(1 << 28), 1_000_000 + rng.below(4_000_000))];
    let mut platform = Platform { gpus: vec![gpu(0), gpu(1)], ..Platform::identical(cpus) };
    platform.tick = pick(rng, &[Nanos::from_micros(250), Nanos::from_millis(1), Nanos::from_millis(4)]);
    platform.quantum = platform.tick;
    platform.memory = Memory {
        contention: Contention { points: if rng.below(4) == 0 { Vec::new() } else { points } },
        regulator: MemoryRegulator {
            period: pick(rng, &[Nanos::from_micros(300), Nanos::from_millis(1), Nanos(777_777)]),
            latency: pick(rng, &[Nanos::ZERO, Nanos::from_micros(10), Nanos::from_micros(500)]),
            interrupt: pick(rng, &[Nanos::ZERO, Nanos::ZERO, Nanos::from_micros(2)]),
            phase: pick(rng, &[RegulatorPhase::Aligned, RegulatorPhase::Staggered]),
            heed: pick(rng, &[LockHeed::Period, LockHeed::AtOnce]),
        },
    };
    if rng.below(3) == 0 {
        for kind in [OverheadKind::Scheduling, OverheadKind::ContextSwitch, OverheadKind::Tick, OverheadKind::TopHalf] {
            platform.overheads.tables[kind as usize] = OverheadTable::Constant(Nanos(rng.below(5_000)));
        }
        platform.overheads.tables[OverheadKind::BottomHalf as usize] = OverheadTable::Constant(Nanos(rng.below(9_000)));
    }
    platform
}

fn workload(seed: u64, is_bound: bool) -> Workload {
    let rng = &mut SplitMix64::new(seed);
    let cpus = 1 + rng.below(4) as usize;
    let platform = platform(rng, cpus);
    let tasks = (0..rng.below(5) as u32).map(|index| task(rng, index)).collect();
    let best_effort = |rng: &mut SplitMix64, index: u64| BestEffortTask {
        weight: 1 + rng.below(3_000) as u32,
        memory_demand: rng.below(2) * rng.below(300_000_000),
        cpu: (is_bound || rng.below(2) == 0).then(|| rng.below(cpus as u64) as usize),
        work: (!is_bound && rng.below(2) == 0).then(|| micros(rng, 100, 20_000)),
        ..BestEffortTask::endless(format!("b{index}"))
    };
    let best_effort: Vec<BestEffortTask> = (0..1 + rng.below(6)).map(|index| best_effort(rng, index)).collect();
    let interrupts = if cpus > 1 && !is_bound { pick(rng, &["m", "1"]) } else { "m" };
    let scope = pick(rng, &["G", "P"]);
    let scheduler: Scheduler =
        format!("{scope}-{}/C{}{interrupts}", pick(rng, &["EDF", "FP"]), pick(rng, &["E", "E", "Q"]))
            .parse()
            .expect("a scheduler");
    let punishment = Factor(rng.below(4_000_000));
    let management = GpuManagement {
        arbitration: pick(
            rng,
            &[GpuArbitration::Driver, GpuArbitration::DriverSpinning, GpuArbitration::KFmlp { length_aware: false }],
        ),
        handling: pick(rng, &[InterruptHandling::Linux, InterruptHandling::ProcessAware]),
        bandwidth_lock: (rng.below(5) > 0)
            .then(|| BandwidthLock { call: Nanos(rng.below(2) * 1_840), budget: 1 + rng.below(100_000_000) }),
        ..GpuManagement::default()
    };
    let mut workload = Workload {
        best_effort: best_effort
            .into_iter()
            .map(|mut task| {
                // CPU 0 may run no job.
                task.cpu = task.cpu.map(|cpu| if interrupts == "1" { cpu.max(1) } else { cpu });
                task
            })
            .collect(),
        gpu_management: management,
        scheduler,
        ..Workload::new(format!("seed {seed}"), platform, tasks)
    };
    workload.best_effort_scheduler.rule = pick(rng, &[BestEffortRule::Cfs, BestEffortRule::Tfs { punishment }]);
    if rng.below(2) == 0 {
        workload.best_effort_scheduler.latency = Some(Nanos::from_millis(1));
        workload.best_effort_scheduler.min_granularity = Some(Nanos::from_micros(200));
    }
    workload
}

/// Equations 1 and 2 of paper 004, from the records alone: what each best-effort task had, and what it was charged.
fn virtual_times(run: &Run, workload: &Workload) -> Vec<Option<i64>> {
    let mut times: Vec<i64> = vec![0; run.header.tasks.len()];
    let mut since: Vec<Option<Instant>> = vec![None; run.header.tasks.len()];
    let first = run.header.tasks.len() - workload.best_effort.len();
    let scaled = |task: usize, span: u64| (span * 1_024 / u64::from(workload.best_effort[task - first].weight)) as i64;
    for record in &run.records {
        match record.event {
            Event::Dispatch { job, .. } if job.task.index() >= first => since[job.task.index()] = Some(record.at),
            Event::Preempt { job, .. } if job.task.index() >= first => {
                let begun = since[job.task.index()].take().expect("it was dispatched");
                times[job.task.index()] += scaled(job.task.index(), record.at.as_nanos() - begun.as_nanos());
            }
            Event::Unthrottle { task: Some(task), lost, .. } => {
                times[task.index()] += workload.best_effort_scheduler.rule.punishment().of(lost.0) as i64;
            }
            _ => {}
        }
    }
    let time = |task: usize| (task >= first && since[task].is_none()).then_some(times[task]);
    (0..times.len()).map(time).collect()
}

#[test]
fn random_systems_keep_every_rule_of_legality_policy_and_budgets() {
    for seed in 0..400 {
        let workload = workload(seed, false);
        workload.validate().unwrap_or_else(|errors| panic!("seed {seed}: {errors}"));
        let run = simulate(&workload, Instant::from_millis(60));
        let summary = run.summary();
        let memory = summary.memory.as_ref().expect("best-effort tasks");
        let by_task: u64 = memory.best_effort.iter().map(|task| task.throttled.as_nanos()).sum();
        let by_cpu: u64 = memory.cpus.iter().map(|cpu| cpu.throttled.as_nanos()).sum();
        assert!(by_task <= by_cpu, "seed {seed}");
        let best_effort: u64 = memory.best_effort.iter().map(|task| task.execution.as_nanos()).sum();
        assert!(best_effort <= summary.machine.busy.as_nanos(), "seed {seed}");
    }
}

/// The checker recomputes the same virtual times, and none gets ahead by more than a slice, which a tick ends, and its
/// charges.
fn judge(run: &Run, workload: &Workload, seed: u64) {
    let rules = workload.best_effort_scheduler;
    let slice = rules.latency.unwrap_or(Nanos::from_millis(24)).0 + 2 * workload.platform.tick.0;
    let mut check = FairnessCheck::new(&run.header, Nanos(slice));
    run.records.iter().for_each(|record| check.record(record.at, record.event));
    for (task, expected) in virtual_times(run, workload).into_iter().enumerate() {
        let (Some(expected), Some(found)) = (expected, check.virtual_time(TaskId(task as u32))) else { continue };
        // Charges are rounded down one by one in the simulator, and once in the checker.
        assert!(found.0.abs_diff(expected as u64) < 1_000, "seed {seed} task {task}: {found} and not {expected}");
    }
    let report = check.finish();
    assert!(report.is_clean(), "seed {seed}: {report}");
}

/// Threads that are bound take no virtual time along, so that what the policy counts is what the trace says.
#[test]
fn virtual_time_is_weighted_execution_and_punished_throttling() {
    let mut compared = 0;
    for seed in 0..300 {
        let mut workload = workload(seed, true);
        // Without overheads a thread is charged from its dispatch to its preemption.
        workload.platform.overheads = laxity_model::OverheadProfile::zero();
        workload.platform.memory.regulator.interrupt = Nanos::ZERO;
        // 1,024 / W is whole, so that nothing is rounded.
        for task in &mut workload.best_effort {
            task.weight = 1 << (task.weight % 11);
        }
        let run = simulate(&workload, Instant::from_millis(40));
        for (task, (found, expected)) in run.virtual_times.iter().zip(virtual_times(&run, &workload)).enumerate() {
            if let (Some(found), Some(expected)) = (found, expected) {
                assert_eq!(*found, expected, "seed {seed} task {task}");
                compared += i64::from(expected > 0);
            }
        }
        judge(&run, &workload, seed);
    }
    assert!(compared > 100, "only {compared} threads were compared");
}
