//! `check` against the simulator: what is proven schedulable under a configuration misses no deadline where the same
//! overheads are executed, and no bound is exceeded; both assign tasks to the same clusters.

use laxity_analysis::Test;
use laxity_analysis::check::{Accounting, Criterion, Options, Report, check};
use laxity_model::{
    Arrival, Distribution, ExecutionTime, Instant, Invocation, Nanos, OverheadCosts, OverheadProfile, Platform,
    PriorityRule, Quanta, ReadyQueueKind, ReleaseInterrupts, Scheduler, Scope, Step, Task, Workload,
};
use laxity_plan::Plan;
use laxity_tests::simulate;
use laxity_trace::metrics::{Summary, measure};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;

const UNIT: u64 = 10_000;

fn scheduler() -> impl Strategy<Value = Scheduler> {
    (
        select(vec![
            PriorityRule::Edf,
            PriorityRule::Edf,
            PriorityRule::RateMonotonic,
            PriorityRule::DeadlineMonotonic,
        ]),
        select(vec![Scope::Global, Scope::Clustered, Scope::Partitioned]),
        select(vec![Invocation::EventDriven, Invocation::QuantumDriven]),
        select(vec![Quanta::Aligned, Quanta::Staggered]),
        select(vec![ReleaseInterrupts::Global, ReleaseInterrupts::Dedicated]),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(rule, scope, invocation, quanta, interrupts, coarse_lock)| Scheduler {
            rule,
            scope,
            invocation,
            quanta,
            interrupts,
            ready_queue: ReadyQueueKind::Coarse,
            coarse_lock,
        })
}

/// Costs from nothing to a twentieth of the shortest period.
fn costs() -> impl Strategy<Value = OverheadCosts> {
    let cost = || prop_oneof![1 => Just(0), 3 => 1..UNIT / 4].prop_map(Nanos);
    let [release, scheduling, context_switch, ipi_latency] = [cost(), cost(), cost(), cost()];
    (release, scheduling, context_switch, ipi_latency, cost(), cost(), cost(), cost()).prop_map(
        |(
            release,
            scheduling,
            context_switch,
            ipi_latency,
            tick,
            timer_rearming,
            cache_preemption,
            cache_migration,
        )| {
            OverheadCosts {
                release,
                scheduling,
                context_switch,
                ipi_latency,
                tick,
                timer_rearming,
                cache_preemption,
                cache_migration,
                ..OverheadCosts::default()
            }
        },
    )
}

fn body(is_plain: bool) -> impl Strategy<Value = Vec<Step>> {
    let time = |max: u64| (1..=max * 10).prop_map(|wcet| ExecutionTime::constant(Nanos(wcet * UNIT / 10)));
    let others = prop_oneof![
        3 => time(3).prop_map(Step::Cpu),
        2 => time(2).prop_map(Step::NonPreemptive),
        1 => time(3).prop_map(Step::Suspend),
    ];
    let count = if is_plain { 0..1usize } else { 0..3 };
    (time(6).prop_map(Step::Cpu), prop::collection::vec(others, count)).prop_map(|(first, mut rest)| {
        rest.insert(0, first);
        rest
    })
}

fn workload() -> impl Strategy<Value = Workload> {
    let task = any::<bool>().prop_flat_map(|is_plain| {
        (5u64..60, 40u64..=100, 0u64..3, body(is_plain)).prop_map(move |(period, share, jitter, body)| Task {
            deadline: Nanos(period * UNIT * share / 100),
            jitter: Nanos(if is_plain { 0 } else { jitter * UNIT }),
            body,
            ..Task::periodic("t", Nanos(1), Nanos(period * UNIT))
        })
    });
    (prop::collection::vec(task, 1..10), 1usize..6, costs(), select(vec![1u64, 2, 4])).prop_map(
        |(tasks, cpus, costs, ticks)| {
            let mut platform = Platform::identical(cpus);
            platform.tick = Nanos(2 * UNIT);
            platform.quantum = Nanos(2 * UNIT * ticks / 2 * 2 / 2).max(platform.tick);
            platform.overheads = OverheadProfile::constant("test", costs);
            if cpus >= 4 {
                let second = platform.clusters[0].split_off(3);
                platform.clusters.push(second);
            }
            Workload::new("random", platform, tasks)
        },
    )
}

/// `workload` with execution times of `permille` thousandths: what the scaling factor speaks of.
fn scaled(workload: &Workload, permille: u64) -> Workload {
    let mut workload = workload.clone();
    for task in &mut workload.tasks {
        for step in &mut task.body {
            if let Step::Cpu(time) | Step::NonPreemptive(time) = step {
                time.wcet = Nanos((time.wcet.0 * permille / 1_000).max(1));
            }
        }
    }
    workload
}

