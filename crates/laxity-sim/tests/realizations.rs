//! All realizations of a policy, with overheads of any kind, as the checker of traces judges them: simulations follow what their
//! header says, and not what another header says.

mod common;

use common::run;
use laxity_model::{
    ExecutionTime, Instant, Nanos, OverheadCosts, OverheadProfile, Platform, Resource, ResourceProtocol, Scheduler,
    Step, Task, Workload,
};
use laxity_plan::Plan;
use laxity_trace::check::{self, Problem};
use laxity_trace::{Record, TraceHeader};
use proptest::prelude::*;

const US: u64 = 1_000;

fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

prop_compose! {
    /// Tasks with suspensions and sections, on quanta of 1 ms with one to four ticks each.
    fn systems()(
        parameters in prop::collection::vec((1u64..60, 1u64..8, 0u64..3000, 0usize..4), 1..9),
        cpus in 2usize..5,
        ticks in 1u64..5,
        costs in prop::collection::vec(prop_oneof![Just(0), 1..40 * US], 6),
        latency in 0..20 * US,
    ) -> Workload {
        let task = |(index, (period, share, phase, kind)): (usize, (u64, u64, u64, usize))| {
            let period = us(250 * period);
            let part = ExecutionTime::constant(Nanos((period.0 * share / 30).max(2 * US)));
            let rest = match kind {
                0 => vec![],
                1 => vec![Step::Suspend(ExecutionTime::constant(us(300))), Step::Cpu(part.clone())],
                2 => vec![Step::Critical { resource: 0, body: vec![Step::Cpu(part.clone())] }],
                _ => vec![Step::NonPreemptive(part.clone())],
            };
            let body = [vec![Step::Cpu(part)], rest].concat();
            Task { body, phase: us(phase), ..Task::periodic(format!("t{index}"), us(1), period) }
        };
        let costs = OverheadCosts {
            release: Nanos(costs[0]),
            scheduling: Nanos(costs[1]),
            context_switch: Nanos(costs[2]),
            tick: Nanos(costs[3]),
            timer_rearming: Nanos(costs[4]),
            cache_preemption: Nanos(costs[5]),
            ipi_latency: Nanos(latency),
            ..OverheadCosts::default()
        };
        let overheads = OverheadProfile::constant("random", costs);
        let platform = Platform { overheads, tick: Nanos(1_000 * US / ticks / US * US), ..Platform::identical(cpus) };
        let platform = Platform { quantum: Nanos(platform.tick.0 * ticks), ..platform };
        let mutex = Resource { name: "map".to_owned(), protocol: ResourceProtocol::PriorityInheritance, replicas: 1 };
        let tasks = parameters.into_iter().enumerate().map(task).collect();
        Workload { resources: vec![mutex], ..Workload::new("w", platform, tasks) }
    }
}

fn simulated(workload: &Workload, scheduler: &str, seed: u64) -> (TraceHeader, Vec<Record>) {
    let scheduler: Scheduler = scheduler.parse().expect("it is one");
    let plan = Plan::new(workload, &scheduler, seed).expect("all of it can be simulated");
    (plan.header.clone(), run(workload, &scheduler, Instant::from_millis(60), seed))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn simulations_of_all_realizations_follow_their_policies(workload in systems(), seed in any::<u64>()) {
        if workload.validate().is_err() {
            return Ok(());
        }
        for policy in ["G-EDF", "G-RM"] {
            for realization in ["CEm", "CE1", "CQm", "CQ1", "S-CQm", "S-CQ1", "HEm", "FQ1"] {
                let scheduler = format!("{policy}/{realization}");
                let (header, records) = simulated(&workload, &scheduler, seed);
                let report = check::policy(&header, &records);
                prop_assert!(report.is_clean(), "{}: {}", scheduler, report);
            }
        }
    }
}

/// Jobs of 3 to 8 ms that begin and end amid quanta of 1 ms.
fn plain(tick: Nanos) -> Workload {
    let costs =
        OverheadCosts { release: us(5), scheduling: us(4), context_switch: us(3), tick, ..OverheadCosts::default() };
    let platform = Platform { overheads: OverheadProfile::constant("c", costs), ..Platform::identical(4) };
    let task = |index: u64| Task {
        phase: us(700 * index),
        ..Task::periodic("t", us(3_300 + 500 * index), us(9_700 + 900 * index))
    };
    Workload::new("w", platform, (0..9).map(task).collect())
}

#[test]
fn quanta_other_than_those_of_the_header_are_found() {
    for tick in [us(2), Nanos::ZERO] {
        for realization in ["CQm", "CQ1", "S-CQm", "S-CQ1"] {
            let (mut header, records) = simulated(&plain(tick), &format!("G-EDF/{realization}"), 0);
            assert_eq!(check::policy(&header, &records).to_string(), "", "{realization}");
            for quantum in [3, 7] {
                header.quantum = Nanos::from_millis(quantum);
                let found = check::policy(&header, &records).violations;
                let is_amid = found.iter().any(|it| matches!(it.what, Problem::LinkedWithinQuantum { .. }));
                assert!(is_amid, "{realization}, {quantum} ms, ticks of {tick}: {found:?}");
            }
        }
    }
}

#[test]
fn interrupts_on_all_cpus_are_found_where_the_header_says_that_one_is_dedicated() {
    for (shared, dedicated) in [("CEm", "CE1"), ("CQm", "CQ1"), ("S-CQm", "S-CQ1")] {
        let (mut header, records) = simulated(&plain(us(2)), &format!("G-EDF/{shared}"), 0);
        header.scheduler = format!("G-EDF/{dedicated}").parse().expect("it is one");
        let found = check::policy(&header, &records).violations;
        assert!(found.iter().any(|it| it.what == Problem::NotDedicated), "{dedicated}: {found:?}");
    }
}
