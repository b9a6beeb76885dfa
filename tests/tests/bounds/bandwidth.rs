//! Equation 4 of paper 004 with formula 9 of `docs/reference/bandwidth-model.md`, through `check`, against the simulator.

use std::collections::BTreeMap;

use laxity_analysis::bwlock::{Aggressor, Begins, Regulation, protected, unprotected};
use laxity_analysis::check::{Options, check};
use laxity_model::rng::SplitMix64;
use laxity_model::{
    BandwidthLock, BestEffortRule, BestEffortTask, Contention, ContentionPoint, CopyDirection, CpuId, ExecutionTime,
    Factor, Gpu, GpuArbitration, GpuOperation, GpuWork, Instant, LockHeed, Memory, MemoryRegulator, Nanos, Platform,
    RegulatorPhase, Scheduler, Step, Task, Waiting, Workload,
};
use laxity_tests::simulate;
use laxity_trace::{Event, Record, metrics};

fn pick<T: Copy>(rng: &mut SplitMix64, choices: &[T]) -> T {
    choices[rng.below(choices.len() as u64) as usize]
}

/// A curve whose slope never rises.
fn concave(rng: &mut SplitMix64) -> Contention {
    let mut points = vec![ContentionPoint { traffic: 0, factor: Factor::ONE }];
    let mut slope = 1 + rng.below(12_000);
    for _ in 0..=rng.below(3) {
        let last = points[points.len() - 1];
        // In steps of a megabyte a second, at so many millionths each.
        let run = 20 + rng.below(400);
        points.push(ContentionPoint {
            traffic: last.traffic + run * 1_000_000,
            factor: Factor(last.factor.0 + run * slope),
        });
        slope = 1 + rng.below(slope);
    }
    Contention { points }
}

fn operation(rng: &mut SplitMix64) -> Step {
    let time = ExecutionTime::constant(Nanos(1 + rng.below(4_000_000)));
    let work = match rng.below(2) {
        0 => GpuWork::Kernel(time),
        _ => GpuWork::Copy { direction: CopyDirection::In, bytes: 1, time: Some(time) },
    };
    let waiting = pick(rng, &[Waiting::Synchronous, Waiting::Synchronous, Waiting::Asynchronous]);
    Step::Gpu(GpuOperation { gpu: None, work, waiting, interrupts: 0, memory: Factor(rng.below(1_000_001)) })
}

fn task(rng: &mut SplitMix64, index: u32, cpu: usize) -> Task {
    let cpu_step = |rng: &mut SplitMix64| Step::Cpu(ExecutionTime::constant(Nanos(1 + rng.below(900_000))));
    let mut body = vec![cpu_step(rng)];
    for _ in 0..rng.below(3) {
        if cpu == 0 {
            body.push(operation(rng));
        }
        // Else one operation follows the other at once.
        if rng.below(3) > 0 {
            body.push(cpu_step(rng));
        }
    }
    Task {
        priority: Some(index),
        phase: Nanos(rng.below(9_000_000)),
        cluster: Some(cpu),
        memory_demand: rng.below(2) * rng.below(200_000_000),
        memory_budget: (rng.below(3) == 0).then(|| 1 + rng.below(80_000_000)),
        body,
        ..Task::periodic(format!("t{index}"), Nanos(1), Nanos(20_000_000 + rng.below(60_000_000)))
    }
}

/// Tasks that use a GPU on CPU 0, others on other CPUs, best-effort tasks on all but CPU 0 or anywhere.
fn system(seed: u64) -> Workload {
    let rng = &mut SplitMix64::new(seed);
    let cpus = 2 + rng.below(3) as usize;
    let mut platform = Platform::identical(cpus);
    platform.gpus.push(Gpu {
        name: "gpu".to_owned(),
        cluster: 0,
        copy_engines: 1,
        bandwidth: 1_000_000_000,
        latency: Nanos::ZERO,
        interrupt_cpus: vec![CpuId(0)],
    });
    platform.memory = Memory {
        contention: concave(rng),
        regulator: MemoryRegulator {
            period: pick(rng, &[Nanos(1_000_000), Nanos(300_000), Nanos(2_345_678)]),
            latency: pick(rng, &[Nanos::ZERO, Nanos(10_000), Nanos(400_000)]),
            interrupt: Nanos::ZERO,
            phase: pick(rng, &[RegulatorPhase::Aligned, RegulatorPhase::Staggered]),
            heed: pick(rng, &[LockHeed::Period, LockHeed::AtOnce]),
        },
    };
    let mut tasks: Vec<Task> = (0..1 + rng.below(4) as u32).map(|index| task(rng, index, 0)).collect();
    for index in 0..rng.below(3) as u32 {
        let cpu = 1 + rng.below(cpus as u64 - 1) as usize;
        tasks.push(task(rng, 10 + index, cpu));
    }
    let mut workload = Workload::new(format!("seed {seed}"), platform, tasks);
    workload.best_effort = (0..1 + rng.below(6))
        .map(|index| BestEffortTask {
            weight: 1 + rng.below(3_000) as u32,
            memory_demand: rng.below(400_000_000),
            cpu: (rng.below(4) > 0).then(|| rng.below(cpus as u64) as usize),
            work: (rng.below(4) == 0).then(|| Nanos(1 + rng.below(50_000_000))),
            ..BestEffortTask::endless(format!("b{index}"))
        })
        .collect();
    let punishment = Factor(rng.below(4_000_000));
    workload.best_effort_scheduler.rule = pick(rng, &[BestEffortRule::Cfs, BestEffortRule::Tfs { punishment }]);
    workload.gpu_management.arbitration = GpuArbitration::DriverSpinning;
    let call = Nanos(pick(rng, &[0, 1_840]));
    workload.gpu_management.bandwidth_lock = Some(BandwidthLock { call, budget: 1 + rng.below(150_000_000) });
    workload
}