/// Synchronous, randomly offset, and sporadic arrivals with gaps.
fn patterns(workload: &Workload, offsets: &[u64]) -> Vec<Workload> {
    let with = |change: &dyn Fn(usize, &mut Task)| {
        let mut workload = workload.clone();
        workload.tasks.iter_mut().enumerate().for_each(|(index, task)| change(index, task));
        workload
    };
    let gap = Distribution::Uniform { min: Nanos::ZERO, max: Nanos(3 * UNIT) };
    vec![
        workload.clone(),
        with(&|index, task| task.phase = Nanos(offsets[index])),
        with(&|index, task| {
            task.phase = Nanos(offsets[index] / 10);
            task.arrival = Arrival::Sporadic { gap: gap.clone() };
        }),
    ]
}

fn observe(workload: &Workload, scheduler: &Scheduler, seed: u64) -> Summary {
    let end = Instant(1_000 * UNIT);
    let (header, records) = simulate(workload, scheduler, end, seed);
    measure(&header, &records, end)
}

/// No observation exceeds what `report` promises.
fn compare(report: &Report, summary: &Summary, context: &str) -> Result<(), TestCaseError> {
    if report.hard.is_schedulable() {
        prop_assert_eq!(summary.total.missed, 0, "{}: accepted by {:?}", context, report.hard.tests);
    }
    for (task, observed) in report.tasks.iter().zip(&summary.tasks) {
        let (Some(bound), Some(tardiness)) = (task.response_time, task.tardiness) else { continue };
        let response = observed.jobs.response_time.map_or(Nanos::ZERO, |times| times.max);
        prop_assert!(response <= bound.time, "{context}: {} responds in {response}, {bound:?}", observed.task);
        let late = observed.jobs.tardiness.map_or(Nanos::ZERO, |tardiness| tardiness.max);
        prop_assert!(late <= tardiness, "{context}: {} is {late} late, at most {tardiness}", observed.task);
    }
    Ok(())
}

fn options(criterion: Criterion) -> Options {
    Options { criterion, ..Options::default() }
}

/// Grows the execution times until the criterion is just proven, checks again, and simulates.
fn judge(
    workload: &Workload,
    scheduler: &Scheduler,
    criterion: Criterion,
    offsets: &[u64],
    seed: u64,
) -> Result<bool, TestCaseError> {
    let first = check(workload, scheduler, &options(criterion));
    let Some(permille) = first.scaling.and_then(|scaling| scaling.permille) else { return Ok(false) };
    let workload = scaled(workload, permille);
    let report = check(&workload, scheduler, &Options { scaling: false, ..options(criterion) });
    if !report.finding(criterion).is_schedulable() {
        // Rounding may have moved a task to another CPU.
        return Ok(false);
    }
    for (number, pattern) in patterns(&workload, offsets).iter().enumerate() {
        let context = format!("{scheduler}, pattern {number}, seed {seed}");
        compare(&report, &observe(pattern, scheduler, seed), &context)?;
    }
    Ok(true)
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 100_000, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn what_is_proven_schedulable_misses_no_deadline_and_exceeds_no_bound(
        workload in workload(), scheduler in scheduler(),
        offsets in prop::collection::vec(0..60 * UNIT, 10), seed in any::<u64>(),
    ) {
        prop_assume!(judge(&workload, &scheduler, Criterion::Hard, &offsets, seed)?);
    }

    #[test]
    fn what_is_proven_tardy_by_so_much_is_not_tardy_by_more(
        workload in workload(), scheduler in scheduler(),
        offsets in prop::collection::vec(0..60 * UNIT, 10), seed in any::<u64>(),
    ) {
        prop_assume!(judge(&workload, &scheduler, Criterion::Soft, &offsets, seed)?);
    }

    #[test]
    fn tasks_are_assigned_to_the_clusters_that_the_simulator_assigns_them_to(
        workload in workload(), scheduler in scheduler(), named in prop::collection::vec(prop::option::of(0usize..5), 10),
    ) {
        let mut workload = workload;
        let clusters = match scheduler.scope {
            Scope::Partitioned => workload.platform.cpus,
            _ => workload.platform.clusters.len(),
        };
        for (task, named) in workload.tasks.iter_mut().zip(named) {
            task.cluster = named.filter(|&cluster| cluster < clusters);
            task.body.truncate(1);
        }
        let report = check(&workload, &scheduler, &Options { scaling: false, ..Options::default() });
        match Plan::new(&workload, &scheduler, 0) {
            Err(_) => prop_assert!(!report.refusals.is_empty(), "{scheduler}: refused by the simulator only"),
            Ok(plan) => {
                prop_assert!(report.refusals.is_empty(), "{scheduler}: {:?}", report.refusals);
                let theirs: Vec<usize> = plan.header.tasks.iter().map(|task| task.cluster).collect();
                let ours: Vec<usize> = report.tasks.iter().map(|task| task.cluster).collect();
                prop_assert_eq!(ours, theirs, "{}", scheduler);
                let cpus: Vec<_> = report.clusters.iter().map(|cluster| cluster.cpus.clone()).collect();
                prop_assert_eq!(&cpus, &plan.header.clusters);
            }
        }
    }
}

