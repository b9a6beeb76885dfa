//! `check` against the simulator where tasks share resources and GPUs: under every arbitration and every handling of
//! interrupts that is accounted for, with overheads and without, no simulated job exceeds what is proven.

use laxity_analysis::check::Criterion;
use laxity_model::{Edge, ExecutionTime, Graph, Nanos, Node, Platform, Step, Task, Workload};
use laxity_tests::judge::{checked, compare, just_proven, observe};
use laxity_tests::systems::{patterns, system};

const SYSTEMS: u64 = 2_000;

/// Judges systems of `seeds`, and says how many were proven and how near observations came to their bounds.
fn judge(seeds: std::ops::Range<u64>, criterion: Criterion) -> (u32, f64) {
    let (mut proven, mut nearest) = (0, 0.0f64);
    for seed in seeds {
        let (workload, scheduler) = system(seed);
        let Some((workload, report)) = just_proven(&workload, &scheduler, criterion) else { continue };
        proven += 1;
        for (number, pattern) in patterns(&workload, seed).iter().enumerate() {
            let management = &workload.gpu_management;
            let context = format!(
                "seed {seed}, {scheduler}, {}, {}, pattern {number}",
                management.arbitration.name(),
                management.handling.name()
            );
            let seen = observe(pattern, &scheduler, seed);
            compare(&report, pattern, &seen, &context);
            for (task, observed) in report.tasks.iter().zip(&seen.0.tasks) {
                let (Some(bound), Some(seen)) = (task.response_time, observed.jobs.response_time) else { continue };
                nearest = nearest.max(seen.max.0 as f64 / bound.time.0.max(1) as f64);
            }
        }
    }
    (proven, nearest)
}

#[test]
fn what_is_proven_to_meet_deadlines_does() {
    let (proven, nearest) = judge(0..SYSTEMS, Criterion::Hard);
    eprintln!("{proven} proven, nearest {nearest}");
    assert!(proven > SYSTEMS as u32 / 2, "{proven} systems are too few to tell");
}

#[test]
fn what_is_proven_tardy_by_so_much_is_not_tardy_by_more() {
    let (proven, nearest) = judge(SYSTEMS..2 * SYSTEMS, Criterion::Soft);
    eprintln!("{proven} proven, nearest {nearest}");
    assert!(proven > SYSTEMS as u32 / 2, "{proven} systems are too few to tell");
}

/// Two tokens release two jobs of "work", the second of which runs before it arrives:
///
/// ```text
/// ms    0   1                    21                   41  42
/// cpu0  in  work 0 (arrives 1)   work 1 (arrives 51)  background
/// ```
#[test]
fn a_job_that_runs_before_it_arrives_delays_others() {
    let body = |wcet: u64| vec![Step::Cpu(ExecutionTime::constant(Nanos::from_millis(wcet)))];
    let node = |name: &str, wcet, period: Option<u64>| Node {
        body: body(wcet),
        ..Node::new(name, period.map(Nanos::from_millis))
    };
    let edge = Edge { produce: 2, ..Edge::new(0, 1) };
    let background = Task::periodic("background", Nanos::from_millis(1), Nanos::from_millis(200));
    let mut workload = Workload::new("early", Platform::identical(1), vec![background]);
    let nodes = vec![node("in", 1, Some(100)), node("work", 20, None)];
    workload.graphs.push(Graph::new("g", nodes, vec![edge]));
    for scheduler in ["G-EDF", "G-RM"] {
        let scheduler = scheduler.parse().expect("a scheduler");
        let report = checked(&workload, &scheduler);
        let seen = observe(&workload, &scheduler, 0);
        compare(&report, &workload, &seen, &scheduler.to_string());
        let response = seen.0.tasks[0].jobs.response_time.expect("it completes").max;
        assert_eq!(response, Nanos::from_millis(42), "{scheduler}");
    }
}