fn scheduler(rng: &mut SplitMix64) -> Scheduler {
    pick(rng, &["P-FP", "P-RM", "P-EDF"]).parse().expect("a scheduler")
}

/// No job of a system with the lock is later than `check` proves: response times are those of equation 4, with the time in
/// which the lock is held as E and B, lengthened by formula 9.
#[test]
fn no_job_is_later_than_equation_4_says() {
    let (mut proven, mut tightest) = (0, 0.0f64);
    let options = Options { scaling: false, ..Options::default() };
    for seed in 0..10_000 {
        let workload = system(seed);
        let scheduler = scheduler(&mut SplitMix64::new(!seed));
        let report = check(&workload, &scheduler, &options);
        assert_eq!(report.refusals, [], "seed {seed}");
        if !report.hard.is_schedulable() {
            continue;
        }
        proven += 1;
        let end = Instant::from_millis(150);
        let (header, records) = simulate(&workload, &scheduler, end, seed);
        let summary = metrics::measure(&header, &records, end);
        for (found, expected) in summary.tasks.iter().zip(&report.tasks) {
            let name = &expected.name;
            assert_eq!(found.jobs.missed, 0, "seed {seed}: {name} was proven to meet its deadlines");
            let (Some(found), Some(bound)) = (found.jobs.response_time, expected.response_time) else { continue };
            assert!(found.max <= bound.time, "seed {seed}: {name} took {} and has the bound {}", found.max, bound.time);
            tightest = tightest.max(found.max.as_nanos() as f64 / bound.time.as_nanos() as f64);
        }
    }
    assert!(proven > 5_000, "only {proven} systems are schedulable");
    assert!(tightest > 0.99, "the tightest bound is {tightest} times what was found");
}

/// From when to when operations were on an engine, with the job of each.
fn operations(records: &[Record]) -> Vec<(usize, u64)> {
    let mut begun = BTreeMap::new();
    let mut done = Vec::new();
    for record in records {
        match record.event {
            Event::EngineBegin { gpu, engine, .. } => {
                begun.insert((gpu, engine), record.at);
            }
            Event::EngineEnd { gpu, engine, job } => {
                let since = begun.remove(&(gpu, engine)).expect("it began");
                done.push((job.task.index(), record.at.as_nanos() - since.as_nanos()));
            }
            _ => {}
        }
    }
    done
}

/// The time of a single protected kernel is bounded by formula 9 itself, and by formula 7 without the lock.
#[test]
fn no_protected_kernel_takes_longer_than_formula_9_says() {
    let (mut tightest, mut tightest_without) = (0.0f64, 0.0f64);
    for seed in 0..10_000 {
        let mut workload = system(seed);
        let rng = &mut SplitMix64::new(seed ^ 0x5eed);
        let (work, memory) = (1 + rng.below(20_000_000), Factor(rng.below(1_000_001)));
        let kernel = GpuOperation {
            gpu: None,
            work: GpuWork::Kernel(ExecutionTime::constant(Nanos(work))),
            waiting: Waiting::Synchronous,
            interrupts: 0,
            memory,
        };
        workload.tasks.truncate(1);
        workload.tasks[0].body =
            vec![Step::Cpu(ExecutionTime::constant(Nanos(1 + rng.below(3_000_000)))), Step::Gpu(kernel)];
        workload.tasks[0].period = Nanos::from_secs(1);
        workload.tasks[0].deadline = Nanos::from_secs(1);
        let is_locked = seed % 3 > 0;
        let lock = workload.gpu_management.bandwidth_lock.take().filter(|_| is_locked);
        workload.gpu_management.bandwidth_lock = lock;
        let regulator = workload.platform.memory.regulator;
        let demands = |cpu: usize| {
            let there = workload.best_effort.iter().filter(|task| task.cpu.is_none_or(|only| only == cpu));
            Aggressor { regulated: there.map(|task| task.memory_demand).collect(), unregulated: Vec::new() }
        };
        let aggressors: Vec<Aggressor> = (1..workload.platform.cpus).map(demands).collect();
        let contention = &workload.platform.memory.contention;
        let bound = match lock {
            None => unprotected(work, memory, contention, &aggressors),
            Some(lock) => {
                let regulation = Regulation {
                    period: regulator.period.0,
                    budget: workload.tasks[0].memory_budget.unwrap_or(lock.budget),
                    latency: regulator.latency.0,
                    waits_for_period: regulator.heed == LockHeed::Period,
                };
                protected(work, memory, contention, &aggressors, &regulation, Begins::First)
            }
        };
        let scheduler: Scheduler = "P-FP".parse().expect("a scheduler");
        let (_, records) = simulate(&workload, &scheduler, Instant::from_millis(200), seed);
        let (_, length) = operations(&records)[0];
        assert!(length <= bound, "seed {seed}: {length} ns, and the bound is {bound} ns");
        let ratio = length as f64 / bound as f64;
        match is_locked {
            true if bound > work + work / 4 => tightest = tightest.max(ratio),
            false => tightest_without = tightest_without.max(ratio),
            true => {}
        }
    }
    assert!(tightest > 0.95, "the tightest of the bounds that are a quarter above the work is {tightest}");
    assert!(tightest_without > 0.999, "without the lock the tightest is {tightest_without}");
}