/// Tasks that never wait, on CPUs that are scheduled apart, where interrupts may count once. In half of them nothing else costs
/// anything, so that no other term hides one that counts too little.
fn apart() -> impl Strategy<Value = (Workload, Scheduler)> {
    let rules =
        vec![PriorityRule::Edf, PriorityRule::Edf, PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic];
    let interrupts = vec![ReleaseInterrupts::Global, ReleaseInterrupts::Global, ReleaseInterrupts::Dedicated];
    (workload(), scheduler(), select(rules), select(interrupts), any::<bool>()).prop_map(
        |(mut workload, scheduler, rule, interrupts, is_bare)| {
            for task in &mut workload.tasks {
                task.body.retain(|step| !matches!(step, Step::Suspend(_)));
            }
            if is_bare {
                let OverheadCosts { release, tick, .. } = workload.platform.overheads.at(1);
                let costs = OverheadCosts { release, tick, ..OverheadCosts::default() };
                workload.platform.overheads = OverheadProfile::constant("interrupts", costs);
            }
            let (scope, invocation) = (Scope::Partitioned, Invocation::EventDriven);
            (workload, Scheduler { rule, scope, invocation, interrupts, ..scheduler })
        },
    )
}

/// Execution times grow until `check` just proves the set, so that what counts too little shows. `make test` tries 1,000 sets;
/// for 10,000 and more, set `LAXITY_SYSTEMS`.
#[test]
fn interrupts_that_count_once_are_not_too_few() {
    let cases = std::env::var("LAXITY_SYSTEMS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) };
    let (edf, fixed) = (std::cell::Cell::new(0u32), std::cell::Cell::new(0u32));
    let offsets = prop::collection::vec(0..60 * UNIT, 10);
    let result =
        TestRunner::new(config).run(&(apart(), offsets, any::<u64>()), |((workload, scheduler), offsets, seed)| {
            let first = check(&workload, &scheduler, &options(Criterion::Hard));
            let Some(permille) = first.scaling.and_then(|scaling| scaling.permille) else { return Ok(()) };
            let workload = scaled(&workload, permille);
            let report = check(&workload, &scheduler, &Options { scaling: false, ..options(Criterion::Hard) });
            for (test, count) in
                [(Test::UniprocessorEdfInterrupts, &edf), (Test::UniprocessorFixedPriorityInterrupts, &fixed)]
            {
                count.set(count.get() + u32::from(report.hard.tests.contains(&test)));
            }
            for (number, pattern) in patterns(&workload, &offsets).iter().enumerate() {
                let context = format!("{scheduler}, pattern {number}, seed {seed}");
                compare(&report, &observe(pattern, &scheduler, seed), &context)?;
            }
            Ok(())
        });
    if let Err(error) = result {
        panic!("{error}");
    }
    println!(
        "of {cases} sets {} are proven under EDF and {} under fixed priorities with interrupts once",
        edf.get(),
        fixed.get()
    );
    // Under fixed priorities the analysis of busy periods proves others, for which interrupts need not count once.
    assert!(edf.get() > cases / 10 && fixed.get() > cases / 20, "the test tests something");
}

/// Staggered quanta of 1 ms on two CPUs, those of cpu1 half a millisecond later. Whenever "often" (O) arrives, the CPU
/// that looks next is the one on which "long" (L) runs. So L is displaced, though the less urgent "filler" (F) runs on
/// the other CPU, and waits for half a quantum until that one looks:
///
/// ```text
/// ms    0   1   2   3   4   5   6   7   8   9   10
/// cpu0  L L L L L L O O F F F F F F F F L L L L L
/// cpu1  . F F F F F F L L L L L L L L O O F F F F
///                   ^ L waits         ^ L waits
/// ```
///
/// The published accounting charges that once a job; it happens with every job of "often".
#[test]
fn staggered_quanta_displace_the_wrong_job_again_and_again() {
    let often = Task { phase: Nanos(2_900_000), ..Task::periodic("often", Nanos(900_000), Nanos(4_500_000)) };
    let long = Task::periodic("long", Nanos(30_000_000), Nanos(50_000_000));
    let filler = Task::periodic("filler", Nanos(300_000_000), Nanos(1_000_000_000));
    let workload = Workload::new("staggered", Platform::identical(2), vec![often, long, filler]);
    let scheduler: Scheduler = "G-RM/S-CQm".parse().expect("a scheduler");
    let bound = |accounting| {
        let options = Options { accounting, scaling: false, ..Options::default() };
        let report = check(&workload, &scheduler, &options);
        report.tasks[1].response_time.expect("the second most urgent of three on two CPUs").time
    };
    let end = Instant(1_000_000_000);
    let (header, records) = simulate(&workload, &scheduler, end, 0);
    let seen = measure(&header, &records, end).tasks[1].jobs.response_time.expect("it completes").max;
    assert!(seen > bound(Accounting::Published), "{seen} shows that {} is too little", bound(Accounting::Published));
    assert!(seen <= bound(Accounting::Safe), "{seen} exceeds {}", bound(Accounting::Safe));
}
