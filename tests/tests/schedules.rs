//! The checkers judge the simulator: every schedule it produces is legal and follows the policy it names, with and
//! without overheads, whatever the scheduler.

use laxity_model::{
    Distribution, ExecutionTime, Instant, Invocation, JobId, Nanos, OverheadCosts, OverheadProfile, Platform,
    PriorityRule, Quanta, ReadyQueueKind, ReleaseInterrupts, Scheduler, Scope, Step, Task, Workload,
};
use laxity_tests::simulate;
use laxity_trace::check;
use proptest::prelude::*;
use proptest::sample::select;

const UNIT: u64 = 10_000;

fn scheduler() -> impl Strategy<Value = Scheduler> {
    (
        select(vec![PriorityRule::Edf, PriorityRule::RateMonotonic, PriorityRule::DeadlineMonotonic]),
        select(vec![Scope::Global, Scope::Clustered, Scope::Partitioned]),
        select(vec![Invocation::EventDriven, Invocation::QuantumDriven]),
        select(vec![Quanta::Aligned, Quanta::Staggered]),
        select(vec![ReleaseInterrupts::Global, ReleaseInterrupts::Dedicated]),
        select(vec![ReadyQueueKind::Coarse, ReadyQueueKind::Fine, ReadyQueueKind::Hierarchical]),
        any::<bool>(),
    )
        .prop_map(|(rule, scope, invocation, quanta, interrupts, ready_queue, coarse_lock)| Scheduler {
            rule,
            scope,
            invocation,
            quanta,
            interrupts,
            ready_queue,
            coarse_lock,
        })
}

fn body() -> impl Strategy<Value = Vec<Step>> {
    let time = |max: u64| {
        (1..=max).prop_flat_map(|wcet| (Just(wcet), 1..=wcet)).prop_map(|(wcet, least)| ExecutionTime {
            wcet: Nanos(wcet * UNIT),
            actual: Distribution::Uniform { min: Nanos(least * UNIT), max: Nanos(wcet * UNIT) },
        })
    };
    let step = prop_oneof![
        4 => time(4).prop_map(Step::Cpu),
        1 => time(2).prop_map(Step::NonPreemptive),
        1 => time(3).prop_map(Step::Suspend),
    ];
    (time(4).prop_map(Step::Cpu), prop::collection::vec(step, 0..3)).prop_map(|(first, mut rest)| {
        rest.insert(0, first);
        rest
    })
}

fn workload(with_sections: bool) -> impl Strategy<Value = Workload> {
    let task =
        (3u64..20, 2u64..25, 0u64..10, 0u64..3, body()).prop_map(move |(period, deadline, phase, jitter, mut body)| {
            if !with_sections {
                body.truncate(1);
            }
            Task {
                deadline: Nanos(deadline * UNIT),
                phase: Nanos(phase * UNIT),
                jitter: Nanos(jitter * UNIT),
                body,
                ..Task::periodic("t", Nanos(1), Nanos(period * UNIT))
            }
        });
    (prop::collection::vec(task, 1..9), 2usize..6, any::<bool>()).prop_map(|(tasks, cpus, costly)| {
        let mut platform = Platform::identical(cpus);
        platform.quantum = Nanos(2 * UNIT);
        platform.tick = Nanos(2 * UNIT);
        if costly {
            let costs = OverheadCosts {
                release: Nanos(700),
                scheduling: Nanos(400),
                context_switch: Nanos(300),
                ipi_latency: Nanos(250),
                tick: Nanos(150),
                timer_rearming: Nanos(100),
                cache_preemption: Nanos(500),
                cache_migration: Nanos(900),
                ..OverheadCosts::default()
            };
            platform.overheads = OverheadProfile::constant("test", costs);
        }
        if cpus >= 4 {
            // Two clusters of unequal size.
            let second = platform.clusters[0].split_off(3);
            platform.clusters.push(second);
        }
        Workload::new("random", platform, tasks)
    })
}

/// The cost of jobs of tasks whose bodies never vary.
fn constant_costs(workload: &Workload) -> impl Fn(JobId) -> Option<Nanos> {
    let costs: Vec<Option<Nanos>> = workload
        .tasks
        .iter()
        .map(|task| match &task.body[..] {
            [Step::Cpu(ExecutionTime { wcet, actual: Distribution::WorstCase })] => Some(*wcet),
            [Step::Cpu(ExecutionTime { actual: Distribution::Uniform { min, max }, .. })] if min == max => Some(*max),
            _ => None,
        })
        .collect();
    move |job| costs[job.task.index()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_simulated_schedule_is_legal_and_follows_its_policy(
        workload in workload(false), scheduler in scheduler(), seed in any::<u64>(),
    ) {
        judge(&workload, &scheduler, seed)?;
    }

    #[test]
    fn so_is_every_schedule_with_suspensions_and_non_preemptive_sections(
        workload in workload(true), scheduler in scheduler(), seed in any::<u64>(),
    ) {
        judge(&workload, &scheduler, seed)?;
    }
}

fn judge(workload: &Workload, scheduler: &Scheduler, seed: u64) -> Result<(), TestCaseError> {
    let (header, records) = simulate(workload, scheduler, Instant(400 * UNIT), seed);
    let legality = check::legality(&header, &records, constant_costs(workload));
    prop_assert!(legality.is_clean(), "{scheduler}: {legality}");
    let policy = check::policy(&header, &records);
    prop_assert!(policy.is_clean(), "{scheduler}: {policy}");
    Ok(())
}
