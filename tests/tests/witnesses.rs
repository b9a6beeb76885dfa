//! Analysis and simulation are independent witnesses: no simulated job of a set that a test accepts misses its deadline,
//! and no observed tardiness or response time exceeds its bound.

use laxity_analysis::gedf::{HardMode, hard, rta};
use laxity_analysis::soft::tardiness;
use laxity_analysis::{AnalysisTask, Limits, TaskSet};
use laxity_model::{Instant, Nanos, Platform, Scheduler, Task, Workload};
use laxity_tests::simulate;
use laxity_trace::metrics::{Summary, measure};
use proptest::prelude::*;

const UNIT: u64 = 1_000;

fn tasks() -> impl Strategy<Value = Vec<Task>> {
    let task = (2u64..25).prop_flat_map(|period| {
        (1..=period).prop_flat_map(move |deadline| {
            (1..=deadline.min(1 + period / 2)).prop_map(move |wcet| Task {
                deadline: Nanos(deadline * UNIT),
                ..Task::periodic("t", Nanos(wcet * UNIT), Nanos(period * UNIT))
            })
        })
    });
    prop::collection::vec(task, 2..8)
}

fn analysed(cpus: u32, tasks: &[Task]) -> TaskSet {
    TaskSet::new(cpus, tasks.iter().map(AnalysisTask::from).collect()).expect("small parameters")
}

/// Synchronous, randomly offset, and sporadic arrivals with gaps.
fn patterns(tasks: &[Task], offsets: &[u64]) -> Vec<Vec<Task>> {
    let offset = |(task, offset): (&Task, &u64)| Task { phase: Nanos(offset * UNIT), ..task.clone() };
    let sporadic = |task: &Task| Task {
        arrival: laxity_model::Arrival::Sporadic {
            gap: laxity_model::Distribution::Uniform { min: Nanos::ZERO, max: Nanos(7 * UNIT) },
        },
        ..task.clone()
    };
    vec![tasks.to_vec(), tasks.iter().zip(offsets).map(offset).collect(), tasks.iter().map(sporadic).collect()]
}

fn observe(cpus: usize, tasks: Vec<Task>, scheduler: &str, seed: u64) -> Summary {
    let workload = Workload::new("witness", Platform::identical(cpus), tasks);
    let end = Instant(600 * UNIT);
    let (header, records) = simulate(&workload, &scheduler.parse().expect("a name"), end, seed);
    measure(&header, &records, end)
}

proptest! {
    #![proptest_config(ProptestConfig { max_global_rejects: 200_000, ..ProptestConfig::with_cases(1_200) })]

    #[test]
    fn no_job_of_an_accepted_set_misses(
        tasks in tasks(), cpus in 2u32..5, offsets in prop::collection::vec(0u64..25, 8), seed in any::<u64>(),
    ) {
        let report = hard(&analysed(cpus, &tasks), HardMode::AllTests, &Limits::default());
        prop_assume!(!report.accepted.is_empty());
        for pattern in patterns(&tasks, &offsets) {
            let summary = observe(cpus as usize, pattern, "G-EDF", seed);
            prop_assert_eq!(summary.total.missed, 0, "accepted by {:?}", report.accepted);
        }
    }

    #[test]
    fn no_response_time_exceeds_its_bound(
        tasks in tasks(), cpus in 2u32..5, offsets in prop::collection::vec(0u64..25, 8), seed in any::<u64>(),
    ) {
        let verdict = rta(&analysed(cpus, &tasks), &Limits::default());
        prop_assume!(verdict.response_times().is_some());
        let bounds = verdict.response_times().expect("assumed");
        for pattern in patterns(&tasks, &offsets) {
            for (task, &bound) in observe(cpus as usize, pattern, "G-EDF", seed).tasks.iter().zip(bounds) {
                let observed = task.jobs.response_time.map_or(0, |times| times.max.as_nanos());
                prop_assert!(observed <= bound, "{} responded after {} of at most {}", task.task, observed, bound);
            }
        }
    }

    #[test]
    fn no_tardiness_exceeds_its_bound(
        tasks in tasks(), cpus in 1u32..4, offsets in prop::collection::vec(0u64..25, 8), seed in any::<u64>(),
    ) {
        let bounds = tardiness(&analysed(cpus, &tasks), &Limits::default());
        prop_assume!(bounds.is_ok());
        let bounds = bounds.expect("assumed").bounds;
        for pattern in patterns(&tasks, &offsets) {
            for (task, &bound) in observe(cpus as usize, pattern, "G-EDF", seed).tasks.iter().zip(&bounds) {
                let observed = task.jobs.tardiness.map_or(0, |tardiness| tardiness.max.as_nanos());
                prop_assert!(observed <= bound, "{} was {} ns late, at most {}", task.task, observed, bound);
            }
        }
    }
}

/// At the resolution of a tick: a hard schedulable set has the same schedule quantum- and event-driven.
#[test]
fn a_schedulable_set_runs_the_same_with_quanta_of_one_tick() {
    let task = |wcet, period| Task::periodic("t", Nanos(wcet * UNIT), Nanos(period * UNIT));
    let tasks = vec![task(1, 4), task(2, 5), task(3, 10), task(2, 8), task(5, 20)];
    let accepted = hard(&analysed(2, &tasks), HardMode::FirstAcceptance, &Limits::default()).accepted;
    assert!(!accepted.is_empty());
    let mut workload = Workload::new("at ticks", Platform::identical(2), tasks);
    workload.platform.quantum = Nanos(UNIT);
    workload.platform.tick = Nanos(UNIT);
    let run = |name: &str| {
        let (_, records) = simulate(&workload, &name.parse::<Scheduler>().expect("a name"), Instant(400 * UNIT), 0);
        records
            .into_iter()
            .filter(|record| {
                use laxity_trace::Event;
                matches!(record.event, Event::Dispatch { .. } | Event::Preempt { .. } | Event::Complete { .. })
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(run("CEm"), run("CQm"));
}
